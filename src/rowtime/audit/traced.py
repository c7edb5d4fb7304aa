"""The content of a trace: the rows, changes and bounds that made a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rowtime.core import markup
from rowtime.core.time import to_micros, to_text

MOST = 10_000  # rows of an operator that are listed and traced further
LISTED = 50  # rows of an operator that have edges: the first ones of the trace
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Traced:
    """One thing that passed: ``kind`` is row, insert, retract or bound.

    ``at``: its rowtime, the start of its lifetime or the bound; ``until``: the end of its lifetime, END while it is
    unknown, ``None`` if it is not an event. µs UTC. ``tick``: the one in which it passed. ``place``: its place in the
    run of the trace. ``number``: the row's number in its trace; ``made_of``: the numbers of the rows below that may
    have made it (`audit.trace_edges`).
    """

    operator: str
    tick: int
    kind: str
    at: int
    until: int | None = None
    columns: Values = field(default_factory=dict)
    place: tuple[int, int] | None = field(default=None, compare=False, repr=False)
    number: int | None = field(default=None, compare=False)
    made_of: tuple[int, ...] = field(default=(), compare=False)

    def as_json(self) -> dict[str, Any]:
        """Return plain values, with times as text (UTC)."""
        time = {"at": to_text(self.at)} if self.until is None else {"from": to_text(self.at), "to": to_text(self.until)}
        columns = {name: _shown(value) for name, value in self.columns.items()}
        rest = {} if self.kind == "bound" else {"columns": columns}
        edges = {} if self.number is None else {"id": self.number, "made_of": [*self.made_of]}
        return {"operator": self.operator, "tick": self.tick, "kind": self.kind, **time, **rest, **edges}

    def __str__(self) -> str:
        time = to_text(self.at) if self.until is None else f"[{to_text(self.at)}, {to_text(self.until)})"
        cells = (f"{name}={'NULL' if value is None else _shown(value)}" for name, value in self.columns.items())
        return f"tick {self.tick}  {self.kind:<7}  {'  '.join([time, *cells])}"


@dataclass(frozen=True, repr=False)
class Trace:
    """What made row ``number`` of ``sink``: ``items``, the sink's first, the streams' last.

    ``kinds``: what each operator is. ``cut``: the operators of which there are more rows than are listed; these are
    not followed.
    """

    sink: str
    number: int
    items: tuple[Traced, ...]
    kinds: Mapping[str, str]
    cut: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Traced]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def of(self, operator: str) -> list[Traced]:
        """Return the items of one operator."""
        return [item for item in self.items if item.operator == operator]

    def _repr_html_(self) -> str:
        names = dict.fromkeys(item.operator for item in self.items)
        parts = [f"{markup.heading(f'{name} ({self.kinds[name]})')}{self._table(name)}" for name in names]
        return "".join([markup.heading(f"row {self.number} of {self.sink}"), *parts])

    def _table(self, operator: str) -> str:
        items = self.of(operator)
        columns = [*dict.fromkeys(name for item in items for name in item.columns)]
        rows = (_cells(item, columns) for item in items)
        more = markup.heading(f"more than {MOST:,} rows: the others are not shown") if operator in self.cut else ""
        return markup.table(["tick", "kind", "time", *columns], rows) + more

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"row {self.number} of {self.sink}"]
        for name in dict.fromkeys(item.operator for item in self.items):
            lines.append(f"{name} ({self.kinds[name]})")
            lines += [f"  {item}" for item in self.of(name)]
            lines += [f"  more than {MOST:,} rows: the others are not shown"] if name in self.cut else []
        return "\n".join(lines)


def _cells(item: Traced, columns: Sequence[str]) -> list[object]:
    time = to_text(item.at) if item.until is None else f"[{to_text(item.at)}, {to_text(item.until)})"
    values = (item.columns.get(name, "") for name in columns)
    return [item.tick, item.kind, time, *("NULL" if value is None else _shown(value) for value in values)]


def _shown(value: Any) -> Any:
    """Return a value for JSON and for people: instants as text (UTC)."""
    return to_text(to_micros(value)) if hasattr(value, "tzinfo") else value
