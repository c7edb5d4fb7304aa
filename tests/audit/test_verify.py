"""`verify` compares the output with one batch over the recorded input; if a row was changed, it names the row."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.audit.verify import Verified, _as_sets, _in_order, _other_sparks
from rowtime.cli.main import app
from rowtime.cli.verify import as_lines
from rowtime.runtime.entries import SPARKS, _sparks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(4)

SQL = """
CREATE STREAM s (k STRING, v DOUBLE, ev TIMESTAMP);
CREATE STREAM rows_as_csv (k STRING, v DOUBLE) USING csv OPTIONS (path '{out}/csv', header 'true');
CREATE STREAM rows_as_json (k STRING, v DOUBLE) USING json OPTIONS (path '{out}/json');
CREATE STREAM rows_as_parquet (k STRING, v DOUBLE) USING parquet OPTIONS (path '{out}/parquet');
CREATE STREAM counts (k STRING, c BIGINT, total DOUBLE) USING parquet OPTIONS (path '{out}/counts');
CREATE STREAM late (k STRING, reason STRING) USING parquet OPTIONS (path '{out}/late');
CREATE STREAM log (k STRING, v DOUBLE);
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '20' SECOND;
CREATE PUMP a AS INSERT INTO rows_as_csv SELECT STREAM k, v FROM sorted;
CREATE PUMP b AS INSERT INTO rows_as_json SELECT STREAM k, v FROM sorted;
CREATE PUMP c AS INSERT INTO rows_as_parquet SELECT STREAM k, v FROM sorted;
CREATE PUMP d AS INSERT INTO counts SELECT STREAM k, COUNT(*) AS c, SUM(v) AS total FROM sorted AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
CREATE PUMP e AS INSERT INTO late SELECT STREAM k, reason FROM sorted.rejected;
CREATE PUMP f AS INSERT INTO log SELECT STREAM k, v FROM sorted;
"""
TICKS = 4


def at(second: int) -> str:
    return f"2024-01-01 10:{second // 60:02}:{second % 60:02}"


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline after some ticks, with every kind of sink that can be read, late rows and rows without a time."""
    tmp_path = tmp_path_factory.mktemp("place")
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(out=tmp_path / "out"))
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    for number in range(TICKS):
        with rt.writer("s", home=tmp_path / "home") as log:
            seconds = [number * 40 + second for second in (0, 15, 5, 15)]
            rows = [{"k": f"k{second % 3}", "v": 0.1 * second, "ev": at(second)} for second in seconds]
            log.insert([*rows, {"k": "late", "v": float("nan"), "ev": at(0) if number % 2 else None}])
        engine = made._engine(tmp_path / "check", rt.Limits(), ends=False)
        engine.tick()
        engine.stop()
    return tmp_path


def verified(spark: SparkSession, place: Path) -> Verified:
    return rt.verify(place / "check", spark=spark, home=place / "home")


def differing(found: Verified) -> dict[str, tuple[str, ...]]:
    return {output.name: output.first for output in found.outputs if output.differences}


def test_one_batch_equals_the_output(spark: SparkSession, place: Path) -> None:
    found = verified(spark, place)
    assert differing(found) == {}
    assert found.equal
    assert (found.tick, found.batches) == (TICKS - 1, 1)
    how = {output.name: (output.kind, output.rows, output.how) for output in found.outputs}
    assert how["a.sink"] == ("csv", 12, "in order")
    assert how["f.sink"] == ("log", 12, "in order")
    assert how["d.sink"] == ("parquet", 3, "as a set")
    assert how["sorted.rejected"] == ("ledger", 4, "as a set")


def test_a_checkpoint_did_not_say_which_spark_had_written_it(
    spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verified(spark, place).sparks == ()
    monkeypatch.setattr("rowtime.audit.verify.pyspark", SimpleNamespace(__version__="9.9.9"))
    found = verified(spark, place)
    said = f"ticks 0 to {TICKS - 1} were written under Spark {pyspark.__version__}; this is Spark 9.9.9"
    assert found.sparks == (said,)
    assert f"  {said}" in as_lines(found)
    assert found.equal


def test_each_version_of_spark_is_recorded_with_its_first_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {"tick": 4}  # an older version of rowtime did not say
    for tick, version in ((5, "4.1.1"), (6, "4.1.1"), (7, "4.2.0"), (8, "4.1.1")):
        monkeypatch.setattr("rowtime.runtime.entries.pyspark", SimpleNamespace(__version__=version))
        told = {"tick": tick, SPARKS: _sparks(told, tick)}
    assert told[SPARKS] == [[0, ""], [5, "4.1.1"], [7, "4.2.0"], [8, "4.1.1"]]
    monkeypatch.setattr("rowtime.audit.verify.pyspark", SimpleNamespace(__version__="4.1.1"))
    assert [*_other_sparks(told)] == ["ticks 7 to 7 were written under Spark 4.2.0; this is Spark 4.1.1"]


def changed_parquet(folder: Path, column: str, to: Any) -> None:
    """Change a value in the second row of a directory."""
    for path in sorted(folder.glob("[pr]*")):
        rows = pq.read_table(path)
        values = rows[column].to_pylist()
        if len(values) > 1:
            values[1] = to
            index = rows.column_names.index(column)
            pq.write_table(rows.set_column(index, rows.field(index), pa.array(values, rows[column].type)), path)
            return


def without_a_line(folder: Path) -> None:
    path = max(folder.glob("part-*"))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "c.sink": (lambda at: changed_parquet(at / "out" / "parquet", "v", 77.0), "row 1: written"),
    "d.sink": (lambda at: changed_parquet(at / "out" / "counts", "c", 77), "1 more written"),
    "b.sink": (lambda at: without_a_line(at / "out" / "json"), "row 11: written nothing"),
    "f.sink": (lambda at: changed_parquet(next((at / "home/logs/log").glob("*/s-*")), "k", "x"), "row 1: written"),
}


def test_the_command_names_what_was_changed_and_ends_with_status_1(
    spark: SparkSession, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowtime.runtime.session.new_spark", lambda *_, **__: spark)
    command = ["verify", str(place / "check"), "--home", str(place / "home")]
    shutil.copytree(place, tmp_path / "kept")
    try:
        for plant, _ in FAULTS.values():
            plant(place)
        as_text, as_json = (CliRunner().invoke(app, [*command, *more]) for more in ([], ["--json"]))
    finally:
        shutil.rmtree(place)
        shutil.copytree(tmp_path / "kept", place)
    assert as_text.exit_code == as_json.exit_code == 1
    assert "a.sink (csv): 12 rows in order, equal" in as_text.output
    assert "c.sink (parquet): 12 rows in order, 1 differ" in as_text.output
    told = json.loads(as_json.output)
    found = {output["name"]: output["first"] for output in told["outputs"] if output["differences"]}
    assert not told["equal"]
    assert set(found) == set(FAULTS)
    assert all(said in found[name][0] for name, (_, said) in FAULTS.items())


def test_refused_rows_that_were_deleted_are_damage_and_no_difference(
    spark: SparkSession, place: Path, tmp_path: Path
) -> None:
    shutil.copytree(place, tmp_path / "copy")
    min((tmp_path / "copy/check/rejected/sorted").glob("*")).unlink()
    with pytest.raises(rt.Failure, match="R406"):
        verified(spark, tmp_path / "copy")


def test_a_tick_that_is_not_delivered_is_not_verified(spark: SparkSession, place: Path) -> None:
    told = (place / "check" / "published").read_text()
    (place / "check" / "published").write_text("1")
    with pytest.raises(rt.Refused) as refused:
        verified(spark, place)
    (place / "check" / "published").write_text(told)
    assert refused.value.problems[0].code == "R408"


@pytest.mark.slow
def test_input_that_is_gone_is_reported(spark: SparkSession, place: Path) -> None:
    path = max((place / "home" / "logs" / "s").glob("*/s-*/r-*"))
    path.rename(path.with_name("away"))
    with pytest.raises(rt.RowtimeError) as refused:
        verified(spark, place)
    path.with_name("away").rename(path)
    assert refused.value.problems[0].code == "R501"


def test_a_streaming_dataframe_cannot_be_read_again(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    made = rt.Pipeline(spark, home=tmp_path).source("r", frame).sql("SELECT STREAM value FROM r")
    made.sink("result", lambda _batch: None).run_available(tmp_path / "check")
    with pytest.raises(rt.Refused) as refused:
        rt.verify(tmp_path / "check", made)
    assert refused.value.problems[0].code == "R407"


@pytest.mark.parametrize("compare", [_as_sets, _in_order])
def test_a_null_where_the_target_has_none_is_a_difference(compare: Callable[..., Any]) -> None:
    """Arrow raises Python's ValueError for such a cast, which is none of its own errors."""
    written = pa.table({"n": [1]}, schema=pa.schema([pa.field("n", pa.int64(), nullable=False)]))
    found = [*compare(written, pa.table({"n": pa.array([None], pa.int64())}))]
    assert found
    assert not [*compare(written, pa.table({"n": pa.array([1], pa.int64())}))]
