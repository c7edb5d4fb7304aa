"""HTML for notebooks: static, without scripts or colours of its own, so it reads well in dark and light themes.

Law: text from data stays text. Every value is escaped, so ``<script>`` is shown, never run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

MOST: Final = 200
"""How many rows of a table are shown; a line below gives the number of the others."""


def text(value: object) -> str:
    """Escape a value; half a surrogate pair, which HTML cannot hold, becomes a question mark."""
    return escape(str(value).encode("utf-8", "replace").decode("utf-8"))


def preformatted(value: object) -> str:
    """Show text with its spaces and line breaks, as a caret below a line needs."""
    return f'<pre style="text-align:left;overflow-x:auto">{text(value)}</pre>'


def heading(value: object) -> str:
    """Show a line in bold."""
    return f"<div><strong>{text(value)}</strong></div>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Show rows below their headings: numbers right-aligned with separators; at most `MOST` rows."""
    listed = [*rows]
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in listed[:MOST])
    more = f"<div>… {len(listed) - MOST:,} more</div>" if len(listed) > MOST else ""
    titles = "".join(f'<th style="text-align:left">{text(title)}</th>' for title in head)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="text-align:right">{value:,}</td>'
    return f'<td style="text-align:left">{text(value)}</td>'
