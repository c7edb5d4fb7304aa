"""Types whose nested values are all nullable.

Arrow refuses a NULL struct whose fields are declared non-null, and the declarations differ from tick to tick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from rowtime.core.errors import refuse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


def loosened(rows: DataFrame) -> DataFrame:
    """Return the rows with the same values, in types whose nested values are nullable."""
    for field in rows.schema.fields:
        if _holds_months(field.dataType):
            name = "a value on the way" if field.name.startswith("__") else field.name
            what = f"{name} is of type {field.dataType.simpleString().upper()}, which cannot be stored"
            raise refuse("R189", what, "Add intervals of years and months to a date, or count the months as a number.")
    kinds = [(field.name, field.dataType, loose(field.dataType)) for field in rows.schema.fields]
    if all(kind == wanted for _, kind, wanted in kinds):
        return rows
    columns = ((F.col(f"`{name.replace('`', '``')}`"), name, kind, wanted) for name, kind, wanted in kinds)
    return rows.select(*(of if kind == wanted else of.cast(wanted).alias(name) for of, name, kind, wanted in columns))


def loose(kind: DataType) -> DataType:
    """Return the type with every nullable part declared nullable: elements, map values, fields."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType  # noqa: PLC0415 - as above

    if isinstance(kind, ArrayType):
        return ArrayType(loose(kind.elementType), containsNull=True)
    if isinstance(kind, MapType):
        return MapType(loose(kind.keyType), loose(kind.valueType), valueContainsNull=True)
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, loose(f.dataType), nullable=True) for f in kind])
    return kind


def _holds_months(kind: DataType) -> bool:
    """Return True for types whose values Spark does not hand out, and for types that contain them."""
    from pyspark.sql import types as t  # noqa: PLC0415 - as above

    if isinstance(kind, t.StructType):
        return any(_holds_months(field.dataType) for field in kind)
    if isinstance(kind, t.ArrayType):
        return _holds_months(kind.elementType)
    if isinstance(kind, t.MapType):
        return _holds_months(kind.keyType) or _holds_months(kind.valueType)
    return isinstance(kind, t.YearMonthIntervalType | t.CalendarIntervalType)
