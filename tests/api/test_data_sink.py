"""``df.write`` and ``df.writeStream.format("rowtime")``: each row once, in an order that the rows themselves decide."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException

import rowtime as rt
from rowtime.api.data_sink import BatchSink, StreamSink, Writing
from rowtime.api.data_source import RowtimeDataSource
from rowtime.client import stream_log
from rowtime.client.home import Home
from rowtime.client.log_items import Bound, Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)
CLICKS = "CREATE STREAM clicks (page STRING, n INT)"


@pytest.fixture
def target(spark: SparkSession) -> SparkSession:
    spark.dataSource.register(RowtimeDataSource)
    return spark


def define(home: Path, script: str = CLICKS) -> None:
    program = rt.Pipeline(home=home).sql(script).compile()
    for stream in program.defines:
        Home(home).define(stream.name, stream.as_json())


def clicks(spark: SparkSession, *numbers: int) -> DataFrame:
    rows = [(f"p{n}", n, START + dt.timedelta(seconds=n)) for n in numbers]
    return spark.createDataFrame(rows, "page string, n int, rowtime timestamp")


def write(rows: DataFrame, home: Path, **options: str) -> None:
    chosen = {"home": str(home), "writer": "job", "orderBy": "rowtime", **options}
    rows.write.format("rowtime").options(**chosen).mode("append").save("clicks")


def items(home: Path, writer: str = "job") -> list[Any]:
    return stream_log.entries_of(Home(home).log_path("clicks"), writer)


def logged(home: Path, writer: str = "job") -> list[int]:
    log = Home(home).log_path("clicks")
    paths = [one.path for one in items(home, writer) if isinstance(one, Rows)]
    return [n for table in stream_log.rows(log, paths) for n in table["n"].to_pylist()]


class Job:
    """A streaming job that reads JSON files, one a batch, and writes what it reads."""

    def __init__(self, spark: SparkSession, folder: Path, checkpoint: str = "check", **options: str) -> None:
        self.spark, self.folder, self.home = spark, folder, folder / "home"
        self.checkpoint = folder / checkpoint
        self.options = {"home": str(self.home), "writer": "job", "orderBy": "rowtime", **options}
        (folder / "in").mkdir(exist_ok=True)

    def put(self, *numbers: int) -> None:
        number = len([*(self.folder / "in").iterdir()])
        path = self.folder / "in" / f"{number:03}.json"
        lines = ({"page": f"p{n}", "n": n, "rowtime": (START + dt.timedelta(seconds=n)).isoformat()} for n in numbers)
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark takes the oldest first

    def run(self) -> None:
        read = self.spark.readStream.schema("page string, n int, rowtime timestamp").option("maxFilesPerTrigger", 1)
        rows = read.json(str(self.folder / "in"))
        writer = rows.repartition(3).writeStream.format("rowtime").options(**self.options)
        query = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start("clicks")
        query.awaitTermination()

    def forget_commits(self, *batches: int) -> None:
        """Put the checkpoint in the state of a crash: the batch was recorded, and not that it ended."""
        for number in batches:
            for name in (f"{number}", f".{number}.crc"):
                (self.checkpoint / "commits" / name).unlink(missing_ok=True)


def test_a_dataframe_becomes_one_insert_in_the_order_of_its_columns(target: SparkSession, tmp_path: Path) -> None:
    define(tmp_path)
    write(clicks(target, 3, 1, 2, 5, 4).repartition(3), tmp_path)
    [item] = items(tmp_path)
    assert (item.first, item.count, item.order) == (0, 5, "o")
    assert logged(tmp_path) == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_equal_values_of_the_order_do_not_depend_on_tasks(target: SparkSession, tmp_path: Path) -> None:
    kept = set()
    for parts in (1, 3, 4):
        home = tmp_path / str(parts)
        define(home)
        rows = clicks(target, *range(40)).repartition(parts)
        rows = rows.selectExpr("'same' AS page", "n", "timestamp_seconds(0) AS rowtime")
        write(rows, home, orderBy="rowtime, PAGE")
        kept.add(tuple(logged(home)))
    assert len(kept) == 1


def test_each_batch_is_there_once_however_often_it_is_sent(target: SparkSession, tmp_path: Path) -> None:
    job = Job(target, tmp_path)
    define(job.home)
    job.put(2, 1)
    job.put(4, 3)
    job.run()
    assert logged(job.home) == [1, 2, 3, 4]
    before = items(job.home)
    job.forget_commits(1)
    job.run()
    assert items(job.home) == before
    job.put(5)
    job.forget_commits(1)
    job.run()
    assert logged(job.home) == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_a_new_checkpoint_with_other_rows_is_refused_and_needs_a_writer_of_its_own(
    target: SparkSession, tmp_path: Path
) -> None:
    job = Job(target, tmp_path)
    define(job.home)
    job.put(1, 2)
    job.put(3)
    job.run()
    again = Job(target, tmp_path, "again")
    again.run()  # the same batches: they are there
    assert logged(job.home) == [1, 2, 3]
    (tmp_path / "in" / "000.json").unlink()
    with pytest.raises(StreamingQueryException, match="R219 the writer job of clicks is at batch 1"):
        Job(target, tmp_path, "other").run()
    Job(target, tmp_path, "other", writer="second").run()
    assert (logged(job.home), logged(job.home, "second")) == ([1, 2, 3], [3])


@pytest.mark.slow
def test_a_bound_follows_each_batch_also_after_a_crash_between_them(target: SparkSession, tmp_path: Path) -> None:
    job = Job(target, tmp_path, boundColumn="rowtime")
    define(job.home)
    job.put(1, 7)
    job.put(8)
    job.run()
    kinds = [type(one).__name__ for one in items(job.home)]
    assert kinds == ["Rows", "Bound", "Rows", "Bound"]
    micros = [one.at - int(START.timestamp()) * 1_000_000 for one in items(job.home) if isinstance(one, Bound)]
    assert micros == [7_000_000, 8_000_000]
    log = Home(job.home).log_path("clicks")
    (log / items(job.home)[-1].path).unlink()  # the process ended before it wrote the bound
    job.forget_commits(1)
    job.run()
    assert [type(one).__name__ for one in items(job.home)] == kinds
    assert logged(job.home) == [1, 7, 8]


def test_a_column_for_the_bound_need_not_be_one_of_the_stream(target: SparkSession, tmp_path: Path) -> None:
    define(tmp_path)
    rows = clicks(target, 1, 2).selectExpr("*", "STRING(rowtime + INTERVAL 1 HOUR) AS until")
    with pytest.raises(AnalysisException, match="R541 boundColumn names the column until, which is no TIMESTAMP"):
        write(rows, tmp_path, boundColumn="until")
    write(rows.selectExpr("page", "n", "rowtime", "CAST(until AS TIMESTAMP) AS until"), tmp_path, boundColumn="until")
    [_, bound] = items(tmp_path)
    assert bound.at == int(START.timestamp() + 3602) * 1_000_000


@pytest.mark.slow
def test_another_writer_of_the_same_name_does_not_hide_the_batches(target: SparkSession, tmp_path: Path) -> None:
    job = Job(target, tmp_path)
    define(job.home)
    job.put(1)
    job.run()
    with rt.writer("clicks", home=job.home, writer="job") as writer:
        writer.insert([{"page": "by hand", "n": 100}])
    job.forget_commits(0)
    job.put(2)
    job.run()
    assert logged(job.home) == [1, 100, 2]


def test_empty_batches_are_sent_again_without_an_error(tmp_path: Path, target: SparkSession) -> None:
    define(tmp_path)
    schema = clicks(target, 1).schema
    options = {"path": "clicks", "home": str(tmp_path), "writer": "job", "unordered": "true"}
    sink = StreamSink(Writing.of(options, schema, overwrite=False))
    full = sink.write(iter(_batches(1, 2)))
    for _ in range(2):
        sink.commit([None], 0)
        sink.commit([full, None], 1)
        sink.commit([sink.write(iter(()))], 2)
    assert logged(tmp_path) == [1, 2]
    with pytest.raises(rt.Refused, match="R219"):
        sink.commit([full], 0)
    with pytest.raises(rt.Refused, match="R219"):
        sink.commit([None], 1)
    with pytest.raises(rt.Refused, match="R219"):
        sink.commit([sink.write(iter(_batches(1, 3)))], 1)
    sink.commit([sink.write(iter(_batches(2, 1)))], 1)  # the same rows in another order
    assert logged(tmp_path) == [1, 2]


def _batches(*numbers: int) -> list[pa.RecordBatch]:
    times = pa.array([START + dt.timedelta(seconds=n) for n in numbers], pa.timestamp("us", "UTC"))
    table = pa.table({"page": [f"p{n}" for n in numbers], "n": pa.array(numbers, pa.int32()), "rowtime": times})
    return table.to_batches(max_chunksize=1)


@pytest.mark.parametrize(
    ("name", "options", "what"),
    [
        ("nosuch", {}, "R103 there is no stream log nosuch"),
        ("clicks", {"writer": ""}, "R541 a write to a stream log needs the name of its writer"),
        ("clicks", {"writer": "pump.p"}, "R207"),
        ("clicks", {"orderBy": ""}, "R541 rows of Spark have no order"),
        ("clicks", {"unordered": "true"}, "R541 rows of Spark have no order"),
        ("clicks", {"orderBy": "at"}, "R205 there is no column at"),
        ("clicks", {"boundColumn": "n"}, "R541 boundColumn names the column n"),
        ("clicks", {"rowtime": "at"}, "R205 there is no column at"),
        ("clicks", {"rowtime": "n"}, "R205 the stream has no column rowtime"),
        ("clicks", {"startingFrom": "latest"}, "R540 the data source rowtime has no option startingfrom"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_first_row(
    target: SparkSession, tmp_path: Path, name: str, options: dict[str, str], what: str
) -> None:
    define(tmp_path)
    chosen = {"path": name, "home": str(tmp_path), "writer": "job", "orderBy": "rowtime", **options}
    with pytest.raises(rt.Refused, match=what):
        RowtimeDataSource(chosen).writer(clicks(target, 1).schema, overwrite=False)


def test_a_log_is_not_overwritten_and_a_type_without_an_order_orders_nothing(
    target: SparkSession, tmp_path: Path
) -> None:
    define(tmp_path, "CREATE STREAM clicks (page STRING, n INT, tags ARRAY<INT>)")
    schema = clicks(target, 1).selectExpr("*", "array(n) AS tags").schema
    options = {"path": "clicks", "home": str(tmp_path), "writer": "job", "orderBy": "tags"}
    with pytest.raises(rt.Refused, match="R542 a stream log cannot be overwritten"):
        RowtimeDataSource(options).streamWriter(schema, overwrite=True)
    with pytest.raises(rt.Refused, match="R541 orderBy names the column tags, whose type has no order"):
        RowtimeDataSource(options).writer(schema, overwrite=False)
    write(clicks(target, 1).selectExpr("*", "array(n) AS tags"), tmp_path)
    assert logged(tmp_path) == [1]


def test_a_value_that_does_not_fit_writes_nothing(target: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, "CREATE STREAM clicks (page STRING, n TINYINT)")
    with pytest.raises(PythonException, match="R206"):
        write(clicks(target, 1, 300).repartition(2), tmp_path)
    assert items(tmp_path) == []


@pytest.mark.slow
def test_a_pipeline_reads_what_a_spark_job_has_written(target: SparkSession, tmp_path: Path) -> None:
    """A job writes minutes of clicks with bounds; a pipeline counts them by the hour; both start again."""
    job = Job(target, tmp_path, boundColumn="rowtime")
    define(job.home)
    sql = f"""{CLICKS}; CREATE STREAM hours (at TIMESTAMP, total BIGINT) USING parquet OPTIONS (path '{tmp_path}/out');
    CREATE PUMP p AS INSERT INTO hours SELECT STREAM FLOOR(c.ROWTIME TO HOUR) AS at, SUM(n) AS total
    FROM clicks AS c GROUP BY FLOOR(c.ROWTIME TO HOUR);"""
    totals = []
    for numbers in ((1, 2), (3_599, 3_600), (7_200,)):
        job.put(*numbers)
        job.run()
        job.forget_commits(0, 1, 2)
        job.run()
        rt.Pipeline(target, home=job.home).sql(sql).run_available(tmp_path / "pipeline")
        totals.append(
            sorted(row.total for row in target.read.parquet(str(tmp_path / "out")).collect()) if totals else []
        )
    assert totals == [[], [3_602], [3_600, 3_602]]


@pytest.mark.slow
def test_the_log_can_be_copied_by_spark(target: SparkSession, tmp_path: Path) -> None:
    """From one log into another one: the source's position orders the rows of a writer."""
    define(tmp_path / "home")
    define(tmp_path / "other")
    write(clicks(target, 3, 1, 2), tmp_path / "home")
    read = target.readStream.format("rowtime").option("home", str(tmp_path / "home")).load("clicks")
    chosen = {
        "home": str(tmp_path / "other"),
        "writer": "copy",
        "orderBy": "n",
        "checkpointLocation": str(tmp_path / "c"),
    }
    query = read.select("rowtime", "page", "n").writeStream.format("rowtime").options(**chosen)
    query.trigger(availableNow=True).start("clicks").awaitTermination()
    assert logged(tmp_path / "other", "copy") == [1, 2, 3]
    shutil.rmtree(tmp_path / "c")


def test_a_batch_sink_may_be_pickled(target: SparkSession, tmp_path: Path) -> None:
    from pyspark import cloudpickle

    define(tmp_path)
    options = {"path": "clicks", "home": str(tmp_path), "writer": "job", "unordered": "true"}
    writing = Writing.of(options, clicks(target, 1).schema, overwrite=False)
    for sink in (BatchSink(writing), StreamSink(writing)):
        assert cloudpickle.loads(cloudpickle.dumps(sink))._writing == writing
