"""The explorer in a notebook: a widget whose C can be read and set."""

from typing import Any

from zerogap.explorer.encoding import text_of


def widget(payload: dict[str, Any]) -> Any:
    """Return the widget of a payload; ``widget.C`` is the C under the slider, or ``widget.epsilon`` and ``widget.nu``."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ImportError(
            'explore() without a file shows a widget, which needs anywidget: pip install "zerogap[explorer]". '
            'explore("page.html") writes a page instead, and needs nothing.'
        ) from error
    from zerogap.explorer.page import part

    class Explorer(anywidget.AnyWidget):
        """Every C of a path, or solvers side by side; ``C`` is the one under the slider."""

        _esm, _css = part("bundle.js"), part("bundle.css")
        payload = traitlets.Unicode().tag(sync=True)
        C = traitlets.Float(None, allow_none=True).tag(sync=True)

    parameter = payload.get("paths", [{}])[0].get("lines", {}).get("parameter", "C")
    if parameter != "C":  # the slider is over another one, which has its own name
        setattr(Explorer, parameter, property(lambda self: self.C, lambda self, value: setattr(self, "C", value)))
    return Explorer(payload=text_of(payload))
