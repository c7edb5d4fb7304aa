"""Lake tables as sources: as streams, and as static tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowtime.operators.contract import quoted
from rowtime.plan.formats.lake import VERSION
from rowtime.runtime.delta_places import delta_place
from rowtime.runtime.iceberg_catalog import given_in
from rowtime.runtime.sources.delta_history import DeltaHistory
from rowtime.runtime.sources.failures import naming
from rowtime.runtime.sources.file_list import is_as_numbered
from rowtime.runtime.sources.file_places import each, in_store
from rowtime.runtime.sources.iceberg_history import IcebergHistory
from rowtime.runtime.sources.lake_columns import check_columns
from rowtime.runtime.sources.lake_files import TableFiles
from rowtime.runtime.sources.table_history import missing, no_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from rowtime.runtime.sources.table_history import History


def history_of(kind: str, options: Mapping[str, str]) -> History:
    """Return the history of the table that options name."""
    if kind == "delta":
        return DeltaHistory(delta_place(options["path"]))
    named = {name.lower(): value for name, value in options.items()}
    return IcebergHistory(named["catalog"], given_in(options), named["table"])


def static_rows(
    spark: SparkSession, name: str, source: tuple[str, Sequence[tuple[str, str]]], wanted: Mapping[str, str]
) -> DataFrame:
    """Return the rows of a static table in the version of its options, else the present one; with its own types.

    Raises a ``RowtimeError``: R501, R575, R577, R578.
    """
    with naming("table", name):
        return _static_rows(spark, name, source, wanted)


def _static_rows(
    spark: SparkSession, name: str, source: tuple[str, Sequence[tuple[str, str]]], wanted: Mapping[str, str]
) -> DataFrame:
    version = next((value for key, value in source[1] if key.lower() == VERSION.lower()), None)
    history = history_of(source[0], dict(source[1]))
    look = history.look(None if version is None else int(version))
    if look is None:
        raise missing(history.called)
    check_columns(name, history.called, look, wanted, typed=False)
    names = {column.lower() for column in wanted}
    columns = [(f.name, f.dataType.simpleString()) for f in look.columns.fields if f.name.lower() in names]
    files = history.whole(look.place)
    if not files:
        return spark.createDataFrame([], ", ".join(f"{quoted(column)} {of}" for column, of in columns))
    unchanged = each(is_as_numbered, files, stored=in_store(file.path for file in files))
    if lost := next((file.path for file, same in zip(files, unchanged, strict=True) if not same), None):
        raise no_version(history.called, look.place, f"its file {lost} is gone (VACUUM?)")
    reader = TableFiles(columns)
    return reader.read(spark, reader.slice_of(0, files)).select(*(quoted(column) for column, _ in columns))
