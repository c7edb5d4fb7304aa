"""The curve of a profile as a picture (SVG) and as lines of text: WITHIN against the rows kept.

WITHIN is also the delay of results, so its axis is that of both; it is logarithmic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from rowtime.operators.contract.lateness import in_words
from rowtime.profiling.advice import Advice, Point

_WIDTH, _HEIGHT = 720, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 24, 44, 62
_BAR: Final = 40
_ROWS: Final = 16


def svg(title: str, points: Sequence[Point], advice: Advice) -> str:
    """Return the curve as an SVG document, with the knee and the recommended tolerance."""
    scale = _Scale(points)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
            f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">'
        ),
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="15">{escape(title)}</text>',
        *_axes(scale, points),
        f'<polyline fill="none" stroke="#1565c0" stroke-width="2" points="{_line(scale, points)}"/>',
        *_mark(scale, advice.knee, "#888", f"knee {in_words(advice.knee.within)}", _HEIGHT - _BOTTOM - 10),
        *_mark(scale, advice.within, "#c62828", f"WITHIN {in_words(advice.within.within)}", _TOP + 14),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class _Scale:
    """Where a point is in the picture."""

    def __init__(self, points: Sequence[Point]) -> None:
        shown = [_log(at.within) for at in points if at.within]
        self.first = math.floor(min(shown, default=0.0))
        self.last = max(self.first + 1, math.ceil(max(shown, default=1.0)))
        least = min(at.kept for at in points)
        self.least = math.floor(least * 10) / 10 if least < 1 else 0.9

    def x(self, within: int) -> float:
        """Return the place of a tolerance; none is at the left edge."""
        share = (max(self.first, _log(within)) - self.first) / (self.last - self.first) if within else 0.0
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, kept: float) -> float:
        """Return the place of a share of rows."""
        return _TOP + (1 - (kept - self.least) / (1 - self.least)) * (_HEIGHT - _TOP - _BOTTOM)


def _log(within: int) -> float:
    return math.log10(max(1, within))


def _line(scale: _Scale, points: Sequence[Point]) -> str:
    return " ".join(f"{scale.x(at.within):.1f},{scale.y(at.kept):.1f}" for at in points)


def _axes(scale: _Scale, points: Sequence[Point]) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    yield f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#444"/>'
    for n in range(6):
        kept = scale.least + (1 - scale.least) * n / 5
        y = scale.y(kept)
        yield f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="#ddd"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{kept * 100:.4g} %</text>'
    step = max(1, math.ceil(len(points) / 8))
    for at in [*points[1::step]]:
        x = scale.x(at.within)
        yield f'<path d="M{x:.1f} {bottom}v4" stroke="#444"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{in_words(at.within)}</text>'
    middle = (_LEFT + right) / 2
    yield f'<text x="{middle:.0f}" y="{_HEIGHT - 14}" text-anchor="middle">WITHIN = delay of results</text>'
    y = (_TOP + bottom) / 2
    yield f'<text x="16" y="{y:.0f}" text-anchor="middle" transform="rotate(-90 16 {y:.0f})">rows kept</text>'


def _mark(scale: _Scale, at: Point, colour: str, text: str, height: int) -> Iterator[str]:
    x, y = scale.x(at.within), scale.y(at.kept)
    anchor, away = ("end", -6) if x > _WIDTH * 2 / 3 else ("start", 6)
    yield f'<path d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="{colour}" stroke-dasharray="4 3"/>'
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
    yield f'<text x="{x + away:.1f}" y="{height}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def bars(points: Sequence[Point], advice: Advice) -> list[str]:
    """Return the curve as lines of text: a bar from the share that no tolerance keeps to all rows."""
    least = points[0].kept
    span = 1 - least
    step = max(1, math.ceil(len(points) / _ROWS))
    marked = {advice.knee.within: "knee", advice.within.within: "recommended"}
    shown = [at for n, at in enumerate(points) if n % step == 0 or at.within in marked or at is points[-1]]
    width = max(len(in_words(at.within)) for at in shown)
    lines = []
    for at in shown:
        share = (at.kept - least) / span if span > 0 else 1.0
        bar = "█" * round(share * _BAR)
        mark = f"  ← {marked[at.within]}" if at.within in marked else ""
        lines.append(f"{in_words(at.within):>{width}} │{bar:<{_BAR}}│ {at.kept * 100:9.5f} %{mark}")
    return lines
