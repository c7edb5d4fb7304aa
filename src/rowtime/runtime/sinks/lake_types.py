"""How the columns of a pump fit an existing lake table (semantics 10).

A pump writes Parquet, so the types in its files have to be the table's. A column of the same type accepts all values. A
column of another numeric type accepts values that fit: rows that do not fit are refused at the gate, and the others are
cast. NOT NULL is checked there too. Any other difference is refused at the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import ByteType, DataType, DecimalType, IntegerType, LongType, NumericType, ShortType

from rowtime.core.errors import Problem, Refused
from rowtime.expr.store_assignment import always_fits
from rowtime.operators.gates.column_limits import Limit

if TYPE_CHECKING:
    from rowtime.runtime.sinks.lake import TableState, Wanted

_BYTES: Final[Mapping[type[DataType], int]] = {ByteType: 1, ShortType: 2, IntegerType: 4, LongType: 8}


@dataclass(frozen=True)
class Fitted:
    """``limits``: of columns, if narrower than declared; ``casts``: the types to which columns are cast."""

    limits: tuple[Limit, ...] = ()
    casts: Mapping[str, str] = field(default_factory=dict)


def fitted(wanted: Wanted, table: TableState) -> Fitted:
    """Return how the columns of a pump go into a table. Raises ``Refused`` (R561) if they never can."""
    problems = [Problem("R561", *misfit) for misfit in _misfits(wanted, table)]
    if problems:
        raise Refused(*problems)
    limits, casts = [], {}
    by_name = {misfit.name: misfit for misfit in table.columns.fields}
    for column in wanted.columns.fields:
        field = by_name[column.name]
        given, taken = column.dataType.simpleString(), field.dataType.simpleString()
        limit = _limit(column.name, given, field.dataType, required=not field.nullable and column.nullable)
        if limit is not None:
            limits.append(limit)
        if given != taken:
            casts[column.name] = taken
    return Fitted(tuple(limits), casts)


def _misfits(wanted: Wanted, table: TableState) -> Iterator[tuple[str, None, str]]:
    """Yield the differences and the fixes, in the form of `Problem`."""
    where, pump, columns = (
        wanted.place,
        wanted.pump,
        {field_of_table.name: field_of_table for field_of_table in table.columns.fields},
    )
    names = ", ".join(columns)
    for column in wanted.columns.fields:
        field = columns.get(column.name)
        if field is None:
            near = next((name for name in columns if name.lower() == column.name.lower()), None)
            hint = f"Its columns are {names}. Add it to the table, or leave it out of the stream."
            what = f"{where} has no column {column.name}, which the pump {pump} writes"
            yield what, None, f"Write it as the table does: {near}." if near else hint
        elif not _may(column.dataType, field.dataType):
            given, taken = (kind.simpleString().upper() for kind in (column.dataType, field.dataType))
            what = f"{where} has {column.name} {taken}, and the pump {pump} writes {given}"
            yield what, None, f"Declare {column.name} {taken} in CREATE STREAM, and cast in the query."
    written = set(wanted.columns.names)
    for field in table.columns.fields:
        if not field.nullable and field.name not in written:
            what = f"{where} has a column {field.name} NOT NULL, for which the pump {pump} has no value"
            yield what, None, f"Add {field.name} to the stream."
    if set(table.partitions) - written:
        what = f"{where} is partitioned by {', '.join(table.partitions)}, which the pump {pump} does not write all of"
        yield what, None, "Add them to the stream."
    if wanted.options.partitions and set(wanted.options.partitions) != set(table.partitions):
        how = f"is partitioned by {', '.join(table.partitions)}" if table.partitions else "has no partitions"
        what = f"{where} {how}, and the pump {pump} writes PARTITIONED BY ({', '.join(wanted.options.partitions)})"
        yield what, None, "Declare what the table has, or leave PARTITIONED BY out."


def _may(given: DataType, taken: DataType) -> bool:
    if given.simpleString() == taken.simpleString():
        return True
    if not (isinstance(given, NumericType) and isinstance(taken, NumericType)):
        return False
    whole = type(given) in _BYTES
    exact = (whole and type(taken) in _BYTES) or (
        isinstance(taken, DecimalType) and (whole or type(given) is type(taken))
    )
    return exact or always_fits(given.simpleString(), taken.simpleString())


def _limit(name: str, given: str, taken: DataType, *, required: bool) -> Limit | None:
    if given == taken.simpleString() or always_fits(given, taken.simpleString()):
        return Limit(name, taken.simpleString(), required=True) if required else None
    if isinstance(taken, DecimalType):
        digits = taken.precision - taken.scale
        return Limit(name, "decimal", digits=digits, scale=taken.scale, required=required)
    return Limit(name, taken.simpleString(), bytes=_BYTES[type(taken)], required=required)
