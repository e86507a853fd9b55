# SPDX-License-Identifier: Apache-2.0
"""How does a result look in a cell? A page in a frame with the command's text as a fallback, an
error without Python's traceback, progress as one line that goes away."""

from __future__ import annotations

import html
from typing import Any, Optional

from ..errors import KilnError, printable

_FRAME = (
    '<iframe sandbox="allow-scripts allow-downloads" title="{title}" srcdoc="{page}" '
    # Its border inside of the width: the notebook would show a scroll bar for 2 pixels.
    'style="display:block;box-sizing:border-box;width:100%;height:{height}px;'
    'border:1px solid #8884;resize:vertical"></iframe>'
)


class CellError(KilnError):
    """An error of a %kiln line or %%kiln cell. IPython shows its text alone: the traceback would
    be about kiln's Python, which nobody asked about."""

    def __init__(self, error: KilnError, text: str) -> None:
        super().__init__(error.what, error.why, error.fix)
        self.text = text

    def __str__(self) -> str:
        return self.text

    def _render_traceback_(self) -> list[str]:
        return printable(self.text).splitlines()


class Shown:
    """What a command printed, and its page; `code` is its exit code."""

    def __init__(self, title: str, text: str, code: int, page: Optional[str] = None) -> None:
        self.title, self.text, self.code, self.page = title, text, code, page

    def __repr__(self) -> str:
        return printable(self.text.rstrip())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if self.page is not None:
            # Short results need no large frame, but a page has a head and an overview; a reader can
            # pull its corner.
            height = min(640, max(420, 20 * self.text.count("\n") + 200))
            bundle["text/html"] = _FRAME.format(
                title=html.escape(self.title), page=html.escape(self.page), height=height
            )
        return bundle


class ProgressLine:
    """One display that is updated; it is made with the first text."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._text = ""

    def __call__(self, text: str) -> None:
        if text == self._text:
            return
        from IPython.display import HTML, display

        self._text = text
        shown = HTML(f"<em>{html.escape(printable(text))}</em>" if text else "")
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)
