// Bundle src/ into the Python package.  What is written there is committed; `.ci/run` checks that it is current.
import { build } from "esbuild";
import { copyFile } from "node:fs/promises";

const folder = "../src/zerogap/explorer";

await build({
  entryPoints: ["src/main.js"],
  outfile: `${folder}/bundle.js`,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  banner: { js: "/* Made of explorer/src by `npm run build`. Holds uPlot, MIT: see uplot-license.txt. */" },
});
await copyFile("node_modules/uplot/LICENSE", `${folder}/uplot-license.txt`);
