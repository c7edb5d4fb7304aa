"""Oracle of MATCH_RECOGNIZE (semantics 13): a backtracking matcher after the rules of SQL:2016.

A pattern is nested tuples: ``("var", name)``, ``("seq", parts)``, ``("alt", parts)``, ``("rep", part, least, most,
greedy)`` with ``most`` ``None`` for no limit, ``("out", part)`` for an exclusion, ``("perm", parts)``, ``("^",)`` and
``("$",)``. Paths through it are tried in the order of preference, one after the other. It is simple, not fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from tests.oracle.feed import END, Bound, Feed, Row, clock_of, rows_of, sortable

Pattern = tuple[Any, ...]
Taken = tuple[tuple[str, bool], ...]  # for each matched row, its variable and whether it is excluded


HOPED = ("$", False)
"""Stands for the next row if it is not known yet whether there is one."""


@dataclass(frozen=True)
class Open:
    """A path that cannot continue yet; if it becomes a match, its last row has at least the rowtime ``at``."""

    at: int


@dataclass(frozen=True)
class Match:
    """Rows of a partition from ``start`` on, and their variables."""

    start: int
    taken: Taken

    @property
    def end(self) -> int:
        """The row after the last one."""
        return self.start + len(self.taken)


@dataclass
class View:
    """The context of an expression: the rows of the partition, the match so far, and the current row."""

    rows: Sequence[Row]
    start: int
    names: Sequence[str]
    number: int | None = None

    def of(self, *variables: str) -> list[int]:
        """The rows that matched one of these variables; without variables, all matched rows."""
        return [self.start + n for n, name in enumerate(self.names) if not variables or name in variables]

    def value(self, column: str, at: int | None) -> Any:
        """A column of a row of the partition; NULL if there is no such row."""
        return self.rows[at].values[column] if at is not None and 0 <= at < len(self.rows) else None

    def last(self, column: str, *variables: str, back: int = 0, by: int = 0) -> Any:
        """LAST(v.column, back), moved by a number of rows: PREV if negative, else NEXT."""
        found = self.of(*variables)
        return self.value(column, found[-1 - back] + by if len(found) > back else None)

    def first(self, column: str, *variables: str, on: int = 0, by: int = 0) -> Any:
        """FIRST(v.column, on), moved by a number of rows."""
        found = self.of(*variables)
        return self.value(column, found[on] + by if len(found) > on else None)

    def all(self, column: str, *variables: str) -> list[Any]:
        """The values that are not NULL of the rows of some variables."""
        return [v for at in self.of(*variables) if (v := self.value(column, at)) is not None]


Expression = Callable[[View], Any]


def no_key(_: Row) -> None:
    """Without PARTITION BY."""


@dataclass(frozen=True)
class Spec:
    """The clause; ``measures`` of a whole match, or up to each of its rows if ``running``.

    ``skip``: ``past``, ``next``, or ``first`` or ``last`` with the variables in ``to``. ``empty`` and ``unmatched``:
    whether ALL ROWS shows them. ``ahead``: how many rows NEXT reads in DEFINE; ``behind``: in MEASURES.
    """

    pattern: Pattern
    define: Mapping[str, Expression]
    measures: Mapping[str, Expression]
    key: Callable[[Row], Any] = no_key
    running: frozenset[str] = frozenset()
    all_rows: bool = False
    empty: bool = True
    unmatched: bool = False
    skip: str = "past"
    to: tuple[str, ...] = ()
    within: int | None = None
    expires: int | None = None
    ahead: int = 0
    behind: int = 0
    shown: Callable[[Row], Mapping[str, Any]] = lambda row: row.values


@dataclass
class Partition:
    """Rows of one key without a gap; ``over``: no row can follow. ``bound``: that of the stream."""

    spec: Spec
    rows: Sequence[Row]
    over: bool
    bound: int
    number: int = 0
    out: list[tuple[Any, ...]] = field(default_factory=list)

    def at(self, row: int) -> int:
        """The rowtime of a row."""
        found = self.rows[row].at
        assert found is not None
        return found

    # -- paths through the pattern ----------------------------------------------------------

    def ways(self, start: int) -> Iterator[Taken | Open]:
        """The matches from a row on, and the open paths, the preferred ones first."""
        for way in self._through(self.spec.pattern, start, (), out=False):
            waits = not isinstance(way, Open) and HOPED in way
            yield Open(self.at(start + _count(way) - 1)) if waits else way

    def _has(self, row: int) -> bool:
        """True if it is known whether a row matches the variable."""
        return self.over or row + self.spec.ahead < len(self.rows)

    def _through(self, part: Pattern, start: int, taken: Taken, *, out: bool) -> Iterator[Taken | Open]:
        kind = part[0]
        if kind == "var":
            yield from self._take(part[1], start, taken, out=out)
        elif kind == "seq":
            yield from self._all(part[1], start, taken, out=out)
        elif kind == "alt":
            for one in part[1]:
                yield from self._through(one, start, taken, out=out)
        elif kind == "perm":
            for order in permutations(part[1]):
                yield from self._all(order, start, taken, out=out)
        elif kind == "out":
            yield from self._through(part[1], start, taken, out=True)
        elif kind == "^":
            if start + _count(taken) == 0:
                yield taken
        elif kind == "$":
            yield from self._ends(start, taken)
        else:
            yield from self._repeat(part, start, taken, 0, out=out)

    def _all(self, parts: Sequence[Pattern], start: int, taken: Taken, *, out: bool) -> Iterator[Taken | Open]:
        if not parts:
            yield taken
            return
        for way in self._through(parts[0], start, taken, out=out):
            if isinstance(way, Open):
                yield way
            else:
                yield from self._all(parts[1:], start, way, out=out)

    def _repeat(self, part: Pattern, start: int, taken: Taken, done: int, *, out: bool) -> Iterator[Taken | Open]:
        """Another repetition, or the rest; an optional repetition must match a row."""
        _, _, least, most, greedy = part
        if done < least:
            yield from self._again(part, start, taken, done, out=out)
            return
        if not greedy:
            yield taken
        if most is None or done < most:
            yield from self._again(part, start, taken, done, out=out)
        if greedy:
            yield taken

    def _again(self, part: Pattern, start: int, taken: Taken, done: int, *, out: bool) -> Iterator[Taken | Open]:
        for way in self._through(part[1], start, taken, out=out):
            if isinstance(way, Open):
                yield way
            elif done < part[2] or _count(way) > _count(taken):
                yield from self._repeat(
                    part, start, way, min(done + 1, part[2]) if part[3] is None else done + 1, out=out
                )

    def _take(self, name: str, start: int, taken: Taken, *, out: bool) -> Iterator[Taken | Open]:
        if HOPED in taken:
            return
        row, within = start + len(taken), self.spec.within
        until = END if within is None else self.at(start) + within
        if row < len(self.rows) and self.at(row) >= until:
            return
        if row >= len(self.rows) and (self.over or self.bound >= until):
            return
        if not self._has(row):
            yield Open(self.at(row) if row < len(self.rows) else self.bound)
            return
        made = (*taken, (name, out))
        condition = self.spec.define.get(name)
        if condition is None or condition(View(self.rows, start, [n for n, _ in made])) is True:
            yield made

    def _ends(self, start: int, taken: Taken) -> Iterator[Taken | Open]:
        if start + _count(taken) == len(self.rows):
            yield taken if self.over or HOPED in taken else (*taken, HOPED)

    # -- one start after the other ------------------------------------------------------------

    def matched(self) -> int:
        """Records the rows that go out, and returns the least rowtime of a row that may still follow."""
        start, shown = 0, set[int]()
        while start < len(self.rows):
            ways = iter(self.ways(start))
            found = next(ways, None)
            certain = not isinstance(found, Open)
            if certain and found is not None and found:
                certain = self.over or start + len(found) - 1 + self.spec.behind < len(self.rows)
            if certain and found is not None and not found:
                certain = self.over or start + self.spec.behind < len(self.rows)
            if not certain:
                return self._least(start)
            then = start + 1
            if found is not None and not isinstance(found, Open):
                match = Match(start, found)
                self.number += 1
                self._show(match, shown)
                then = self._then(match)
            for row in range(start, then):
                self._pass(row, shown)
            start = then
        return END

    def _then(self, match: Match) -> int:
        if not match.taken or self.spec.skip == "next":
            return match.start + 1
        if self.spec.skip == "past":
            return match.end
        rows = [match.start + n for n, (name, _) in enumerate(match.taken) if name in self.spec.to]
        target = rows[0] if self.spec.skip == "first" else rows[-1]
        assert target > match.start
        return target

    def _least(self, start: int) -> int:
        if self.spec.all_rows:
            return self.at(start)
        least = END
        for one in range(start, len(self.rows)):
            for way in self.ways(one):
                if isinstance(way, Open):
                    least = min(least, way.at)
                else:
                    least = min(least, self.at(max(one, one + len(way) - 1)))
                    break  # no less preferred path can be the match
        return least

    # -- output -----------------------------------------------------------------------------

    def _show(self, match: Match, shown: set[int]) -> None:
        names, spec = [name for name, _ in match.taken], self.spec
        whole = View(self.rows, match.start, names, self.number)
        if not spec.all_rows:
            last = max(match.start, match.end - 1)
            self._out(last, match.start, last, {name: of(whole) for name, of in spec.measures.items()})
            return
        if not match.taken and spec.empty:
            self._out(match.start, match.start, match.start, {name: of(whole) for name, of in spec.measures.items()})
        shown.add(match.start)
        for n, (_, out) in enumerate(match.taken):
            shown.add(match.start + n)
            part = View(self.rows, match.start, names[: n + 1], self.number)
            values = {name: of(part if name in spec.running else whole) for name, of in spec.measures.items()}
            if not out:
                self._out(match.start + n, match.start, match.start + n, values)

    def _pass(self, row: int, shown: set[int]) -> None:
        """A row that is neither a start nor in a later match."""
        if self.spec.unmatched and row not in shown:
            self._out(row, row, row, dict.fromkeys(self.spec.measures))

    def _out(self, row: int, start: int, of: int, measures: Mapping[str, Any]) -> None:
        values = {**(self.spec.shown(self.rows[row]) if self.spec.all_rows else {}), **measures}
        self.out.append((self.at(row), start, of, values))


def match_recognize(feed: Feed, spec: Spec, shown: Callable[[Any], Mapping[str, Any]] = lambda _: {}) -> Feed:
    """The rows of matches in stream order, as far as they are certain; ``shown``: the columns of a key."""
    (items,) = feed.values()
    bound = clock_of(items)
    keys: dict[Any, list[list[Row]]] = {}
    for row in rows_of(items):
        parts = keys.setdefault(spec.key(row), [[]])
        before = parts[-1][-1].at if parts[-1] else None
        assert row.at is not None
        if before is not None and spec.expires is not None and row.at - before > spec.expires:
            parts.append([])
        parts[-1].append(row)
    promise, out = bound, []
    for key, parts in keys.items():
        for part in parts:
            last = part[-1].at
            assert last is not None
            over = part is not parts[-1] or bound >= END or (spec.expires is not None and bound > last + spec.expires)
            one = Partition(spec, part, over, bound)
            promise = min(promise, one.matched())
            for at, start, row, values in one.out:
                place = (at, _sort(key), one.at(start), start, row)
                out.append((place, Row(at, {**shown(key), **values})))
    out.sort(key=lambda one: one[0])
    # Without keys, later starts come later in the order. With keys, one that sorts first may have a row at the promise.
    upto = promise if spec.key is no_key else promise - 1
    rows = [row for _, row in out if promise >= END or (row.at is not None and row.at <= upto)]
    return {"": [*rows, Bound(promise)]}


def _count(way: Any) -> int:
    return sum(one != HOPED for one in way)


def _sort(key: Any) -> list[Any]:
    return [sortable(one) for one in (key if isinstance(key, tuple) else (key,))]
