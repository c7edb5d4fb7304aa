"""Random pipelines: one to four views on top of each other, in rowtime's SQL and, with their rowtimes, in DuckDB's.

A view is a pair of queries. In DuckDB, ``rowtime`` is a column that each query computes by the rules of rowtime
(docs/semantics.md 5): so not only the rows are compared, but also their rowtimes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from conformance.expressions import in_duckdb
from conformance.frames import first_rows, over
from conformance.groups import calendar, distinct, hop, session, tumble
from conformance.joins import as_of_join, table_join, time_join, window_join
from conformance.views import STREAM, View, projected, where_of


@dataclass(frozen=True)
class Pipeline:
    """The views, the last of which is the result."""

    seed: str
    views: Sequence[View] = field(default=())

    @property
    def kind(self) -> str:
        """The kinds of its steps."""
        return " > ".join(view.kind for view in self.views)

    def ours(self, number: int) -> str:
        """The script: views whose names begin with a number, and a pump into ``o<number>``."""
        named = [(view, f"CREATE VIEW {view.name} AS {view.ours};") for view in self.views[:-1]]
        text = "\n".join([*(text for _, text in named), f"CREATE PUMP p{number} AS INSERT INTO o{number} "])
        return _numbered(text + self.views[-1].ours + ";", self.views, number)

    def theirs(self) -> str:
        """The query in DuckDB."""
        before = [f"{view.name} AS ({in_duckdb(view.theirs)})" for view in self.views[:-1]]
        last = in_duckdb(self.views[-1].theirs)
        return f"WITH {', '.join(before)} {last}" if before else last


def _numbered(text: str, views: Sequence[View], number: int) -> str:
    for view in views:
        text = re.sub(rf"\b{view.name}\b", f"{view.name}_{number}", text)
    return text


def drawn(seed: str) -> Pipeline:
    """Return the pipeline of a seed."""
    chance = Random(seed)
    views = list(_rows(chance))
    given = views[-1] if views else _stream(chance)
    step = chance.choice(STEPS)
    views.append(step(chance, given, "w"))
    while len(views) < 4 and chance.random() < 0.55:
        upper = [one for one in UPPER if one is not groups_again or views[-1].size]
        views.append(chance.choice(upper)(chance, views[-1], f"u{len(views)}"))
    return Pipeline(seed, views)


def _stream(chance: Random) -> View:
    name = chance.choice(("a", "b"))
    return View(name, STREAM, "", "", "stream", unique=True)


def _rows(chance: Random) -> Sequence[View]:
    """Return no view, or a view of rows: a filter and a projection, or a union."""
    if chance.random() < 0.3:
        return ()
    if chance.random() < 0.3:
        names = chance.sample([*STREAM], chance.randint(3, len(STREAM)))
        parts = [f"SELECT STREAM {', '.join(names)} FROM {one}{where_of(chance, STREAM)}" for one in ("a", "b")]
        theirs = [part.replace("STREAM ", "STREAM rowtime, ") for part in parts]
        columns = {name: STREAM[name] for name in names}
        return (View("r0", columns, " UNION ALL ".join(parts), " UNION ALL ".join(theirs), "union", unique=True),)
    return (projected(chance, _stream(chance), "r0"),)


def groups_again(chance: Random, given: View, name: str) -> View:
    """Return groups by the rowtime of groups, which is the end of their windows."""
    found = chance.choice((tumble, calendar, hop))(chance, replace(given, columns=given.columns), name)
    return replace(found, kind=f"{found.kind} again")


Step = Callable[[Random, View, str], View]
STEPS: Final[Sequence[Step]] = (
    tumble, hop, calendar, session, distinct, over, over, first_rows, time_join, window_join, as_of_join,
    table_join, projected,
)  # fmt: skip
UPPER: Final[Sequence[Step]] = (projected, groups_again, over, first_rows, table_join, tumble, as_of_join)
