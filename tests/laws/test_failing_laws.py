"""Rows whose expressions fail are refused, the others go on, and both depend on the items only, with any cut."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.time import END
from rowtime.operators.rows import attempt
from rowtime.plan.program import compile_script
from rowtime.runtime.session import derive
from rowtime.testing.runner import Outcome, play
from rowtime.testing.transcripts import ScriptItem
from tests.laws.failing_pipelines import CLAUSES, DECLARE, OVERFLOWS, SHOWN, STREAMS, Clause, items, transcript
from tests.laws.pipelines import ORIGIN, SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = (1,)
OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
ALWAYS = ("sum beyond its type", "correlation")
"""The cases of the default run."""


def rows_of(found: Outcome) -> list[Mapping[str, Any]]:
    return [row for _, row in found.rows]


def refused_of(found: Outcome) -> list[str]:
    shown = ({name: value for name, value in row.items() if not name.startswith("__")} for row in found.refused)
    return sorted(str(sorted(row.items())) for row in shown)


def cuts(count: int, seed: int) -> list[Sequence[int]]:
    chance = random.Random(seed)
    return [[count], [*sorted(chance.sample(range(1, count), 2)), count]]


def check(spark: SparkSession, clause: Clause, made: list[ScriptItem], seed: int) -> int:
    """The rows of a filtered query, and the same refusals with every cut; their number."""
    played = [play(spark, transcript(clause.sql, made), cut) for cut in cuts(len(made), seed)]
    first = played[0]
    if clause.guarded:
        guarded = play(spark, transcript(clause.guarded, made), [len(made)])
        assert rows_of(first) == rows_of(guarded)
        assert not guarded.refused
    for other in played[1:]:
        assert rows_of(other) == rows_of(first)
        assert refused_of(other) == refused_of(first)
    assert {row["reason"] for row in first.refused} <= {"MALFORMED"}
    assert all(clause.told in row["raw_record"] for row in first.refused), {row["raw_record"] for row in first.refused}
    assert not any("__" in row["raw_record"] for row in first.refused), "no name that only the engine has"
    return len(first.refused)


@pytest.mark.parametrize(
    "clause",
    [pytest.param(one, id=one.name, marks=[] if one.name in ALWAYS else [pytest.mark.slow]) for one in CLAUSES],
)
def test_failing_rows_are_refused_in_any_cut(spark: SparkSession, clause: Clause) -> None:
    session = derive(spark)
    counts = [check(session, clause, items(seed), seed) for seed in ((1,) if clause.name in ALWAYS else SEEDS)]
    assert sum(counts), "nothing has failed"


@pytest.mark.parametrize("clause", [pytest.param(one, id=one.name) for one in OVERFLOWS])
@pytest.mark.usefixtures("both_ways")
def test_what_overflows_in_a_comparison_is_refused_by_both(spark: SparkSession, clause: Clause) -> None:
    assert check(derive(spark), clause, items(1), 1), "nothing has failed"


@pytest.mark.slow
def test_failing_groups_and_pairs_can_be_read_as_a_stream(spark: SparkSession) -> None:
    sql = (
        "CREATE VIEW g AS SELECT STREAM k, 10 DIV SUM(n) AS s FROM a GROUP BY FLOOR(a.ROWTIME TO SECOND), k;"
        "CREATE VIEW j AS SELECT STREAM g.k AS k, 10 DIV (g.s - 10) AS s FROM g JOIN b "
        "ON g.k = b.k AND 10 DIV b.n > -99;"
        "SELECT STREAM k, s, raw_record FROM g.rejected UNION ALL SELECT STREAM k, s, raw_record FROM j.rejected"
    )
    rows = [("a", 0, 0), ("a", 1, 1), ("b", 2, 0), ("b", 2, 1)]
    made = [
        ScriptItem(n, stream, "x", {"rowtime": time, "ev": time, "k": "x", "n": value, "v": 0, "w": 0}, None)
        for n, (stream, at, value) in enumerate(rows, 1)
        for time in [ORIGIN + at * SECOND]
    ]
    made += [ScriptItem(len(made) + n, stream, "x", None, END) for n, stream in enumerate(STREAMS, 1)]
    found = rows_of(play(derive(spark), transcript(sql, made), [len(made)]))
    told = {(row["k"], row["s"], row["raw_record"]) for row in found}
    assert told == {
        ("x", None, "10 DIV SUM(`n`)"),
        (None, None, "10 DIV `b_n` > -99"),
        ("x", None, "10 DIV (`g_s` - 10)"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("out", [SHOWN, "EMIT CHANGES"])
@pytest.mark.parametrize("window", ["SNAPSHOT()", "TUMBLE(INTERVAL '1' SECOND)"])
def test_an_event_with_a_text_that_is_no_number_is_not_in_a_sum(spark: SparkSession, window: str, out: str) -> None:
    sql = f"SELECT STREAM SUM(k) AS s, AVG(k) AS a FROM e GROUP BY {window} {out}"
    made = [
        ScriptItem(n, "e", "x", {"rowtime": ORIGIN, "n": n, "k": k, "since": ORIGIN, "until": ORIGIN + SECOND}, None)
        for n, k in enumerate("2x4", 1)
    ]
    made += [ScriptItem(3 + n, stream, "x", None, END) for n, stream in enumerate(STREAMS, 1)]
    found = play(derive(spark), transcript(sql, made), [len(made)])
    assert [(row["s"], row["a"]) for row in rows_of(found)][-1:] == [(6.0, 3.0)]
    assert [(row["n"], row["raw_record"]) for row in found.refused] == [(2, "AVG(`k`)")]


@pytest.mark.slow
def test_an_event_that_fails_in_one_window_is_in_the_others(spark: SparkSession) -> None:
    sql = (
        "SELECT STREAM SUM(10 DIV (second(LIFETIME_END(e)) - 2)) AS s, COUNT(*) AS c FROM e "
        f"GROUP BY TUMBLE(INTERVAL '1' SECOND) {SHOWN}"
    )
    made = [
        ScriptItem(n, "e", "x", {"rowtime": ORIGIN, "n": n, "since": ORIGIN, "until": ORIGIN + n * SECOND}, None)
        for n in (1, 3)
    ]
    made += [ScriptItem(2 + n, stream, "x", None, END) for n, stream in enumerate(STREAMS, 1)]
    found = play(derive(spark), transcript(sql, made), [len(made)])
    assert [(row["s"], row["c"]) for row in rows_of(found)] == [(-20, 2), (10, 1)]
    [gone] = found.refused
    assert (gone["n"], gone["raw_record"]) == (3, "10 DIV (SECOND(LIFETIME_END(…)) - 2)")


@pytest.mark.slow
@pytest.mark.usefixtures("both_ways")
def test_a_planted_fault_is_found(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    clause = next(one for one in CLAUSES if one.name == "join condition")
    monkeypatch.setattr("rowtime.operators.joins.join.judged", _first_test_only)
    session = derive(spark)
    with pytest.raises(AssertionError):
        check(session, clause, items(1), 1)


def _first_test_only(rows: Any, tests: Any, *others: Any) -> Any:
    """A failing comparison counts as a match."""
    return attempt.judged(rows, [], *others)


def test_every_clause_compiles_and_every_operator_that_computes_is_tried() -> None:
    kinds = set()
    for clause in CLAUSES:
        for sql in filter(None, (clause.sql, clause.guarded)):
            program = compile_script(DECLARE + sql)
            assert not program.problems, (clause.name, [str(problem) for problem in program.problems])
            kinds |= {node.kind for node in program.operators}
    assert kinds >= {
        "select", "group by", "session", "panes", "join", "table join", "over", "order by", "t-sort",
        "union all", "lifetime windows", "lifetime sessions", "snapshot", "count windows", "lifetime join",
        "snapshot sets", "speculative groups", "speculative count windows",
    }  # fmt: skip
