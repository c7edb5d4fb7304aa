"""``--fail-on-refused`` lets a batch job fail if a gate refuses too great a share of its rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtime.cli.figures import Figures
from rowtime.cli.running import _check_refused
from rowtime.core.errors import Failure

if TYPE_CHECKING:
    from typer.testing import Result

Rowtime = Callable[..., "Result"]


def test_a_run_that_refuses_more_than_the_share_fails_after_its_work(rowtime: Rowtime, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    times = ["10:00:00", "10:05:00", "10:00:01", "10:05:01"]
    (tmp_path / "in/1.csv").write_text("\n".join(["at", *(f"2026-01-01 {at}" for at in times), ""]))
    (tmp_path / "p.sql").write_text(
        "CREATE STREAM r (at TIMESTAMP) USING csv OPTIONS (path 'in', header 'true');"
        "CREATE VIEW v AS SELECT STREAM at AS ROWTIME, at FROM r ORDER BY at WITHIN INTERVAL '1' MINUTE;"
        "CREATE STREAM o (at TIMESTAMP) USING json OPTIONS (path 'out');"
        "CREATE PUMP p AS INSERT INTO o SELECT STREAM at FROM v;"
    )
    failed = rowtime("run", "p.sql", "--end", "--fail-on-refused", "0.2")
    assert failed.exit_code == 3
    assert "R527 more rows were refused than --fail-on-refused 0.2 permits: 1 of 4 at v" in failed.stderr
    assert sum(len(file.read_text().splitlines()) for file in (tmp_path / "out").glob("*.json")) == 3
    status = rowtime("status", ".rowtime/checkpoints/p").stdout  # what the hint says
    assert "v: 1 of 4 rows was 0:04:59 late; ORDER BY … WITHIN" in status
    passed = rowtime("run", "p.sql", "--end", "--fail-on-refused", "0.25", "--home", "other")
    assert "R527" not in passed.stderr


def test_a_share_is_exceeded_only_by_more() -> None:
    figures = Figures(0.0)
    figures.ledger["v"].update({"in": 100, "accepted": 99, "LATE": 1})
    _check_refused(figures, 0.01)
    figures.ledger["v"].update({"in": 1, "LATE": 1})
    with pytest.raises(Failure, match="R527"):
        _check_refused(figures, 0.01)


def test_a_continuous_run_takes_no_share(rowtime: Rowtime, tmp_path: Path) -> None:
    (tmp_path / "p.sql").write_text("CREATE STREAM s (n INT); SELECT STREAM n FROM s;")
    result = rowtime("run", "p.sql", "--fail-on-refused", "0.5")
    assert result.exit_code == 2
