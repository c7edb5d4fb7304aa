"""The worked cases of `tests/transcripts` about what this version runs, cut in several ways."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtime.runtime.session import derive
from rowtime.testing.runner import run_case, run_paths
from rowtime.testing.transcripts import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = Path(__file__).parent / "transcripts" / "sqlstream"
PATTERNS = (
    "bounds_*", "distinct_*", "early_late_*", "group_*", "hop_*", "late_*", "nth_value_*", "over_*",
    "session_*", "stagger_*",
    "promotion_*", "rows_and_range_*", "select_star_*", "strict_*", "ties_*", "tsort_*", "order_*", "tumble_*",
    "union_all_*", "where_*", "writers_*",
)  # fmt: skip
OWN = sorted(CASES.parent.glob("*.yaml"))
FILES = [*(path for pattern in PATTERNS for path in sorted(CASES.glob(f"{pattern}.yaml"))), *OWN]

LONG = {
    "over_hopping_frame_by_floored_minute",
    "over_range_one_day_sees_only_arrived_rows",
    "early_late_views_lose_first_row",
}
CASES_IN_TURN = [
    pytest.param(path, marks=[pytest.mark.slow] if path.stem in LONG else [], id=path.stem) for path in FILES
]  # what has many items, and a shorter case beside it, runs with make slow


@pytest.mark.parametrize("path", CASES_IN_TURN)
def test_the_case_is_met_whatever_the_cut(spark: SparkSession, path: Path) -> None:
    assert run_case(derive(spark), load(path)) == []


def test_a_case_that_is_not_met_fails_with_what_differs(spark: SparkSession, tmp_path: Path) -> None:
    text = (CASES / "ties_keep_arrival_order.yaml").read_text()
    (tmp_path / "wrong.yaml").write_text(text.replace("v: 2}}", "v: 7}}", 1))
    (tmp_path / "broken.yaml").write_text("title: no input")
    said: list[str] = []
    assert run_paths([tmp_path, CASES / "strict_bound_refuses_its_own_instant.yaml"], said.append, spark) == (1, 2)
    assert any("expected" in line for line in said)
    assert any("R601" in line for line in said)
