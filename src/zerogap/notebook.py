"""How results look in a notebook: small tables and pictures in HTML.  They read results, and compute nothing.

Colours are mixed from the page's own, so that they are legible on light and on dark ground; the two that are not differ for
every kind of sight, and nothing is told by a colour alone.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zerogap.solvers import name_of
from zerogap.wording import (
    box_in_words,
    count,
    duration,
    kernel_in_words,
    memory_in_words,
    number,
    objectives,
    points_in_words,
    problem_in_words,
    share,
    work_in_words,
)

if TYPE_CHECKING:
    from zerogap.certificate import Certificate
    from zerogap.comparison import Comparison
    from zerogap.estimators.loo import LeaveOneOut
    from zerogap.foreign.report import ModelCertificate
    from zerogap.gram import Gram
    from zerogap.path.curve import ScoreCurve
    from zerogap.path.error_curve import ErrorCurve
    from zerogap.path.result import Path
    from zerogap.problem import DualProblem
    from zerogap.solution import Solution, Status, Trace

BLUE, ORANGE = "#2f8fc6", "#dd7a1a"
MOST_POINTS = 200  # of a curve: a page needs no more
MOST_ROWS = 20  # of a table of problems, the worst first
WIDTH, HEIGHT = 260, 84  # of a picture

CELL = "padding:1px 12px 1px 0;text-align:left;vertical-align:baseline;background:transparent;border:none"
NUMBER = "padding:1px 0 1px 16px;text-align:right;vertical-align:baseline;white-space:nowrap;background:transparent;border:none"
TABLE = "border-collapse:collapse;margin:0;border:none;font-size:inherit"
FAINT = "opacity:.72;font-weight:normal"


# Parts.


def card(
    kind: str, said: str, rows: Iterable[tuple[str, str]], *, is_good: bool = True, beside: str = "", below: str = ""
) -> str:
    """Return a title, what is to be said first, and terms with their values; ``beside`` and ``below`` are HTML."""
    cells = "".join(
        f'<tr style="background:transparent"><th scope="row" style="{CELL};{FAINT}">{escape(term)}</th>'
        f'<td style="{CELL}">{escape(value)}</td></tr>'
        for term, value in rows
    )
    table = f'<table style="{TABLE}"><tbody>{cells}</tbody></table>' if cells else ""
    return (
        f'<div style="border-left:4px solid {BLUE if is_good else ORANGE};padding:2px 0 4px 12px;margin:4px 0;line-height:1.45;'
        f'font-size:13px">'
        f'<div style="margin-bottom:4px"><b>{escape(kind)}</b> &nbsp;{escape(said)}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:8px 36px;align-items:flex-start">{table}{beside}</div>{below}</div>'
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1) -> str:
    """Return a table whose first columns are texts and whose others are numbers; cells are HTML."""

    def cell(tag: str, k: int, content: str, more: str = "") -> str:
        return f'<{tag} style="{CELL if k < texts else NUMBER}{more}">{content}</{tag}>'

    names = "".join(cell("th", k, escape(name), f";{FAINT}") for k, name in enumerate(columns))
    body = "".join(
        '<tr style="background:transparent">' + "".join(cell("td", k, value) for k, value in enumerate(row)) + "</tr>"
        for row in rows
    )
    rule = "border-bottom:1px solid;border-color:color-mix(in srgb, currentColor 35%, transparent)"
    head = f'<thead><tr style="background:transparent;{rule}">{names}</tr></thead>' if names else ""
    return f'<table style="{TABLE};margin-top:2px">{head}<tbody>{body}</tbody></table>'


def figures(value: float) -> str:
    """Return a number at the end of an axis."""
    return count(int(value)) if value == int(value) and abs(value) < 1e6 else number(value, 3)


class Scale(NamedTuple):
    """From values to pixels."""

    low: float
    high: float
    is_log: bool = False

    @classmethod
    def of(cls, values: np.ndarray, *, is_log: bool = False) -> "Scale":
        """Return the scale on which all values are seen."""
        return cls(float(values.min()), float(values.max()), is_log)

    @property
    def ends(self) -> tuple[str, str]:
        """The smallest and the largest value, in figures."""
        return figures(self.low), figures(self.high)

    def __call__(self, values: np.ndarray, begin: float, end: float) -> np.ndarray:
        """Return where the values are between two pixels."""
        low, high, v = self.low, self.high, np.asarray(values, dtype=np.float64)
        if self.is_log:
            low, high, v = np.log10(low), np.log10(high), np.log10(v)
        share = (v - low) / (high - low) if high > low else np.full(v.shape, 0.5)
        return begin + share * (end - begin)


def curve(x: np.ndarray, y: np.ndarray, *, steps: bool = False) -> str:
    """Return a curve through pixels, or a staircase from each to the next."""
    parts = [f"{'L' if k else 'M'}{a:.1f} {b:.1f}" for k, (a, b) in enumerate(zip(x, y, strict=True))]
    if steps:
        parts = [f"M{x[0]:.1f} {y[0]:.1f}", *(f"H{a:.1f}V{b:.1f}" for a, b in zip(x[1:], y[1:], strict=True))]
    return f'<path d="{"".join(parts)}" fill="none" stroke="{BLUE}" stroke-width="1.6" stroke-linejoin="round"/>'


def thinned(size: int, keep: int = 0) -> np.ndarray:
    """Return the numbers of some points of a curve, its ends and one to keep among them."""
    some = np.linspace(0, size - 1, min(size, MOST_POINTS)).astype(int)
    return np.unique(np.append(some, keep))


def picture(
    title: str,
    x: np.ndarray,
    y: np.ndarray,
    across: Scale,
    up: Scale,
    *,
    steps: bool = False,
    keep: int = 0,
    spans: Iterable[tuple[float, float]] = (),
) -> str:
    """Return a curve with its title and the ends of its scales; parts of the axis that ``spans`` name are marked."""
    k = thinned(x.size, keep)
    left, right, top, bottom = 48, WIDTH - 3, 22, HEIGHT - 17
    pixels = [across(np.array(span), left + 3, right) for span in spans]
    marks = "".join(
        f'<rect x="{a:.1f}" y="{top - 3}" width="{max(b - a, 1.5):.1f}" height="{bottom - top + 3}" fill="{ORANGE}" '
        'fill-opacity=".6"/>'
        for a, b in pixels
    )
    ends = (
        (left - 3, top + 4, "end", up.ends[1]),
        (left - 3, bottom, "end", up.ends[0] if up.high > up.low else ""),
        (left, HEIGHT - 4, "start", across.ends[0]),
        (right, HEIGHT - 4, "end", across.ends[1]),
        (0, 10, "start", title),
    )
    texts = "".join(
        f'<text x="{a}" y="{b}" text-anchor="{anchor}">{escape(text)}</text>' for a, b, anchor, text in ends
    )
    return (
        f'<svg role="img" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>{marks}'
        f'<g font-size="10" fill="currentColor" fill-opacity=".75">{texts}</g>'
        f'<path d="M{left} {top - 4}V{bottom + 2}H{right}" fill="none" stroke="currentColor" stroke-opacity=".35"/>'
        f"{curve(across(x[k], left + 3, right), up(y[k], bottom - 2, top), steps=steps)}</svg>"
    )


def drawn_gaps(trace: "Trace | dict[str, np.ndarray]") -> tuple[np.ndarray, np.ndarray] | None:
    """Return steps, and their gaps that have a logarithm; None where they are too few for a curve."""
    step, gap = trace["step"], trace["gap"]
    shown = np.isfinite(gap) & (gap > 0)
    return (step[shown], gap[shown]) if np.count_nonzero(shown) > 1 else None


def gap_picture(trace: "Trace") -> str:
    """Return the gap over the iterations; nothing where there is nothing to be seen."""
    drawn = drawn_gaps(trace)
    if drawn is None:
        return ""
    step, gap = drawn
    return picture("relative gap over iterations (log)", step, gap, Scale.of(step), Scale.of(gap, is_log=True))


def outcome(status: "Status | str") -> str:
    """Return a status, or its name, in words."""
    return (status if isinstance(status, str) else status.name).lower().replace("_", " ")


# Results.


def certificate_rows(certificate: "Certificate") -> list[tuple[str, str]]:
    """Return what a certificate says."""
    if not np.isfinite(certificate.relative_gap):
        return [("relative duality gap", "not known: nothing is proved")]
    dual, primal = objectives(certificate)
    return [
        ("relative duality gap", f"{certificate.relative_gap:.2g}, rounding included"),
        ("optimum between", f"{dual} and {primal}"),
        ("KKT violation", f"{certificate.kkt_violation:.2g}"),
    ]


def of_certificate(certificate: "Certificate") -> str:
    """Return the proof that a point is near the optimum."""
    is_known = np.isfinite(certificate.relative_gap)
    said = "from the data, in float64" if is_known else "of a point of which nothing is known"
    rows = certificate_rows(certificate)
    if is_known:
        rows += [("rounding at most", f"{certificate.rounding:.2g}"), ("bias", number(certificate.bias, 6))]
    return card("Certificate", said, rows, is_good=is_known)


def of_model_certificate(found: "ModelCertificate") -> str:
    """Return how far a model is from its optimum, and of several problems the worst ones."""
    worst, several, is_known = found.worst, len(found.names), np.isfinite(found.relative_gap)
    said = f"{found.estimator}: nothing proves how far it is off the optimum"
    if is_known:
        said = f"{found.estimator}: up to {share(found.relative_gap)} off the optimum"
    rows = [("worst problem", f"{found.worst_name}, of {several}")] if several > 1 else []
    rows += [("objective", number(worst.primal, 7)), ("optimum at least", number(worst.dual, 7))]
    if is_known:
        rows.append(("relative gap", f"{found.relative_gap:.2g}, rounding included"))
    if found.shortfall:
        rows.append(("not as asked for", found.shortfall))
    rows.append(("points", count(found.n_points)))
    if several == 1:
        rows.append(("coefficients not zero", count(found.n_support[0])))
    below = _problems(found) if several > 1 else ""
    return card("ModelCertificate", said, rows, is_good=bool(is_known) and not found.shortfall, below=below)


def _problems(found: "ModelCertificate") -> str:
    """Return a row for each of the problems that are furthest from their optimum."""
    columns = ("problem", "relative gap", "objective", "optimum at least", "coefficients not zero")
    gaps = np.array([certificate.relative_gap for certificate in found.certificates])
    order = np.argsort(-gaps, kind="stable")
    rows = [
        [
            *(escape(found.names[k]), f"{gaps[k]:.1e}", number(found.certificates[k].primal, 7)),
            *(number(found.certificates[k].dual, 7), count(found.n_support[k])),
        ]
        for k in order[:MOST_ROWS]
    ]
    if order.size > MOST_ROWS:
        rows.append([f"and {count(order.size - MOST_ROWS)} more", *[""] * (len(columns) - 1)])
    return table(columns, rows)


def of_solution(solution: "Solution") -> str:
    """Return how a run ended, what it has proved and how it came there."""
    is_good, trace = solution.status.name == "CONVERGED", solution.trace
    effort = [count(solution.n_iter, "iteration")]
    if len(trace):
        effort += [duration(trace[-1].seconds), count(trace[-1].kernel_evaluations, "kernel value")]
    rows = [
        ("problem", problem_in_words(solution.problem)),
        *certificate_rows(solution.certificate),
        ("support vectors", f"{count(solution.support.size)} of {count(solution.beta.size)}"),
        ("effort", ", ".join(effort)),
    ]
    said = f"{outcome(solution.status)}, by {name_of(solution.solver)}"
    if not is_good:
        said += f": {solution.status.advice}"
    return card("Solution", said, rows, is_good=is_good, beside=gap_picture(trace))


def of_trace(trace: "Trace", shown: Sequence[Any]) -> str:
    """Return the rows of a history that are shown; None stands for those left out."""
    columns = ("step", "seconds", "dual objective", "KKT violation", "relative gap", "kernel values", "support vectors")
    rows = [
        ["&hellip;"] * len(columns)
        if row is None
        else [
            *(count(row.step), f"{row.seconds:.3f}", number(row.dual, 7), f"{row.violation:.1e}", f"{row.gap:.1e}"),
            *(count(row.kernel_evaluations), count(row.support)),
        ]
        for row in shown
    ]
    below = table(columns, rows, texts=0) if rows else ""
    return card("Trace", count(len(trace), "row"), (), beside=gap_picture(trace), below=below)


def of_comparison(comparison: "Comparison") -> str:
    """Return a row for every solver, the least effort among those that have converged in bold."""
    columns = ("solver", "status", "iterations", "kernel values", "seconds", "relative gap", "support vectors")
    ended = [run.row for run in comparison.runs.values() if run.row["status"] == "CONVERGED"]
    efforts = {name: [row[name] for row in ended] for name in ("kernel_evaluations", "seconds")}
    least = {name: min(values) for name, values in efforts.items() if len(set(values)) > 1}
    draw = _gaps(comparison)
    rows, refused = [], []
    for name, run in comparison.runs.items():
        row = run.row
        if run.solution is None:
            refused.append((name, f"{outcome(run.why)}: {run.reason}"))
            continue
        values = {"kernel_evaluations": count(row["kernel_evaluations"]), "seconds": f"{row['seconds']:.3f}"}
        values = {
            key: f"<b>{value}</b>" if row["status"] == "CONVERGED" and row[key] == least.get(key) else value
            for key, value in values.items()
        }
        rows.append(
            [
                *(escape(name), outcome(row["status"]), count(row["iterations"]), *values.values()),
                *(f"{row['relative_gap']:.1e}", count(row["support_vectors"]), draw.get(name, "")),
            ]
        )
    below = table((*columns, "gap over iterations"), rows, texts=2) if rows else ""
    if refused:
        below += f'<div style="margin-top:6px">{table((), ((escape(a), escape(b)) for a, b in refused), texts=2)}</div>'
    said = f"{count(len(comparison), 'solver')} on {problem_in_words(comparison.problem)}"
    return card("Comparison", said, (), is_good=len(ended) == len(rows), below=below)


def _gaps(comparison: "Comparison") -> dict[str, str]:
    """Return small curves of the gap, which is logarithmic, over the iterations, all on the same scales."""
    gaps_of = {name: drawn_gaps(trace) for name, trace in comparison.traces.items()}
    found = {name: gaps for name, gaps in gaps_of.items() if gaps is not None}
    if not found:
        return {}
    steps, gaps = (np.concatenate(values) for values in zip(*found.values(), strict=True))
    across, up = Scale.of(steps), Scale.of(gaps, is_log=True)
    # One that goes far below what the others stop at would make these look flat.
    floor = 0.1 * float(np.median([gap[-1] for _, gap in found.values()]))
    up = up._replace(low=max(up.low, floor))
    width, height = 96, 20
    drawn = {}
    for name, (step, gap) in found.items():
        k = thinned(step.size)
        line = curve(across(step[k], 1, width - 1), up(np.maximum(gap[k], up.low), height - 2, 2))
        drawn[name] = (
            f'<svg role="img" width="{width}" height="{height}" style="vertical-align:middle" xmlns="http://www.w3.org/2000/svg">'
            f"<title>relative gap (logarithmic) over iterations, of {escape(name)}</title>{line}</svg>"
        )
    return drawn


def of_path(path: "Path") -> str:
    """Return the range of a path, what is proved of it, and the points on the margin over C, or what it runs over."""
    is_good, n, distinct = path.status == "complete", path.points.group.size, path.points.rows.size
    name, values, gap = path.parameter, path.value_of(path.lam), getattr(path, "gap", None)
    rows = [
        (
            "range",
            f"{name} from {number(values[0])} to {number(values[-1])}" if path.has_segments else "no segment yet",
        ),
        ("points", count(n) if n == distinct else f"{count(n)}, {count(distinct)} of them distinct"),
        ("breakpoints", f"{count(len(path))}, at which points change sets {count(path.n_events, 'time')}")
        if gap is None
        else ("solutions", f"{count(len(path))}, and straight lines between them"),
    ]
    beside, free = "", "on the margin" if gap is None else "that move on a line"
    if path.has_segments:
        n_free = path.n_free
        rows.append((free, f"at most {count(int(n_free.max()), 'point')}{' at once' * (gap is None)}"))
        if not path.n_unproved:
            rows.append(("largest relative gap", f"{path.proved.gap:.2g} over every {name}"))
        is_log = path.family.is_over_C
        across, up = Scale.of(values, is_log=is_log), Scale(0.0, float(n_free.max()))
        title = f"points {free} over {name}{' (log)' if is_log else ''}"
        beside = picture(title, values, n_free, across, up, steps=True, keep=int(n_free.argmax()))
    if path.n_backups:
        rows.append(("solved anew by SMO", count(path.n_backups, "time")))
    said = (
        (
            f"the exact solution for every {name}"
            if gap is None
            else f"within a relative gap of {number(gap)} at every {name}"
        )
        if is_good
        else f"ended early ({outcome(path.status)}); resume= goes on from there"
    )
    return card(type(path).__name__, said, rows, is_good=is_good, beside=beside)


def of_score_curve(found: "ScoreCurve") -> str:
    """Return the best score, where it is, and the curve with that marked."""
    best = found.best_intervals
    where = [f"{number(low)} to {number(high)}" for low, high in best[:3]] + ["..."] * (len(best) > 3)
    C, score = found.C, np.append(found.score, found.score[-1])
    rows = [("best score", number(found.best_score) if best else "not defined")]
    if best:
        rows += [("for C", ", ".join(where)), ("worst score", number(float(np.fmin.reduce(found.score))))]
    said = f"every C from {number(C[0])} to {number(C[-1])}"
    if found.is_exact:
        rows.append(("constant on", count(found.score.size, "interval")))
    else:
        said = f"C from {number(C[0])} to {number(C[-1])}, sampled"
        rows.append(("computed at", f"{count(found.score.size)} C; not exact in between"))
    beside, known = "", np.isfinite(score)
    if known.any():
        C, score = C[known], score[known]
        across, up = Scale.of(C, is_log=True), Scale.of(score)
        beside = picture(
            "score over C (log), the best marked",
            C,
            score,
            across,
            up,
            steps=True,
            keep=int(score.argmax()),
            spans=best[:20],
        )
    return card(type(found).__name__, said, rows, beside=beside)


def of_error_curve(found: "ErrorCurve") -> str:
    """Return the best score, where it is, and the curve with that marked."""
    best, name, edges = found.best_intervals, found.parameter, found.edges
    where = [number(low) if low == high else f"{number(low)} to {number(high)}" for low, high in best[:3]]
    rows = [
        ("best score", number(found.best_score)),
        (f"at {name}", ", ".join(where + ["..."] * (len(best) > 3))),
        ("worst score", number(found.worst_score)),
        ("quadratic or linear on", count(found.top.size, "piece")),
    ]
    is_log = name == "C"
    between = (np.geomspace if is_log else np.linspace)(edges[0], edges[-1], MOST_POINTS // 2)[1:-1]
    x = np.unique(np.concatenate([edges, found.at, between]))
    score = found(x)
    title = f"score over {name}{' (log)' if is_log else ''}, the best marked"
    across, up = Scale.of(edges, is_log=is_log), Scale.of(score)
    beside = picture(title, x, score, across, up, keep=int(score.argmax()), spans=best[:20])
    return card(
        "ErrorCurve",
        f"{found.scoring}, every {name} from {number(edges[0])} to {number(edges[-1])}",
        rows,
        beside=beside,
    )


def of_problem(problem: "DualProblem") -> str:
    """Return the formulation, its constraints and its kernel matrix."""
    constraint = "none" if problem.total is None else f"the coefficients sum to {number(problem.total)}"
    rows = [("constraint", f"{constraint}; {box_in_words(problem)}"), *gram_rows(problem.gram)]
    return card("DualProblem", problem_in_words(problem), rows)


def gram_rows(gram: "Gram") -> list[tuple[str, str]]:
    """Return what a kernel matrix is of, and what it has cost so far."""
    return [("kernel", kernel_in_words(gram)), ("memory", memory_in_words(gram)), ("work", work_in_words(gram))]


def of_gram(gram: "Gram") -> str:
    """Return a kernel matrix."""
    return card("Gram", f"the kernel matrix of {points_in_words(gram)}", gram_rows(gram))


def of_leave_one_out(found: "LeaveOneOut") -> str:
    """Return the error, and of how many rows it is."""
    done, n = found._n_done, len(found.decision_values)
    is_good = found.status.name == "CONVERGED"
    rows = [("error", number(found.error)), ("rows", count(n) if done == n else f"{count(done)} of {count(n)}")]
    said = "exact" if is_good else f"{outcome(found.status)}: the rows that were done"
    return card("LeaveOneOut", said, rows, is_good=is_good)
