"""Random conditions whose parts may fail, what they are by SPEC 15.3, and the clauses in which they stand.

AND stops at the first part that is false, OR at the first one that is true, IF and COALESCE at what they choose. NULL
stops neither AND nor OR.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from rowtime.core.time import END
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND

COLUMNS = "id INT, p INT, q INT, r INT"
EVENTS = f"CREATE STREAM e ({COLUMNS}, since TIMESTAMP, until TIMESTAMP) EVENT SHAPE INTERVAL (since, until);"
DECLARE = f"CREATE STREAM a ({COLUMNS}); CREATE STREAM b ({COLUMNS}); CREATE TABLE u ({COLUMNS}); {EVENTS}"
STREAMS = "abe"
NAMES = "pqr"
ROWS = [dict(zip(NAMES, values, strict=True)) for values in product((None, 0, 1, 5), repeat=3)]
"""Every combination; 10 / 0 fails, and `{} > 2` is NULL, false, false and true of the values."""


class Fails(Exception):
    """A part cannot be computed."""


Row = Mapping[str, int | None]
Value = bool | None


@dataclass(frozen=True)
class Condition:
    """SQL with ``{p}``, ``{q}`` and ``{r}`` for the columns, and its value for a row; raises ``Fails``."""

    sql: str
    of: Callable[[Row], Value]


def drawn(chance: random.Random, depth: int = 3) -> Condition:
    """A random condition."""
    kind = chance.choice(("and", "and", "and", "or", "or", "not", "if", "coalesce", "between")) if depth else "part"
    if kind == "part":
        return _part(chance)
    if kind == "between":
        return _between(chance)
    parts = [
        drawn(chance, chance.randrange(depth)) for _ in range({"not": 1, "if": 3}.get(kind, chance.choice((2, 2, 3))))
    ]
    texts = [f"({part.sql})" for part in parts]
    if kind == "not":
        return Condition(f"NOT {texts[0]}", lambda row: _not(parts[0].of(row)))
    if kind == "if":
        sql = f"IF({', '.join(texts)})"
        return Condition(sql, lambda row: parts[1].of(row) if parts[0].of(row) else parts[2].of(row))
    if kind == "coalesce":
        return Condition(f"COALESCE({', '.join(texts)})", lambda row: _first(parts, row))
    return Condition(f" {kind.upper()} ".join(texts), lambda row: _until(parts, row, stop=kind == "or"))


def _part(chance: random.Random) -> Condition:
    name = chance.choice(NAMES)
    return chance.choice((
        Condition(f"10 / {{{name}}} > 4", lambda row: _quotient(row[name], lambda of: of > 4)),
        Condition(f"10 DIV {{{name}}} <= 2", lambda row: _quotient(row[name], lambda of: of // 1 <= 2)),
        Condition(f"{{{name}}} > 2", lambda row: _compared(row[name], lambda of: of > 2)),
        Condition(f"{{{name}}} <> 0", lambda row: _compared(row[name], lambda of: of != 0)),
        Condition(f"{{{name}}} IS NOT NULL", lambda row: row[name] is not None),
    ))  # fmt: skip


def _between(chance: random.Random) -> Condition:
    of, by = chance.choice(NAMES), chance.choice(NAMES)

    def value(row: Row) -> Value:
        tested = row[of]
        if tested is None:  # Spark does not compute the other side
            return None
        return tested >= 1 and _quotient(row[by], lambda quotient: tested <= quotient)

    return Condition(f"{{{of}}} BETWEEN 1 AND 10 / {{{by}}}", value)


def _quotient(of: int | None, test: Callable[[float], bool]) -> Value:
    if of is None:
        return None
    if of == 0:
        raise Fails
    return test(10 / of)


def _compared(of: int | None, test: Callable[[int], bool]) -> Value:
    return None if of is None else test(of)


def _not(value: Value) -> Value:
    return None if value is None else not value


def _first(parts: list[Condition], row: Row) -> Value:
    return next((value for value in (part.of(row) for part in parts) if value is not None), None)


def _until(parts: list[Condition], row: Row, *, stop: bool) -> Value:
    value: Value = not stop
    for part in parts:
        now = part.of(row)
        if now is stop:
            return stop
        value = None if now is None else value
    return value


def judged(condition: Condition) -> dict[int, Value | str]:
    """The value for each row, by its number; ``fails`` if there is none."""
    values: dict[int, Value | str] = {}
    for number, row in enumerate(ROWS):
        try:
            values[number] = condition.of(row)
        except Fails:
            values[number] = "fails"
    return values


@dataclass(frozen=True)
class Clause:
    """A query with conditions ``{0}`` and ``{1}``; the results for their values: whether a row goes out, or `fails`.

    ``columns``: what stands for `{p}`, `{q}` and `{r}` in the conditions.
    """

    name: str
    sql: str
    columns: str = "p q r"
    null: bool = False
    """Whether NULL lets a row pass."""
    apart: bool = False
    """Whether each condition filters by itself: NULL in the first one drops a row."""
    false: str = ""
    """What becomes of a row for which the condition is false."""

    def query(self, conditions: list[Condition]) -> str:
        names = dict(zip(NAMES, self.columns.split(), strict=True))
        return self.sql.format(*(f"({condition.sql.format(**names)})" for condition in conditions))

    def expected(self, conditions: list[Condition]) -> tuple[list[int], int]:
        """The numbers of the rows that go out, and how many are refused."""
        used = conditions[: 1 + ("{1}" in self.sql)]
        going, refused = [], 0
        values = [judged(condition) for condition in used]
        for number in range(len(ROWS)):
            first = next((of[number] for of in values if of[number] is not True), True)
            ends = (False, None, "fails") if self.apart else (False, "fails")
            stops = next((of[number] for of in values if of[number] in ends), first)
            if stops == "fails" or (stops is False and self.false):
                refused += 1
            elif stops is True or (stops is None and self.null):
                going.append(number)
        return going, refused


_MATCH = "FROM a MATCH_RECOGNIZE (ORDER BY ROWTIME MEASURES A.id AS id PATTERN (A) DEFINE A AS"
CLAUSES = (
    Clause("where", "SELECT STREAM id FROM a WHERE {0}"),
    Clause("parts of where", "SELECT STREAM id FROM a WHERE {0} AND {1}"),
    Clause("views", "CREATE VIEW v AS SELECT STREAM * FROM a WHERE {0}; SELECT STREAM id FROM v WHERE {1}", apart=True),
    Clause("plain where above", "CREATE VIEW v AS SELECT STREAM * FROM a WHERE {0}; CREATE VIEW z AS SELECT STREAM * "
           "FROM v WHERE {1}; SELECT STREAM id FROM z WHERE id >= 0", apart=True),
    Clause("having", "SELECT STREAM MIN(id) AS id FROM a GROUP BY FLOOR(a.ROWTIME TO SECOND) HAVING {0} AND {1}",
           "MAX(p) MIN(q) MAX(r)"),
    Clause("filter", "CREATE VIEW v AS SELECT STREAM COUNT(*) FILTER (WHERE {0}) AS c, MIN(id) AS id FROM a "
           "GROUP BY FLOOR(a.ROWTIME TO SECOND); SELECT STREAM id FROM v WHERE c > 0"),
    Clause("check", f"CREATE STREAM o ({COLUMNS} CHECK ({{0}})); CREATE PUMP g AS INSERT INTO o SELECT STREAM "
           "id, p, q, r FROM a", null=True, false="MALFORMED"),
    Clause("join", "SELECT STREAM a.id AS id FROM a JOIN b ON a.ROWTIME = b.ROWTIME AND a.id = b.id AND {0} AND {1}",
           "a.p b.q a.r"),
    Clause("computed keys of a join",
           "SELECT STREAM a.id AS id FROM a JOIN b ON {0} AND a.ROWTIME = b.ROWTIME AND a.id + 1 = b.id + 1 AND {1}",
           "a.p b.q b.r"),
    Clause("join with a table", "SELECT STREAM a.id AS id FROM a JOIN u ON {0} AND a.id = u.id AND {1}", "a.p u.q a.r"),
    Clause("define", f"SELECT STREAM m.id {_MATCH} {{0}} AND {{1}}) AS m", "A.p A.q A.r"),
    Clause("events", "SELECT STREAM id FROM e WHERE {0} AND {1} EMIT INTERVALS (since, until)"),
)  # fmt: skip


def items() -> list[ScriptItem]:
    """The rows of all streams, one a second; then the ends."""
    made: list[ScriptItem] = []
    for number, row in enumerate(ROWS):
        at = ORIGIN + number * SECOND
        for stream in STREAMS:
            times = {"since": at, "until": at + SECOND} if stream == "e" else {}
            made.append(ScriptItem(len(made) + 1, stream, "x", {"rowtime": at, "id": number, **row, **times}, None))
    return made + [ScriptItem(len(made) + n, stream, "x", None, END) for n, stream in enumerate(STREAMS, 1)]


def transcript(sql: str) -> Transcript:
    """The items for a query; the table has the same rows."""
    writers: Mapping[str, list[str]] = {name: ["x"] for name in STREAMS}
    table: list[dict[str, Any]] = [{"id": number, **row} for number, row in enumerate(ROWS)]
    return Transcript("turn", "turn", DECLARE + sql, tuple(items()), (), "exact", frozenset(), writers, {"u": table})
