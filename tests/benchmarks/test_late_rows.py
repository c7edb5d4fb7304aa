"""The benchmark of late rows computes which rows are late; a loop over the rows has to agree."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import late
from benchmarks.late import LateRows

ROWS = 20_000


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LateRows:
    monkeypatch.setattr(late, "CACHE", tmp_path)
    monkeypatch.setattr(late, "FILE", ROWS)
    monkeypatch.setattr(late, "STEP", 20_000)  # small, so that the files span minutes
    return LateRows(keys=7, share=10.0, files=2)


def accepted_one_by_one(rows: LateRows) -> list[dict[str, object]]:
    greatest, found = None, []
    for path in sorted(rows.folder().iterdir()):
        for row in pq.read_table(path).to_pylist():
            at = row["ev"]
            end = at.replace(second=0, microsecond=0) + timedelta(minutes=1)
            if greatest is None or end > greatest - timedelta(seconds=late.TOLERANCE):
                found.append(row)
            greatest = at if greatest is None else max(greatest, at)
    return found


def test_a_row_is_accepted_until_its_minute_is_over(rows: LateRows) -> None:
    expected = accepted_one_by_one(rows)
    assert pa.concat_tables([*rows.accepted()]).to_pylist() == expected
    assert 0.08 < 1 - len(expected) / rows.count < 0.12


def test_the_groups_count_the_accepted_rows_and_the_rest_is_late(rows: LateRows) -> None:
    groups, refused = rows.answer()
    assert sum(groups["c"].to_pylist()) + refused == rows.count
    assert sum(groups["sv"].to_pylist()) == sum(row["v"] for row in accepted_one_by_one(rows))
    assert groups.select(["w", "k"]).group_by(["w", "k"]).aggregate([]).num_rows == groups.num_rows
