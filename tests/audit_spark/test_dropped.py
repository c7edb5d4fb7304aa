"""The rows that an audit derives as dropped are those of Spark's rules, and are missing in what Spark gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.audit_spark.audited import _result, audit
from rowtime.audit_spark.cuts import Cut, Ran, cuts_of, run
from rowtime.audit_spark.inputs import Inputs
from rowtime.audit_spark.jobs import Job, of_sql
from rowtime.audit_spark.operators import plan_of
from rowtime.audit_spark.rewriting import advice_of
from tests.audit_spark import oracle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2026, 1, 1, 10)  # noqa: DTZ001 - all times are UTC
DELAY = timedelta(minutes=2)
MINUTE = timedelta(minutes=1)
Files = list[list[tuple[datetime, str]]]


def rows(seed: int, files: int = 3, each: int = 12) -> Files:
    rng = random.Random(seed)
    ahead = [START + 6 * n * MINUTE for n in range(files)]
    second = timedelta(seconds=1)
    return [[(at - rng.randrange(720) * second, rng.choice("ab")) for _ in range(each)] for at in ahead]


def sql(text: str, **delays: str) -> Job:
    """A query over inputs with a watermark."""

    def build(spark: SparkSession, given: dict[str, DataFrame]) -> DataFrame:
        watched = {name: frame.withWatermark("at", "2 minutes") for name, frame in given.items()}
        return of_sql(text).build(spark, watched)

    return Job("the query", build, None)


def audited(session: SparkSession, job: Job, given: Inputs, cut: Cut, folder: Path) -> tuple[Ran, list[int | None]]:
    """What a cut gives, and the rows that each operator dropped."""
    plan = plan_of(session, job, given, "append", folder / "plan")
    ran = run(session, job, given, cut, "append", folder / "cut")
    assert len(ran.counters) == len(plan.operators)
    losses = _result(ran, None, plan, given).losses
    for loss in losses:  # Spark counts rows that it has combined
        assert loss.rows is None or (loss.spark or 0) <= loss.rows <= 100 * (loss.spark or 0)
    return ran, [loss.rows for loss in losses]


ONE, ONE_RESTARTED, RANDOM = [*cuts_of(3, 1, 1)][1:]


@pytest.mark.parametrize(
    ("cut", "slide", "seed"),
    [
        (ONE_RESTARTED, 5, 1),
        pytest.param(ONE, 5, 2, marks=pytest.mark.slow),
        pytest.param(RANDOM, 5, 3, marks=pytest.mark.slow),
        pytest.param(ONE_RESTARTED, 2, 4, marks=pytest.mark.slow),
    ],
)
def test_windows(
    session: SparkSession, inputs: Callable[..., Inputs], tmp_path: Path, cut: Cut, slide: int, seed: int
) -> None:
    files = rows(seed)
    text = f"SELECT window.start, key, COUNT(*) FROM s GROUP BY window(at, '5 minutes', '{slide} minutes'), key"
    ran, dropped = audited(session, sql(text), inputs(s=files), cut, tmp_path)
    expected, late = oracle.counted(files, oracle.marks(files, cut, DELAY), 5 * MINUTE, slide * MINUTE)
    assert dropped == [late]
    assert ran.rows == expected
    assert late or cut is ONE


@pytest.mark.slow
def test_a_session_is_late_by_its_row_alone(
    session: SparkSession, inputs: Callable[..., Inputs], tmp_path: Path
) -> None:
    files = rows(5)
    text = "SELECT session_window.start, key, COUNT(*) AS n FROM s GROUP BY session_window(at, '30 seconds'), key"
    ran, dropped = audited(session, sql(text), inputs(s=files), ONE_RESTARTED, tmp_path)
    marks = oracle.marks(files, ONE_RESTARTED, DELAY)
    late = sum(at + MINUTE / 2 <= marks[file] for file, some in enumerate(files) for at, _ in some)
    assert dropped == [late] != [0]
    assert sum(n * times for (*_, n), times in ran.rows.items()) == 36 - late


@pytest.mark.parametrize(
    "text", ["SELECT DISTINCT at, key FROM s", pytest.param("deduplicated", marks=pytest.mark.slow)]
)
def test_distinct_rows_and_duplicates(
    session: SparkSession, inputs: Callable[..., Inputs], tmp_path: Path, text: str
) -> None:
    def deduplicated(_: SparkSession, given: dict[str, DataFrame]) -> DataFrame:
        return given["s"].withWatermark("at", "2 minutes").dropDuplicates(["at", "key"])

    job = Job("duplicates", deduplicated, None) if text == "deduplicated" else sql(text)
    files = [[*some, *some[:3]] for some in rows(6)]
    ran, dropped = audited(session, job, inputs(s=files), ONE_RESTARTED, tmp_path)
    marks = oracle.marks(files, ONE_RESTARTED, DELAY)
    kept = [row for file, some in enumerate(files) for row in some if row[0] > marks[file]]
    assert dropped == [45 - len(kept)] != [0]
    assert ran.rows == Counter({(at.isoformat(" "), key): 1 for at, key in kept})


@pytest.mark.slow
def test_a_join_of_streams_drops_on_both_sides(
    session: SparkSession, inputs: Callable[..., Inputs], tmp_path: Path
) -> None:
    left, right = rows(7), rows(8)
    text = """SELECT l.at, l.key, r.at FROM l
        LEFT JOIN r ON l.key = r.key AND r.at BETWEEN l.at AND l.at + INTERVAL 30 SECOND"""
    given = inputs(l=left, r=right)
    cut = Cut("pairs", ((0, 1), (2, 3), (4, 5)), restarts=True)  # a file of each side
    ran, dropped = audited(session, sql(text), given, cut, tmp_path)
    of_both = [(max(a)[0], max(b)[0]) for a, b in zip(left, right, strict=True)]
    kept: list[list[tuple[datetime, str]]] = [[], []]
    for number in range(3):
        seen = [[pair[side] for pair in of_both[:number]] for side in (0, 1)]
        mark = min(map(max, seen)) - DELAY if number else oracle.BEGINNING  # the clock that is behind
        for side, files in enumerate((left, right)):
            kept[side] += [row for row in files[number] if row[0] > mark]
    assert dropped == [72 - len(kept[0]) - len(kept[1])] != [0]
    expected: Counter[tuple[str, str, str | None]] = Counter()
    for at, key in kept[0]:
        matches = [other for other, k in kept[1] if k == key and at <= other <= at + MINUTE / 2]
        expected.update((at.isoformat(" "), key, one and one.isoformat(" ")) for one in matches or [None])
    assert ran.rows == expected


def test_the_first_batch_drops_rows_before_1970(
    session: SparkSession, inputs: Callable[..., Inputs], tmp_path: Path
) -> None:
    old = datetime(1960, 1, 1)  # noqa: DTZ001 - UTC
    given = inputs(s=[[(old, "old")], [(START, "new")]])
    cut = next(cuts_of(2, 0, 1))
    ran, dropped = audited(session, sql("SELECT DISTINCT at, key FROM s"), given, cut, tmp_path)
    assert dropped == [1]
    assert [key for _, key in ran.rows] == ["new"]


def test_the_lateness_is_that_of_the_rows_in_their_order(
    session: SparkSession, inputs: Callable[..., Inputs], tmp_path: Path
) -> None:
    files = rows(9)
    given = inputs(s=files)
    plan = plan_of(session, sql("SELECT * FROM s"), given, "append", tmp_path / "plan")
    [advice] = [advice_of(one, given) for one in plan.watermarks]
    greatest, worst = START - 99 * MINUTE, []
    for at, _ in (row for some in files for row in some):
        greatest = max(greatest, at)
        worst.append((greatest - at) // timedelta(microseconds=1))
    assert (advice.rows, advice.all) == (36, max(worst))
    assert plan.operators == []


def counted_by_state(_: SparkSession, given: dict[str, DataFrame]) -> DataFrame:
    """A count of the rows of a key, kept by a function of the job."""

    def count(key: tuple[str], tables: Any, state: Any) -> Any:
        import pandas as pd

        if state.hasTimedOut:
            yield pd.DataFrame({"key": [key[0]], "n": [state.get[0]]})
            state.remove()
            return
        before = state.get[0] if state.exists else 0
        state.update((before + sum(len(table) for table in tables),))
        state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + 1)

    watched = given["s"].withWatermark("at", "2 minutes").groupBy("key")
    return watched.applyInPandasWithState(count, "key STRING, n INT", "n INT", "append", "EventTimeTimeout")


@pytest.mark.slow
def test_of_own_state_and_duplicates_within_the_watermark_only_results_are_compared(
    session: SparkSession, inputs: Callable[..., Inputs], tmp_path: Path
) -> None:
    given = inputs(s=rows(10, files=2, each=4))
    own = audit(session, Job("own", counted_by_state, None), given, randoms=0)
    assert own.batch is None
    assert own.reason.startswith("Spark does not compute it: ")
    assert "only its results are compared" in own.operators[0].reason
    assert [cut.missing for cut in own.cuts] == [None, None, None]
    assert own.cuts[0].rows >= 1

    def deduplicated(_: SparkSession, given: dict[str, DataFrame]) -> DataFrame:
        return given["s"].withWatermark("at", "2 minutes").dropDuplicatesWithinWatermark(["key"])

    within = audit(session, Job("within", deduplicated, None), given, randoms=0)
    assert (within.batch, within.operators[0].name) == (None, "dropDuplicatesWithinWatermark")
    assert [loss.rows for cut in within.cuts for loss in cut.losses] == [
        loss.spark for cut in within.cuts for loss in cut.losses
    ]


@pytest.mark.slow
def test_in_complete_mode_no_row_is_late(session: SparkSession, inputs: Callable[..., Inputs], tmp_path: Path) -> None:
    text = "SELECT window.start, COUNT(*) FROM s GROUP BY window(at, '1 minute')"
    audited = audit(session, sql(text), inputs(s=rows(11, files=2)), mode="complete", randoms=0)
    assert audited.agrees
    assert audited.batch == audited.cuts[2].rows > 0
