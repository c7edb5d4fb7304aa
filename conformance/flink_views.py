"""Views of random pipelines that rowtime and Flink both have; Flink's text has a column ``rowtime`` too.

Only queries that mean the same are drawn. Left out: functions and defaults that differ by design (see `LEFT_OUT`), and
rows for which Flink guarantees nothing, such as late ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from conformance import joins
from conformance.expressions import Words, over_call
from conformance.groups import grouped, groups_of
from conformance.pipelines import Pipeline
from conformance.views import SIZES, STREAM, View, projected, seconds, where_of

COLUMNS: Final = {name: kind for name, kind in STREAM.items() if name != "day"}  # which is a reserved word in Flink
LEFT_OUT: Final = (
    "FIRST_VALUE, LAST_VALUE, GREATEST and LEAST: Flink's leave NULL out, or give NULL where one is; here as in Spark",
    "AVG of whole numbers, and their division: Flink truncates; here a fraction, as in Spark",
    "ROWS and RANGE in one query, frames that end before the current row: Flink has neither",
    "patterns in which a row can be taken as two variables: Flink's greedy quantifiers give no row back",
    "WHERE over SESSION windows: Flink filters before it makes sessions; here these are of all rows, as the query says",
    "ROWTIME of rows with SESSION windows: in Flink the time of the row, here the end of the session (12)",
    "NULL in the keys of FOR SYSTEM_TIME: Flink's join takes NULL for equal to NULL, and as in SQL it is not",
    "versions made by ROW_NUMBER: Flink loses those that come in disorder; so its table of versions has a primary key",
    "the day of times before 1970: Flink gives the one after in CAST and EXTRACT; queries take that of FLOOR(… TO DAY)",
    "late rows: Flink drops what is behind the watermark, which moves every 200 ms; here the rows alone decide (7.1)",
)
# Flink divides the milliseconds since 1970 and adds one to the day if the rest is not zero: 1960-05-06 07:00 is the 7th
# there. Here, and in Spark, it is the 6th. After FLOOR(… TO DAY) nothing is left to round.
FLINK: Final = Words(
    {
        "int": (
            "{int} + 1", "{int} * 3", "-{int}", "ABS({int})", "MOD({int}, 3)", "COALESCE({int}, 0)", "NULLIF({int}, 0)",
            "CASE WHEN {bool} THEN {int} ELSE 0 END", "CHAR_LENGTH({text})", "EXTRACT(MINUTE FROM ROWTIME)",
            "EXTRACT(DAY FROM {date})", "{int} + {int}", "{int} - {int}", "EXTRACT(YEAR FROM FLOOR({ts} TO DAY))",
            "POSITION('x' IN {text})",
        ),
        "dec": (
            "{dec} + 1", "{dec} * 2", "ABS({dec})", "-{dec}", "COALESCE({dec}, 0)", "{dec} - {dec}",
            "CASE WHEN {bool} THEN {dec} END",
        ),
        "dbl": (
            "{dbl} * 2", "{dbl} + {int}", "CAST({int} AS DOUBLE) / 2", "SQRT(ABS({dbl}))", "-{dbl}", "FLOOR({dbl})",
            "CEIL({dbl})", "CAST({int} AS DOUBLE)", "CAST({dec} AS DOUBLE)", "COALESCE({dbl}, CAST(1 AS DOUBLE))",
        ),
        "text": (
            "UPPER({text})", "LOWER({text})", "{text} || '-'", "COALESCE({text}, '?')", "SUBSTRING({text}, 1, 1)",
            "TRIM({text})", "REPLACE({text}, 'x', 'xx')", "LPAD({text}, 3, '*')", "{text} || {text}",
            "CASE WHEN {bool} THEN {text} ELSE 'no' END", "REVERSE({text})", "LEFT({text}, 2)", "NULLIF({text}, 'y')",
            "CAST({int} AS VARCHAR(20))",
        ),
        "bool": (
            "{int} > 0", "{text} = 'x'", "NOT {bool}", "{text} IS NULL", "{int} BETWEEN -2 AND 3", "{dbl} < 1",
            "{text} IN ('x', 'yy')", "{date} > DATE '2024-01-03'", "{bool} AND {bool}", "{bool} OR {bool}",
            "{text} LIKE 'x%'", "{int} IS NOT NULL", "{dec} <= {int}", "{int} <> {int}", "{int} NOT IN (1, 2)",
            "COALESCE({bool}, FALSE)", "{bool} IS DISTINCT FROM TRUE", "{date} = CAST(FLOOR({ts} TO DAY) AS DATE)",
        ),
        "date": ("CAST(FLOOR({ts} TO DAY) AS DATE)", "COALESCE({date}, DATE '2024-02-29')", "CAST(ROWTIME AS DATE)"),
        "ts": ("{ts} + INTERVAL '5' MINUTE", "{ts} - INTERVAL '1' DAY", "ROWTIME + INTERVAL '3' SECOND"),
    },
    {
        "int": (
            "COUNT(*)", "COUNT({text})", "COUNT(DISTINCT {int})", "SUM({int})", "MIN({int})", "MAX({int})",
            "COUNT(*) FILTER (WHERE {bool})", "SUM({int}) FILTER (WHERE {bool})", "MAX({int}) - MIN({int})",
            "COUNT(DISTINCT {text})",
        ),
        "dec": ("SUM({dec})", "MIN({dec})", "MAX({dec})"),
        "dbl": ("AVG(CAST({int} AS DOUBLE))", "MIN({dbl})", "MAX({dbl})", "SUM(CAST({int} AS DOUBLE))"),
        "text": ("MIN({text})", "MAX({text})"),
        "bool": ("MAX({int}) > 2", "COUNT(*) > 2", "COUNT({bool}) > 1"),
        "date": ("MIN({date})", "MAX({date})"),
        "ts": ("MIN({ts})", "MAX({ts})"),
    },
    {
        "int": ("COUNT(*)", "COUNT({col:text})", "SUM({col:int})", "MIN({col:int})", "MAX({col:int})"),
        "dec": ("SUM({col:dec})", "MIN({col:dec})"),
        "dbl": ("AVG(CAST({col:int} AS DOUBLE))", "MAX({col:dbl})", "MIN({col:dbl})"),
        "text": ("MAX({col:text})", "MIN({col:text})"),
        "date": ("MAX({col:date})",),
        "ts": ("MIN({col:ts})", "MAX({col:ts})"),
    },
)  # fmt: skip
_NOON: Final = "TIMESTAMP '2024-01-02 12:00:00'"
_SECONDS: Final = re.compile(r"INTERVAL '(\d+)' SECOND")


def in_flink(text: str) -> str:
    """Return the text for Flink, where ``rowtime`` is a column, and a number of seconds has three digits at most."""
    return _SECONDS.sub(_interval, text.replace("SELECT STREAM", "SELECT").replace("ROWTIME", "rowtime"))


def _interval(found: re.Match[str]) -> str:
    number = int(found[1])
    return f"INTERVAL '{number}' SECOND(3)" if number % 60 else f"INTERVAL '{number // 60}' MINUTE"


def rows(chance: Random, given: View, name: str) -> View:
    found = projected(chance, given, name, FLINK)
    return replace(found, theirs=in_flink(found.theirs))


def union(chance: Random, name: str) -> View:
    names = chance.sample([*COLUMNS], chance.randint(3, len(COLUMNS)))
    listed = ", ".join(names)
    parts = [f"SELECT STREAM {listed} FROM {one}{where_of(chance, COLUMNS, FLINK)}" for one in ("a", "b")]
    theirs = [part.replace("STREAM ", "rowtime, ", 1) for part in parts]
    columns = {one: COLUMNS[one] for one in names}
    return View(name, columns, " UNION ALL ".join(parts), in_flink(" UNION ALL ".join(theirs)), "union", unique=True)


def windowed(chance: Random, given: View, name: str) -> View:
    kind = chance.choice(("TUMBLE", "HOP", "CUMULATE", "SESSION"))
    some, size = groups_of(chance, given, name, plain=kind == "SESSION", words=FLINK), chance.choice(SIZES)
    slide = size // chance.choice((2, 3))
    sizes = {"TUMBLE": (size,), "HOP": (slide, size), "CUMULATE": (slide, size)}.get(kind, (chance.choice((33, 90)),))
    if kind == "SESSION":
        values = {one: (text.replace("ROWTIME", _NOON), of) for one, (text, of) in some.values.items()}
        some = replace(some, where="", values=values, having=some.having.replace("ROWTIME", _NOON))
    by = f" PARTITION BY {some.key}" if kind == "SESSION" and some.key else ""
    of = f"TABLE({kind}(TABLE {given.name}{by}, DESCRIPTOR(ROWTIME), {', '.join(map(seconds, sizes))}))"
    rest = f"{some.where} GROUP BY window_start, window_end{some.by}{some.having}"
    listed = f"window_start AS %s%, window_end AS %e%, {some.items} FROM {of}"
    ours, theirs = f"SELECT STREAM {listed} AS t{rest}", f"SELECT window_end AS rowtime, {listed}{rest}"
    return grouped(given, name, some, ours, in_flink(theirs), kind.lower(), 0)


def over(chance: Random, given: View, name: str) -> View:
    keys = [one for one, kind in given.columns.items() if kind in ("text", "bool", "int")]
    by = f"PARTITION BY {chance.choice(keys)} " if keys and chance.random() < 0.7 else ""
    kept = chance.sample([*given.columns], chance.randint(1, min(3, len(given.columns))))
    items, columns = [*kept], {one: given.columns[one] for one in kept}
    for number in range(chance.randint(1, 3)):
        kind = chance.choice([*FLINK.over])
        columns[f"{name}o{number}"] = kind
        items.append(f"{over_call(chance, given.columns, kind, FLINK)} OVER w AS {name}o{number}")
    frames = (f"ROWS BETWEEN {chance.choice(('UNBOUNDED', 0, 1, 5))} PRECEDING AND CURRENT ROW",
              f"RANGE BETWEEN {seconds(chance.choice((10, 500, 3000)))} PRECEDING AND CURRENT ROW")  # fmt: skip
    rest = f"{', '.join(items)} FROM {given.name} WINDOW w AS ({by}ORDER BY ROWTIME {chance.choice(frames)})"
    theirs = in_flink(f"SELECT rowtime, {rest}")
    return View(name, columns, f"SELECT STREAM {rest} WITH UNBOUNDED STATE", theirs, "over", unique=True)


def first_rows(chance: Random, given: View, name: str) -> View:
    kept = chance.sample([*given.columns], min(len(given.columns), chance.randint(1, 4)))
    terms = [f"{one} {chance.choice(('ASC', 'DESC'))}" for one in chance.sample(kept, min(2, len(kept)))]
    listed, most, size = ", ".join(kept), chance.randint(1, 3), chance.choice((300, 3600))
    number = "ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY {}) AS rn"
    of = f"TABLE(TUMBLE(TABLE {given.name}, DESCRIPTOR(ROWTIME), {seconds(size)}))"
    ours, theirs = number.format(", ".join(terms)), number.format(", ".join([*terms, "rowtime"]))
    ours = f"SELECT STREAM {listed}, rn FROM (SELECT STREAM {listed}, {ours} FROM {of}) AS x WHERE rn <= {most}"
    theirs = f"SELECT window_end AS rowtime, {listed}, rn FROM (SELECT *, {theirs} FROM {of}) WHERE rn <= {most}"
    return View(name, {**{one: given.columns[one] for one in kept}, "rn": "int"}, ours, in_flink(theirs), "first rows")


def time_join(chance: Random, given: View, name: str) -> View:
    """Return a join within a time on equal texts: Flink needs an equality, and has SEMI and ANTI only as EXISTS."""
    found = joins.time_join(chance, given, name)
    if " ON x." not in found.ours or any(kind in found.kind for kind in ("semi", "anti")) or "day" in found.ours:
        return rows(chance, given, name)
    return replace(found, theirs=in_flink(found.theirs))


def as_of_join(chance: Random, given: View, name: str) -> View:
    found = joins.as_of_join(chance, given, name)
    if " y ON x." not in found.ours or "y.day" in found.ours:
        return rows(chance, given, name)
    theirs = found.ours.replace("SELECT STREAM ", "SELECT x.rowtime, ")
    theirs = re.sub(r"JOIN b FOR SYSTEM_TIME AS OF x.ROWTIME AS y ON (\S+) = y.k",
                    r"JOIN versions FOR SYSTEM_TIME AS OF x.rowtime AS y ON \1 = y.k", theirs)  # fmt: skip
    return replace(found, theirs=in_flink(theirs), unique=False)  # Flink fails at OVER above a left one


_PATTERNS: Final = ("P Q* R", "P Q+ R", "P+ Q R", "P{2} Q? R", "P Q{1,3} R", "P R", "P Q+? R", "P{1,2} Q{0,2} R",
                    "P+ R", "P+ Q+ R+?", "P Q R{2}")  # fmt: skip
_MEASURES: Final = ("FIRST(P.{x})", "LAST(Q.{x})", "SUM(Q.{x})", "COUNT(*)", "MAX(R.{x})", "COUNT(Q.{x})", "MIN({x})",
                    "LAST(P.{x}, 1)", "FIRST(Q.{x}, 1)", "R.{x} - FIRST(P.{x})", "SUM({x} * 2)")  # fmt: skip


def pattern(chance: Random, given: View, name: str) -> View:
    """Return a pattern whose matches are unambiguous: rows below a limit, between it and another one, or above."""
    numbers = [one for one, kind in given.columns.items() if kind == "int"]
    if not numbers:
        return rows(chance, given, name)
    keys = [one for one, kind in given.columns.items() if kind in ("text", "bool")]
    key = chance.choice(keys) if keys and chance.random() < 0.6 else ""
    of, low = chance.choice(numbers), chance.randint(-2, 1)
    high = low + chance.randint(1, 4)
    more = ("", f" AND (LAST(Q.{of}, 1) IS NULL OR Q.{of} >= LAST(Q.{of}, 1))", f" AND SUM(Q.{of}) < 6",
            f" AND Q.{of} > FIRST(P.{of}) + 1", f" AND AVG(CAST(Q.{of} AS DOUBLE)) < 2")  # fmt: skip
    last = ("", "", f" AND R.{of} > LAST(P.{of}) + 3", f" AND COUNT(P.{of}) < 3")
    form = chance.choice(_PATTERNS)
    skips = ["PAST LAST ROW", "PAST LAST ROW", "TO NEXT ROW", "TO LAST R", *(["TO FIRST Q"] if "Q+ R" in form else [])]
    skip = chance.choice(skips)
    measures = [text for text in chance.sample(_MEASURES, chance.randint(1, 4)) if "Q" in form or "Q" not in text]
    measures = measures or ["COUNT(*)"]
    named = [f"{text.format(x=of)} AS {name}m{number}" for number, text in enumerate(measures)]
    by = f"PARTITION BY {key} " if key else ""
    within = seconds(chance.choice((100, 300, 900)))
    between = f"Q AS Q.{of} >= {low} AND Q.{of} < {high}{chance.choice(more)}, "
    clauses = (
        f"{', '.join(named)} ONE ROW PER MATCH AFTER MATCH SKIP {skip} "
        f"PATTERN ({form}) WITHIN {within} DEFINE P AS P.{of} < {low}, "
        f"{between if 'Q' in form else ''}R AS R.{of} >= {high}{chance.choice(last)}"
    )
    columns = {**({key: given.columns[key]} if key else {}), **{f"{name}m{n}": "int" for n in range(len(measures))}}
    of_match = f"{', '.join(columns)} FROM {given.name} MATCH_RECOGNIZE ("
    of_match += f"{by}ORDER BY ROWTIME MEASURES "
    ours = f"SELECT STREAM {of_match}{clauses}) AS m"
    theirs = f"SELECT {name}t AS rowtime, {of_match}MATCH_ROWTIME() AS {name}t, {clauses}) AS m"
    unique = not key and skip == "PAST LAST ROW"
    return View(name, columns, ours, in_flink(theirs), "pattern", unique=unique)


Step = Callable[[Random, View, str], View]
_STEPS: Final[Sequence[Step]] = (
    windowed, windowed, windowed, over, over, first_rows, time_join, time_join, as_of_join, pattern, pattern, pattern,
    rows,
)  # fmt: skip
_UPPER: Final[Sequence[Step]] = (rows, windowed, over, first_rows, pattern, time_join, as_of_join)


def drawn(seed: str) -> Pipeline:
    """Return the pipeline of a seed."""
    chance = Random(seed)
    views = []
    given = View(chance.choice(("a", "b")), COLUMNS, "", "", "stream", unique=True)
    if chance.random() < 0.7:
        views.append(union(chance, "r0") if chance.random() < 0.3 else rows(chance, given, "r0"))
    views.append(chance.choice(_STEPS)(chance, views[-1] if views else given, "w"))
    while len(views) < 4 and chance.random() < 0.55:
        upper = _UPPER if views[-1].unique else (rows,)
        views.append(chance.choice(upper)(chance, views[-1], f"u{len(views)}"))
    return Pipeline(seed, views)
