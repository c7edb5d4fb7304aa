"""Groups: of windows, sessions and calendar units, and DISTINCT; their rowtime is the end of the group."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from conformance.expressions import OF_DUCKDB, Words, aggregate, expression
from conformance.views import SIZES, View, in_time, seconds, where_of

_BY_TIME: Final = re.compile(r"\b(MIN|MAX)_BY\((.*), ROWTIME\)")  # of rows with one time any could be the result


@dataclass(frozen=True)
class Groups:
    """The key, the aggregates by name with their kinds, WHERE and HAVING."""

    key: str
    of: str
    values: Mapping[str, tuple[str, str]]
    where: str
    having: str
    named: str  # the column of the key

    @property
    def items(self) -> str:
        key = [f"{self.key} AS %k%"] if self.key else []
        return ", ".join([*key, *(f"{text} AS {name}" for name, (text, _) in self.values.items())])

    @property
    def columns(self) -> dict[str, str]:
        return {
            **({self.named: self.of} if self.key else {}),
            **{name: kind for name, (_, kind) in self.values.items()},
        }

    @property
    def by(self) -> str:
        return f", {self.key}" if self.key else ""


def groups_of(chance: Random, given: View, name: str, *, plain: bool = False, words: Words = OF_DUCKDB) -> Groups:
    """Return random groups: keys and aggregates."""
    of, key = "", ""
    if chance.random() < 0.75:
        of = chance.choice([*given.columns.values()])
        key = expression(chance, given.columns, of, 0 if plain else 1, words)
        if of == "dbl" or in_time(key, given) or not any(column in key for column in given.columns):
            of = key = ""
    values = {}
    for number in range(chance.randint(1, 4)):
        kind = chance.choice([*words.aggregates])
        text = aggregate(chance, given.columns, kind, words)
        values[f"{name}g{number}"] = (text if given.unique else _BY_TIME.sub(r"\1(\2)", text), kind)
    having = f" HAVING {aggregate(chance, given.columns, 'bool', words)}" if chance.random() < 0.25 else ""
    return Groups(key, of, values, where_of(chance, given.columns, words), having, f"{name}k")


def grouped(  # noqa: PLR0913 - what there is to say of groups
    given: View, name: str, some: Groups, ours: str, theirs: str, kind: str, size: int
) -> View:
    starts, ends = f"{name}s", f"{name}e"
    columns = {starts: "ts", ends: "ts", **some.columns}
    return View(
        name, columns, _names(ours, name), _names(theirs, name), kind, size=size, timed=given.timed | {starts, ends},
        keys=[starts, ends, *([f"{name}k"] if some.key else [])],
    )  # fmt: skip


def _names(text: str, name: str) -> str:
    """Return the text with names of its own for the columns of windows and the key."""
    return re.sub(r"%([sek])%", rf"{name}\1", text)


def tumble(chance: Random, given: View, name: str) -> View:
    some, size = groups_of(chance, given, name), chance.choice(SIZES)
    start = f"make_timestamp((epoch_us(rowtime) // {size * 1_000_000}) * {size * 1_000_000})"
    theirs = _their_groups(some, f"SELECT *, {start} AS %s%, {start} + {seconds(size)} AS %e% FROM {given.name}")
    ours = (
        f"SELECT STREAM window_start AS %s%, window_end AS %e%, {some.items} FROM "
        f"TABLE(TUMBLE(TABLE {given.name}, DESCRIPTOR(ROWTIME), {seconds(size)})) AS t{some.where} "
        f"GROUP BY window_start, window_end{some.by}{some.having}"
    )
    return grouped(given, name, some, ours, theirs, "tumble", size)


def hop(chance: Random, given: View, name: str) -> View:
    some, size = groups_of(chance, given, name), chance.choice(SIZES)
    slide = size // chance.choice((2, 3))
    first = f"(epoch_us(rowtime) // {slide * 1_000_000}) * {slide * 1_000_000}"
    start = f"make_timestamp({first} - i * {slide * 1_000_000})"
    rows = (
        f"SELECT *, %s% + {seconds(size)} AS %e% FROM (SELECT x.*, {start} AS %s% FROM {given.name} AS x, "
        f"range({size // slide}) AS r(i))"
    )
    ours = (
        f"SELECT STREAM window_start AS %s%, window_end AS %e%, {some.items} FROM "
        f"TABLE(HOP(TABLE {given.name}, DESCRIPTOR(ROWTIME), {seconds(slide)}, {seconds(size)})) AS t{some.where} "
        f"GROUP BY window_start, window_end{some.by}{some.having}"
    )
    return grouped(given, name, some, ours, _their_groups(some, rows), "hop", size)


def calendar(chance: Random, given: View, name: str) -> View:
    some, (unit, size) = groups_of(chance, given, name), chance.choice((("MINUTE", 60), ("HOUR", 3600), ("DAY", 86400)))
    period = f"date_trunc('{unit}', rowtime)"
    rows = f"SELECT *, {period} AS %s%, {period} + {seconds(size)} AS %e% FROM {given.name}"
    floor = f"FLOOR({given.name}.ROWTIME TO {unit})"
    ours = (
        f"SELECT STREAM {floor} AS %s%, {floor} + {seconds(size)} AS %e%, {some.items} FROM {given.name}{some.where} "
        f"GROUP BY {floor}{some.by}{some.having}"
    )
    return grouped(given, name, some, ours, _their_groups(some, rows), "calendar", size)


def session(chance: Random, given: View, name: str) -> View:
    some, gap = groups_of(chance, given, name, plain=True), chance.choice((33, 90, 200))
    by = f"PARTITION BY {some.key} ORDER BY rowtime" if some.key else "ORDER BY rowtime"
    rows = f"(SELECT * FROM {given.name}{some.where})"
    new = f"CASE WHEN rowtime - LAG(rowtime) OVER ({by}) < {seconds(gap)} THEN 0 ELSE 1 END AS is_new"
    numbered = f"SELECT *, SUM(is_new) OVER ({by} ROWS UNBOUNDED PRECEDING) AS sid FROM (SELECT *, {new} FROM {rows})"
    ends = f"MIN(rowtime) AS %s%, MAX(rowtime) + {seconds(gap)} AS %e%, {some.items}"
    inner = f"SELECT {ends} FROM ({numbered}) GROUP BY sid{some.by}{some.having}"
    window = f"{given.name}.ROWTIME, {seconds(gap)}"
    ours = (
        f"SELECT STREAM SESSION_START({window}) AS %s%, SESSION_END({window}) AS %e%, {some.items} FROM {given.name}"
        f"{some.where} GROUP BY SESSION({window}){some.by}{some.having}"
    )
    found = grouped(given, name, some, ours, f"SELECT %e% AS rowtime, * FROM ({inner})", "session", 0)
    return replace(found, keys=())


def _their_groups(some: Groups, rows: str) -> str:
    listed = f"SELECT %e% AS rowtime, %s%, %e%, {some.items} FROM ({rows}) AS t"
    return f"{listed}{some.where} GROUP BY %s%, %e%{some.by}{some.having}"


def distinct(chance: Random, given: View, name: str) -> View:
    kept = [one for one, kind in given.columns.items() if kind != "dbl" and one not in given.timed]
    kept = chance.sample(kept, min(len(kept), chance.randint(1, 3)))
    names = "".join(f", {one}" for one in kept)
    unit, size = chance.choice((("MINUTE", 60), ("HOUR", 3600)))
    rest = f"{names} FROM {given.name}{where_of(chance, given.columns)}"
    hour = f"{name}h"
    ours = f"SELECT STREAM DISTINCT FLOOR({given.name}.ROWTIME TO {unit}) AS {hour}{rest}"
    theirs = f"SELECT DISTINCT date_trunc('{unit}', rowtime) AS {hour}{rest}"
    theirs = f"SELECT {hour} + {seconds(size)} AS rowtime, * FROM ({theirs})"
    columns = {hour: "ts", **{one: given.columns[one] for one in kept}}
    return View(name, columns, ours, theirs, "distinct", timed=given.timed | {hour})
