"""The graph of a plan as a static picture: operators as boxes in columns, from the streams to the outputs.

An operator is drawn one column to the right of its rightmost input, so every edge points to the right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rowtime.core import markup
from rowtime.plan.stored import StoredPlan

WIDE, HIGH, APART, BELOW = 170, 44, 50, 20  # a box, and the gaps between boxes, in pixels
LETTERS: Final = 22  # letters of a name; the box's title shows the whole name
FONT: Final = 'font-family="sans-serif" fill="currentColor" text-anchor="middle"'


def svg(plan: StoredPlan) -> str:
    """Draw a plan; lines and letters have the colour of the text around them."""
    places = _places(plan)
    width = max(x for x, _ in places.values()) + WIDE + 1
    height = max(y for _, y in places.values()) + HIGH + 1
    edges = [
        _edge(places[child], places[name]) for name, operator in plan.operators.items() for child in operator.inputs
    ]
    boxes = [_box(name, plan.operators[name].kind, *place) for name, place in places.items()]
    size = f'width="{width}" height="{height}" viewBox="-1 -1 {width + 1} {height + 1}"'
    label = f'role="img" aria-label="{len(boxes)} operators"'
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {label}>{"".join([*edges, *boxes])}</svg>'
    return f'<div style="overflow-x:auto">{picture}</div>'


def _places(plan: StoredPlan) -> Mapping[str, tuple[int, int]]:
    depth: dict[str, int] = {}
    filled: dict[int, int] = {}
    places = {}
    for name, operator in plan.operators.items():  # inputs come first
        column = depth[name] = max((depth[child] + 1 for child in operator.inputs), default=0)
        row = filled[column] = filled.get(column, -1) + 1
        places[name] = (column * (WIDE + APART), row * (HIGH + BELOW))
    return places


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = (start[0] + WIDE, start[1] + HIGH // 2), (end[0], end[1] + HIGH // 2)
    middle = (x1 + x2) // 2
    path = f"M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2} m-6,-4 l6,4 l-6,4"
    return f'<path d="{path}" fill="none" stroke="currentColor" opacity="0.6"/>'


def _box(name: str, kind: str, x: int, y: int) -> str:
    short = name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
    frame = f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="5" fill="none" stroke="currentColor"/>'
    lines = (
        f'<text x="{x + WIDE // 2}" y="{y + 18}" font-size="13" {FONT}>{markup.text(short)}</text>'
        f'<text x="{x + WIDE // 2}" y="{y + 35}" font-size="11" opacity="0.75" {FONT}>{markup.text(kind)}</text>'
    )
    return f"<g><title>{markup.text(name)} ({markup.text(kind)})</title>{frame}{lines}</g>"
