"""`rowtime insert` says which rows the stream will refuse; the gate then refuses exactly these."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

import rowtime as rt
from rowtime.cli.main import app
from rowtime.client.forecast import Forecast
from rowtime.client.home import Home
from rowtime.core.time import BEGINNING, END

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = "2024-01-01 12:00:"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    found.define("s", {"columns": [{"name": "n", "type": "INT"}]})
    return found


@pytest.fixture
def insert(tmp_path: Path) -> Callable[[str], Result]:
    def call(lines: str, *options: str) -> Result:
        return CliRunner().invoke(app, ["insert", "s", "-", "--home", str(tmp_path / "home"), *options], input=lines)

    return call


def test_an_insert_into_a_stream_that_has_ended_says_that_all_is_refused(
    home: Home, insert: Callable[[str], Result]
) -> None:
    with rt.writer("s", home=home.path, writer="main") as log:
        log.insert([{"n": 1, "rowtime": f"{NOON}05"}])
        log.end()
    result = insert(f'{{"n": 2, "rowtime": "{NOON}06"}}\n{{"n": 3}}\n')
    assert result.exit_code == 0
    assert "the stream will refuse all 2 (OUT_OF_ORDER or LATE): s has ended for this writer" in result.stderr


def test_an_insert_after_the_end_of_the_stream_says_so_for_any_writer(
    home: Home, insert: Callable[..., Result]
) -> None:
    with rt.writer("s", home=home.path, writer="*") as everyone:
        everyone.end()
    result = insert('{"n": 2}\n', "--writer", "late", "--json")
    assert '"will_be_refused": 1' in result.stdout


def test_rows_below_the_clock_of_their_writer_are_counted(home: Home, insert: Callable[[str], Result]) -> None:
    with rt.writer("s", home=home.path) as log:
        log.insert([{"n": 1, "rowtime": f"{NOON}05"}])
    lines = [f'{{"n": {n}, "rowtime": "{NOON}{at:02}"}}\n' for n, at in enumerate([4, 5, 9, 7, 9])]
    result = insert("".join(lines))
    assert "will refuse 2 of them (OUT_OF_ORDER or LATE): they are below the clock of the writer" in result.stderr
    assert "refuse" not in insert('{"n": 2}\n').stderr


def test_nothing_is_predicted_for_a_stream_with_a_guard(home: Home, insert: Callable[[str], Result]) -> None:
    home.define("s", {"columns": [{"name": "n", "type": "INT"}], "early": 1}, replace=True)
    with rt.writer("s", home=home.path) as log:
        log.insert([{"n": 1, "rowtime": f"{NOON}05"}])
    assert "refuse" not in insert(f'{{"n": 1, "rowtime": "{NOON}01"}}\n').stderr


def test_the_forecast_equals_the_refusals_of_the_gate(spark: SparkSession, home: Home, tmp_path: Path) -> None:
    random.seed(7)
    with rt.writer("s", home=home.path) as log:
        seen = Forecast(log.log, log.name, home.definition("s") or {})
        assert seen.clock == BEGINNING
        for _ in range(12):
            if random.random() < 0.3:
                log.set_rowtime_bound(f"{NOON}{random.randrange(60):02}")
                seen = after(seen, log)
            rows = [{"n": n, "rowtime": f"{NOON}{random.randrange(60):02}"} for n in range(random.randrange(1, 6))]
            log.insert(rows)
            seen.take_last()
    pipeline = rt.Pipeline(spark, home=home.path).sql("SELECT STREAM n FROM s").sink("result", lambda _: None)
    ledger = pipeline.run_available(tmp_path / "check").ledger["s"]
    assert ledger["in"] > ledger["accepted"] > 0
    assert seen.refused == ledger["OUT_OF_ORDER"]
    assert seen.clock < END


def after(seen: Forecast, log: rt.Writer) -> Forecast:
    """The forecast of a later insert: it reads the log again and continues the counts."""
    found = Forecast(log.log, log.name, {})
    found.refused = seen.refused
    return found


def test_the_internal_name_of_streams_is_refused_for_a_writer(home: Home) -> None:
    with pytest.raises(rt.Refused, match="R207 this writer's name is reserved"):
        rt.writer("s", home=home.path, writer="\U0010ffff")
