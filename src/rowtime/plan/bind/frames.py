"""Windows: PARTITION BY, ORDER BY and frame, their own or those of the window that they name.

Semantics 5: the frame of a row holds the row, and rows before it in stream order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from rowtime.kernels.windowed import Frame
from rowtime.sql.generate import to_rowtime
from rowtime.sql.intervals import Duration, span_of
from rowtime.sql.numbers import whole_number

CURRENT, UNBOUNDED = "CURRENT ROW", "UNBOUNDED"
PAST = "For example ROWS 3 PRECEDING, or RANGE INTERVAL '1' HOUR PRECEDING."


class NoWindow(ValueError):
    """The reason why a window or a call is refused: a code, a sentence, and what to write instead."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


@dataclass(frozen=True)
class Window:
    """A window with the parts that it inherits; ``spec`` is ``None`` if no frame is given."""

    keys: tuple[exp.Expr, ...] = ()
    order: tuple[exp.Expr, ...] = ()
    spec: exp.WindowSpec | None = None


def resolved(node: exp.Window, named: Mapping[str, exp.Window]) -> Window:
    """Resolve the windows that a window names; raises `NoWindow`."""
    return _resolved(node, named, ())


def _resolved(node: exp.Window, named: Mapping[str, exp.Window], open_: tuple[str, ...]) -> Window:
    base = Window()
    if node.alias:
        name = node.alias.lower()
        if name not in named:
            hint = "Define it: WINDOW w AS (…) at the end of the query."
            raise NoWindow(
                "R165", f"there is no window {node.alias}", f"There are: {', '.join(named)}." if named else hint
            )
        if name in open_:
            raise NoWindow("R165", f"the definition of the window {node.alias} refers to itself")
        base = _resolved(named[name], named, (*open_, name))
    keys, order = tuple(node.args.get("partition_by") or ()), node.args.get("order")
    if (keys and node.alias) or (order and base.order):
        what = "PARTITION BY" if keys else "ORDER BY"
        raise NoWindow("R165", f"{what} may be in the window {node.alias} or here, but not in both", "Leave one out.")
    spec = node.args.get("spec") or base.spec
    return Window(keys or base.keys, tuple(order.expressions) if order else base.order, spec)


def frame_of(window: Window) -> Frame:
    """Return the frame of a window; without one it is all earlier rows. Raises `NoWindow`."""
    spec = window.spec
    if spec is None:
        return Frame(None)
    kind = str(spec.args.get("kind")).upper()
    if kind not in ("ROWS", "RANGE") or spec.args.get("exclude"):
        what = f"{'EXCLUDE' if kind in ('ROWS', 'RANGE') else kind} is not supported in a frame yet"
        raise NoWindow("R190", what, PAST)
    lower, upper = (_edge(spec, side, by_range=kind == "RANGE") for side in ("start", "end"))
    if upper is None or (lower is not None and upper > lower):
        raise NoWindow("R161", "the frame ends before it begins", "Write the earlier end first.")
    return Frame(lower, upper, kind == "RANGE" and (lower is not None or upper > 0))


def _edge(spec: exp.WindowSpec, side: str, *, by_range: bool) -> int | None:
    """Return how far before the row an end of the frame is; ``None``: at the beginning."""
    edge, way = spec.args.get(side), str(spec.args.get(f"{side}_side") or "").upper()
    if edge == CURRENT:
        return 0
    if way == "FOLLOWING":
        hint = (
            "Look back instead: end the frame with CURRENT ROW or PRECEDING; the row itself is LAST_VALUE(…), "
            "an earlier one LAG(…)."
        )
        raise NoWindow("R162", "FOLLOWING asks for rows that have not arrived yet", hint)
    if edge == UNBOUNDED:
        return None
    if not isinstance(edge, exp.Expr) or way != "PRECEDING":
        raise NoWindow("R161", "an end of a frame is CURRENT ROW, or a distance followed by PRECEDING", PAST)
    return _time(edge) if by_range else _number(edge)


def _number(edge: exp.Expr) -> int:
    if isinstance(edge.unnest(), exp.Neg):
        raise NoWindow("R161", "a frame cannot be a negative number of rows", PAST)
    count = whole_number(edge)
    if count is None:
        raise NoWindow("R161", f"{to_rowtime(edge)} is not a number of rows", PAST)
    return count


def _time(edge: exp.Expr) -> int:
    try:
        span = span_of(edge)
    except ValueError as wrong:
        raise NoWindow("R161", f"RANGE: {wrong}", PAST) from None
    if not isinstance(span, Duration):
        raise NoWindow("R161", "RANGE takes a duration, not months", "A month has no fixed length; use days.")
    if span.micros < 0:
        raise NoWindow("R161", "a frame cannot reach back by a negative interval", PAST)
    return span.micros
