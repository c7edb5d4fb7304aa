"""A view of a random pipeline: a query in rowtime's SQL, and one in DuckDB's with the rowtimes that rowtime gives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from conformance.expressions import OF_DUCKDB, Words, expression

STREAM: Final[Mapping[str, str]] = {
    "k": "text", "v": "int", "n": "int", "c": "dec", "d": "dbl", "f": "bool", "day": "date", "ts": "ts"
}  # fmt: skip
TABLE: Final[Mapping[str, str]] = {"k": "text", "name": "text", "rank": "int"}
SIZES: Final = (60, 300, 900, 3600)


@dataclass(frozen=True)
class View:
    """A step of a pipeline: its name, its columns, and its query in each system; ``windows``: it has ends of windows.

    ``unique``: no two rows of it have the same rowtime. ``kind`` is the kind of the step.
    """

    name: str
    columns: Mapping[str, str]
    ours: str
    theirs: str
    kind: str
    unique: bool = False
    keys: Sequence[str] = ()
    size: int = 0  # seconds of its windows
    timed: frozenset[str] = frozenset()  # columns that may be in the order of time; a group by one would end with it

    @property
    def windows(self) -> tuple[str, str]:
        """The names of the starts and the ends of its windows."""
        return f"{self.name}s", f"{self.name}e"


def seconds(number: int) -> str:
    """Return an interval in both systems."""
    return f"INTERVAL '{number}' SECOND"


def projected(chance: Random, given: View, name: str, words: Words = OF_DUCKDB) -> View:
    kept = chance.sample([*given.columns], chance.randint(1, len(given.columns)))
    columns, timed = {one: given.columns[one] for one in kept}, {*given.timed}
    items = [*kept]
    for number in range(chance.randint(0, 3)):
        kind = chance.choice([*words.more])
        columns[f"{name}x{number}"] = kind
        text = expression(chance, given.columns, kind, 3, words)
        timed |= {f"{name}x{number}"} if in_time(text, given) else set()
        items.append(f"{text} AS {name}x{number}")
    rest = f"{', '.join(items)} FROM {given.name}{where_of(chance, given.columns, words)}"
    keys = given.keys if all(key in columns for key in given.keys) else ()
    return replace(
        given, name=name, columns=columns, ours=f"SELECT STREAM {rest}", theirs=f"SELECT rowtime, {rest}",
        kind="projection", keys=keys, size=0, timed=frozenset(timed),
    )  # fmt: skip


def in_time(text: str, given: View) -> bool:
    """Return True if the values of an expression may follow the order of time."""
    return any(re.search(rf"\b{name}\b", text) for name in (*given.timed, "ROWTIME"))


def where_of(chance: Random, columns: Mapping[str, str], words: Words = OF_DUCKDB) -> str:
    return f" WHERE {expression(chance, columns, 'bool', words=words)}" if chance.random() < 0.5 else ""
