"""What a journal counts as held: rows that can still match or go out, however the rows came."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from rowtime.plan.waiting import waiting
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

START = datetime(2026, 5, 4, 6)  # noqa: DTZ001 - UTC, as in the files
EVERY = timedelta(seconds=30)
ORDERS, PAYMENTS = 120, 100
LATER = timedelta(minutes=5)
TEXT = {
    "csv": lambda rows: "id,at\n" + "".join(f"{number},{at}\n" for number, at in rows),
    "json": lambda rows: "".join(json.dumps({"id": number, "at": str(at)}) + "\n" for number, at in rows),
}


def _script(kind: str, folder: Path) -> str:
    header = ", header 'true'" if kind == "csv" else ""
    sides = "".join(
        f"CREATE STREAM {name} (id BIGINT, at TIMESTAMP) USING {kind} OPTIONS (path '{folder / name}'{header});"
        f"CREATE VIEW s{name} AS SELECT STREAM at AS ROWTIME, id FROM {name} ORDER BY at WITHIN INTERVAL '1' MINUTE;\n"
        for name in ("o", "p")
    )
    return (
        f"{sides}CREATE STREAM out (id BIGINT) USING parquet OPTIONS (path '{folder / 'out'}'); "
        "CREATE PUMP w AS INSERT INTO out SELECT STREAM sp.id FROM so LEFT JOIN sp ON sp.id = so.id "
        "AND sp.ROWTIME BETWEEN so.ROWTIME AND so.ROWTIME + INTERVAL '10' MINUTE;"
    )


@pytest.mark.parametrize("kind", TEXT)
def test_a_join_holds_what_can_still_match_whatever_the_format(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    orders = [(number, START + EVERY * number) for number in range(ORDERS)]
    payments = [(number, at + LATER) for number, at in orders[:PAYMENTS]]
    for name, rows in (("o", orders), ("p", payments)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1").write_text(TEXT[kind](rows))
    rt.Pipeline(home=tmp_path / "home", spark=spark).sql(_script(kind, tmp_path)).run_available(tmp_path / "ck")
    place = Checkpoint(tmp_path / "ck")
    entry = place.journal.last()
    bound = payments[-1][1] - timedelta(minutes=1)
    held = {
        "left": sum(at + timedelta(minutes=10) >= bound for _, at in orders),
        "right": sum(at >= bound for _, at in payments),
    }
    assert held == {"left": 33, "right": 3}
    assert {key.rsplit("/")[-1]: rows for key, rows in entry["held"].items()} == held
    (wait,) = waiting(place.plan, entry, entry["at"])
    assert wait.held == sum(held.values())
