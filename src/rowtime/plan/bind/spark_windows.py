"""Spark's spelling of windows: ``window`` and ``session_window`` become TUMBLE, HOP and SESSION.

``GROUP BY window(t, '10 minutes', '5 minutes')`` is ``GROUP BY HOP(t, INTERVAL 5 MINUTES, INTERVAL 10 MINUTES)``, and
``window.start`` in the same query is its start. As in Spark, the window itself is a struct of start and end. A row at
exactly the end of a session belongs to it, so the gap of SESSION is a microsecond longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from rowtime.expr.readable import readable
from rowtime.plan.bind.windows import SESSION_WINDOW, WINDOW, WINDOW_TIME
from rowtime.sql.intervals import duration_of, of_micros
from rowtime.sql.nodes import Within
from rowtime.sql.places import refuse_at

_FORMS: Final[Mapping[str, str]] = {
    WINDOW: "a time, a length, and optionally a slide and an offset, for example window(t, '10 minutes', '5 minutes')",
    SESSION_WINDOW: "a time and a fixed gap, for example session_window(t, '20 minutes')",
}
_LENGTHS: Final[Mapping[str, tuple[int, int]]] = {WINDOW: (1, 3), SESSION_WINDOW: (1, 1)}
_EDGES: Final = ("start", "end")
_BEHIND: Final = (exp.Having, exp.Order, exp.Qualify)


@dataclass(frozen=True)
class _Window:
    """A window as rowtime's functions have it: ``kind`` is TUMBLE, HOP or SESSION; the arguments follow the time."""

    kind: str
    time: exp.Expr
    arguments: tuple[exp.Expr, ...]

    def call(self, edge: str = "") -> exp.Expr:
        name = f"{self.kind}_{edge.upper()}" if edge else self.kind
        call = exp.Anonymous(
            this=name, expressions=[self.time.copy(), *(argument.copy() for argument in self.arguments)]
        )
        later = self.kind == "SESSION" and edge in ("end", "rowtime")
        return exp.Sub(this=call, expression=of_micros(1)) if later else call

    def struct(self) -> exp.Expr:
        fields = [part for edge in _EDGES for part in (exp.Literal.string(edge), self.call(edge))]
        return exp.Anonymous(this="NAMED_STRUCT", expressions=fields)


def without_spark_windows(query: exp.Select, text: str) -> exp.Select:
    """Return the query with rowtime's windows; one without Spark's as it is. Sub-queries have windows of their own.

    Raises ``Refused`` (R103, R106, R113, R139) for windows that have no such form.
    """
    if not any(_name(node) in _LENGTHS for node in _own(query)):
        return query
    query = query.copy()
    windows = _grouped(query, text)
    grouped = _Names({name.lower(): window for name, window in windows.items()}, text)
    named = _Names({**grouped.windows, **_named(query, windows, text)}, text)
    for node in list(_own(query)):
        if node.find_ancestor(exp.Group) is None:
            # Names of the select list are known behind it alone; in it, they may be columns of the input.
            replacement = (named if node.find_ancestor(*_BEHIND) else grouped).replacement(node)
            if replacement is not None:
                _put(node, *replacement)
    return query


def _grouped(query: exp.Select, text: str) -> dict[str, _Window]:
    """Replace the windows in GROUP BY; return them by the name of their column, ``window`` or ``session_window``."""
    group = query.args.get("group")
    windows: dict[str, _Window] = {}
    if group is None:
        return windows
    for node in list(group.expressions):
        key = node.this if isinstance(node, Within) else node
        key.replace(_selected(query, key).copy())
    for call in [node for node in _own(group) if _name(node) in _LENGTHS]:
        window = _window_of(call, text)
        if isinstance(call.parent, exp.Dot) and call.parent.expression.name.lower() in _EDGES:
            _put(call.parent, window.call(call.parent.expression.name.lower()), "")
            continue
        if windows.setdefault(_name(call), window) != window:
            hint = f"Group by the longer one in a query around it, GROUP BY {call.name}(start, '1 hour')."
            raise refuse_at(text, call, "R113", f"GROUP BY has two of {call.name}", hint)
        _put(call, window.call(), "")
    return windows


def _selected(query: exp.Select, key: exp.Expr) -> exp.Expr:
    """Return the entry of the select list that a key names or numbers; the key itself if it does neither."""
    if isinstance(key, exp.Literal) and not key.is_string and key.name.isdigit():
        return query.expressions[int(key.name) - 1].unalias() if 0 < int(key.name) <= len(query.expressions) else key
    if isinstance(key, exp.Column) and not key.table:
        named = (
            entry.this for entry in query.expressions if _is_window(entry) and entry.alias.lower() == key.name.lower()
        )
        return next(named, key)
    return key


def _named(query: exp.Select, windows: Mapping[str, _Window], text: str) -> dict[str, _Window]:
    """Return the windows by the names that the select list gives them."""
    entries = ((e.alias.lower(), _window_of(e.this, text)) for e in query.expressions if _is_window(e))
    return {name: window for name, window in entries if window in windows.values()}


@dataclass(frozen=True)
class _Names:
    """The windows that a query groups by, by their names in its other clauses."""

    windows: Mapping[str, _Window]
    text: str

    def replacement(self, node: exp.Expr) -> tuple[exp.Expr, str] | None:
        """Return what replaces a node, and the name of its column; ``None`` for a node that stays."""
        if isinstance(node, exp.Dot):
            return self._edge(self._meant(node.this), node.expression)
        if isinstance(node, exp.Column) and node.table:
            return self._edge(self.windows.get(node.table.lower()), node.this)
        if _name(node) == WINDOW_TIME and len(node.expressions) == 1:
            window = self._meant(node.expressions[0])
            return None if window is None else (window.call("rowtime"), "window_time")
        window = self._meant(node)
        if window is None:
            return None
        # Windows of one length are in the order of their starts.
        return (window.call("start") if isinstance(node.parent, exp.Ordered) else window.struct()), node.name.lower()

    def _edge(self, window: _Window | None, field: exp.Expr) -> tuple[exp.Expr, str] | None:
        edge = field.name.lower()
        if window is not None and edge not in _EDGES:
            hint = "Write window.start or window.end."
            raise refuse_at(self.text, field, "R103", f"a window has no field {field.name}", hint)
        return None if window is None else (window.call(edge), edge)

    def _meant(self, node: exp.Expr) -> _Window | None:
        """Return the window that a call or the name of a column means."""
        if isinstance(node, exp.Column) and not node.table:
            return self.windows.get(node.name.lower())
        if _name(node) not in _LENGTHS:
            return None
        window = _window_of(node, self.text)
        if window in self.windows.values():
            return window
        if self.windows:
            hint = f"Write {next(iter(self.windows))}.start for the window in GROUP BY."
            raise refuse_at(self.text, node, "R106", f"{readable(node)} is neither grouped nor aggregated", hint)
        if window.kind != "TUMBLE":
            hint = f"Group by it, or read FROM TABLE({window.kind}(TABLE s, DESCRIPTOR(ROWTIME), …))."
            raise refuse_at(self.text, node, "R139", f"{readable(node)} is allowed only in GROUP BY", hint)
        return window


def _put(node: exp.Expr, new: exp.Expr, name: str) -> None:
    """Replace a node; an entry of a select list keeps the name that Spark gives it."""
    new.meta.update(node.meta)
    named = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
    node.replace(exp.alias_(new, name, quoted=True) if named else new)


def _window_of(call: exp.Expr, text: str) -> _Window:
    name, lengths = _name(call), [_length(node) for node in call.expressions[1:]]
    least, most = _LENGTHS[name]
    if not least <= len(lengths) <= most or not all(length is not None for length in lengths):
        hint = (
            "A length is a text such as '90 seconds' or an interval of days or less. For months, write "
            "TUMBLE(t, INTERVAL '1' MONTH)."
        )
        raise refuse_at(text, call, "R113", f"{call.name} takes {_FORMS[name]}", hint)
    return _of_lengths(name, call.expressions[0], [length or 0 for length in lengths])


def _of_lengths(name: str, time: exp.Expr, lengths: Sequence[int]) -> _Window:
    size = lengths[0]
    if name == SESSION_WINDOW:
        return _Window("SESSION", time, (of_micros(size + 1),))
    slide = lengths[1] if len(lengths) > 1 else size
    offset = [of_micros(length) for length in lengths[2:] if length]
    if slide == size:
        return _Window("TUMBLE", time, (of_micros(size), *offset))
    return _Window("HOP", time, (of_micros(slide), of_micros(size), *offset))


def _length(node: exp.Expr) -> int | None:
    """Return the µs of an interval or of a text that describes one."""
    if isinstance(node, exp.Literal) and node.is_string:
        words = node.name.strip()
        text = words[len("interval") :] if words.lower().startswith("interval") else words
        return duration_of(exp.Interval(this=exp.Literal.string(text)))
    return duration_of(node)


def _name(node: exp.Expr) -> str:
    return node.name.upper() if isinstance(node, exp.Anonymous) else ""


def _is_window(entry: exp.Expr) -> bool:
    """Return True for an entry that gives a window a name."""
    return isinstance(entry, exp.Alias) and _name(entry.this) in _LENGTHS


def _own(query: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the nodes of a query without those of its sub-queries, outer ones first."""
    return query.walk(prune=lambda node: isinstance(node, exp.Query) and node is not query)
