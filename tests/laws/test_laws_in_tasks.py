"""The laws hold where a tick's work travels as bytes, as it does to a task of Spark, and its report comes back.

A process without a session does the steps: nothing but the bytes and the files can affect the result.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from rowtime.runtime.session import derive
from rowtime.testing.runner import cuts, findings, play
from rowtime.testing.transcripts import load
from rowtime.testing.verdicts import judge_of
from tests.laws.checking import check, outcome
from tests.laws.deeper_pipelines import DEEPER
from tests.laws.fault_rows import EXAMPLE
from tests.laws.panes_pipelines import PANES
from tests.laws.pipelines import LAWS, Law
from tests.laws.session_pipelines import SESSIONS
from tests.laws.sorted_pipelines import SORTED
from tests.laws.window_pipelines import WINDOWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.executors.tasks import Tasks

pytestmark = pytest.mark.sampled(8)

CHAINED = (*DEEPER, *SORTED, *WINDOWS, *SESSIONS)
CASES: Final = Path(__file__).parent.parent / "transcripts"
FILES = [
    path for path in (*sorted(CASES.glob("sqlstream/*.yaml")), *sorted(CASES.glob("*.yaml"))) if not judge_of(path)
]


@pytest.mark.parametrize("law", [*LAWS, *CHAINED, *PANES], ids=lambda law: law.name)
def test_the_output_equals_the_oracle(spark: SparkSession, sent: list[Tasks], law: Law) -> None:
    found = outcome(derive(spark), law, EXAMPLE, [3, 6, len(EXAMPLE)], restart=True)
    check(law, EXAMPLE, found)
    assert len(sent) == 3
    assert not any(tasks.needs for tasks in sent)


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_case_passes(spark: SparkSession, sent: list[Tasks], path: Path) -> None:
    case = load(path)
    _, cut = list(cuts(case))[-1]
    assert findings(case, play(derive(spark), case, cut)) == []
    assert sent
