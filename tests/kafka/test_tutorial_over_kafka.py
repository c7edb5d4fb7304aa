"""The Kafka part of the tutorial: its script and clicks give the result that the page shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from reliability.broker import Broker, Record
from rowtime.cli.main import app
from tests.docs.shell import met
from tests.docs.test_tutorial import blocks

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_the_script_over_kafka_says_what_the_tutorial_shows(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = blocks()
    [script], [clicks] = ([one.text for one in found if one.kind == kind] for kind in ("sql kafka.sql", "json clicks"))
    shown = found[[one.kind for one in found].index("sh kafka") + 1].text
    broker.create_topic("clicks")
    broker.send("clicks", *(Record(line) for line in clicks.splitlines()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROWTIME_HOME", raising=False)
    (tmp_path / "kafka.sql").write_text(script.replace("localhost:9092", broker.bootstrap), encoding="utf-8")
    ended = CliRunner().invoke(app, ["run", "kafka.sql", "--available-now"])
    assert ended.exit_code == 0, ended.output
    rows = [line for file in sorted((tmp_path / "out/topic").glob("*.json")) for line in file.read_text().splitlines()]
    assert [json.loads(row)["hits"] for row in rows] == [2]
    met(shown, [*ended.output.splitlines(), *rows])
