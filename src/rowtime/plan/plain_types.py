"""Types of select-list items that are known without Spark: columns, rounded times, common aggregates.

The binder knows the types of columns and casts; it leaves all types of groups to Spark. A stream that is defined by a
query needs its types earlier.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from rowtime.core.errors import Refused
from rowtime.expr.facts import Kind, kind_of
from rowtime.plan.bind.pump_list import is_rowtime_entry
from rowtime.plan.bind.sources import Binder
from rowtime.sql.nodes import Step

_AROUND: Final = ("group", "having", "order", "limit", "distinct", "qualify", "emit", "emit_changes", "emit_final")
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+)(?:, *(\d+))?\)", re.IGNORECASE)
_MOST: Final = 38  # digits of a DECIMAL
_MORE: Final[Mapping[type[exp.Expr], tuple[int, int]]] = {exp.Sum: (10, 0), exp.Avg: (4, 4)}
"""How many digits, in all and after the decimal point, Spark adds to those of a DECIMAL."""


def types_of(query: exp.Query, binder: Binder, name: str) -> list[str]:
    """Return the type of each item but ROWTIME, empty if only Spark knows it; nothing for a list with ``*``."""
    if not isinstance(query, exp.Select) or any(entry.is_star for entry in query.expressions):
        return []
    types = _PlainTypes(query, binder, name)
    return [types.of(entry.unalias()) for entry in query.expressions if not is_rowtime_entry(entry)]


@dataclass
class _PlainTypes:
    """The types of the expressions in one SELECT."""

    query: exp.Select
    binder: Binder
    name: str
    columns: dict[str, str] = field(default_factory=dict)

    def of(self, node: exp.Expr) -> str:
        """Return the type of an expression; empty if it is not known here."""
        node, kind = node.unnest(), ""
        match node:
            case exp.Column():
                kind = self._column(node)
            case exp.Cast():
                kind = str(node.args["to"].sql("spark"))
            case exp.Count():
                kind = "BIGINT"
            case exp.Sum() | exp.Avg():
                kind = _summed(type(node), self.of(node.this))
            case exp.Floor() | exp.Ceil() if node.args.get("to") is not None:
                kind = "TIMESTAMP"
            case exp.Max() | exp.Min() | exp.First() | exp.Last() | exp.Filter() | exp.Window() | Step():
                kind = self.of(node.this)
        return kind

    def _column(self, column: exp.Column) -> str:
        """Return a column's type, as in a query without groups over the same inputs."""
        text = column.sql()
        if text not in self.columns:
            plain = self.query.copy()
            for part in _AROUND:
                plain.set(part, None)
            plain.set("expressions", [exp.alias_(column.copy(), "c")])
            try:
                node = self.binder.bind(plain, f"{self.name}.{len(self.columns)}").node
                self.columns[text] = node.emits().columns[0].type
            except Refused:
                self.columns[text] = ""
        return self.columns[text]


def _summed(kind: type[exp.Expr], of: str) -> str:
    if (match := _DECIMAL.fullmatch(of)) is not None:
        more, behind = _MORE[kind]
        return f"DECIMAL({min(int(match[1]) + more, _MOST)}, {min(int(match[2] or 0) + behind, _MOST)})"
    if kind_of(of) not in (Kind.INTEGER, Kind.FLOAT):
        return ""
    return "BIGINT" if kind is exp.Sum and kind_of(of) is Kind.INTEGER else "DOUBLE"
