"""Expressions that fail for some rows, and the places of a query where they stand twice.

The bad rows make every one of the expressions fail, the good ones none. So the text of a query says which rows it
refuses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rowtime.core.time import END
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND

COLUMNS = "id INT, n INT, w BIGINT, t STRING, y STRING, c ARRAY<INT>, d DECIMAL(38, 0), k STRING"
EVENTS = f"CREATE STREAM {{}} ({COLUMNS}, since TIMESTAMP, until TIMESTAMP) EVENT SHAPE INTERVAL (since, until);"
DECLARE = (
    f"CREATE STREAM a ({COLUMNS}, ev TIMESTAMP) EVENT TIME (ev); CREATE STREAM b ({COLUMNS}, ev TIMESTAMP);"
    f"CREATE TABLE u ({COLUMNS});{EVENTS.format('e')}{EVENTS.format('r')}"
)
STREAMS = "aber"
BAD = frozenset({2, 3, 6, 9})
"""The numbers (``id``) of the bad rows; the rows come one a second."""
ROWS = 10
SECONDS = "FLOOR(a.ROWTIME TO SECOND)"

EXPRESSIONS: Mapping[str, str] = {
    "division": "10 DIV {}n",
    "quotient": "10 / {}n",
    "cast": "CAST({}t AS INT)",
    "overflow": "{}w + {}w",
    "overflow with a literal": "{}w + 1",
    "index": "{}c[1]",
    "element": "element_at({}c, 2)",
    "date": "DATEDIFF(CAST({}y AS DATE), DATE '2024-01-01')",
    "digits": "{}d * 10",
    "raised": "IF({}n <> 0, {}n, CAST(raise_error('none') AS INT))",
    "asserted": "COALESCE(CAST(assert_true({}n <> 0) AS INT), {}n)",
    "map": "map_values(map({}n, {}n, 0, 9))[0]",
    "pattern": "CAST(split('1', IF({}n = 0, '(', 'z'))[0] AS INT)",
    "step": "size(sequence(1, 3, IF({}n = 0, 0, 1)))",
    "format": "CAST(format_string(IF({}n = 0, '%q', '%d'), {}n) AS INT)",
    "time": "dayofmonth(to_timestamp({}y, 'yyyy-MM-dd'))",
}
"""By name, with a prefix for columns; the values of good rows are from 1 to 1000."""


@dataclass(frozen=True)
class Place:
    """A query in which an expression ``{e}`` stands twice; ``{a}`` and ``{b}``: over the columns of one stream.

    ``refused``: how many rows are refused. ``drops``: the other rows are those of the query without the bad rows.
    """

    name: str
    sql: str
    refused: int = len(BAD)
    drops: bool = True


def values_of(number: int) -> dict[str, Any]:
    """The values of a row."""
    bad = number in BAD
    n = number % 3 + 1
    return {
        "id": number, "n": 0 if bad else n, "w": 2**63 - 1 if bad else n, "t": "x" if bad else str(n),
        "y": "x" if bad else f"2024-01-{n + 1:02}", "c": [n] if bad else [n, n],
        "d": Decimal(10**38 - 1) if bad else Decimal(n), "k": "xy"[number % 2],
    }  # fmt: skip


def items(without: Collection[int] = ()) -> list[ScriptItem]:
    """The rows of all streams, one a second, but for some; then the ends."""
    made: list[ScriptItem] = []
    for number in (number for number in range(ROWS) if number not in without):
        at, values = ORIGIN + number * SECOND, values_of(number)
        for stream in STREAMS:
            times = {"since": at, "until": at + 2 * SECOND} if stream in "er" else {"ev": at}
            made.append(ScriptItem(len(made) + 1, stream, "x", {"rowtime": at, **values, **times}, None))
    made += [ScriptItem(len(made) + n, stream, "x", None, END) for n, stream in enumerate(STREAMS, 1)]
    return made


def transcript(sql: str, without: Collection[int] = ()) -> Transcript:
    """The items for a query; the table has the same rows as the streams."""
    writers: Mapping[str, list[str]] = {name: ["x"] for name in STREAMS}
    table = [values_of(number) for number in range(ROWS)]
    made = tuple(items(without))
    return Transcript("failing", "failing", DECLARE + sql, made, (), "exact", frozenset(), writers, {"u": table})


def query(place: Place, expression: str) -> str:
    """The query of a place with an expression."""
    at = {"e": "", "a": "a.", "b": "b.", "u": "u.", "r": "r.", "f": "e."}
    texts = {name: f"({expression.format(*[prefix] * expression.count('{}'))})" for name, prefix in at.items()}
    groups = expression.replace("{}t", "MAX(t)").replace("{}y", "MAX(y)").replace("{}c", "MIN(c)")
    groups = groups.replace("{}n", "MIN(n)").replace("{}w", "MAX(w)").replace("{}d", "MAX(d)")
    measured = expression.format(*["A."] * expression.count("{}"))
    return place.sql.format(**texts, g=f"({groups})", m=f"({measured})")


_WINDOW = "OVER (RANGE INTERVAL '1' SECOND PRECEDING)"
_MEET = f"FROM a {_WINDOW} JOIN b {_WINDOW} ON"
_MATCH = "FROM a MATCH_RECOGNIZE (ORDER BY ROWTIME MEASURES"
_PUMP = "CREATE STREAM o (id INT, x TINYINT, y DOUBLE); CREATE PUMP p AS INSERT INTO o"
_SHOWN = "EMIT INTERVALS (since, until)"

PLACES = (
    Place("select list", "SELECT STREAM id, {e} AS x, {e} + 1 AS y FROM a"),
    Place("where", "SELECT STREAM id FROM a WHERE {e} > 0 AND {e} < 5000"),
    Place("or in where", "SELECT STREAM id FROM a WHERE {e} > 3 OR {e} <= 3"),
    Place("where and select list", "SELECT STREAM id, {e} AS x FROM a WHERE {e} > 0"),
    Place("between", "SELECT STREAM id FROM a WHERE {e} BETWEEN 0 AND 5000"),
    Place("not between, in the select list", "SELECT STREAM id, {e} NOT BETWEEN 1 AND n AS x FROM a"),
    Place("bounds of between", "SELECT STREAM id, 2 BETWEEN {e} AND {e} + 3 AS x FROM a"),
    Place("in", "SELECT STREAM id, {e} IN (1, 2, {e}) AS x FROM a WHERE {e} NOT IN (70, 71)"),
    Place("case", "SELECT STREAM id, CASE {e} WHEN 1 THEN {e} WHEN 2 THEN {e} + 1 ELSE {e} END AS x FROM a"),
    Place("nullif and coalesce", "SELECT STREAM id, NULLIF({e}, 2) AS x, COALESCE({e}, n) AS y, {e} <=> 2 AS z FROM a"),
    Place("stopped by case",
          "SELECT STREAM id, CASE WHEN n = 0 THEN -1 WHEN {e} > 1 THEN {e} ELSE {e} + 1 END AS x, "
          "n <> 0 AND {e} BETWEEN 0 AND 5 AS y, IF(n = 0, 0, {e}) AS z, n = 0 OR {e} > 1 AS v, "
          "COALESCE(CASE WHEN n = 0 THEN 1 END, {e}) AS o FROM a", refused=0, drops=False),
    Place("chain of views",
          "CREATE VIEW v AS SELECT STREAM id, {e} AS x, n, w, t, y, c, d FROM a WHERE {e} > 0;"
          "SELECT STREAM id, x + 1 AS x, {e} + 1 AS y FROM v WHERE x BETWEEN 0 AND 5000"),
    Place("column that nobody reads",
          "CREATE VIEW v AS SELECT STREAM id, {e} AS x, {e} + 1 AS y FROM a; SELECT STREAM id FROM v",
          refused=0, drops=False),
    Place("key", f"SELECT STREAM {{e}} AS x, {{e}} + 1 AS y, COUNT(*) AS q FROM a GROUP BY {SECONDS}, {{e}}"),
    Place("argument", f"SELECT STREAM k, SUM({{e}}) AS x, MAX({{e}} + 1) AS y FROM a GROUP BY {SECONDS}, k"),
    Place("filter", f"SELECT STREAM k, COUNT(*) FILTER (WHERE {{e}} BETWEEN 0 AND 9) AS x, SUM({{e}}) FILTER "
          f"(WHERE {{e}} > 1) AS y FROM a GROUP BY {SECONDS}, k"),
    Place("filter that decides first", f"SELECT STREAM k, SUM({{e}}) FILTER (WHERE n > 0) AS x, MAX({{e}} + 1) FILTER "
          f"(WHERE n > 0) AS y FROM a GROUP BY {SECONDS}, k", refused=0, drops=False),
    Place("select list of groups", f"SELECT STREAM k, {{g}} AS x, {{g}} + 1 AS y FROM a GROUP BY {SECONDS}, k"),
    Place("having", f"SELECT STREAM k, {{g}} AS x FROM a GROUP BY {SECONDS}, k "
          "HAVING {g} BETWEEN 0 AND 5000 AND {g} > 0"),
    Place("session", "SELECT STREAM k, SUM({e}) AS x, {g} AS y FROM a "
          "GROUP BY k, SESSION(a.ROWTIME, INTERVAL '1' SECOND) HAVING {g} > 0"),
    Place("qualify", "SELECT STREAM id, {e} AS x, SUM({e}) OVER (ROWS 1 PRECEDING) AS y FROM a "
          "QUALIFY SUM({e}) OVER (ROWS 1 PRECEDING) BETWEEN 0 AND 5000 AND {e} > 0"),
    Place("equal keys of a join", f"SELECT STREAM a.id AS x, b.id AS y {_MEET} {{a}} = {{b}} AND {{a}} + 1 = {{b}} + 1",
          refused=16),
    Place("range of a join", f"SELECT STREAM a.id AS x, b.id AS y {_MEET} a.id = b.id "
          "AND {a} BETWEEN 0 AND {b} + 1"),
    Place("outer join", f"SELECT STREAM a.id AS x, b.id AS y {_MEET.replace('JOIN', 'LEFT JOIN')} a.id = b.id "
          "AND {a} BETWEEN {b} AND {b} + 1", drops=False),
    Place("join with a table", "SELECT STREAM a.id AS x, u.id AS y FROM a LEFT JOIN u ON a.id = u.id "
          "AND {a} BETWEEN {u} AND {u} + 1", drops=False),
    Place("above a join", f"SELECT STREAM a.id AS x, {{a}} AS y, {{b}} + {{a}} AS z {_MEET} a.id = b.id "
          "WHERE {a} > 0"),
    Place("over", "SELECT STREAM id, SUM({e}) OVER (PARTITION BY {e} ROWS 2 PRECEDING) AS x, {e} AS y FROM a"),
    Place("promotion", "SELECT STREAM timestamp_seconds(CAST({e} AS BIGINT)) AS ROWTIME, id, {e} AS x FROM a "
          "ORDER BY timestamp_seconds(CAST({e} AS BIGINT)) WITHIN INTERVAL '1' DAY"),
    Place("further keys of t-sort", "SELECT STREAM ev AS ROWTIME, id, {e} AS x FROM a "
          "ORDER BY ev WITHIN INTERVAL '2' SECOND, {e}, {e} + 1"),
    Place("order of rows", f"SELECT STREAM id, {{e}} AS x FROM a ORDER BY {SECONDS}, {{e}}, {{e}} + 1"),
    Place("measures", f"SELECT STREAM m.id, m.x, m.y {_MATCH} A.id AS id, {{m}} AS x, {{m}} + 1 AS y "
          "PATTERN (A) DEFINE A AS A.id >= 0) AS m"),
    Place("define", f"SELECT STREAM m.id {_MATCH} A.id AS id "
          "PATTERN (A) DEFINE A AS {m} BETWEEN 0 AND 5000 AND {m} > 0) AS m"),
    Place("pump", f"{_PUMP} SELECT STREAM id, {{e}}, {{e}} + 1 FROM a"),
    Place("panes", "SELECT STREAM {e} AS x, COUNT(*) AS q, SUM({e}) AS y FROM a "
          "GROUP BY PANES(ev, DURATION INTERVAL '2' SECOND), {e}"),
    Place("list of explode", "SELECT STREAM id, EXPLODE(SEQUENCE(CAST({e} AS INT), CAST({e} AS INT) + 1)) AS x FROM a"),
    Place("payload of events", f"SELECT STREAM id, {{e}} AS x, {{e}} + 1 AS y FROM e WHERE {{e}} > 0 {_SHOWN}"),
    Place("length of events", "SELECT STREAM id FROM ALTER_DURATION((SELECT STREAM * FROM e), "
          f"CAST({{e}} AS INT) * INTERVAL '1' SECOND + CAST({{e}} AS INT) * INTERVAL '1' SECOND) {_SHOWN}"),
    Place("groups of events", "SELECT STREAM {e} AS x, SUM({e} + 1) AS y FROM e "
          f"GROUP BY TUMBLE(INTERVAL '1' SECOND), {{e}} {_SHOWN}"),
    Place("sums of events", "SELECT STREAM k, SUM({e}) AS x, AVG({e}) AS y FROM e "
          f"GROUP BY SNAPSHOT(), k {_SHOWN}"),
    Place("join of events", "SELECT STREAM e.id AS x, r.id AS y FROM e JOIN r ON e.id = r.id "
          f"AND {{f}} BETWEEN 0 AND {{r}} + 1 {_SHOWN}"),
    Place("check of the target", "CREATE STREAM o (id INT CHECK ({e} BETWEEN 0 AND 5000), "
          "n INT CHECK ({e} > 0 AND {e} < 5000), w BIGINT, t STRING, y STRING, c ARRAY<INT>, d DECIMAL(38, 0)); "
          "CREATE PUMP p AS INSERT INTO o SELECT STREAM id, n, w, t, y, c, d FROM a"),
)  # fmt: skip
