"""Ticks that share one version, and compaction of small files: no row is lost or repeated."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.api.verification import verify
from rowtime.cli.main import app
from rowtime.core.errors import Refused
from rowtime.runtime.iceberg_catalog import opened
from rowtime.runtime.sinks.delta_log import DeltaLog
from rowtime.state.checkpoint import Checkpoint
from tests.lakes.test_delta_tables import Died, define, numbers, run, send, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.engine import Engine
    from rowtime.runtime.sinks.lake import Ready

SQL = """CREATE STREAM a (n BIGINT, day DATE);
CREATE STREAM o (n BIGINT) USING delta OPTIONS (path '{folder}/out', commit.interval '1 hour');
CREATE STREAM q (n BIGINT) USING parquet OPTIONS (path '{folder}/copy');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM a;
CREATE PUMP copies AS INSERT INTO q SELECT STREAM n FROM a;"""


def engine_of(spark: SparkSession, folder: Path) -> Engine:
    made = rt.Pipeline(spark, home=folder / "home").sql(SQL.format(folder=folder))
    return made._engine(folder / "check", rt.Limits(), ends=False)


def ticks(folder: Path) -> list[str]:
    return [one["rowtime.tick"] for one in reversed(table(folder).history()) if "rowtime.tick" in one]


def test_ticks_are_gathered_until_they_are_due(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(tmp_path, SQL)
    engine = engine_of(spark, tmp_path)
    reported = []
    for at in range(4):
        send(tmp_path, range(at * 5, at * 5 + 5))
        report = engine.tick()
        assert report is not None
        reported.append(report.written["p.sink"])
        assert numbers(tmp_path) == list(range(5)), "the first one is there at once"
        assert sorted((tmp_path / "copy").glob("part-*")), "others do not wait"
    assert reported == [5, 5, 5, 5], "each row is reported once"
    assert engine.tick() is None
    assert ticks(tmp_path) == ["0"]
    later = time.monotonic() + 3601
    with monkeypatch.context() as patch:
        patch.setattr("rowtime.runtime.sinks.lake.time.monotonic", lambda: later)
        assert engine.tick() is None, "it is due without a new tick"
    assert numbers(tmp_path) == list(range(20))
    assert ticks(tmp_path) == ["0", "3"]
    assert Checkpoint(tmp_path / "check").published == 3
    send(tmp_path, range(20, 25))
    monkeypatch.setattr("rowtime.runtime.sinks.lake.time.monotonic", lambda: later)
    engine.tick()
    assert ticks(tmp_path) == ["0", "3"]
    engine.stop()
    assert ticks(tmp_path) == ["0", "3", "4"], "and at the stop"
    found = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert found.equal, found


OFTEN = ("gathered", "commit")
SELDOM = pytest.param(("before journal", "after journal", "files in place"), marks=pytest.mark.slow)


@pytest.mark.parametrize("points", [OFTEN, SELDOM], ids=["often", "seldom"])
def test_gathered_ticks_survive_the_death_of_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: tuple[str, ...]
) -> None:
    define(tmp_path, SQL)
    sent, real = 0, DeltaLog.commit
    for point in points:
        engine = engine_of(spark, tmp_path)
        for _ in range(3):
            send(tmp_path, range(sent, sent + 5))
            sent += 5
            engine.tick()
        before = numbers(tmp_path)
        assert before == list(range(sent - 10)), point
        send(tmp_path, range(sent, sent + 5))
        sent += 5

        def commit(self: DeltaLog, ready: Ready, at: str = point) -> None:
            if at == "commit":
                real(self, ready)
            raise Died

        def hook(here: str, at: str = point) -> None:
            if here == at:
                raise Died

        engine.hook = hook
        if point in ("before journal", "after journal"):
            with pytest.raises(Died):
                engine.tick()
        else:
            engine.tick()
            if point != "gathered":
                with monkeypatch.context() as patch:
                    patch.setattr(DeltaLog, "commit", commit)
                    patch.setattr("rowtime.runtime.sinks.lake.LakeSink.waits", lambda _: False)
                    with pytest.raises(Died):
                        engine.tick()
        for stage in engine.stages.values():  # as the system does for a process that has died
            stage.close()
        engine.checkpoint.release()
        assert len(numbers(tmp_path)) == (sent if point == "commit" else len(before)), point
        run(spark, tmp_path, SQL)
        assert numbers(tmp_path) == list(range(sent)), point
    found = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert found.equal, found


COMPACTED = """CREATE STREAM a (n BIGINT, day DATE);
CREATE STREAM o (n BIGINT) USING delta OPTIONS (path '{folder}/out', optimize.files '3');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM a;"""


def test_small_files_are_combined_by_count_and_manually(spark: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, COMPACTED)
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(COMPACTED.format(folder=tmp_path))
    engine = made._engine(tmp_path / "check", rt.Limits(), ends=False)
    files = []
    for at in range(5):
        send(tmp_path, range(at * 5, at * 5 + 5))
        engine.tick()
        files.append(len(table(tmp_path).file_uris()))
    assert files == [1, 2, 1, 2, 3]
    # With the command, while the pipeline runs.
    asked = ["optimize", str(tmp_path / "check"), "p", "--json"]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 0, found.output
    assert [(one["pump"], one["files"]) for one in json.loads(found.output)] == [("p", 3)]
    send(tmp_path, range(25, 30))
    engine.tick()
    engine.stop()
    assert numbers(tmp_path) == list(range(30))
    compared = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert [(one.how, one.rows) for one in compared.outputs if one.kind == "delta"] == [("as a set", 30)]
    assert compared.equal, compared
    table(tmp_path).delete("n = 7")
    table(tmp_path).restore(0)
    assert "R571" in CliRunner().invoke(app, ["optimize", str(tmp_path / "check"), "x"]).output
    assert "R405" in CliRunner().invoke(app, ["optimize", str(tmp_path / "none")]).output


ICEBERG = """iceberg OPTIONS (table 'db.o', catalog 'c', catalog.type 'sql', catalog.uri 'sqlite:///{folder}/c.db',
  catalog.warehouse 'file://{folder}/lake', optimize.files '3')"""


@pytest.mark.parametrize("form", ["delta", pytest.param("iceberg", marks=pytest.mark.slow)])
def test_small_files_are_counted_over_restarts(spark: SparkSession, tmp_path: Path, form: str) -> None:
    begin, _, end = COMPACTED.partition("delta OPTIONS (path '{folder}/out', optimize.files '3')")
    sql = COMPACTED if form == "delta" else f"{begin}{ICEBERG}{end}"
    define(tmp_path, sql)
    files = []
    for at in range(6):
        send(tmp_path, range(at * 5, at * 5 + 5))
        run(spark, tmp_path, sql)
        if form == "delta":
            files.append(len(table(tmp_path).file_uris()))
        else:
            told = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/lake"}
            files.append(opened("c", told).load_table("db.o").inspect.files().num_rows)
    assert files == [1, 2, 1, 2, 1, 2]


@pytest.mark.parametrize("option", ["commit.interval 'soon'", "commit.interval '1 month'", "optimize.files '1'"])
def test_options_with_an_invalid_time_or_number_are_refused(tmp_path: Path, option: str) -> None:
    sql = f"CREATE STREAM o (n BIGINT) USING delta OPTIONS (path '/o', {option});"
    with pytest.raises(Refused, match="R541"):
        rt.Pipeline(home=tmp_path / "home").sql(sql).compile()
