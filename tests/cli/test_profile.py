"""``rowtime profile`` prints the disorder of rows, a curve and a statement that runs; errors have codes."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from tests.docs.page_blocks import blocks_of
from tests.docs.shell import Shell, met

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from typer.testing import Result

Rowtime = Callable[..., "Result"]
START = datetime(2026, 1, 1, tzinfo=UTC)
LATE = {3: 5, 7: 30, 8: 31, 20: 200}
"""Seconds that some of the rows are late."""
PAGE = Path(__file__).parents[2] / "docs" / "profile.md"


def line(n: int) -> str:
    at = START + timedelta(seconds=n * 2 - LATE.get(n, 0) * 2)
    return f"{at:%Y-%m-%d %H:%M:%S},{n % 3}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of CSV, with a row that has no time and one from the future."""
    (tmp_path / "taps").mkdir()
    rows = [line(n) for n in range(60)]
    rows[30:30] = [",1", "2031-05-05 00:00:00,2"]
    for n, part in enumerate((rows[:25], rows[25:])):
        (tmp_path / "taps" / f"{n}.csv").write_text("\n".join(["at,tap", *part, ""]))
    return tmp_path / "taps"


def test_a_folder_of_csv_is_profiled_and_the_statement_runs(
    spark: SparkSession, rowtime: Rowtime, folder: Path, tmp_path: Path
) -> None:
    result = rowtime("profile", "taps", "--writer", "tap", "--key", "tap", "--svg", "taps.svg", "--keep", "0.9")
    assert result.exit_code == 0, result.output
    assert "taps_files by at: 62 rows" in result.stdout
    assert re.search(r"^tap +rows +first +last +late +p50 +p99 +greatest +gap$", result.stdout, re.MULTILINE)
    assert "! 1 row has no time (NULL_ROWTIME)" in result.stdout
    assert "! 1 row lies up to" in result.stdout
    assert "← recommended" in result.stdout
    statement = result.stdout[result.stdout.index("CREATE STREAM") :]
    query = rt.Pipeline(spark, home=tmp_path / "home2").sql(f"{statement}; SELECT STREAM tap FROM taps_files_in_order")
    counts = query.run_available(tmp_path / "c").ledger["taps_files_in_order"]
    assert (counts["EARLY"], counts["NULL_ROWTIME"]) == (1, 1)
    listed = rowtime("profile", "taps", "--json", "--keep", "0.9")
    [profile] = json.loads(listed.stdout)
    assert counts.get("LATE", 0) == profile["recommended"]["within"]["late"]
    assert "EARLY BEYOND INTERVAL" in profile["statement"]
    assert profile["rows"] == 62
    assert [one["writer"].rpartition("/")[2] for one in profile["writers"]] == ["0.csv", "1.csv"]
    picture = ET.fromstring((tmp_path / "taps.svg").read_text())  # noqa: S314 - our own
    assert picture.tag.endswith("svg")
    assert any("WITHIN" in (text.text or "") for text in picture.iter())


def test_each_gate_and_stream_of_a_script_has_a_profile(
    spark: SparkSession, rowtime: Rowtime, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "taps.sql").write_text(
        f"CREATE STREAM taps (at TIMESTAMP, tap INT) USING csv OPTIONS (path '{folder}', header 'true');"
        "CREATE STREAM again (at TIMESTAMP, tap INT) USING csv OPTIONS (path '${where}', header 'true');"
        "CREATE VIEW v AS SELECT STREAM at AS ROWTIME, tap FROM taps WHERE tap > 0 "
        "ORDER BY at WITHIN INTERVAL '1' SECOND;"
        "SELECT STREAM tap FROM v; SELECT STREAM tap FROM again;"
    )
    result = rowtime("profile", "taps.sql", "--json", "--set", f"where={folder}")
    assert result.exit_code == 0, result.output
    gate, stream = json.loads(result.stdout)
    assert (gate["name"], gate["rows"], gate["statement"].split()[0]) == ("v", 42, "ORDER")
    assert (stream["name"], stream["rows"]) == ("again", 62)


def test_what_cannot_be_profiled_is_refused_with_a_code(spark: SparkSession, rowtime: Rowtime, tmp_path: Path) -> None:
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "a.csv").write_text("x\n1\n")
    (tmp_path / "mixed" / "b.json").write_text('{"x": 1}\n')
    (tmp_path / "rate.sql").write_text("CREATE STREAM r (value BIGINT) USING rate; SELECT STREAM value FROM r;")
    (tmp_path / "two.sql").write_text(
        "CREATE STREAM s (a TIMESTAMP, b TIMESTAMP, c INT) USING csv OPTIONS (path 'mixed', pathGlobFilter '*.csv');"
        "SELECT STREAM c FROM s;"
    )
    refusals = {
        ("nothing",): "R620",
        ("mixed",): "R620",
        ("mixed/a.csv",): "R621",
        ("rate.sql",): "R623",
        ("two.sql",): "R621",
        ("two.sql", "--time", "c"): "R621",
        ("two.sql", "--time", "d"): "R103",
        ("two.sql", "--time", "a", "--writer", "w"): "R103",
    }
    for arguments, code in refusals.items():
        result = rowtime("profile", *arguments)
        assert (result.exit_code, result.stderr[:4]) == (1, code), (arguments, result.output)


def test_a_source_without_rows_has_nothing_to_recommend(spark: SparkSession, rowtime: Rowtime, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text("CREATE STREAM s (at TIMESTAMP); SELECT STREAM at FROM s;")
    result = rowtime("profile", "s.sql")
    assert result.exit_code == 0, result.output
    assert "no row has a time" in result.stdout


@pytest.mark.slow
def test_the_commands_of_the_page_say_what_it_shows(tmp_path: Path) -> None:
    shell, output = Shell(tmp_path), list[str]()
    for block in blocks_of(PAGE.read_text(encoding="utf-8")):
        if block.kind == "sh":
            output = shell(block.text)
        elif block.kind == "text":
            met(block.text, output)
