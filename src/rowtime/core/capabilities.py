"""Capabilities: what the installed PySpark can do, tested directly and never by its version number.

Spark is loaded when one of these is first called.
"""

from __future__ import annotations

from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType


def arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type in which Spark delivers values of a type; instants are in UTC."""
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415 - Spark

    return to_arrow_type(kind, **_in_utc())


def arrow_schema(kinds: StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark delivers rows; instants are in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - Spark

    return to_arrow_schema(kinds, **_in_utc())


@cache
def _in_utc() -> dict[str, Any]:
    """Return the options for UTC: since 4.2 a zone is named; before, UTC was a switch."""
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415 - Spark

    return {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {"timestamp_utc": True}
