"""Text files, read from the copies that Arrow decodes, and by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowtime.runtime.session import derive, whole_files
from rowtime.runtime.sources.contract import Limits
from rowtime.runtime.sources.files import FilesSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession


def both_ways(
    spark: SparkSession,
    folder: Path,
    texts: Sequence[str | bytes],
    columns: Mapping[str, str],
    options: Mapping[str, str],
    kind: str = "csv",
    zipped: str = "",
) -> int:
    """Assert that the rows are equal; return how many files Arrow has decoded. ``zipped``: what names end with."""
    place = folder / "in"
    place.mkdir()
    for number, text in enumerate(texts):
        (place / f"{number:04}.{kind}{zipped}").write_bytes(text.encode() if isinstance(text, str) else text)
    session = utc(spark)
    slow = rows_of(source_of(place, columns, options, kind, plain=False), session, columns)
    source = source_of(place, columns, options, kind)
    fast = rows_of(source, session, columns)
    assert [(fast.get(p), slow.get(p)) for p in {*fast, *slow} if fast.get(p) != slow.get(p)] == []
    return len(source.copied.places)


def source_of(
    place: Path, columns: Mapping[str, str], options: Mapping[str, str], kind: str = "csv", *, plain: bool = True
) -> FilesSource:
    notes = place.parent / f"notes {plain}"
    source = FilesSource(kind, {"path": str(place), **options}, list(columns.items()), notes)
    source.copied.copies = source.copied.copies if plain else None
    return source


def rows_of(source: FilesSource, session: SparkSession, columns: Mapping[str, str]) -> dict[int, Row]:
    part, _ = source.discover({}, Limits(), {})
    return {row["__p"]: row for row in shown(source.read(session, part), columns).collect()}


def shown(rows: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    malformed = "__m" if "__m" in rows.columns else "CAST(NULL AS STRING) AS __m"
    return rows.selectExpr("__p", *(f"CAST(`{name}` AS STRING) AS `{name}`" for name in columns), malformed)


def utc(spark: SparkSession) -> SparkSession:
    session = derive(spark)
    whole_files(session)
    return session
