"""The queries of Nexmark: each run by rowtime as a stream, and by Spark as a batch over the same files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER: Final = Path(__file__).parent
QUERIES: Final = ("q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q11",
                  "q13", "q14", "q15", "q16", "q17", "q18", "q19", "q20")  # fmt: skip
STREAMS: Final = ("person", "auction", "bid")


def pipeline(
    query: str, events: Path | str, home: Path, spark: SparkSession | None = None, kind: str = "parquet"
) -> rt.Pipeline:
    """The query over the streams of ``events``, a folder or its URL, whose files are of this ``kind``."""
    made = rt.Pipeline(spark, home=home)
    for name in ("streams", query):
        text = (FOLDER / f"{name}.sql").read_text(encoding="utf-8")
        made.sql(text.replace("USING parquet", f"USING {kind}"), {"events": str(events)})
    return made


def streamed(  # noqa: PLR0913 - what there is to say of a run
    query: str,
    events: Path,
    place: Path,
    spark: SparkSession | None = None,
    files: int = 1,
    kind: str = "parquet",
) -> pa.Table:
    """What rowtime makes of it, with ``files`` files of each stream a tick; ``place``: for home and checkpoint."""
    found: list[pa.Table] = []

    def take(batch: rt.Batch) -> None:
        found.append(batch.table())

    made = pipeline(query, events, place / "home", spark, kind).sink("result", take)
    made.run_available(place / "checkpoint", end=True, limits=rt.Limits(files=files))
    rows = pa.concat_tables([table for table in found if table.num_rows] or found[:1])
    return rows.select([name for name in rows.column_names if name != "rowtime" and not name.startswith("__")])


def spark_text(query: str) -> str:
    """The query in Spark's SQL."""
    return (FOLDER / "spark" / f"{query}.sql").read_text(encoding="utf-8")


def batched(query: str, events: Path, spark: SparkSession) -> pa.Table:
    """What Spark makes of all files at once."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for name in (*STREAMS, "side_input"):
        session.read.parquet(str(events / name)).createOrReplaceTempView(name)
    return session.sql(spark_text(query)).toArrow()


def difference(ours: pa.Table, theirs: pa.Table) -> str:
    """How two results differ as sets of rows in which rows may be there twice; empty if they do not."""
    one, other = _sorted(ours), _sorted(theirs)
    if one == other:
        return ""
    if len(one) != len(other):
        return f"{len(one)} rows against {len(other)}"
    first = next((a, b) for a, b in zip(one, other, strict=True) if a != b)
    return f"{first[0]} against {first[1]}"


def _sorted(rows: pa.Table) -> list[str]:
    columns = [[_plain(value) for value in column.to_pylist()] for column in rows.columns]
    return sorted(map(repr, zip(*columns, strict=True)))


def _plain(value: Any) -> Any:
    """Sums of floating point may differ in the last digits."""
    return f"{value:.9g}" if isinstance(value, float) else value
