"""``rowtime run --ui``: the console during a real run, and after it has stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

import rowtime as rt
from rowtime.client.home import Home
from rowtime.web.rows import Traces, Wanted
from rowtime.web.watched import Watched

pytestmark = pytest.mark.slow
SQL = """\
CREATE STREAM clicks (page STRING);
CREATE STREAM found (m TIMESTAMP, page STRING, n BIGINT) USING parquet OPTIONS (path 'out');
CREATE PUMP per_minute AS INSERT INTO found SELECT STREAM FLOOR(c.ROWTIME TO MINUTE) AS m, page, COUNT(*) AS n
  FROM clicks AS c GROUP BY FLOOR(c.ROWTIME TO MINUTE), page;
"""
PATIENCE = 240  # seconds


@pytest.fixture
def run(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "script.sql").write_text(SQL)
    columns = [{"name": "page", "type": "STRING", "nullable": True}]
    Home(tmp_path / ".rowtime").define("clicks", {"columns": columns, "format": None, "options": {}})
    with rt.writer("clicks", home=tmp_path / ".rowtime") as log:
        times = [f"2026-03-02 09:{second // 60:02}:{second % 60:02}" for second in range(0, 200, 20)]
        log.insert([{"page": "a", "rowtime": at} for at in times])
    command = [sys.executable, "-m", "rowtime", "run", "script.sql", "--ui"]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**os.environ}
    ) as started:
        yield started
        started.kill()


def asked(url: str, path: str, wanted: str) -> str:
    """The answer, when it has the expected content."""
    until = time.monotonic() + PATIENCE
    text = ""
    while time.monotonic() < until:
        with urllib.request.urlopen(url + path, timeout=30) as answer:  # noqa: S310 - of this machine
            text = unescape(answer.read().decode())
        if wanted in text:
            return text
        time.sleep(0.5)
    raise AssertionError(text)


def test_a_run_is_shown_while_it_goes_on_and_traced_after_it(run: subprocess.Popen[str], tmp_path: Path) -> None:
    assert run.stderr is not None
    line = next(line for line in run.stderr if line.startswith("rowtime console: "))
    url = line.split()[-1].rstrip("/")
    text = asked(url, "/", 'data-label="out">3')
    assert '<span class="state running">running' in text
    found = re.search(r'href="(/p/[^"]+)/graph"', text)
    assert found is not None
    place = found[1]
    graph = json.loads(asked(url, f"{place}/graph.json", "per_minute"))
    assert graph["blame"] == "Writer main of clicks holds the output per_minute at 2026-03-02 09:04:00."
    ticks = asked(url, f"{place}/ticks", "Spark's page")
    assert "Spark jobs" in ticks
    run.send_signal(signal.SIGINT)
    assert run.wait(PATIENCE) == 0
    watched = Watched(Home(tmp_path / ".rowtime"), ())
    (pipeline,) = watched.pipelines
    assert pipeline.records.liveness.state == "stopped"
    traced(watched, tmp_path)


def traced(watched: Watched, folder: Path) -> None:
    """A trace runs in its own process, which finds the output of the run."""
    (pipeline,) = watched.pipelines
    wanted = Wanted(pipeline.key, "per_minute.sink", where="n = 3 AND m = TIMESTAMP '2026-03-02 09:00:00'")
    before = Path.cwd()
    os.chdir(folder)
    try:
        traces = Traces(watched)
        traces.ask(pipeline, wanted)
        _, result = traces.state_of(wanted)
        until = time.monotonic() + PATIENCE
        while result is None and time.monotonic() < until:
            time.sleep(0.5)
            _, result = traces.state_of(wanted)
    finally:
        os.chdir(before)
    assert result is not None
    assert not result.problem, result.problem
    assert [
        item["columns"]["page"] for item in result.items if item["operator"] == "clicks" and item["kind"] == "row"
    ] == ["a"] * 3
