"""The worked cases of `tests/transcripts` about features of this version, cut in several ways."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtime.runtime.session import derive
from rowtime.testing.runner import cuts, findings, play, run_case, run_paths
from rowtime.testing.transcripts import load
from rowtime.testing.verdicts import judge_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

CASES = Path(__file__).parent / "transcripts" / "sqlstream"
FILES = [path for path in (*sorted(CASES.glob("*.yaml")), *sorted(CASES.parent.glob("*.yaml"))) if not judge_of(path)]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_case_passes(spark: SparkSession, path: Path) -> None:
    case = load(path)
    _, cut = list(cuts(case))[-1]
    assert findings(case, play(derive(spark), case, cut)) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_case_passes_in_any_cut(spark: SparkSession, path: Path) -> None:
    assert run_case(derive(spark), load(path)) == []


def test_a_failing_case_reports_the_differences(spark: SparkSession, tmp_path: Path) -> None:
    text = (CASES / "ties_keep_arrival_order.yaml").read_text()
    (tmp_path / "wrong.yaml").write_text(text.replace("v: 2}}", "v: 7}}", 1))
    (tmp_path / "broken.yaml").write_text("title: no input")
    said: list[str] = []
    assert run_paths([tmp_path, CASES / "strict_bound_refuses_its_own_instant.yaml"], said.append, spark) == (1, 2)
    assert any("expected" in line for line in said)
    assert any("R601" in line for line in said)
