// What Python writes: JSON, with arrays as {"type": "f8", "data": base64 of little-endian numbers}.

const TYPES = { f8: Float64Array, f4: Float32Array, i4: Int32Array, i1: Int8Array };

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const found = atob(text);
  const bytes = new Uint8Array(found.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = found.charCodeAt(i);
  return bytes;
}

/** Return a payload with its arrays as typed arrays. */
export function decoded(text) {
  return JSON.parse(text, (_, value) => {
    if (value === null || typeof value !== "object" || typeof value.data !== "string" || !TYPES[value.type]) return value;
    return new TYPES[value.type](bytesOf(value.data).buffer);
  });
}
