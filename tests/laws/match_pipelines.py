"""Pipelines with MATCH_RECOGNIZE and their oracles: every clause, with ties, nulls and disorder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.laws.pipelines import SECOND, Feeds, Law, _streams
from tests.oracle import feed as f
from tests.oracle.match_recognize import Pattern, Spec, View, match_recognize
from tests.oracle.merge import merge

Result = tuple[f.Feed, list[f.Refusal]]
A, B, C = ("var", "A"), ("var", "B"), ("var", "C")
OF_V = {"key": lambda row: row.values["v"]}


def seq(*parts: Pattern) -> Pattern:
    return ("seq", list(parts))


def rep(part: Pattern, least: int, most: int | None, *, greedy: bool = True) -> Pattern:
    return ("rep", part, least, most, greedy)


def _matched(spec: Spec, key: str = "") -> Callable[[Feeds], Result]:
    def oracle(feeds: Feeds) -> Result:
        (a,), refused = _streams(feeds, "a")
        shown: Callable[[Any], Mapping[str, Any]] = (lambda value: {key: value}) if key else lambda _: {}
        return match_recognize(merge(a), spec, shown), refused

    return oracle


def _sorted_by_n(spec: Spec) -> Callable[[Feeds], Result]:
    """Equal rowtimes by n, the greatest first, when the bound is above them."""

    def oracle(feeds: Feeds) -> Result:
        (a,), refused = _streams(feeds, "a")
        (items,) = merge(a).values()
        bound = f.clock_of(items)
        rows = [row for row in f.rows_of(items) if bound >= f.END or (row.at or 0) < bound]
        rows.sort(key=lambda row: (row.at, -row.values["n"]))
        return match_recognize({"": [*rows, f.Bound(bound)]}, spec), refused

    return oracle


def _less(one: Any, other: Any) -> bool:
    return one is not None and other is not None and one < other


def _odd(view: View) -> bool:
    return bool(view.last("n") % 2)


def _total(values: list[int]) -> int | None:
    return sum(values) if values else None


_GREEDY = Spec(
    seq(A, rep(B, 0, None), C),
    {"A": lambda m: m.last("v") == 0, "B": lambda m: _less(0, m.last("v")),
     "C": lambda m: _less(m.first("v", "A"), m.last("v")) and m.last("n") > m.last("n", "A") + 1},
    {"f": lambda m: m.first("n"), "b": lambda m: m.last("n", "B"), "c": lambda m: len(m.of()), "s": lambda m:
     _total(m.all("v", "B")), "m": lambda m: m.number, "k": lambda m: m.names[-1]},
    within=3 * SECOND,
)  # fmt: skip
_KEYED = Spec(
    seq(A, rep(B, 1, 2)),
    {"B": lambda m: m.last("n") > m.last("n", "A")},
    {"a": lambda m: m.last("n", "A"), "b": lambda m: m.first("n", "B", on=1), "p": lambda m: m.first("n", "A", by=-1),
     "m": lambda m: m.number},
    **OF_V, skip="next", expires=2 * SECOND,
)  # fmt: skip
_UNMATCHED = Spec(
    seq(A, rep(B, 1, None)),
    {"B": lambda m: not _odd(m)},
    {"c": lambda m: len(m.of("B")), "w": lambda m: len(m.of("B")), "k": lambda m: m.names[-1], "m": lambda m: m.number,
     "l": lambda m: m.last("n", "A")},
    **OF_V, running=frozenset({"c", "k", "l"}), all_rows=True, unmatched=True, within=2 * SECOND, skip="next",
    shown=lambda row: {"n": row.values["n"]},
)  # fmt: skip
_LEFT_OUT = Spec(
    ("alt", [seq(A, ("out", rep(B, 0, None, greedy=False)), C), rep(B, 0, 1, greedy=False)]),
    {"A": lambda m: m.last("v") == 0, "C": lambda m: m.last("v") == 2},
    {"s": lambda m: _total(m.all("v")), "k": lambda m: m.names[-1] if m.names else None, "m": lambda m: m.number},
    running=frozenset({"s", "k"}), all_rows=True, within=2 * SECOND, shown=lambda row: {"n": row.values["n"]},
)  # fmt: skip
_TO_THE_END = Spec(
    seq(rep(A, 1, None), rep(B, 0, None), ("$",)),
    {"A": lambda m: m.last("v", by=1) is None or _less(m.last("v"), m.last("v", by=1))},
    {"f": lambda m: m.first("n"), "c": lambda m: len(m.of("A")), "l": lambda m: m.last("n")},
    ahead=1,
)  # fmt: skip
_AT_ONCE = Spec(
    seq(("^",), rep(A, 0, None, greedy=False), ("perm", [B, C])),
    {"B": lambda m: m.last("v") == 1, "C": lambda m: _less(1, m.last("v"))},
    {"f": lambda m: m.first("n", "B", "C"), "l": lambda m: m.last("n", "B", "C"), "x": lambda m: m.last("n", by=1),
     "av": lambda m: _mean(m.all("n", "B", "C"))},
    expires=2 * SECOND, behind=1, within=4 * SECOND,
)  # fmt: skip
_TOTALS = Spec(
    seq(rep(A, 1, None), B),
    {"A": lambda m: sum(m.all("n", "A")) < 12, "B": lambda m: sum(m.all("n", "A", "B")) >= 6},
    {"c": lambda m: len(m.of("A")), "s": lambda m: sum(m.all("n")), "d": lambda m: len({*m.all("v")})},
    skip="last", to=("B",), within=4 * SECOND,
)  # fmt: skip
_BY_N = Spec(
    seq(A, B, rep(C, 0, 1)),
    {"B": lambda m: m.last("n") < m.last("n", by=-1), "C": lambda m: m.last("v") is None},
    {"a": lambda m: m.last("n", "A"), "b": lambda m: m.last("n", "B"), "c": lambda m: m.last("n", "C")},
    within=2 * SECOND,
)  # fmt: skip
_NAMED = Spec(
    seq(rep(("alt", [A, B]), 1, None), C),
    {"A": lambda m: m.names[-2:-1] != ["A"], "B": lambda m: _less(0, m.last("v")) and m.names[-2:-1] == ["A"],
     "C": lambda m: _of_u(m)[-1:] == ["B"]},
    {"k": lambda m: m.names[0], "p": lambda m: m.names[-2], "u": lambda m: [None, *_of_u(m)][-2], "c": lambda m:
     len(m.of())},
    within=3 * SECOND,
)  # fmt: skip


def _different(view: View, *variables: str) -> int:
    return len({*view.all("v", *variables)})


_DIFFERENT = Spec(
    seq(rep(A, 1, None), rep(B, 1, 2, greedy=False), C),
    {"A": lambda m: _different(m, "A") <= 2, "B": lambda m: _different(m, "A", "B") >= len(m.all("v", "B")),
     "C": lambda m: len(m.all("v")) > _different(m) or m.last("v") is None},
    {"d": lambda m: _different(m, "A"), "l": lambda m: _joined(m.all("v")), "b": lambda m: _joined(m.all("n", "B")),
     "c": lambda m: len(m.of("A")), "k": _different},
    running=frozenset({"d", "l", "b", "c"}), all_rows=True, within=4 * SECOND, shown=lambda row: {"n": row.values["n"]},
)  # fmt: skip


def _joined(values: list[int]) -> str:
    return ",".join(map(str, values))


def _of_u(view: View) -> list[str]:
    return [name for name in view.names if name in ("A", "B")]


def _mean(values: list[int]) -> float | None:
    return sum(values) / len(values) if values else None


SECONDS = "WITHIN INTERVAL '{}' SECOND"
FROM = "FROM a MATCH_RECOGNIZE ("
MATCHES = (
    Law("a match within a time", ("match", "merge"),
        f"SELECT STREAM * {FROM}ORDER BY ROWTIME MEASURES FIRST(n) AS f, LAST(B.n) AS b, COUNT(*) AS c, SUM(B.v) AS s, "
        f"MATCH_NUMBER() AS m, CLASSIFIER() AS k PATTERN (A B* C) {SECONDS.format(3)} "
        "DEFINE A AS A.v = 0, B AS v > 0, C AS C.v > FIRST(A.v) AND C.n > A.n + 1) AS m", _matched(_GREEDY)),
    Law("matches of keys that expire, from each row on", ("match",),
        f"SELECT STREAM * {FROM}PARTITION BY v ORDER BY ROWTIME MEASURES A.n AS a, FIRST(B.n, 1) AS b, "
        "PREV(FIRST(A.n)) AS p, MATCH_NUMBER() AS m AFTER MATCH SKIP TO NEXT ROW PATTERN (A B{1,2}) "
        "DEFINE B AS B.n > LAST(A.n)) AS m KEYS EXPIRE AFTER INTERVAL '2' SECOND", _matched(_KEYED, "v")),
    Law("all rows with unmatched ones", ("match",),
        f"SELECT STREAM v, c, w, k, m, l, n {FROM}PARTITION BY v ORDER BY ROWTIME MEASURES COUNT(B.*) AS c, "
        "FINAL COUNT(B.*) AS w, CLASSIFIER() AS k, MATCH_NUMBER() AS m, A.n AS l ALL ROWS PER MATCH WITH UNMATCHED "
        f"ROWS AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+) {SECONDS.format(2)} DEFINE B AS MOD(n, 2) = 0) AS m",
        _matched(_UNMATCHED, "v")),
    Law("all rows but those that are left out, with empty matches", ("match",),
        f"SELECT STREAM n, s, k, m {FROM}ORDER BY ROWTIME MEASURES SUM(v) AS s, CLASSIFIER() AS k, MATCH_NUMBER() AS m "
        f"ALL ROWS PER MATCH SHOW EMPTY MATCHES PATTERN (A {{- B*? -}} C | B??) {SECONDS.format(2)} "
        "DEFINE A AS v = 0, C AS v = 2) AS m", _matched(_LEFT_OUT)),
    Law("a match that reaches the end of its partition", ("match",),
        f"SELECT STREAM * {FROM}ORDER BY ROWTIME MEASURES FIRST(n) AS f, COUNT(A.*) AS c, LAST(n) AS l "
        "PATTERN (A+ B* $) DEFINE A AS NEXT(v) IS NULL OR v < NEXT(v)) AS m WITH UNBOUNDED STATE",
        _matched(_TO_THE_END)),
    Law("a match at the beginning of its partition", ("match",),
        f"SELECT STREAM * {FROM}ORDER BY ROWTIME MEASURES FIRST(U.n) AS f, U.n AS l, NEXT(n) AS x, AVG(U.n) AS av "
        f"PATTERN (^ A*? PERMUTE(B, C)) {SECONDS.format(4)} SUBSET U = (B, C) "
        "DEFINE B AS v = 1, C AS 1 < C.v) AS m KEYS EXPIRE AFTER INTERVAL '2' SECOND", _matched(_AT_ONCE)),
    Law("totals of the rows of a match", ("match",),
        f"SELECT STREAM * {FROM}ORDER BY ROWTIME MEASURES COUNT(A.*) AS c, SUM(n) AS s, COUNT(DISTINCT v) AS d "
        f"AFTER MATCH SKIP TO B PATTERN (A+ B) {SECONDS.format(4)} SUBSET U = (A, B) "
        "DEFINE A AS SUM(A.n) < 12, B AS SUM(U.n) >= 6) AS m", _matched(_TOTALS)),
    Law("conditions that read the variables of earlier rows", ("match",),
        f"SELECT STREAM * {FROM}ORDER BY ROWTIME MEASURES FIRST(CLASSIFIER()) AS k, LAST(CLASSIFIER(), 1) AS p, "
        f"LAST(CLASSIFIER(U), 1) AS u, COUNT(*) AS c PATTERN ((A | B)+ C) {SECONDS.format(3)} SUBSET U = (A, B) "
        "DEFINE A AS PREV(CLASSIFIER()) IS NULL OR PREV(CLASSIFIER()) = 'B', B AS v > 0 AND LAST(CLASSIFIER(), 1) = "
        "'A', C AS CLASSIFIER(U) = 'B' AND CLASSIFIER() = 'C') AS m", _matched(_NAMED)),
    Law("different values and lists of the rows of a match", ("match",),
        f"SELECT STREAM n, d, l, b, c, k {FROM}ORDER BY ROWTIME MEASURES COUNT(DISTINCT A.v) AS d, ARRAY_JOIN("
        "COLLECT_LIST(v), ',') AS l, ARRAY_JOIN(COLLECT_LIST(B.n), ',') AS b, COUNT(A.*) AS c, "
        f"FINAL COUNT(DISTINCT v) AS k ALL ROWS PER MATCH PATTERN (A+ B{{1,2}}? C) {SECONDS.format(4)} "
        "SUBSET U = (A, B) DEFINE A AS COUNT(DISTINCT A.v) <= 2, B AS COUNT(DISTINCT U.v) >= SIZE(COLLECT_LIST(B.v)), "
        "C AS COUNT(v) > COUNT(DISTINCT v) OR C.v IS NULL) AS m", _matched(_DIFFERENT)),
    Law("equal rowtimes by a further key", ("match", "order by"),
        f"SELECT STREAM * {FROM}ORDER BY ROWTIME, n DESC MEASURES A.n AS a, B.n AS b, C.n AS c "
        f"PATTERN (A B C?) {SECONDS.format(2)} DEFINE B AS n < PREV(n), C AS v IS NULL) AS m", _sorted_by_n(_BY_N)),
)  # fmt: skip
