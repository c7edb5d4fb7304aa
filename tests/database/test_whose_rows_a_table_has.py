"""Only one pump of one checkpoint writes to a table of a database (semantics 10)."""

from __future__ import annotations

import datetime as dt
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.core.errors import Failure, Refused
from rowtime.runtime.sinks.database import JdbcSink
from tests.database.postgres import programs

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.database.postgres import Postgres

BEGIN = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)


class Death(BaseException):
    """Stands for the death of the driver."""


def asked(server: Postgres, query: str) -> list[str]:
    command = [str(programs() / "psql"), "-h", "127.0.0.1", "-p", str(server.port), "-U", "rowtime", "-d", "postgres"]
    found = subprocess.run([*command, "-qtA", "-F", "|", "-c", query], capture_output=True, text=True, check=True)
    return found.stdout.splitlines()


class Table:
    """A pump ``p`` into a table, run with one of two checkpoints."""

    def __init__(self, spark: SparkSession, server: Postgres, folder: Path, name: str) -> None:
        self.spark, self.server, self.folder, self.name = spark, server, folder, name
        self.url = server.url

    def pipeline(self, pump: str = "p") -> rt.Pipeline:
        options = f"(url '{self.url}', user 'rowtime', dbtable '{self.name}')"
        sql = f"""CREATE STREAM a (n INT); CREATE OR REPLACE STREAM o (n INT) USING jdbc OPTIONS {options};
          CREATE PUMP {pump} AS INSERT INTO o SELECT STREAM n FROM a"""
        return rt.Pipeline(self.spark, home=self.folder / "home").sql(sql)

    def run(self, check: str, pump: str = "p", **how: Any) -> rt.Query:
        return self.pipeline(pump).run_available(self.folder / check, **how)

    def send(self, *numbers: int) -> None:
        with rt.writer("a", home=self.folder / "home", writer="w") as writer:
            writer.insert([{"n": n, "rowtime": BEGIN + dt.timedelta(minutes=n)} for n in numbers])

    def written(self, check: str, *numbers: int) -> Table:
        """The table after a new checkpoint has written these numbers."""
        self.run(check)
        self.send(*numbers)
        self.run(check)
        return self

    @property
    def rows(self) -> list[int]:
        return [int(n) for n in asked(self.server, f"SELECT n FROM {self.name} ORDER BY ctid")]


@pytest.mark.slow
def test_a_new_checkpoint_wrote_the_rows_of_a_table_twice(
    spark: SparkSession, postgres: Postgres, tmp_path: Path
) -> None:
    table = Table(spark, postgres, tmp_path, "twice").written("check1", 0, 1)
    said = r"R440 the table twice is written by another pump p: there are 2 rows, by the pipeline of .*check1"
    with pytest.raises(Refused, match=said):
        table.run("check2")
    table.name = "public.TWICE"  # another spelling of the same table
    with pytest.raises(Refused, match="R440"):
        table.run("check2")
    table.name = "twice"
    assert table.rows == [0, 1]

    # With another name, its rows are beside those of the other pump.
    table.run("check3", "q")
    assert table.rows == [0, 1, 0, 1]

    # With take_over, rows and numbers continue, and the old checkpoint cannot write there again, running or not.
    old = table.pipeline()._engine(tmp_path / "check1", rt.Limits(), ends=False)
    query = table.run("check2", take_over=["p"])
    assert table.rows == [0, 1, 0, 1, 0, 1]
    control = query.engine.entry["control"]["p.sink"]
    assert (control["base"], control["sequence"]) == (2, 4)
    table.send(2)
    with pytest.raises(Refused, match=r"R441 the pipeline of .*check2 has taken over the table twice"):
        old.tick()
    old.stop()
    with pytest.raises(Refused, match="R441"):
        table.run("check1", take_over=["p"])
    table.run("check2")
    table.run("check2")
    assert table.rows == [0, 1, 0, 1, 0, 1, 2]
    assert asked(postgres, "SELECT sink, next_row FROM rowtime_sinks WHERE sink LIKE 'twice/p%' ORDER BY 2 DESC") == [
        "twice/p|5",
        f"twice/p/{(tmp_path / 'check1' / 'identity').read_text()}|2",
    ]
    assert not asked(postgres, "SELECT relname FROM pg_class WHERE relname LIKE 'rowtime_stage_%'")
    assert rt.verify(tmp_path / "check2", spark=spark, home=tmp_path / "home").equal

    # A dropped table has no owner.
    asked(postgres, "DROP TABLE twice")
    table.run("check4")
    assert table.rows == [0, 1, 2]


@pytest.mark.slow
def test_a_table_with_as_many_rows_of_another_copy_of_the_checkpoint_is_refused(
    spark: SparkSession, postgres: Postgres, tmp_path: Path
) -> None:
    table = Table(spark, postgres, tmp_path, "forked").written("check", 0, 1)
    asked(postgres, "UPDATE rowtime_sinks SET link = '0123456789abcdef' WHERE sink LIKE 'forked/%'")
    table.send(2)
    for _ in range(2):
        with pytest.raises(Refused, match="R564 the pump p has written 2 rows to the table forked, which has those of"):
            table.run("check")
    assert table.rows == [0, 1]


@pytest.mark.slow
def test_a_database_that_was_restored_got_a_gap(spark: SparkSession, postgres: Postgres, tmp_path: Path) -> None:
    table = Table(spark, postgres, tmp_path, "older").written("check", 0, 1)
    copied = asked(postgres, "SELECT next_row FROM rowtime_sinks WHERE sink LIKE 'older/%'")
    table.send(2)
    table.run("check")
    asked(postgres, "DELETE FROM older WHERE n = 2")
    asked(postgres, f"UPDATE rowtime_sinks SET next_row = {copied[0]} WHERE sink LIKE 'older/%'")
    table.send(3)
    said = "R564 the pump p has written 3 rows to the table older, which has 2 of them"
    for _ in range(2):
        with pytest.raises(Refused, match=said):
            table.run("check")
    assert table.rows == [0, 1]
    asked(postgres, "DROP TABLE older")
    with pytest.raises(Refused, match=r"R564 .* to the table older, which is gone"):
        table.run("check")
    asked(postgres, "DELETE FROM rowtime_sinks WHERE sink LIKE 'older/%'")
    with pytest.raises(Refused, match=r"R564 .* to the table older, which is gone"):
        table.run("check")


@pytest.mark.slow
def test_two_drivers_of_one_checkpoint_wrote_the_same_rows_to_a_table(
    spark: SparkSession, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older driver, which no lock stops, continues beside the one that has taken over (`reliability/model`)."""
    table = Table(spark, postgres, tmp_path, "drivers").written("check", 0, 1)
    table.send(2, 3)
    older = table.pipeline()._engine(tmp_path / "check", rt.Limits(), ends=False)
    write, stages = JdbcSink._write, list[str]()

    def beside(self: JdbcSink, spark: SparkSession, batch: Any, first: int, stage: str) -> None:
        stages.append(stage)
        if len(stages) > 1:
            write(self, spark, batch, first, stage)
            return
        # The older driver has read the number of the next row.
        (tmp_path / "check" / ".lock").unlink()
        later = table.pipeline()._engine(tmp_path / "check", rt.Limits(), ends=False)
        write(self, spark, batch, first, stage)
        table.send(4)
        later.tick()
        later.stop()

    monkeypatch.setattr(JdbcSink, "_write", beside)
    older.tick()
    older.stop()
    assert table.rows == [0, 1, 2, 3, 4]
    assert len(set(stages)) == 2, "each driver has a table of its own beside the target"
    asked(postgres, f"CREATE TABLE {stages[0]} (n INT)")  # a state that a crashed driver may leave
    table.run("check")
    assert not asked(postgres, "SELECT relname FROM pg_class WHERE relname LIKE 'rowtime_stage_%'")


@pytest.mark.slow
def test_a_takeover_of_a_table_survives_a_crash_at_any_statement(
    spark: SparkSession, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(spark, postgres, tmp_path, "deaths").written("check1", 0, 1)
    table.send(2)
    real, done = JdbcSink._do, 0

    def dies(self: JdbcSink, connection: object, text: str) -> None:
        nonlocal done
        done += 1
        if done in deaths:
            raise Death
        real(self, connection, text)

    deaths = (1, 3, 6)  # statements of three runs: the first, second and third of each
    monkeypatch.setattr(JdbcSink, "_do", dies)
    for _ in deaths:
        with pytest.raises(Death):
            table.run("check2", take_over=["p"])
    table.run("check2")
    assert table.rows == [0, 1, 0, 1, 2]


@pytest.mark.slow
def test_an_older_copy_of_a_checkpoint_mistook_new_rows_for_repeats(
    spark: SparkSession, postgres: Postgres, tmp_path: Path
) -> None:
    table = Table(spark, postgres, tmp_path, "copied").written("check", 0)
    shutil.copytree(tmp_path / "check", tmp_path / "copy")
    table.send(1, 2)
    table.run("check")
    with pytest.raises(Failure, match=r"R420 .*the table copied has 2 more of its rows"):
        table.run("copy")
    assert table.rows == [0, 1, 2]


@pytest.mark.slow
def test_a_pump_that_wrote_before_starts_while_its_database_is_away(
    spark: SparkSession, postgres: Postgres, tmp_path: Path
) -> None:
    table = Table(spark, postgres, tmp_path, "away").written("check", 0)
    table.send(1)
    table.url = postgres.url.replace(str(postgres.port), "1")
    engine = table.pipeline()._engine(tmp_path / "check", rt.Limits(), ends=False)
    with pytest.raises(Failure, match="R501"):
        engine.tick()
    engine.stop()
    table.url = postgres.url
    table.run("check")
    assert table.rows == [0, 1]
