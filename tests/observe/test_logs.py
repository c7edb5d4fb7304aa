"""The log: its records and figures, as text and as JSON, without secrets; who configures it."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from rowtime.cli.logs import Level, LogTo
from rowtime.cli.main import app
from rowtime.core.errors import Failure, Problem
from rowtime.core.log import LOG
from rowtime.core.secrets import Secrets
from rowtime.observe import logs
from rowtime.observe.logs import Logs
from rowtime.runtime.retries import Retries
from tests.observe.conftest import Ran, Records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


def test_start_ticks_refused_rows_and_stop_are_logged_with_their_figures(ran: Ran) -> None:
    (start,), (stop,) = ran.records.of("start"), ran.records.of("stop")
    assert (start.levelname, start.tick, start.streams, start.sinks) == ("INFO", -1, ["trades"], ["query.result"])
    assert (stop.levelname, stop.ticks, stop.rows_in) == ("INFO", 3, 5)
    ticks = ran.records.of("tick")
    assert [(tick.levelname, tick.tick, tick.rows_in) for tick in ticks] == [
        ("DEBUG", n, r) for n, r in enumerate((2, 2, 1))
    ]
    assert [tick.rows_refused for tick in ticks] == [0, 1, 0]
    (refused,) = ran.records.of("refused")
    assert (refused.levelname, refused.refused) == ("WARNING", {"sorted": {"LATE": 1}})
    assert "sorted: 1 LATE" in refused.getMessage()
    assert len({record.run for record in (start, stop, refused, *ticks)}) == 1


def counted(**counts: int) -> Any:
    cost = SimpleNamespace(total=1.0, milliseconds={}, refused=sum(counts.values()))
    ledger = {"g": {"in": 9, "accepted": 9 - sum(counts.values()), **counts}}
    return SimpleNamespace(tick=1, taken={"s": 9}, written={}, ledger=ledger, cost=cost)


RUN: Any = SimpleNamespace(run_id="r", engine=SimpleNamespace(checkpoint=SimpleNamespace(folder="c")))


@pytest.fixture
def records() -> Any:
    found, level = Records(), LOG.level
    LOG.addHandler(found)
    LOG.setLevel(logging.DEBUG)
    yield found
    LOG.removeHandler(found)
    LOG.setLevel(level)


def test_refused_rows_are_summed_by_the_minute(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(logs, "time", SimpleNamespace(monotonic=lambda: now[0]))
    log = Logs()
    for second in range(200):
        now[0] = 1000.0 + second
        log.ticked(RUN, counted(LATE=1, EARLY=2), {})
    late = [record.refused["g"]["LATE"] for record in records.of("refused")]
    assert late == [61, 60, 60]
    now[0] += 100
    log.idle(RUN)
    log.ended(RUN, None)
    assert sum(record.refused["g"]["LATE"] for record in records.of("refused")) == 200


def test_a_change_of_the_script_is_logged(records: Records) -> None:
    engine = SimpleNamespace(
        checkpoint=SimpleNamespace(folder="c"),
        program=SimpleNamespace(streams=[], sinks=[]),
        entry={"tick": 4},
        changes=("the query q is new",),
    )
    Logs().started(SimpleNamespace(run_id="r", engine=engine))  # type: ignore[arg-type]
    (upgrade,) = records.of("upgrade")
    assert upgrade.changes == ["the query q is new"]
    assert upgrade.getMessage() == "the script has changed: the query q is new"


def test_a_retry_is_logged_with_its_traceback_and_so_is_its_end(records: Records) -> None:
    retries = Retries()
    retries.failed(Failure(Problem("R501", "the brokers do not answer")))
    retries.succeeded()
    (retry,), (recovered,) = records.of("retry"), records.of("recovered")
    assert (retry.levelname, retry.attempt, retry.exc_info[1].problems[0].code) == ("WARNING", 1, "R501")
    assert recovered.attempts == 1


def _fails(what: str) -> None:
    raise ValueError(f"it quotes {what}")


def test_lines_of_json_have_the_figures_and_the_traceback_and_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    quoted = 'a"k\u00e9y'
    with LogTo(Level.INFO, as_json=True) as log:
        log.secrets = Secrets({quoted: "…"})
        LOG.debug("not asked for")
        try:
            _fails(quoted)
        except ValueError as error:
            LOG.warning("failed: %s", error, exc_info=True, extra={"event": "retry", "pause": 0.5, "said": [quoted]})
    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert (found["message"], found["said"]) == ("failed: it quotes …", ["…"])
    assert (found["level"], found["logger"], found["event"], found["pause"]) == ("warning", "rowtime", "retry", 0.5)
    assert found["traceback"].endswith("ValueError: it quotes …")
    assert found["time"].endswith("Z")
    assert "\u00e9y" not in line


def test_lines_of_text_have_time_level_and_message(capsys: pytest.CaptureFixture[str]) -> None:
    with LogTo(Level.DEBUG, as_json=False) as log:
        log.secrets = Secrets({"pass-word": "…"})
        LOG.info("with %s", "pass-word")
    assert capsys.readouterr().err[23:] == "Z INFO with …\n"


def test_without_a_level_nothing_is_written_and_the_logger_is_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    before = (LOG.level, LOG.propagate, [*LOG.handlers])
    with LogTo(None, as_json=False):
        LOG.error("on the display already")
    assert capsys.readouterr().err == ""
    assert (LOG.level, LOG.propagate, [*LOG.handlers]) == before


def test_the_package_configures_no_logger() -> None:
    code = """import logging, rowtime, rowtime.api.query, rowtime.cli.main
assert not logging.root.handlers, logging.root.handlers
assert not logging.getLogger("rowtime").handlers
assert logging.getLogger("rowtime").level == logging.NOTSET"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_every_record_says_what_happened() -> None:
    """A law over the source: each log call has the attribute ``event``."""
    for path in (ROOT / "src/rowtime").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        calls = sum(text.count(f"LOG.{level}(") for level in ("debug", "info", "warning", "error"))
        assert text.count("extra") >= calls, path


def test_a_run_logs_to_standard_error_as_asked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.sql").write_text(
        "CREATE STREAM s (n INT);\nINSERT INTO s (ROWTIME, n) VALUES (TIMESTAMP '2024-01-01 10:00:00', 1);\n"
        "SELECT STREAM n FROM s"
    )
    asked = ["--available-now", "--home", "home", "--log-json", "--log-level", "debug", "--metrics-port", "0"]
    done = CliRunner().invoke(app, ["run", "one.sql", *asked])
    assert done.exit_code == 0
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]  # the display prints too
    assert [line["event"] for line in lines] == ["metrics", "start", "tick", "stop"]
    assert re.fullmatch(r"http://127.0.0.1:\d+/metrics", lines[0]["address"])
    assert lines[2]["rows_in"] == 1
