"""Checks which declared columns fit the columns of a lake table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rowtime.core.errors import Problem, Refused
from rowtime.expr.store_assignment import always_fits
from rowtime.runtime.sources.table_history import Look

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def check_columns(name: str, called: str, look: Look, wanted: Mapping[str, str], *, typed: bool = True) -> None:
    """Raise ``Refused`` (R577) for declared columns that a table lacks or, if ``typed``, has with another type."""
    types = {field.name.lower(): field.dataType for field in look.columns.fields}
    problems = [Problem("R577", f"{called} {what}", hint=hint) for what, hint in _misfits(name, types, wanted, typed)]
    if problems:
        raise Refused(*problems)


def _misfits(
    name: str,
    types: Mapping[str, DataType],
    wanted: Mapping[str, str],
    typed: bool,  # noqa: FBT001
) -> Iterator[tuple[str, str]]:
    for column, declared in wanted.items():
        kind = types.get(column.lower())
        if kind is None:
            shown = ", ".join(types)
            yield (
                f"has no column {column}, which {name} declares",
                f"Its columns are {shown}. Start again when the table has this column.",
            )
        elif typed and not _reads(kind, type_of(declared)):
            given = kind.simpleString().upper()
            yield (
                f"has {column} {given}, and {name} declares {declared}",
                f"Declare {column} {given}, and cast in the query.",
            )


def _reads(stored: DataType, wanted: DataType) -> bool:
    """Return True if Spark's reader gives values of a type in files as the declared one."""
    from pyspark.sql.types import NumericType  # noqa: PLC0415 - not for those who only plan

    given, taken = stored.simpleString(), wanted.simpleString()
    numbers = isinstance(stored, NumericType) and isinstance(wanted, NumericType)
    return given == taken or (numbers and always_fits(given, taken))


def type_of(text: str) -> DataType:
    """Return the type that an SQL text names."""
    from pyspark.sql.types import StructType  # noqa: PLC0415 - not for those who only plan

    struct = StructType.fromDDL(f"c {text}")
    assert isinstance(struct, StructType)
    return struct.fields[0].dataType
