"""Errors and warnings of the library in the command line's words: options in place of Python's names, one line each."""

import ast
import re
import shlex

from zerogap import tables

OPTIONS = {
    "C_min": "--C-min", "C_max": "--C-max", "C": "--C", "gamma": "--gamma", "degree": "--degree", "coef0": "--coef0",
    "epsilon": "--epsilon", "loss": "--loss", "tol": "--tol", "solver": "--solver", "max_time": "--max-time",
    "max_events": "--max-events", "kernel": "--kernel", "engine": "--engine", "linear_system": "--linear-system",
    "trace_every": "--trace-every", "random_state": "--seed", "scoring": "--scoring",
}  # fmt: skip

_ASSIGNMENT = re.compile(rf"\b({'|'.join(OPTIONS)})=('[^']*'|[^\s,;.:)]+(?:\.\d[^\s,;:)]*)?)")

# What the library advises where the command has another way, or none.
_PHRASES = (
    ("np.inf", "inf"),
    (" (StandardScaler)", " (leave out --raw)"),
    ("raise it, or resume from this solution", "raise it"),
    ("loosen the tolerance, or resume from this solution", "or loosen the tolerance"),
    ("; resume from this solution to go on", ""),
    ("raise it, or fit again with warm_start=True to go on", "raise it"),
    ("loosen the tolerance, or fit again with warm_start=True to go on", "or loosen the tolerance"),
    ("; fit again with warm_start=True to go on", ""),
    ("use another, such as 'simple-svm'", "use another, such as --solver simple-svm"),
    ("use a solver with a guarantee, such as 'smo'", "use one with a guarantee, such as --solver smo"),
    (" (max_iter=-1, that is ten million)", " (ten million)"),
    ("svm_path needs", "zerogap path needs"),
    ("or use SVC, which finds", "or zerogap fit, which finds"),
    ("Unknown solver", "--solver: unknown solver"),
    (" Go on with svm_path(X, y, ..., resume=path); the path of an SVCPath is its path_.", ""),
    ("svm_path was stopped", "the path was stopped"),
    ("Raise the limit, or go on with svm_path(X, y, ..., resume=model.path_).", "Raise the limit."),
    ("Raise the limit, or ask for fewer C.", "Raise the limit, or ask for fewer C (--C-max)."),
    ("SVCPath was stopped", "the path was stopped"),
    ("SVCPathCV was stopped", "the search was stopped"),
    ("SVRPathCV was stopped", "the search was stopped"),
    ("the first at C=", "the first at C = "),
    ("Allow more time, or ask for fewer C.", "Raise the limit, or ask for fewer C (--C-max)."),
    ("ends at C=", "ends at C = "),  # where it has got to is no option
    ("its start at C=", "its start at C = "),
    ("such as 'f1_macro', labels 0 and 1, or", "such as --scoring f1_macro, or name the class with"),
)

_SCORER_OF_A_CLASS = re.compile(r"make_scorer\(\w+, pos_label=(.+?)(, response_method='\w+')?\)(?=\.$)")


def in_options(text: str) -> str:
    """Return a message of the library with its parameters as options, on one line."""
    for python, option in _PHRASES:
        text = text.replace(python, option)
    text = _SCORER_OF_A_CLASS.sub(lambda match: f"--pos-label {shlex.quote(str(ast.literal_eval(match[1])))}", text)
    text = _ASSIGNMENT.sub(lambda match: f"{OPTIONS[match[1]]} {match[2].strip(chr(39))}", text)
    return " ".join(text.split())


def described(error: Exception) -> str:
    """Return one line that tells what went wrong."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror[0].lower()}{error.strerror[1:]}"
    if isinstance(error, MemoryError):
        return f"out of memory ({error or 'the data is too large'})"
    if isinstance(error, ValueError | TypeError | OSError | ImportError | RuntimeError):
        return in_options(str(error)) + _advice(error)
    return f"{type(error).__name__}: {in_options(str(error))} (a fault of zerogap; ZEROGAP_TRACEBACK=1 shows where)"


def _advice(error: Exception) -> str:
    """Return the options that help with what a file holds."""
    if isinstance(error, tables.MissingValue):
        return " --missing drop leaves such rows out; --missing mean puts the mean of the column there."
    if not isinstance(error, tables.NotANumber):
        return ""
    if "decimal point" in str(error):
        return " If so, add --decimal ,"
    if "separate thousands" in str(error):
        return ""
    name = shlex.quote(f'"{error.column}"' if "," in error.column else error.column)
    first = " --header says that it is one." if "not taken for a header" in str(error) else ""
    if error.remedy is not None:
        return f"{first} {error.remedy}"
    return f"{first} --one-hot {name} makes features of its values, --drop {name} leaves it out, --target {name} predicts it."
