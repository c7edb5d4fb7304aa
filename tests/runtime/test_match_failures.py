"""Conditions of MATCH_RECOGNIZE that cannot be computed: a candidate is given up, its row refused, others go on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.core.time import END, to_micros
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.checking import same_holding

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from rowtime.testing.runner import Outcome

ORIGIN, SECOND = 1_704_103_200_000_000, 1_000_000
DECLARED = "CREATE STREAM a (n INT, k STRING, v INT);"
HALF = 2**62  # two of these are beyond BIGINT
SELECT = "SELECT STREAM m.k, m.n, m.first FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY ROWTIME "
MEASURES = "MEASURES COUNT(*) AS n, FIRST(n) AS first "
SUMS = f"DEFINE A AS v > 0 AND SUM(A.v * CAST({HALF} AS BIGINT)) > 0, B AS v = 0) AS m"
Found = tuple[list[tuple[Any, ...]], Counter[tuple[int, str]]]


def _items(*rows: tuple[str, int]) -> list[ScriptItem]:
    """Rows a second apart: key and value; n is the number of the row. Then the end."""
    made = [
        ScriptItem(n, "a", "x", {"n": n, "k": k, "v": v, "rowtime": ORIGIN + n * SECOND}, None)
        for n, (k, v) in enumerate(rows, start=1)
    ]
    return [*made, ScriptItem(len(made) + 1, "a", "x", None, END)]


def played(
    spark: SparkSession, sql: str, made: Sequence[ScriptItem], cut: Sequence[int], *, restart: bool = False
) -> tuple[Found, Outcome]:
    case = Transcript("match", "match", f"{DECLARED} {sql}", tuple(made), (), "exact", frozenset(), {"a": ["x"]}, {})
    found = play(derive(spark), case, cut, restart=restart)
    rows = [tuple(value for name, value in row.items() if name != "rowtime") for _, row in found.rows]
    seconds = [((to_micros(row["refused_time"]) - ORIGIN) // SECOND, row["reason"]) for row in found.refused]
    return (rows, Counter(seconds)), found


# p: A A fails at its second row; from there A B is a match. q: A B is one. r: three A, of which each pair fails.
ROWS = _items(("p", 1), ("q", 1), ("p", 1), ("r", 1), ("p", 0), ("q", 0), ("r", 1), ("r", 1), ("r", 0), ("q", 0))
PAST = f"{SELECT}{MEASURES}AFTER MATCH SKIP PAST LAST ROW PATTERN (A+ B) WITHIN INTERVAL '1' MINUTE {SUMS}"
CUTS = ([3, 5, 11], [2, 4, 7, 8, 11], range(1, 12))


@pytest.mark.usefixtures("both_ways")
def test_a_sum_beyond_its_type_gives_up_its_candidate_alone(spark: SparkSession) -> None:
    expected = (
        [("p", 2, 3), ("q", 2, 2), ("r", 2, 8)],
        Counter({(3, "MALFORMED"): 1, (7, "MALFORMED"): 1, (8, "MALFORMED"): 1}),
    )
    whole, outcome = played(spark, PAST, ROWS, [11])
    assert whole == expected
    assert {row["raw_record"] for row in outcome.refused} == {f"SUM(`v` * CAST({HALF} AS BIGINT)) > 0"}
    for cut in CUTS:
        parts, other = played(spark, PAST, ROWS, cut, restart=cut is not CUTS[0])
        assert parts == expected, cut
        same_holding(outcome, other)


@pytest.mark.parametrize(
    ("clause", "rows", "expected"),
    [
        # The less preferred path fails at a row with which the preferred one ends: nothing needed its value.
        ("PATTERN (B | A) WITHIN INTERVAL '1' MINUTE DEFINE A AS 1 / (FIRST(A.v) - A.v) > 0, B AS B.v > 0",
         [("p", 1), ("p", 2)], ([("p", 1, 1), ("p", 1, 2)], {})),
        # The preferred one fails.
        ("PATTERN (A | B) WITHIN INTERVAL '1' MINUTE DEFINE A AS 1 / (FIRST(A.v) - A.v) > 0, B AS B.v > 0",
         [("p", 1), ("p", 2)], ([], {(1, "MALFORMED"): 1, (2, "MALFORMED"): 1})),
        # So it is if the less preferred one would become a match later.
        ("PATTERN (A C | B D) WITHIN INTERVAL '1' MINUTE DEFINE A AS 1 / (FIRST(A.v) - A.v) > 0",
         [("p", 1), ("p", 2)], ([], {(1, "MALFORMED"): 1, (2, "MALFORMED"): 1})),
        # A longer match is preferred, and its condition fails: the shorter one is none.
        ("PATTERN (A B?) WITHIN INTERVAL '1' MINUTE DEFINE B AS 1 / (A.v - B.v) > 0",
         [("p", 1), ("p", 1), ("p", 3)], ([("p", 1, 2), ("p", 1, 3)], {(2, "MALFORMED"): 1})),
        # The preferred path is open when the other one fails, and becomes the match.
        ("PATTERN (A B | A C D) WITHIN INTERVAL '1' MINUTE DEFINE B AS B.v > A.v, C AS 1 / (A.v - C.v) > 0",
         [("p", 1), ("p", 2), ("p", 2), ("p", 2), ("p", 5)], ([("p", 2, 1), ("p", 2, 4)], {(4, "MALFORMED"): 1})),
        # AND stops at what is false, so a sum beyond its type fails only where it is needed.
        ((f"PATTERN (A+ B) WITHIN INTERVAL '1' MINUTE DEFINE A AS v > 0, "
         f"B AS B.v = 0 AND SUM(A.v * CAST({HALF} AS BIGINT)) > 0"),
         [("p", 1), ("p", 1), ("p", 1), ("p", 0)], ([("p", 2, 3)], {(4, "MALFORMED"): 2})),
        # A condition over a row and the one before it.
        ("PATTERN (A B) WITHIN INTERVAL '1' MINUTE DEFINE B AS 6 / (v - PREV(v)) > 1",
         [("p", 1), ("p", 1), ("p", 3), ("p", 4)], ([("p", 2, 2)], {(2, "MALFORMED"): 1})),
    ],
)  # fmt: skip
def test_only_the_paths_that_decide_a_candidate_give_it_up(
    spark: SparkSession, clause: str, rows: list[tuple[str, int]], expected: tuple[Any, dict[Any, int]]
) -> None:
    made, sql = _items(*rows), f"{SELECT}{MEASURES}{clause}) AS m"
    matched, refused = expected
    for cut in ([len(made)], range(1, len(made) + 1), [2, len(made)]):
        assert played(spark, sql, made, cut)[0] == (matched, Counter(refused)), cut


def test_with_on_error_stop_the_run_ends(spark: SparkSession) -> None:
    for sql, code in (
        (PAST, "R507"),
        (PAST.replace(f"SUM(A.v * CAST({HALF} AS BIGINT))", "1 / (FIRST(A.v) - A.v)"), "R179"),
    ):
        with pytest.raises(rt.Failure) as failed:
            played(spark, f"{sql} ON ERROR STOP", ROWS, [11])
        assert failed.value.problems[0].code == code


@pytest.mark.parametrize("small_ticks", ["driver", "spark"])
def test_a_restored_checkpoint_refuses_the_same_rows(spark: SparkSession, tmp_path: Path, small_ticks: str) -> None:
    rows = ", ".join(
        f"(TIMESTAMP '2024-01-01 10:00:{item.number:02}', {item.values['n']}, '{item.values['k']}', {item.values['v']})"
        for item in ROWS if item.values
    )  # fmt: skip
    sql = f"{DECLARED} INSERT INTO a (ROWTIME, n, k, v) VALUES {rows}; CREATE VIEW m AS {PAST}; ALTER STREAM a END; "
    sql += f"CREATE STREAM out (k STRING, n BIGINT, first INT) USING parquet OPTIONS (path '{tmp_path / 'out'}'); "
    sql += "CREATE PUMP w AS INSERT INTO out SELECT STREAM * FROM m;"
    import pyarrow.parquet as pq

    for start in range(13):
        pipeline = rt.Pipeline(spark, home=tmp_path / "home", small_ticks=small_ticks).sql(sql)
        engine = pipeline._engine(tmp_path / "check", rt.Limits(rows=1), ends=False)
        if start % 3 == 1:
            engine.hook = _dies("before journal")
            with pytest.raises(KeyboardInterrupt):
                engine.tick()
        else:
            engine.tick()
        engine.stop()
    while True:
        pipeline = rt.Pipeline(spark, home=tmp_path / "home", small_ticks=small_ticks).sql(sql)
        engine = pipeline._engine(tmp_path / "check", rt.Limits(rows=1), ends=False)
        done = engine.tick() is None
        totals = engine.entry["totals"]
        engine.stop()
        if done:
            break
    out = [row for path in sorted((tmp_path / "out").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    assert [(row["k"], row["n"], row["first"]) for row in out] == [("p", 2, 3), ("q", 2, 2), ("r", 2, 8)]
    assert totals["m"]["MALFORMED"] == 3


def _dies(at: str) -> Any:
    def hook(moment: str) -> None:
        if moment == at:
            raise KeyboardInterrupt

    return hook
