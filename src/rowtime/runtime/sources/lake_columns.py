"""Columns of a lake table that a script declares: which fit, and those of partitions, whose values are in the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rowtime.core.columns import POSITION
from rowtime.core.errors import Problem, Refused
from rowtime.expr.store_assignment import always_fits
from rowtime.operators.contract import quoted
from rowtime.runtime.sources.files import ROWS_BITS
from rowtime.runtime.sources.table_history import Look
from rowtime.sql.generate import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

Values = Mapping[str, Mapping[str, str | None]]
"""By the number of a file, as text, the values of its partition."""
_FEW: Final = 64  # files whose values are looked up in a literal; those of more are joined


def check_columns(name: str, called: str, look: Look, wanted: Mapping[str, str], *, typed: bool = True) -> None:
    """Raises ``Refused`` (R577) for declared columns that a table lacks, or if ``typed`` has of another type."""
    there = {field.name.lower(): field.dataType for field in look.columns.fields}
    problems = [Problem("R577", f"{called} {what}", hint=hint) for what, hint in _misfits(name, there, wanted, typed)]
    if problems:
        raise Refused(*problems)


def _misfits(
    name: str,
    there: Mapping[str, DataType],
    wanted: Mapping[str, str],
    typed: bool,  # noqa: FBT001
) -> Iterator[tuple[str, str]]:
    for column, declared in wanted.items():
        found = there.get(column.lower())
        if found is None:
            shown = ", ".join(there)
            yield (
                f"has no column {column}, which {name} declares",
                f"Its columns are {shown}. Start again once it has it.",
            )
        elif typed and not _reads(found, _type(declared)):
            given = found.simpleString().upper()
            yield (
                f"has {column} {given}, and {name} declares {declared}",
                f"Declare {column} {given}, and cast in the query.",
            )


def _reads(found: DataType, wanted: DataType) -> bool:
    """True if Spark's reader gives values of a type in files as the declared one."""
    from pyspark.sql.types import NumericType  # noqa: PLC0415 - not for those who only plan

    given, taken = found.simpleString(), wanted.simpleString()
    numbers = isinstance(found, NumericType) and isinstance(wanted, NumericType)
    return given == taken or (numbers and always_fits(given, taken))


def _type(text: str) -> DataType:
    from pyspark.sql.types import StructType  # noqa: PLC0415 - not for those who only plan

    found = StructType.fromDDL(f"c {text}")
    assert isinstance(found, StructType)
    return found.fields[0].dataType


def with_partitions(rows: DataFrame, values: Values, columns: Sequence[tuple[str, str]]) -> DataFrame:
    """Rows of numbered files, with the columns of partitions as the log has them, whatever stands in the files."""
    partitions = {name.lower() for one in values.values() for name in one}
    wanted = {name: of for name, of in columns if name.lower() in partitions}
    if not wanted:
        return rows
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    number, names = f"shiftright({POSITION}, {ROWS_BITS})", rows.columns
    given = [(int(n), [_value(one, name) for name in wanted]) for n, one in values.items()]
    if len(given) <= _FEW:
        entries = (f"{n}L, struct({', '.join(_shown(v) for v in found)})" for n, found in given)
        rows = rows.withColumn("__values", F.expr(f"element_at(map({', '.join(entries)}), {number})"))
        cells = {name: f"__values.col{nth}" for nth, name in enumerate(wanted, 1)}
    else:
        cells = {name: f"__value{nth}" for nth, name in enumerate(wanted, 1)}
        kinds = ", ".join(["__number bigint", *(f"{cell} string" for cell in cells.values())])
        known = rows.sparkSession.createDataFrame([(n, *found) for n, found in given], kinds)
        rows = rows.join(F.broadcast(known), F.expr(f"__number = {number}"), "left")
    cast = {name: f"CAST({cells[name]} AS {of})" for name, of in wanted.items()}
    return rows.selectExpr(*(f"{cast[name]} AS {quoted(name)}" if name in cast else quoted(name) for name in names))


def _value(values: Mapping[str, str | None], name: str) -> str | None:
    return next((value for one, value in values.items() if one.lower() == name.lower()), None)


def _shown(value: str | None) -> str:
    return "CAST(NULL AS STRING)" if value is None else literal(value)
