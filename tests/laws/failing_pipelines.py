"""For each clause, queries with an expression that can fail, and their results if the failing rows are filtered."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rowtime.core.time import END
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import HALF, ORIGIN

LARGE = 2**62 - 1  # the sum of two of them fits in a BIGINT, that of three does not
EVENTS = (
    "CREATE STREAM {} (n BIGINT, v BIGINT, w BIGINT, k STRING, since TIMESTAMP, until TIMESTAMP) "
    "EVENT SHAPE INTERVAL (since, until);"
)
DECLARE = (
    "CREATE STREAM a (n BIGINT, v BIGINT, w BIGINT, k STRING, ev TIMESTAMP) EVENT TIME (ev);"
    "CREATE STREAM b (n BIGINT, v BIGINT, w BIGINT, k STRING, ev TIMESTAMP);"
    "CREATE TABLE t (n BIGINT, u BIGINT);" + EVENTS.format("e") + EVENTS.format("r") + "CREATE STREAM o "
    "(kind STRING, n BIGINT, v BIGINT, w BIGINT, k STRING, since TIMESTAMP, until TIMESTAMP) "
    "EVENT SHAPE BY kind (since, until);"
)
TABLE = [{"n": 0, "u": 1}, {"n": 1, "u": 0}, {"n": 2, "u": 5}, {"n": 2, "u": -1}]
WINDOW = "OVER (RANGE INTERVAL '1' SECOND PRECEDING)"
MEET = f"FROM a {WINDOW} JOIN b {WINDOW} ON a.k = b.k"
OUTER = f"FROM a {WINDOW} LEFT JOIN b {WINDOW} ON a.k = b.k"
STREAMS = "abero"
STEPS = "STEP(a.ROWTIME BY INTERVAL '3' SECOND)"
SHOWN = "EMIT INTERVALS (since, until)"
SECONDS = "FLOOR(a.ROWTIME TO SECOND)"
EXACT = "CAST(SUM(CAST(w AS DECIMAL(38, 0))) AS BIGINT)"
FITS = "ABS(SUM(CAST(w AS DECIMAL(38, 0)))) < 9223372036854775808"
WIDE = "CAST(v AS DECIMAL(38, 2)) * 400000000000000000000000000000000000"
LONG = "v * INTERVAL '50000000' DAY"  # the sum of two of them fits in an interval, that of three does not
VARIED = "(COUNT(*) < 2 OR VAR_POP(n) * VAR_POP(v) > 0)"
MATCHED = (
    "SELECT STREAM * FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY ROWTIME MEASURES SUM(w) AS s, COUNT(*) AS c {} "
    "PATTERN (P P+) WITHIN INTERVAL '3' SECOND DEFINE P AS true)"
)
PANED = "GROUP BY PANES(ev, DURATION INTERVAL '2' SECOND), k"


@dataclass(frozen=True)
class Clause:
    """A query that fails for some rows and, if possible, one that filters exactly these rows.

    ``told``: the text of the error.
    """

    name: str
    sql: str
    guarded: str = ""
    told: str = ""


def _of(name: str, sql: str, guard: tuple[str, str] | None = None, told: str = "", value: str = "") -> Clause:
    """``guard``: the part of the query that the other text replaces; ``value``: the value of SUM(w)."""
    guarded = sql.replace(*guard) if guard else ""
    return Clause(name, sql, guarded.replace("SUM(w) AS", f"{value} AS") if value else guarded, told)


GREATEST = "9223372036854775807"
OVERFLOWS = (
    _of(
        "compared overflow",
        f"SELECT STREAM v, w + {GREATEST} > 5 AS p FROM a WHERE v <> 9",
        ("v <> 9", "w <= 0"),
        GREATEST,
    ),
    _of(
        "compared overflow in WHERE",
        f"SELECT STREAM v FROM a WHERE w + {GREATEST} > 5",
        (f"w + {GREATEST} > 5", "w <= 0"),
        GREATEST,
    ),
    _of(
        "compared overflow in CASE",
        f"SELECT STREAM v, CASE WHEN -w - {GREATEST} <=> 4 THEN 'x' ELSE 'x' END AS p FROM a WHERE v <> 9",
        ("v <> 9", "w <= 1"),
        GREATEST,
    ),
    _of(
        "compared overflow in COUNT_IF",
        f"SELECT STREAM k, COUNT_IF(w * 4 = 8) AS c FROM a WHERE true GROUP BY {SECONDS}, k",
        ("WHERE true", "WHERE w = 0"),
    ),
    _of(
        "compared overflow as a key",
        f"SELECT STREAM w * 4 BETWEEN 0 AND 8 AS p, COUNT(*) AS c FROM a WHERE true GROUP BY {SECONDS}, "
        "w * 4 BETWEEN 0 AND 8",
        ("WHERE true", "WHERE w = 0"),
    ),
)
"""DuckDB and Catalyst would compare the column with another constant, and nothing would overflow."""
CLAUSES = (
    *OVERFLOWS,
    _of("select list", "SELECT STREAM 10 / n AS q, v FROM a WHERE v <> 9", ("v <> 9", "n <> 0"), "10 / `n`"),
    _of("where", "SELECT STREAM v FROM a WHERE 10 / n < 8", ("10 / n", "10 / NULLIF(n, 0)"), "10 / `n` < 8"),
    _of("group key", f"SELECT STREAM 10 DIV n AS q, COUNT(*) AS c FROM a WHERE true GROUP BY {SECONDS}, 10 DIV n",
        ("WHERE true", "WHERE n <> 0"), "10 DIV"),
    _of("argument", f"SELECT STREAM k, SUM(10 DIV n) AS s FROM a WHERE true GROUP BY {SECONDS}, k",
        ("WHERE true", "WHERE n <> 0")),
    _of("select list of groups", f"SELECT STREAM k, 10 / SUM(n) AS s FROM a GROUP BY {SECONDS}, k HAVING true",
        ("HAVING true", "HAVING SUM(n) <> 0"), "10 / SUM(`n`)"),
    _of("having", f"SELECT STREAM k, COUNT(*) AS c FROM a GROUP BY {SECONDS}, k HAVING 10 / SUM(n) > 3",
        ("10 / SUM(n)", "10 / NULLIF(SUM(n), 0)"), "10 / SUM(`n`) > 3"),
    _of("sum beyond its type", f"SELECT STREAM k, SUM(w) AS s FROM a GROUP BY {STEPS}, k HAVING true",
        ("HAVING true", f"HAVING {FITS}"), value=EXACT),
    _of("sum beside what keeps rows",
        f"SELECT STREAM SUM(w) AS s, COUNT(DISTINCT k) AS d FROM a GROUP BY {STEPS} HAVING true",
        ("HAVING true", f"HAVING {FITS}"), value=EXACT),
    _of("sum of decimals", f"SELECT STREAM k, SUM({WIDE}) AS s FROM a GROUP BY {STEPS}, k HAVING true",
        ("HAVING true", "HAVING ABS(SUM(v)) < 3")),
    _of("sum of distinct decimals",
        f"SELECT STREAM k, SUM(DISTINCT {WIDE}) AS s FROM a GROUP BY {STEPS}, k HAVING true",
        ("HAVING true", "HAVING ABS(SUM(DISTINCT v)) < 3")),
    _of("average of decimals beside what keeps rows",
        f"SELECT STREAM AVG({WIDE}) AS s, COUNT(DISTINCT k) AS d FROM a GROUP BY {STEPS} HAVING true",
        ("HAVING true", "HAVING ABS(SUM(v)) < 3")),
    _of("sum and average of intervals",
        f"SELECT STREAM k, SUM({LONG}) AS s, AVG({LONG}) AS m FROM a GROUP BY {STEPS}, k HAVING true",
        ("HAVING true", "HAVING ABS(SUM(v)) < 3")),
    _of("text that is no number",
        f"SELECT STREAM k, SUM(IF(n = 0, k, '1')) AS s, AVG(IF(v = 0, k, '2')) FILTER (WHERE n <> 0) AS a FROM a "
        f"WHERE true GROUP BY {SECONDS}, k", ("WHERE true", "WHERE n <> 0 AND v <> 0"), "(IF("),
    _of("correlation", f"SELECT STREAM k, ROUND(CORR(n, v), 6) AS c FROM a GROUP BY {STEPS}, k HAVING true",
        ("HAVING true", f"HAVING {VARIED}"), "CORR(`n`, `v`)"),
    _of("correlation of what FILTER leaves, in a session",
        "SELECT STREAM k, ROUND(CORR(n, v * 0) FILTER (WHERE n <> 0), 6) AS c FROM a "
        "GROUP BY k, SESSION(a.ROWTIME, INTERVAL '5' SECOND)", told="CORR(`n`, `v` * 0)"),
    _of("correlation of a pane", f"SELECT STREAM k, ROUND(CORR(n, v), 6) AS c FROM a {PANED} HAVING true",
        ("HAVING true", f"HAVING {VARIED}"), "CORR(`n`, `v`)"),
    _of("correlation by value", "SELECT STREAM k, ROUND(CORR(n, v), 6) AS c FROM a GROUP BY k, n WITH UNBOUNDED STATE",
        told="CORR(`n`, `v`)"),
    _of("bitmap",
        f"SELECT STREAM k, BITMAP_COUNT(BITMAP_CONSTRUCT_AGG(n * n * 40000)) AS c FROM a GROUP BY {SECONDS}, k "
        "HAVING true", ("HAVING true", "HAVING MAX(n * n) = 0"), "BITMAP_CONSTRUCT_AGG(`n` * `n` * 40000)"),
    _of("sum of a match", MATCHED.format("ONE ROW PER MATCH"), told="SUM(`w`)"),
    _of("running sum of a match", MATCHED.format("ALL ROWS PER MATCH"), told="SUM(`w`)"),
    _of("correlation of snapshots",
        f"SELECT STREAM k, ROUND(CORR(n, v), 6) AS c FROM o GROUP BY SNAPSHOT(), k HAVING true {SHOWN}",
        ("HAVING true", f"HAVING {VARIED}"), "CORR(`n`, `v`)"),
    _of("correlation of windows of events",
        f"SELECT STREAM k, ROUND(CORR(n, v), 6) AS c FROM e GROUP BY TUMBLE(INTERVAL '1' SECOND), k "
        f"HAVING true {SHOWN}", ("HAVING true", f"HAVING {VARIED}"), "CORR(`n`, `v`)"),
    _of("sum of a session",
        "SELECT STREAM k, SUM(w) AS s, 10 / SUM(v) AS q FROM a GROUP BY k, SESSION(a.ROWTIME, INTERVAL '1' SECOND) "
        "HAVING true", ("HAVING true", f"HAVING SUM(v) <> 0 AND {FITS}"), value=EXACT),
    _of("groups by value", "SELECT STREAM k, 10 / SUM(n) AS s, SUM(w) AS w FROM a GROUP BY k WITH UNBOUNDED STATE"),
    _of("order of groups",
        f"SELECT STREAM k, 10 / SUM(n) AS s FROM a GROUP BY {SECONDS}, k HAVING true ORDER BY {SECONDS}, s",
        ("HAVING true", "HAVING SUM(n) <> 0")),
    _of("panes",
        f"SELECT STREAM k, 10 / (COUNT(*) - 1) AS s FROM a {PANED} HAVING true",
        ("HAVING true", "HAVING COUNT(*) <> 1")),
    _of("sum of a pane", f"SELECT STREAM k, SUM(w) AS s FROM a {PANED} HAVING true",
        ("HAVING true", f"HAVING {FITS}"), value=EXACT),
    _of("join condition", f"SELECT STREAM a.v AS av, b.v AS bv {MEET} AND 10 / (a.n - b.n) > 0",
        ("(a.n - b.n)", "NULLIF(a.n - b.n, 0)"), "10 / "),
    _of("condition of an outer join", f"SELECT STREAM a.v AS av, b.v AS bv {OUTER} AND 10 / (a.n - b.n) > 0",
        ("(a.n - b.n)", "NULLIF(a.n - b.n, 0)")),
    _of("equality of computed values",
        f"SELECT STREAM a.v AS av FROM a {WINDOW} JOIN b {WINDOW} ON 10 DIV a.n = 10 DIV b.n",
        ("10 DIV a.n = 10 DIV b.n", "10 DIV NULLIF(a.n, 0) = 10 DIV NULLIF(b.n, 0)")),
    _of("select list over a join",
        f"SELECT STREAM 10 / (a.n - b.n) AS q {MEET} WHERE true", ("WHERE true", "WHERE a.n <> b.n")),
    _of("where over a join",
        f"SELECT STREAM a.v AS av {MEET} WHERE 10 / (a.n - b.n) > 0", ("(a.n - b.n)", "NULLIF(a.n - b.n, 0)")),
    _of("table join", "SELECT STREAM a.v AS av, t.u AS u FROM a LEFT JOIN t ON a.n = t.n AND 10 / t.u > 0",
        ("10 / t.u", "10 / NULLIF(t.u, 0)")),
    _of("semi join with a table", "SELECT STREAM a.v AS av FROM a LEFT SEMI JOIN t ON a.n = t.n AND 10 / t.u > 0",
        ("10 / t.u", "10 / NULLIF(t.u, 0)")),
    _of("value before IN", "SELECT STREAM v FROM a WHERE 10 DIV n NOT IN (SELECT u FROM t)",
        ("10 DIV n", "10 DIV NULLIF(n, 0)"), "10 DIV `n`"),
    _of("value before IN, beside OR",
        "SELECT STREAM v FROM a WHERE n = 99 OR 10 DIV n NOT IN (SELECT u FROM t)",
        ("10 DIV n", "10 DIV NULLIF(n, 0)"), "10 DIV `n`"),
    _of("computed below an anti join with a table",
        "CREATE VIEW x AS SELECT STREAM 10 / n AS q, n, v FROM a;"
        "SELECT STREAM x.q AS q FROM x ANTI JOIN t ON x.n = t.n AND x.v > 2", told="10 / `n`"),
    _of("computed below a table join",
        "CREATE VIEW x AS SELECT STREAM 10 / n AS q, n, v FROM a;"
        "SELECT STREAM x.q AS q, t.u AS u FROM x JOIN t ON x.n = t.n AND x.v > 2", told="10 / `n`"),
    _of("computed below a join",
        "CREATE VIEW x AS SELECT STREAM 10 / n AS q, k, v FROM a;"
        f"SELECT STREAM x.q AS q, b.v AS bv FROM x {WINDOW} JOIN b {WINDOW} ON x.k = b.k AND x.v > 2",
        told="10 / `n`"),
    _of("column nobody asks for",
        "CREATE VIEW x AS SELECT STREAM 10 / n AS u, v FROM a UNION ALL SELECT STREAM 10 / n AS u, v FROM b;"
        "SELECT STREAM 10 / v AS q FROM x WHERE v <> 9", ("v <> 9", "v <> 0")),
    _of("list of EXPLODE",
        "SELECT STREAM v, EXPLODE(SEQUENCE(1, 10 DIV n)) AS x FROM a WHERE v <> 9", ("v <> 9", "n <> 0")),
    _of("elements of a list of Spark",
        "SELECT STREAM v, EXPLODE(TRANSFORM(ARRAY(10 DIV n, v), x -> x + 1)) AS x FROM a WHERE v <> 9",
        ("v <> 9", "n <> 0")),
    _of("places of elements",
        "SELECT STREAM v, at, x FROM a LATERAL VIEW POSEXPLODE(ARRAY(10 DIV n, v)) AS at, x WHERE v <> 9",
        ("FROM a", "FROM (SELECT STREAM * FROM a WHERE n <> 0) AS a")),
    _of("values of STACK",
        "SELECT STREAM v, STACK(2, 10 DIV n, v) AS x FROM a WHERE v <> 9", ("v <> 9", "n <> 0")),
    _of("text of JSON_TUPLE",
        "SELECT STREAM v, JSON_TUPLE(CONCAT('{\"a\": ', 10 DIV n, '}'), 'a') AS x FROM a WHERE v <> 9",
        ("v <> 9", "n <> 0")),
    _of("argument and key of OVER",
        "SELECT STREAM v, SUM(10 DIV n) OVER (PARTITION BY 10 DIV n ROWS 2 PRECEDING) AS s FROM a"),
    _of("sum of OVER",
        "SELECT STREAM v, SUM(w) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS s FROM a",
        told="SUM(`w`) OVER (…)"),
    _of("average of OVER",
        f"SELECT STREAM v, AVG(CAST({WIDE} AS DECIMAL(38, 2))) OVER (PARTITION BY k ROWS 2 PRECEDING) AS s FROM a",
        told="AVG("),
    _of("sorted", f"SELECT STREAM v FROM a WHERE v <> 9 ORDER BY {SECONDS}, 10 / n", ("v <> 9", "n <> 0")),
    _of("t-sort",
        "SELECT STREAM ev AS ROWTIME, 10 / n AS q FROM a WHERE v <> 9 ORDER BY ev WITHIN INTERVAL '2' SECOND",
        ("v <> 9", "n <> 0")),
    _of("first rows", "SELECT STREAM 10 / n AS q, v FROM a WHERE v <> 9 LIMIT 2", ("v <> 9", "n <> 0"), "10 / `n`"),
    _of("first rows of groups",
        f"SELECT STREAM k, 10 / SUM(n) AS s FROM a GROUP BY {SECONDS}, k HAVING true LIMIT 2",
        ("HAVING true", "HAVING SUM(n) <> 0")),
    _of("first rows of a join", f"SELECT STREAM 10 / (a.n - b.n) AS q {MEET} WHERE true LIMIT 2",
        ("WHERE true", "WHERE a.n <> b.n")),
    _of("above the first rows",
        "CREATE VIEW x AS SELECT STREAM n, v FROM a LIMIT 9; SELECT STREAM 10 / n AS q, v FROM x WHERE v <> 9",
        ("v <> 9", "n <> 0"), "10 / `n`"),
    _of("select list over events", f"SELECT STREAM 10 / n AS q, v FROM e WHERE v <> 9 {SHOWN}", ("v <> 9", "n <> 0")),
    _of("select list over edges", f"SELECT STREAM 10 / n AS q, v FROM o WHERE v <> 9 {SHOWN}", ("v <> 9", "n <> 0"),
        "10 / `n`"),
    _of("windows of events",
        f"SELECT STREAM k, 10 / SUM(n) AS s FROM e GROUP BY TUMBLE(INTERVAL '1' SECOND), k HAVING true {SHOWN}",
        ("HAVING true", "HAVING SUM(n) <> 0")),
    _of("sessions of events",
        f"SELECT STREAM k, 10 / SUM(n) AS s FROM e GROUP BY SESSION(INTERVAL '0.5' SECOND), k HAVING true {SHOWN}",
        ("HAVING true", "HAVING SUM(n) <> 0")),
    _of("arguments over the lifetime in a session",
        "SELECT STREAM k, COUNT(10 DIV (second(LIFETIME_END(e)) % 2)) AS s, SUM(10 DIV n) AS t FROM e WHERE true "
        f"GROUP BY SESSION(INTERVAL '1' SECOND, INTERVAL '2' SECOND), k {SHOWN}", told="10 DIV"),
    _of("snapshots", f"SELECT STREAM k, 10 / SUM(n) AS s FROM e GROUP BY SNAPSHOT(), k HAVING true {SHOWN}",
        ("HAVING true", "HAVING SUM(n) <> 0")),
    _of("count windows", f"SELECT STREAM k, 10 / SUM(n) AS s FROM e GROUP BY COUNT_WINDOW(2), k HAVING true {SHOWN}",
        ("HAVING true", "HAVING SUM(n) <> 0")),
    _of("arguments over events",
        f"SELECT STREAM k, SUM(10 DIV n) AS s FROM o WHERE true GROUP BY TUMBLE(INTERVAL '1' SECOND), k {SHOWN}",
        ("WHERE true", "WHERE n <> 0"), "10 DIV `n`"),
    _of("arguments over the lifetime in a window",
        "SELECT STREAM k, COUNT(10 DIV (second(LIFETIME_END(o)) % 2)) AS s, COUNT(*) AS c FROM o WHERE true "
        f"GROUP BY HOP(INTERVAL '1' SECOND, INTERVAL '2' SECOND), k {SHOWN}", told="LIFETIME_END(…)"),
    _of("changes of arguments over the lifetime in a window",
        "SELECT STREAM k, SUM(10 DIV (second(LIFETIME_END(e)) - second(LIFETIME_START(e)) - 1)) AS s FROM e "
        "GROUP BY TUMBLE(INTERVAL '1' SECOND), k EMIT CHANGES", told="LIFETIME_START(…)"),
    _of("keys and arguments of snapshots",
        f"SELECT STREAM 10 DIV n AS q, MAX(5 DIV v) AS s FROM o WHERE true GROUP BY SNAPSHOT(), 10 DIV n {SHOWN}",
        ("WHERE true", "WHERE n <> 0 AND v <> 0")),
    _of("filtered arguments of snapshots",
        f"SELECT STREAM k, SUM(10 DIV n) FILTER (WHERE n <> 0) AS s, SUM(5 DIV v) AS q FROM o WHERE true "
        f"GROUP BY SNAPSHOT(), k {SHOWN}", ("WHERE true", "WHERE v <> 0"), "5 DIV `v`"),
    _of("sum of snapshots",
        f"SELECT STREAM k, SUM(w) AS s, AVG(w) AS a FROM o GROUP BY SNAPSHOT(), k HAVING true {SHOWN}",
        ("HAVING true", f"HAVING {FITS}"), "SUM(`w`)", value=EXACT),
    _of("sum of decimals of snapshots", f"SELECT STREAM k, SUM({WIDE}) AS s FROM o GROUP BY SNAPSHOT(), k "
        f"HAVING true {SHOWN}", ("HAVING true", "HAVING ABS(SUM(v)) < 3")),
    _of("largest of snapshots", f"SELECT STREAM k, 10 / MAX(n) AS s FROM o GROUP BY SNAPSHOT(), k HAVING true {SHOWN}",
        ("HAVING true", "HAVING MAX(n) <> 0"), "10 / MAX(`n`)"),
    _of("sum beside the largest of snapshots",
        f"SELECT STREAM k, SUM(w) AS s, MAX(n) AS m FROM o GROUP BY SNAPSHOT(), k HAVING true {SHOWN}",
        ("HAVING true", f"HAVING {FITS}"), "SUM(`w`)", value=EXACT),
    _of("changes of snapshots",
        "SELECT STREAM k, SUM(w) AS s, 10 DIV MAX(n) AS m FROM o GROUP BY SNAPSHOT(), k HAVING true EMIT CHANGES",
        ("HAVING true", f"HAVING {FITS} AND MAX(n) <> 0"), value=EXACT),
    _of("changes of windows of events",
        "SELECT STREAM k, 10 / SUM(n) AS s FROM e GROUP BY TUMBLE(INTERVAL '1' SECOND), k HAVING true EMIT CHANGES",
        ("HAVING true", "HAVING SUM(n) <> 0")),
    _of("changes of count windows",
        "SELECT STREAM k, 10 / SUM(n) AS s FROM o GROUP BY COUNT_WINDOW(2), k HAVING true EMIT CHANGES",
        ("HAVING true", "HAVING SUM(n) <> 0")),
    _of("having of changes",
        "SELECT STREAM k, COUNT(*) AS c FROM o GROUP BY SNAPSHOT(), k HAVING 10 / SUM(n) > 3 EMIT CHANGES",
        ("10 / SUM(n)", "10 / NULLIF(SUM(n), 0)"), "10 / SUM(`n`) > 3"),
    _of("changes of an outer join of events",
        "SELECT STREAM e.v AS ev, r.v AS rv FROM e LEFT JOIN r ON e.k = r.k AND 10 / (e.n - r.n) > 0 EMIT CHANGES",
        ("(e.n - r.n)", "NULLIF(e.n - r.n, 0)")),
    _of("length of events",
        "SELECT STREAM v FROM ALTER_DURATION((SELECT STREAM n, v FROM o WHERE v <> 9), "
        f"10 DIV n * INTERVAL '1' SECOND) {SHOWN}", ("v <> 9", "n <> 0"), "ROWTIME + (10 DIV"),
    _of("table join of events",
        f"SELECT STREAM o.v AS ov, t.u AS u FROM o LEFT JOIN t ON o.n = t.n AND 10 / t.u > 0 {SHOWN}",
        ("10 / t.u", "10 / NULLIF(t.u, 0)")),
    _of("semi join of events with a table",
        f"SELECT STREAM o.v AS ov FROM o LEFT SEMI JOIN t ON o.n = t.n AND 10 / t.u > 0 {SHOWN}",
        ("10 / t.u", "10 / NULLIF(t.u, 0)")),
    _of("value of an event before IN", f"SELECT STREAM v FROM o WHERE 10 DIV n NOT IN (SELECT u FROM t) {SHOWN}",
        ("10 DIV n", "10 DIV NULLIF(n, 0)"), "10 DIV `n`"),
    _of("changes of a table join of events",
        "SELECT STREAM o.v AS ov, t.u AS u FROM o JOIN t ON o.n = t.n AND 10 / t.u > 0 EMIT CHANGES",
        ("10 / t.u", "10 / NULLIF(t.u, 0)")),
    _of("join of events",
        f"SELECT STREAM e.v AS ev, r.v AS rv FROM e JOIN r ON e.k = r.k AND 10 / (e.n - r.n) > 0 {SHOWN}",
        ("(e.n - r.n)", "NULLIF(e.n - r.n, 0)")),
)  # fmt: skip


def items(seed: int, rows: int = 12) -> list[ScriptItem]:
    """Rows of all streams in order of time, many of which make an expression fail; then the ends."""
    chance, at, made, going = random.Random(seed), ORIGIN, list[ScriptItem](), list[dict[str, Any]]()
    for _ in range(rows):
        at += chance.choice((0, HALF, HALF, 2 * HALF))
        values = {"n": chance.choice((0, 0, 1, -1, 2)), "v": chance.choice((0, 1, 1, 2, -1)), "k": chance.choice("xy")}
        for stream in "er" if chance.random() < 0.2 else "ab" if chance.random() < 0.3 else "ae":
            times = {"since": at, "until": at + chance.choice((1, 2, 3)) * HALF} if stream in "er" else {"ev": at}
            values["w"] = LARGE * values["v"]
            made.append(ScriptItem(len(made) + 1, stream, "x", {"rowtime": at, **values, **times}, None))
            if stream == "e":
                made += edges(chance, values, at, going, len(made) + 1)
    made += [ScriptItem(len(made) + n, "o", "x", _ended(one, at + HALF), None) for n, one in enumerate(going, 1)]
    for stream in STREAMS:
        made.append(ScriptItem(len(made) + 1, stream, "x", None, END))
    return made


def edges(
    chance: random.Random, values: dict[str, Any], at: int, going: list[dict[str, Any]], number: int
) -> list[ScriptItem]:
    """The start of an event, and optionally the end of an open one (``going``)."""
    going.append({"kind": "start", "since": at, **values})
    found = [going[-1]]
    if chance.random() < 0.6 and going[0]["since"] < at:
        found.append(_ended(going.pop(0), at))
    return [ScriptItem(n, "o", "x", one, None) for n, one in enumerate(found, number)]


def _ended(start: dict[str, Any], at: int) -> dict[str, Any]:
    return {**start, "kind": "end", "until": at}


def transcript(sql: str, made: list[ScriptItem]) -> Transcript:
    """The items for a query."""
    writers: Mapping[str, list[str]] = {name: ["x"] for name in STREAMS}
    return Transcript("failing", "failing", DECLARE + sql, tuple(made), (), "exact", frozenset(), writers, {"t": TABLE})
