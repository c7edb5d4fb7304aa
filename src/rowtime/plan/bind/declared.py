"""What a column definition says about the column's values: kind, order, range."""

from __future__ import annotations

from sqlglot import exp

from rowtime.core.errors import Problem, refuse
from rowtime.expr.facts import Fact, Kind, is_short, kind_of
from rowtime.expr.order import Order
from rowtime.expr.ranges import within
from rowtime.sql.dialect import Rowtime
from rowtime.sql.generate import to_rowtime
from rowtime.sql.intervals import duration_of
from rowtime.sql.script import parse_column
from rowtime.sql.statements import ColumnDef, DeclaredOrder

MOST_ROWS = 10_000  # of a tolerance: every journal entry has their values


def order_text(column: ColumnDef) -> str:
    """Return the declared order with its conditions, as written after the type of the column."""
    order = column.order
    assert order is not None
    words = ["STRICTLY"] * order.strict + ["ASCENDING" if order.ascending else "DESCENDING"]
    if order.within_rows is not None:
        words.append(f"WITHIN {order.within_rows} ROWS")
    if order.within is not None:
        words.append(f"WITHIN {to_rowtime(order.within)}")
    return " ".join([*words, *(f"CHECK ({to_rowtime(check)})" for check in column.checks)])


def tolerance(column: ColumnDef) -> tuple[int, int]:
    """Return how far a column's values may go back: in µs, or in rows."""
    order = column.order
    micros = duration_of(order.within) if order is not None and order.within is not None else None
    rows = order.within_rows if order is not None else None
    return micros or 0, rows or 0


def order_problems(column: ColumnDef) -> list[Problem]:
    """Return problems (R140) of a declared order: its type, or how far the values may go back."""
    order = column.order
    if order is not None and not _is_ordered(column.type):
        what = f"{column.name} {column.type}: values of this type have no order that could be checked"
        return [Problem("R140", what, column.place, "Use a number, a time, a boolean, or a text without a collation.")]
    if order is None or (order.within is None and order.within_rows is None):
        return []
    what, hint = "", ""
    if order.strict:
        what, hint = (
            "STRICTLY and WITHIN contradict each other",
            "Leave out STRICTLY: if a value may go back, it may also stay the same.",
        )
    elif order.within_rows is not None:
        what = "" if 0 < order.within_rows <= MOST_ROWS else f"WITHIN takes 1 to {MOST_ROWS} rows"
    elif order.within is None or (duration_of(order.within) or 0) <= 0:
        what = "WITHIN takes a duration that is not 0"
    elif not kind_of(column.type).time:
        what = "WITHIN an interval is for dates and times only"
        hint = f"Count rows: {column.name} {column.type} ASCENDING WITHIN 100 ROWS."
    text = f"{column.name} {column.type} {order_text(column)}"
    return [Problem("R140", f"{text}: {what}", column.place, hint)] if what else []


def _is_ordered(text: str) -> bool:
    kind = exp.DataType.build(text, dialect=Rowtime)
    return kind.this not in _UNORDERED and "COLLATE" not in text.upper().split()


_UNORDERED = frozenset({exp.DType.ARRAY, exp.DType.MAP, exp.DType.STRUCT, exp.DType.BINARY})
_TYPES = frozenset(
    {
        exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.FLOAT, exp.DType.DOUBLE,
        exp.DType.DECIMAL, exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR, exp.DType.BINARY, exp.DType.BOOLEAN,
        exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ,
        exp.DType.ARRAY, exp.DType.MAP, exp.DType.STRUCT,
    }
)  # fmt: skip


def type_problems(column: ColumnDef, *, log: bool) -> list[Problem]:
    """Return problems of a column's type: some a ``log`` cannot store (R208), and no tick moves months (R189)."""
    parsed = exp.DataType.build(column.type, dialect=Rowtime)
    kinds = [part.this for part in parsed.find_all(exp.DataType)]
    if any(isinstance(kind, exp.Interval) and kind_of(kind.sql()) is Kind.MONTHS for kind in kinds):
        what = f"{column.name} {column.type}: intervals of years and months cannot be stored"
        return [Problem("R189", what, column.place, f"Count the months: {column.name} INT.")]
    if log and not _TYPES.issuperset(kinds):
        what = f"{column.name} {column.type}: a stream log cannot store a column of this type"
        hint = "Use a number, DECIMAL(p, s), STRING, CHAR(n), VARCHAR(n), BINARY, BOOLEAN, DATE, TIMESTAMP, "
        return [Problem("R208", what, column.place, f"{hint}TIMESTAMP_NTZ, ARRAY<…>, MAP<…, …> or STRUCT<…>.")]
    return []


def declared(column: ColumnDef) -> Fact:
    """Return the fact that a column definition declares: kind, order, range."""
    fact = Fact(_declared_order(column), kind_of(column.type), short=is_short(column.type))
    for check in column.checks:
        fact = within(fact, column.name, check)
    return fact


def order_of(stream: str, name: str, kind: str, text: str) -> tuple[ColumnDef, DeclaredOrder]:
    """Return the definition of a column with its order, as a stream stores it. Raises ``Refused`` (R501) if invalid."""
    definition = parse_column(f"{name} {kind} {text}")
    if definition.order is None:
        what = f"the definition of {stream} has an invalid order for the column {name}: {text!r:.60}"
        raise refuse("R501", what, "Define the stream again.")
    return definition, definition.order


def _declared_order(column: ColumnDef) -> Order:
    order = column.order
    if order is None or order.within is not None or order.within_rows is not None:
        return Order.NONE
    base = Order.STRICTLY_ASCENDING if order.strict else Order.ASCENDING
    return base if order.ascending else base.reversed()
