"""The times of rows that the condition of a join compares, also those that it computes: fields, dates, numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from sqlglot import TokenType, exp

from rowtime.core.columns import ROWTIME
from rowtime.core.time import SECOND
from rowtime.expr.facts import Kind
from rowtime.expr.group_end import unshifted
from rowtime.plan.bind.join_range import Clause
from rowtime.sql.dialect import Rowtime
from rowtime.sql.generate import to_rowtime
from rowtime.sql.intervals import interval_text
from rowtime.sql.numbers import whole_number
from rowtime.sql.script import parse_expression

_ROWTIME = "ROWTIME"  # in a query
_COMPARISONS = (exp.GTE, exp.GT, exp.LTE, exp.LT, exp.EQ, exp.NullSafeEQ)
_NUMBERS = (exp.UnixMicros, exp.UnixMillis, exp.UnixSeconds)


@dataclass(frozen=True)
class EventTime:
    """A time of the rows of an input.

    ``alias``: the input; empty if the time is its rowtime. ``column``: its name in the query; empty for a ``value``: a
    function in the condition, over columns of the input. ``of_days``: it is a DATE. ``within``: the tolerance that a
    declaration gives it, as SQL; empty without one. ``rows``: one in rows, which does not say how late a row may be.
    """

    alias: str
    column: str
    within: str = ""
    rows: int = 0
    value: exp.Expr | None = None
    of_days: bool = False

    def __str__(self) -> str:
        return f"{self.alias}.{self.column}"

    @property
    def promoted(self) -> str:
        """Return what to promote, over the columns of the input, as SQL."""
        if self.value is None:
            return to_rowtime(exp.column(_named(self.column)))
        text = to_rowtime(self.value.copy().transform(_without_alias))
        return f"CAST({text} AS TIMESTAMP)" if self.of_days else text

    def in_place(self, condition: exp.Expr) -> exp.Expr:
        """Return a condition with the rowtime of the input in place of the value."""
        rowtime: exp.Expr = exp.column(_ROWTIME, self.alias)
        rowtime = exp.cast(rowtime, "DATE") if self.of_days else rowtime
        return condition.transform(lambda part: rowtime.copy() if part == self.value else part)


_UNITS = (
    ("seconds", "s|secs?|seconds", SECOND),
    ("millis", "ms|millis|milliseconds", 1_000),
    ("micros", "us|micros|microseconds", 1),
)
_WHOLE = ("INT", "BIGINT")
_RANGES = (exp.Between, exp.GTE, exp.GT, exp.LTE, exp.LT)


def ranges_of_numbers(query: exp.Select, clause: Clause) -> Iterator[tuple[exp.Expr, list[exp.Column]]]:
    """Yield the conditions of a query that compare whole numbers of both sides with each other, and their columns."""
    sides = [
        {(source.alias.lower(), name.lower()) for source in inputs for name, c in source.columns if c.type in _WHOLE}
        for inputs in clause.inputs
    ]
    for part in [*query.find_all(*_RANGES)]:
        columns = [*part.find_all(exp.Column)]
        named = {(column.table.lower(), column.name.lower()) for column in columns}
        if all(named & side for side in sides) and named <= sides[0] | sides[1]:
            yield part, columns


def counted_times(query: exp.Select, clause: Clause) -> tuple[exp.Select, list[EventTime]]:
    """Return the query with times in place of numbers that count them by their names (``ms``), and these times.

    Only conditions change that compare such columns of both sides with each other; there are none if no condition does.
    """
    rewritten, times = query.copy(), dict[str, EventTime]()
    for part, columns in ranges_of_numbers(rewritten, clause):
        units = {_counts(column.name) for column in columns}
        if len(units) != 1 or None in units:
            continue
        [(call, unit)] = filter(None, units)
        values = {column: parse_expression(f"timestamp_{call}({to_rowtime(column)})") for column in columns}
        times |= {column.table.lower(): EventTime(column.table, "", value=value) for column, value in values.items()}
        timed = part.transform(lambda node, of=values, unit=unit: of[node].copy() if node in of else _moved(node, unit))
        if all(number.is_string for number in timed.find_all(exp.Literal)):
            part.replace(timed)
    return rewritten, [*times.values()]


def _moved(node: exp.Expr, unit: int) -> exp.Expr:
    """Return a sum with an interval in place of a whole number, or of a product of whole numbers."""
    if isinstance(node, exp.Add | exp.Sub):
        for name in ("this", "expression"):
            value = node.args[name].unnest()
            factors = [
                whole_number(one.unnest()) for one in (value.flatten() if isinstance(value, exp.Mul) else [value])
            ]
            if None not in factors:
                node.set(name, parse_expression(interval_text(prod(filter(None, factors)) * unit)))
    return node


def _counts(name: str) -> tuple[str, int] | None:
    """Return what a column counts by the end of its name, and how many µs one is."""
    word = re.split(r"_|(?<=[a-z])(?=[A-Z])", name)[-1].lower()
    return next(((unit, micros) for unit, words, micros in _UNITS if re.fullmatch(words, word)), None)


KindOf = Callable[[exp.Expr], Kind]


def compared_times(clause: Clause, parts: Sequence[exp.Expr], kind: KindOf) -> list[tuple[EventTime, EventTime]]:
    """Return the times of both sides that a comparison has, those that are no columns first."""
    pairs = [
        (left, right)
        for part in parts
        if isinstance(part, _COMPARISONS)
        for left, right in product(*_sides(clause, part, kind))
        if left is not None and right is not None
    ]
    return sorted(dict.fromkeys(pairs), key=lambda pair: all(time.value is None for time in pair))


def may_compare_times(clause: Clause, part: exp.Expr, kind: KindOf) -> bool:
    """Return True for a condition on both sides unless it only says that columns are equal, which are no times."""
    left, right = _sides(clause, part, kind)
    columns = isinstance(part, exp.EQ | exp.NullSafeEQ) and all(isinstance(of, exp.Column) for of in part.args.values())
    return bool(left and right) and not (columns and {*left, *right} == {None})


def _sides(clause: Clause, part: exp.Expr, kind: KindOf) -> list[list[EventTime | None]]:
    """Return for each side of a join what a condition has of one of its inputs alone; ``None``: it is no time."""
    sides = []
    for inputs in clause.inputs:
        aliases = {source.alias.lower() for source in inputs if source.rowtime and source.alias}
        nodes = [node for node in part.walk(prune=lambda node: bool(_alias_of(node))) if _alias_of(node) in aliases]
        sides.append([_time_of(node, _alias_of(node), kind) for node in nodes])
    return sides


def _time_of(node: exp.Expr, alias: str, kind: KindOf) -> EventTime | None:
    value, _ = unshifted(node)
    while isinstance(value, _NUMBERS):
        value = value.this.unnest()
    is_column = isinstance(value, exp.Column) and len(value.parts) <= 2  # noqa: PLR2004 - the alias and a name
    if is_column and value.name.upper() == _ROWTIME:
        return EventTime("", ROWTIME)
    of = kind(value)
    if of is Kind.DATE:
        return EventTime(alias, "", value=value, of_days=True)
    if of is not Kind.TIMESTAMP:
        return None
    return EventTime(alias, value.name) if is_column else EventTime(alias, "", value=value)


def _alias_of(node: exp.Expr) -> str:
    """Return the input, in lower case, whose columns alone an expression has; empty if there is none."""
    aliases = {column.parts[0].name.lower() if len(column.parts) > 1 else "" for column in node.find_all(exp.Column)}
    return aliases.pop() if len(aliases) == 1 else ""


def _named(name: str) -> exp.Identifier:
    """Return a name with quotes if it needs them."""
    word = re.fullmatch(r"\w+", name) is not None
    return exp.to_identifier(
        name, quoted=not word or [token.token_type for token in Rowtime().tokenize(name)] != [TokenType.VAR]
    )


def _without_alias(part: exp.Expr) -> exp.Expr:
    if not isinstance(part, exp.Column):
        return part
    first, *fields = (_named(name.name) for name in part.parts[1:])
    return exp.Dot.build([exp.column(first), *fields]) if fields else exp.column(first)
