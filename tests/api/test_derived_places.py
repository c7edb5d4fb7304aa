"""A streaming DataFrame without a named position: its source gives the order of the rows, or it is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import rowtime as rt
from rowtime.core.errors import Failure, Refused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "n BIGINT, at TIMESTAMP"
LATE = """CREATE VIEW v AS SELECT STREAM at AS ROWTIME, n FROM s ORDER BY at WITHIN INTERVAL '1' MINUTE;
    CREATE STREAM rows (n BIGINT) USING memory;
    CREATE STREAM refused (n BIGINT, place BIGINT) USING memory;
    CREATE PUMP p AS INSERT INTO rows SELECT STREAM n FROM v;
    CREATE PUMP q AS INSERT INTO refused SELECT STREAM n, position FROM v.rejected;"""
FILES = ([0, 9, 3, 12], [5, 10, 11], [13, 2, 14], [20, 12, 30, 29], [31])
"""The minutes of the rows of each file."""


def write(folder: Path, kind: str, files: Sequence[Sequence[int]], times: Sequence[int] = range(100)) -> None:
    folder.mkdir()
    for number, (minutes, changed) in enumerate(zip(files, times, strict=False)):
        stamps = [f"2026-05-04T10:{minute:02}:00Z" for minute in minutes]
        path = folder / f"{number:03}.{kind}"
        if kind == "json":
            path.write_text("".join(f'{{"n": {m}, "at": "{at}"}}\n' for m, at in zip(minutes, stamps, strict=True)))
        elif kind == "csv":
            path.write_text("".join(f"{m},{at}\n" for m, at in zip(minutes, stamps, strict=True)))
        else:
            at = (
                pa.array([stamp.removesuffix("Z") for stamp in stamps])
                .cast(pa.timestamp("us"))
                .cast(pa.timestamp("us", "UTC"))
            )
            pa.parquet.write_table(pa.table({"n": pa.array(minutes, pa.int64()), "at": at}), path)
        os.utime(path, (1_777_900_000 + changed,) * 2)


def read(spark: SparkSession, folder: Path, kind: str, per_batch: int) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", per_batch).format(kind).load(str(folder))


def outcome(spark: SparkSession, place: Path, frame: DataFrame, sql: str = LATE, **options: Any) -> list[Any]:
    query = (
        rt.Pipeline(spark, home=place / "home").source("s", frame, **options).sql(sql).run_available(place / "check")
    )
    return [query.table(name).to_pylist() for name in ("rows", "refused")]


@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_rows_of_files_have_one_order_for_any_number_of_files_a_batch(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    write(tmp_path / "in", kind, FILES)
    found = [outcome(spark, tmp_path / str(n), read(spark, tmp_path / "in", kind, n)) for n in (1, 2, 5)]
    rows, refused = found[0]
    assert [row["n"] for row in rows] == [0, 9, 11, 12, 13, 14, 20, 29, 30]  # 31 waits
    assert [(row["n"], row["place"]) for row in refused] == [(3, 2), (5, 4), (10, 5), (2, 8), (12, 11)]
    assert found[1:] == [found[0], found[0]]


@pytest.mark.parametrize(
    "made",
    [
        lambda frame: frame.where("n <> 10").withColumn("more", frame.n + 1).withWatermark("at", "1 minute"),
        lambda frame: frame.selectExpr("explode(array(n, n)) AS n", "at"),
    ],
    ids=["selected and filtered", "exploded"],
)
def test_a_dataframe_that_is_computed_row_by_row_keeps_the_order_of_its_files(
    spark: SparkSession, tmp_path: Path, made: Callable[[DataFrame], DataFrame]
) -> None:
    write(tmp_path / "in", "json", FILES)
    found = [outcome(spark, tmp_path / str(n), made(read(spark, tmp_path / "in", "json", n))) for n in (1, 3)]
    assert found[0] == found[1]
    assert {row["n"] for row in found[0][1]} - {10} == {3, 5, 2, 12}


def test_a_file_that_spark_splits_keeps_its_order(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.files.maxPartitionBytes", "64")
    session.conf.set("spark.sql.files.openCostInBytes", "1")
    write(tmp_path / "in", "json", [[0, 9, 8, 7, 10, 11, 12, 13, 3, 14, 15, 16, 40]])
    frame = read(session, tmp_path / "in", "json", 1)
    rows, refused = outcome(session, tmp_path, frame)
    assert [row["n"] for row in rows] == [0, 8, 9, 10, 11, 12, 13, 14, 15, 16]
    assert [(row["n"], row["place"]) for row in refused] == [(7, 3), (3, 8)]


def test_files_of_one_time_of_change_that_come_in_another_order_than_their_names_end_the_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "in", "json", [[1], [2]], times=[2, 1])
    frame = read(spark, tmp_path / "in", "json", 1)
    made = rt.Pipeline(spark, home=tmp_path / "home").source("s", frame).sql(LATE)
    made.run_available(tmp_path / "check")
    later = tmp_path / "in" / "00.json"  # sorts before 000.json
    later.write_text('{"n": 3, "at": "2026-05-04T10:30:00Z"}\n')
    os.utime(later, (1_777_900_002,) * 2)
    with pytest.raises(Failure, match=r"R505 .*/00.json has the same time of change as .*/000.json"):
        made.run_available(tmp_path / "check")
    os.utime(later, (1_777_900_003,) * 2)
    assert made.run_available(tmp_path / "check").ledger["s"] == {"in": 3, "accepted": 3}


@pytest.mark.parametrize("names", [{}, {"writer": "w"}])
def test_the_value_of_a_rate_is_the_position(spark: SparkSession, names: dict[str, str]) -> None:
    beats = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load().selectExpr("value", "'x' AS w")
    )
    (stream,) = rt.Pipeline(spark).source("s", beats, **names).sql("SELECT STREAM value FROM s").compile().streams
    assert dict(stream.source[1])["position"] == "value"
    assert not stream.batched


UNORDERED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "a union": lambda frame: frame.union(frame),
    "an aggregate": lambda frame: frame.groupBy("n").count(),
    "without repeats": lambda frame: frame.withWatermark("at", "1 minute").dropDuplicatesWithinWatermark(["n"]),
    "a repartition": lambda frame: frame.repartition(3),
}


@pytest.mark.parametrize("made", UNORDERED.values(), ids=UNORDERED.keys())
def test_a_dataframe_without_an_order_is_refused_unless_it_is_declared_unordered(
    spark: SparkSession, tmp_path: Path, made: Callable[[DataFrame], DataFrame]
) -> None:
    (tmp_path / "in").mkdir()
    frame = made(read(spark, tmp_path / "in", "json", 1))
    select = "SELECT STREAM n FROM s"
    with pytest.raises(Refused, match=r"R224 the rows of the streaming DataFrame s have no order") as refused:
        rt.Pipeline(spark).source("s", frame).sql(select).compile()
    assert "pipeline.source('s', …, unordered=True)" in refused.value.problems[0].hint
    assert rt.Pipeline(spark).source("s", frame, unordered=True).sql(select).compile().streams[0].batched
    assert not rt.Pipeline(spark).source("s", frame, position="n").sql(select).compile().streams[0].batched
    with pytest.raises(Refused, match=r"R224 s has a position column, and is declared unordered"):
        rt.Pipeline(spark).source("s", frame, position="n", unordered=True).sql(select).compile()


def _of_a_view(frame: DataFrame) -> DataFrame:
    frame.createOrReplaceTempView("of_files")
    return frame.sparkSession.table("of_files")


@pytest.mark.parametrize("made", [lambda frame: frame.repartition(2), _of_a_view], ids=["a repartition", "a view"])
def test_for_files_the_hint_gives_the_sql_form(
    spark: SparkSession, tmp_path: Path, made: Callable[[DataFrame], DataFrame]
) -> None:
    write(tmp_path / "in", "json", FILES)
    frame = read(spark, tmp_path / "in", "json", 1)
    with pytest.raises(Refused, match="R224") as refused:
        rt.Pipeline(spark).source("s", made(frame)).sql(LATE).compile()
    create = refused.value.problems[0].hint.split("what the DataFrame does: ")[1].split(". Name columns")[0]
    query = rt.Pipeline(spark, home=tmp_path / "home").sql(f"{create};{LATE}").run_available(tmp_path / "check")
    by_frame = outcome(spark, tmp_path / "frame", frame)
    assert query.table("rows").to_pylist() == by_frame[0]


def test_rows_that_were_unordered_are_not_continued_in_another_order(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", "json", FILES)
    frame = read(spark, tmp_path / "in", "json", 1)
    outcome(spark, tmp_path, frame, unordered=True)

    def again(**options: Any) -> rt.Query:
        made = rt.Pipeline(spark, home=tmp_path / "home").source("s", frame, **options).sql(LATE)
        return made.run_available(tmp_path / "check")

    with pytest.raises(Refused, match="R401"):
        again()
    assert again(unordered=True).ledger["s"]["in"] == sum(map(len, FILES))


def test_newest_files_first_have_no_order(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    frame = spark.readStream.schema(SCHEMA).option("latestFirst", "true").json(str(tmp_path / "in"))
    with pytest.raises(Refused, match="R224"):
        rt.Pipeline(spark).source("s", frame).sql("SELECT STREAM n FROM s").compile()


def test_a_dataframe_that_is_not_streaming_is_refused(spark: SparkSession) -> None:
    spark = spark.newSession()
    frame = spark.createDataFrame([(1,)], "n INT")
    with pytest.raises(Refused, match=r"R124 the DataFrame s is not a streaming DataFrame") as refused:
        rt.Pipeline(spark).source("s", frame).sql("SELECT STREAM n FROM s").compile()
    assert "df.createOrReplaceTempView('…')" in refused.value.problems[0].hint
    frame.createOrReplaceTempView("numbers")
    joined = "CREATE STREAM s (n INT); SELECT STREAM s.n FROM s JOIN numbers ON s.n = numbers.n"
    assert rt.Pipeline(spark).sql(joined).compile().sinks
