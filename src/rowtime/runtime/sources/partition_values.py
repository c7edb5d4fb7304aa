"""Partition columns, whose values are in the log of a table or in the names of folders, not in the files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import pyarrow as pa

from rowtime.client.arrow_types import arrow_type
from rowtime.core.columns import POSITION
from rowtime.core.errors import Refused
from rowtime.core.partition_folders import NULL
from rowtime.operators.contract import quoted
from rowtime.sql.generate import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Values = Mapping[str, Mapping[str, str | None]]
"""The partition values of a file, by its number as text."""
ROWS_BITS: Final = 40  # a file has fewer than 2**40 rows
_PLAIN: Final = (
    (pa.types.is_string, re.compile(r"(?s:.*)")),
    (pa.types.is_integer, re.compile(r"-?[0-9]{1,18}")),
    (pa.types.is_date32, re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")),
    (pa.types.is_boolean, re.compile(r"true|false")),
)
FEW_FILES: Final = 64  # files up to which values are looked up in a literal; with more they are joined


def in_folders(folder: str, path: str, types: Mapping[str, str]) -> dict[str, str | None]:
    """Return these columns' values in the names of folders between ``folder`` and a file; the last of each counts."""
    values: dict[str, str | None] = {}
    named = {name.lower(): name for name in types}
    for part in path.removeprefix(f"{folder}/").split("/")[:-1]:
        name, equals, value = part.partition("=")
        if equals and (column := named.get(unquote(name).lower())) is not None:
            values[column] = None if value == NULL else unquote(value)
    return values


def fault_of(values: Mapping[str, str | None], types: Mapping[str, str]) -> str | None:
    """Return the fault of a file's values from its folders; ``None`` for none."""
    for name, kind in types.items():
        if name not in values:
            return f"it is not in a folder {name}=…, so the column {name} has no value"
        if (value := values[name]) is not None and not _fits(value, kind):
            return f"its folder {name}={value} is not a value of type {kind}"
    return None


def _fits(value: str, kind: str) -> bool:
    try:
        return _casts(value, arrow_type(kind))
    except Refused:
        return False


def constants_of(values: Values, columns: Mapping[str, pa.DataType | None]) -> dict[str, dict[str, pa.Scalar]] | None:
    """Return the values of these partition columns by file; ``None`` if Spark's cast may give others than Arrow's."""
    constants: dict[str, dict[str, pa.Scalar]] = {}
    for number, of_file in values.items():
        constants[number] = {}
        for name, kind in columns.items():
            text = _value(of_file, name)
            if kind is None or (text is not None and not _is_plain(text, kind)):
                return None
            constants[number][name] = pa.scalar(text).cast(kind)
    return constants


def _is_plain(text: str, kind: pa.DataType) -> bool:
    form = next((form for is_of, form in _PLAIN if is_of(kind)), None)
    return form is not None and form.fullmatch(text) is not None and _casts(text, kind)


def _casts(text: str, kind: pa.DataType) -> bool:
    try:
        pa.scalar(text).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False  # a text beyond the type, as 2024-02-30: Spark reads the column, and decides
    return True


def with_partitions(rows: DataFrame, values: Values, columns: Sequence[tuple[str, str]]) -> DataFrame:
    """Return rows of numbered files with partition columns, even if the files have columns with these names."""
    partitions = {name.lower() for of_folder in values.values() for name in of_folder}
    wanted = {name: of for name, of in columns if name.lower() in partitions}
    if not wanted:
        return rows
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    number, names = f"shiftright({POSITION}, {ROWS_BITS})", rows.columns
    given = [(int(n), [_value(of_folder, name) for name in wanted]) for n, of_folder in values.items()]
    if len(given) <= FEW_FILES:
        entries = (f"{n}L, struct({', '.join(_shown(v) for v in of_file)})" for n, of_file in given)
        rows = rows.withColumn("__values", F.expr(f"element_at(map({', '.join(entries)}), {number})"))
        cells = {name: f"__values.col{nth}" for nth, name in enumerate(wanted, 1)}
    else:
        cells = {name: f"__value{nth}" for nth, name in enumerate(wanted, 1)}
        kinds = ", ".join(["__number bigint", *(f"{cell} string" for cell in cells.values())])
        partition_rows = rows.sparkSession.createDataFrame([(n, *of_file) for n, of_file in given], kinds)
        rows = rows.join(F.broadcast(partition_rows), F.expr(f"__number = {number}"), "left")
    cast = {name: f"CAST({cells[name]} AS {of})" for name, of in wanted.items()}
    return rows.selectExpr(*(f"{cast[name]} AS {quoted(name)}" if name in cast else quoted(name) for name in names))


def _value(values: Mapping[str, str | None], name: str) -> str | None:
    return next((value for key, value in values.items() if key.lower() == name.lower()), None)


def _shown(value: str | None) -> str:
    return "CAST(NULL AS STRING)" if value is None else literal(value)
