"""Results as JSON for a browser: arrays are base64 of little-endian numbers, which ``explorer/src/payload.js`` reads."""

import base64
import json
from typing import Any

import numpy as np


def array(values: Any, kind: str = "f8") -> dict[str, str]:
    """Return an array for JSON: of float64 "f8", float32 "f4", int32 "i4" or int8 "i1"."""
    data = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"type": kind, "data": base64.b64encode(data).decode("ascii")}


def decoded(value: dict[str, str]) -> np.ndarray:
    """Return the numbers of such an array."""
    return np.frombuffer(base64.b64decode(value["data"]), dtype=f"<{value['type']}")


def text_of(payload: dict[str, Any]) -> str:
    """Return a payload as JSON that can stand within HTML: nothing in it ends a script."""
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace("&", "\\u0026")
