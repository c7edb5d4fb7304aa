"""Repeated fires in a table of PostgreSQL and in files: with either, the batch answer remains."""

from __future__ import annotations

import contextlib
import subprocess
from collections import Counter
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.errors import Failure, Refused
from rowtime.runtime.sinks.database import JdbcSink
from rowtime.state.checkpoint import Checkpoint
from tests.database.postgres import Postgres, programs
from tests.landings import HOURLY, Answer, batch, landings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(4)

SINKS = """\
CREATE STREAM files (airport STRING, hour TIMESTAMP, n BIGINT, arrivals BIGINT, total BIGINT)
  USING parquet OPTIONS (path '{out}');
CREATE STREAM fires (airport STRING, hour TIMESTAMP, n BIGINT, arrivals BIGINT, total BIGINT)
  USING jdbc OPTIONS (url '{url}', user 'rowtime', dbtable 'fires');
CREATE STREAM latest (airport STRING, hour TIMESTAMP, n BIGINT, arrivals BIGINT, total BIGINT)
  USING jdbc OPTIONS (url '{url}', user 'rowtime', dbtable 'latest', key 'hour, airport', rowtime.column '');
CREATE STREAM remains (airport STRING, hour TIMESTAMP, arrivals BIGINT, total BIGINT, change STRING)
  USING jdbc OPTIONS (url '{url}', user 'rowtime', dbtable 'remains', key 'hour, airport', mode 'changes');
INSERT INTO files SELECT STREAM * FROM hourly;
INSERT INTO fires SELECT STREAM * FROM hourly;
INSERT INTO latest SELECT STREAM * FROM hourly;
INSERT INTO remains SELECT STREAM * FROM changed;
"""


def _asked(server: Postgres, query: str) -> list[tuple[str, ...]]:
    command = [str(programs() / "psql"), "-h", "127.0.0.1", "-p", str(server.port), "-U", "rowtime", "-d", "postgres"]
    found = subprocess.run([*command, "-qtA", "-F", "|", "-c", query], capture_output=True, text=True, check=True)
    return [tuple(line.split("|")) for line in found.stdout.splitlines()]


def _table(server: Postgres, name: str) -> Answer:
    hour = "to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')"
    rows = _asked(server, f"SELECT coalesce(airport, '?'), {hour}, arrivals, total FROM {name}")
    return Counter((airport, hour, int(arrivals), int(total)) for airport, hour, arrivals, total in rows)


def test_the_table_equals_the_batch_answer_and_a_restart_repeats_nothing(
    spark: SparkSession, postgres: Postgres, tmp_path: Path
) -> None:
    made = (
        rt.Pipeline(spark, home=tmp_path / "home").sql(HOURLY).sql(SINKS.format(url=postgres.url, out=tmp_path / "out"))
    )
    rows, check = landings(1), tmp_path / "check"
    query = made.run_available(check)  # the stream exists from here on
    for part in (rows[:180], rows[180:]):
        with rt.writer("landings", home=tmp_path / "home", writer="tower") as writer:
            writer.insert(part)
            if part[-1] is rows[-1]:
                writer.end()
        query = made.run_available(check)
    refused = {n for path in query.rejected("hourly") for n in pq.read_table(path)["n"].to_pylist()}
    assert refused
    assert _table(postgres, "latest") == _table(postgres, "remains") == batch(rows, refused)
    fires = _table(postgres, "fires").total()
    assert fires == pq.read_table(tmp_path / "out").num_rows > len(batch(rows, refused))
    # A driver that dies between the commit and its note publishes the last tick again.
    place = Checkpoint(check)
    place.published -= 1
    made.run_available(check)
    assert _table(postgres, "fires").total() == fires
    assert _table(postgres, "latest") == batch(rows, refused)


class Died(BaseException):
    """Stands for the death of the driver."""


@pytest.mark.slow
def test_a_driver_that_dies_at_any_statement_leaves_no_trace(
    spark: SparkSession, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sinks = SINKS.replace("dbtable '", "dbtable 'died_").format(url=postgres.url, out=tmp_path / "out")
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(HOURLY).sql(sinks)
    rows, check = landings(3), tmp_path / "check"
    made.run_available(check)
    real, counted = JdbcSink._do, count()

    def dies(self: JdbcSink, connection: object, text: str) -> None:
        if next(counted) == last:
            raise Died
        real(self, connection, text)

    deaths = 0
    for last, begun in enumerate(range(0, len(rows), 20)):
        with rt.writer("landings", home=tmp_path / "home", writer="tower") as writer:
            writer.insert(rows[begun : begun + 20])
            if begun + 20 >= len(rows):
                writer.end()
        counted = count()
        with monkeypatch.context() as patch, contextlib.suppress(Died):
            patch.setattr(JdbcSink, "_do", dies)
            made.run_available(check)
        deaths += next(counted) > last
        query = made.run_available(check)
    refused = {n for path in query.rejected("hourly") for n in pq.read_table(path)["n"].to_pylist()}
    assert deaths > 12
    assert _table(postgres, "died_latest") == _table(postgres, "died_remains") == batch(rows, refused)
    assert _table(postgres, "died_fires").total() == pq.read_table(tmp_path / "out").num_rows
    assert not _asked(postgres, "SELECT relname FROM pg_class WHERE relname LIKE 'rowtime_stage_%'")


def test_an_option_that_does_not_fit_is_refused_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    for options, said in (
        ("dbtable 't'", "the option url is missing"),
        ("url 'jdbc:postgresql://h/d', dbtable 't', mode 'upsert'", "key (none) cannot be combined"),
        ("url 'jdbc:postgresql://h/d', dbtable 't', mode 'merge'", "no mode merge"),
        ("url 'jdbc:postgresql://h/d', dbtable 't', key 'm'", "key needs a column 'm'"),
        ("url 'jdbc:odd://h/d', dbtable 't'", "the driver of jdbc:odd://h/d is not known"),
    ):
        sql = f"CREATE STREAM a (n INT); CREATE STREAM o (n INT) USING jdbc OPTIONS ({options});"
        made = rt.Pipeline(spark, home=tmp_path / "home").sql(f"{sql} INSERT INTO o SELECT STREAM * FROM a")
        (problem,) = rt.check(f"{sql} INSERT INTO o SELECT STREAM * FROM a")
        assert (problem.code, problem.place and problem.place.line) == ("R504", 1)
        with pytest.raises(Refused, match="R504") as refused:
            made.run_available(tmp_path / "check")
        assert said in str(refused.value)
    assert not [*tmp_path.iterdir()]


def test_a_database_that_does_not_answer_fails_the_tick(
    spark: SparkSession, postgres: Postgres, tmp_path: Path
) -> None:
    url = postgres.url.replace("/postgres", "/nowhere")
    options = f"url '{url}', dbtable 't', user 'rowtime'"
    sql = f"CREATE STREAM a (n INT); CREATE STREAM o (n INT) USING jdbc OPTIONS ({options});"
    made = rt.Pipeline(spark, home=tmp_path / "home")
    made.sql(f"{sql} INSERT INTO o SELECT STREAM * FROM a; INSERT INTO a VALUES (1)")
    with pytest.raises(Failure, match=r"R501 .*nowhere"):
        made.run_available(tmp_path / "check")
