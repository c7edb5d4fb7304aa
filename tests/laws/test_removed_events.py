"""An event whose end removes it is refused like any other if its values fail, whichever ticks its edges come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from rowtime.core.time import END
from rowtime.operators.events import failing_events
from rowtime.runtime.session import derive
from rowtime.testing.runner import Outcome, play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.failing_pipelines import DECLARE, SHOWN, STREAMS
from tests.laws.pipelines import ORIGIN, SECOND
from tests.laws.test_failing_laws import refused_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.executors.tasks import Tasks

QUERIES: Final = {
    "select list": f"SELECT STREAM 10 / n AS q FROM o {SHOWN}",
    "where": f"SELECT STREAM v FROM o WHERE 10 / n > 3 {SHOWN}",
    "changes": "SELECT STREAM 10 / n AS q FROM o EMIT CHANGES",
    "snapshots": f"SELECT STREAM SUM(10 DIV n) AS s FROM o GROUP BY SNAPSHOT() {SHOWN}",
    "largest of snapshots": f"SELECT STREAM MAX(10 DIV n) AS s FROM o GROUP BY SNAPSHOT() {SHOWN}",
    "changes of snapshots": "SELECT STREAM SUM(10 DIV n) AS s FROM o GROUP BY SNAPSHOT() EMIT CHANGES",
    "windows": f"SELECT STREAM SUM(10 DIV n) AS s FROM o GROUP BY TUMBLE(INTERVAL '1' SECOND) {SHOWN}",
    "count windows": f"SELECT STREAM SUM(10 DIV n) AS s FROM o GROUP BY COUNT_WINDOW(1) {SHOWN}",
}
EDGES: Final = (  # of x and y: what it is, n, and when it ends (s)
    ("x", "start", 0, None),
    ("x", "start", 1, None),
    ("x", "end", 0, 0),  # as if the first had never existed
    ("x", "start", 0, None),  # the same once more, which lasts
    ("y", "start", 0, None),
    ("x", "end", 1, 1),
    ("x", "end", 0, 1),
    ("y", "end", 0, 0),
)
FAILING: Final = 3
CUTS: Final = ([2], [3], [5], [*range(1, len(EDGES))])
ALWAYS: Final = ("select list", "largest of snapshots")
"""The cases of the default run."""
CASES: Final = [pytest.param(name, id=name, marks=[] if name in ALWAYS else [pytest.mark.slow]) for name in QUERIES]


def items() -> list[ScriptItem]:
    edges = [
        ScriptItem(n, "o", writer, {
            "kind": kind, "n": value, "v": 5, "k": "k", "since": ORIGIN,
            "until": None if end is None else ORIGIN + end * SECOND,
        }, None)
        for n, (writer, kind, value, end) in enumerate(EDGES, 1)
    ]  # fmt: skip
    ends = [(stream, writer) for stream in STREAMS for writer in ("xy" if stream == "o" else "x")]
    return edges + [ScriptItem(len(edges) + n, *of, None, END) for n, of in enumerate(ends, 1)]


def played(spark: SparkSession, name: str, cut: list[int]) -> Outcome:
    made = items()
    writers = {stream: ["x", "y"] if stream == "o" else ["x"] for stream in STREAMS}
    case = Transcript("removed", "removed", DECLARE + QUERIES[name], tuple(made), (), "exact", frozenset(), writers, {})
    return play(derive(spark), case, [*cut, len(made)], restart=True)


def check(spark: SparkSession, name: str) -> None:
    whole = played(spark, name, [])
    assert [row["reason"] for row in whole.refused] == ["MALFORMED"] * FAILING
    for cut in CUTS:
        other = played(spark, name, cut)
        assert refused_of(other) == refused_of(whole), cut
        assert rows_of(other) == rows_of(whole), cut


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("both_ways")
def test_a_removed_event_is_refused_in_any_cut(spark: SparkSession, name: str) -> None:
    check(spark, name)


@pytest.mark.parametrize("name", CASES)
def test_a_removed_event_is_refused_in_any_cut_by_tasks(spark: SparkSession, sent: list[Tasks], name: str) -> None:
    check(spark, name)
    assert not any(tasks.needs for tasks in sent)


def test_a_planted_fault_is_found(spark: SparkSession, sent: list[Tasks], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing_events, "CHANGED_BY", "1L")
    with pytest.raises(AssertionError):
        check(spark, "select list")
    assert sent
