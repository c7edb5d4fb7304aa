"""Calls of functions of the user in expressions over rows: each is computed apart from the expression around it.

Spark computes a function of Python for all rows before the expression around it, and its arguments too, so nothing
around it catches a failure in them. So the arguments become columns first, and Spark computes the call alone, for the
rows whose arguments can be computed; in the expression a column stands for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from rowtime.core.columns import ARGUMENTS, CALLED
from rowtime.frames.answers import Part
from rowtime.frames.attempted import TRIED_VALUE
from rowtime.frames.attempts import tried
from rowtime.frames.catalyst import OTHER_ROWS, answered, functions_of, named_item, part_of
from rowtime.frames.kinds import struct_text
from rowtime.sql.generate import quoted, to_stored
from rowtime.sql.script import parse_expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.frames.frame import Frame

_NAMES: Final = re.compile(r"(\w+)`?\s*\(")
_FAILS: Final = "raise_error('an argument fails')"


def calls_user(session: SparkSession, tree: exp.Expr) -> bool:
    """Return True if an expression calls a function that is not one of Spark's."""
    names = [call.name.lower() for call in tree.find_all(exp.Anonymous)]
    return bool(names) and not functions_of(session).issuperset(names)


def calls_in(session: SparkSession, text: str) -> bool:
    """Return the same for a text of Spark SQL, which is not parsed if it names only functions of Spark."""
    names = {name.lower() for name in _NAMES.findall(text)}
    return not names <= functions_of(session) and calls_user(session, parse_expression(text)) if names else False


def with_calls(rows: Frame, items: Sequence[str]) -> tuple[Frame, list[str]]:
    """Return the rows with the values of the calls in some items of a select list, and the items over these.

    The items are the same if there is no call. Raises ``Uncomputed``, also if an argument fails.
    """
    named = {item: named_item(item) for item in items if "(" in item and not rows.translates(item)}
    calls = _Calls.of(rows, [text for name, text in named.values() if name])
    if not calls.roots:
        return rows, [*items]
    wide, listed = calls.computed(rows), list[str]()
    for item in items:
        name, text = named.get(item, ("", ""))
        called = [f"{calls.text(text)} AS {quoted(name)}"] if text in calls.roots else [item]
        listed += map(quoted, rows.columns) if item == "*" else called
    return wide, listed


def tried_with_calls(rows: Frame, texts: Mapping[str, str]) -> Frame:
    """Return the same as `tried`, for expressions that may call functions of the user.

    A call with an argument that cannot be computed fails, if it is not in a branch that is skipped.
    """
    rows.share()
    calls = _Calls.of(rows, texts.values())
    if not calls.roots:
        return tried(rows, texts)
    wide, alone = calls.tried(rows), calls.alone()
    others = {name: text for name, text in texts.items() if text not in alone}
    if others:
        wide = tried(wide, {name: calls.text(text) if text in calls.roots else text for name, text in others.items()})
    columns = (f"{quoted(alone.get(text, name))} AS {quoted(name)}" for name, text in texts.items())
    return wide.valued([*map(quoted, rows.columns), *columns])


@dataclass
class _Calls:
    """The calls in some texts; ``roots``: those that have some, each below a node that can be kept."""

    builtin: frozenset[str]
    roots: dict[str, exp.Paren]
    number: int = 0

    @classmethod
    def of(cls, rows: Frame, texts: Iterable[str]) -> _Calls:
        """Return the calls of some texts over rows."""
        texts = [text for text in dict.fromkeys(texts) if "(" in text and not rows.translates(text)]
        calls = cls(functions_of(rows.sparkSession) if texts else frozenset(), {})
        for text in texts:
            root = exp.paren(parse_expression(text), copy=False)
            if any(calls._ready(root)):
                calls.roots[text] = root
        return calls

    def text(self, text: str) -> str:
        """Return a text with columns in place of its calls."""
        return to_stored(self.roots[text].this)

    def alone(self) -> dict[str, str]:
        """Return the texts that are a call, with its column."""
        columns = {text: root.this.meta.get(CALLED) for text, root in self.roots.items()}
        return {text: column for text, column in columns.items() if column is not None}

    def computed(self, rows: Frame) -> Frame:
        """Return the rows with the values of all calls, which they remember; raises ``Uncomputed``."""
        rows.count()  # now, because the values are in the order of the rows
        known = rows.called
        while ready := self._named():
            unknown = {spelled: nodes for spelled, nodes in ready.items() if spelled not in known}
            given = self._arguments(unknown)
            if given:
                rows = rows.valued(["*", *(f"{text} AS {name}" for text, name in given.items())])
            self._stand_in(unknown, given)
            parts = {spelled: self._part(rows, nodes[0]) for spelled, nodes in unknown.items()}
            if parts:
                known |= zip(parts, answered(rows.sparkSession, dict.fromkeys(parts.values(), rows)), strict=True)
            for spelled, nodes in ready.items():
                name = self._next(CALLED)
                rows = rows.with_column(name, *known[spelled])
                for node in nodes:
                    node.replace(exp.column(exp.to_identifier(name, quoted=True)))
            known = {}  # of rows with other columns
        return rows

    def tried(self, rows: Frame) -> Frame:
        """Return the rows with a struct for each call: of its value, or NULL if it fails, or an argument does."""
        while ready := self._named():
            given = self._arguments(ready)
            rows, good = _tried_arguments(rows, given)
            names = {spelled: self._names_in(nodes[0], given) for spelled, nodes in ready.items()}
            self._stand_in(ready, given)
            parts: dict[Part, Frame] = {}
            every, masks = np.ones(rows.count(), np.bool_), dict[str, Any]()
            of: dict[str, Part] = {}
            for spelled, nodes in ready.items():
                masks[spelled] = reduce(np.logical_and, (good[name] for name in names[spelled]), every)
                of[spelled] = replace(self._part(rows, nodes[0]), tries=True)
                whole = bool(masks[spelled].all())
                parts.setdefault(of[spelled], rows if whole else rows.chosen(pa.array(masks[spelled])))
            values = dict(zip(parts, answered(rows.sparkSession, parts), strict=True))
            for spelled, nodes in ready.items():
                name, mask, (kind, array) = self._next(CALLED), masks[spelled], values[of[spelled]]
                places = pa.array(np.cumsum(mask) - 1, mask=~mask)
                rows = rows.with_column(name, struct_text({TRIED_VALUE: kind}), array.take(places))
                for node in nodes:
                    text = f"if({quoted(name)} IS NULL, {_FAILS}, {quoted(name)}.{TRIED_VALUE})"
                    stands = parse_expression(text)
                    stands.meta[CALLED] = name
                    node.replace(stands)
        return rows

    def _named(self) -> dict[str, list[exp.Anonymous]]:
        """Return the calls that can be computed now, by their text."""
        ready: dict[str, list[exp.Anonymous]] = {}
        for root in self.roots.values():
            for call in self._ready(root):
                ready.setdefault(to_stored(call), []).append(call)
        return ready

    def _ready(self, root: exp.Expr) -> Iterator[exp.Anonymous]:
        """Yield the calls whose arguments contain no others, or are such calls themselves."""
        inside: set[int] = set()
        for call in root.find_all(exp.Anonymous):  # one around others comes first
            if id(call) in inside or not self._can_be_apart(call):
                continue
            yield call
            inside |= {id(below) for below in call.find_all(exp.Anonymous)}

    def _can_be_apart(self, call: exp.Expr) -> bool:
        """Return True for a call of the user's that is a function of the row, as all calls in its arguments are.

        Spark allows no function of Python in a lambda.
        """
        if not self._is_users(call) or call.find(*OTHER_ROWS) or call.find_ancestor(exp.Lambda):
            return False
        return all(not self._users_in(value) or self._can_be_apart(value) for value in map(_value, call.expressions))

    def _is_users(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Anonymous) and node.name.lower() not in self.builtin

    def _users_in(self, node: exp.Expr) -> bool:
        return any(self._is_users(part) for part in node.find_all(exp.Anonymous))

    def _given(self, call: exp.Expr) -> Iterable[exp.Expr]:
        """Yield the arguments that have to be columns."""
        for value in map(_value, call.expressions):
            if self._is_users(value):
                yield from self._given(value)
            elif not isinstance(value, exp.Column) and value.find(exp.Column):
                yield value

    def _arguments(self, ready: Mapping[str, Sequence[exp.Anonymous]]) -> dict[str, str]:
        """Return the names of the columns for arguments, by their text."""
        given: dict[str, str] = {}
        for nodes in ready.values():
            for value in self._given(nodes[0]):
                if (text := to_stored(value)) not in given:
                    given[text] = self._next(ARGUMENTS)
        return given

    def _names_in(self, call: exp.Expr, given: Mapping[str, str]) -> list[str]:
        return [given[to_stored(value)] for value in self._given(call)]

    def _stand_in(self, ready: Mapping[str, Sequence[exp.Anonymous]], given: Mapping[str, str]) -> None:
        """Put the columns of arguments in their place."""
        for nodes in ready.values():
            for node in nodes:
                for value in [*self._given(node)]:
                    value.replace(exp.column(exp.to_identifier(given[to_stored(value)], quoted=True)))

    @staticmethod
    def _part(rows: Frame, call: exp.Expr) -> Part:
        return part_of(rows.sparkSession, f"{to_stored(call)} AS `v`", rows.fields)[1]

    def _next(self, name: str) -> str:
        self.number += 1
        return f"{name}{self.number}"


def _value(argument: exp.Expr) -> exp.Expr:
    """Return the value of an argument, which may have a name."""
    value: exp.Expr = argument.expression if isinstance(argument, exp.Kwarg | exp.PropertyEQ) else argument
    return value


def _tried_arguments(rows: Frame, given: Mapping[str, str]) -> tuple[Frame, dict[str, Any]]:
    """Return the rows with arguments as columns, NULL if one fails; and by name, which can be computed."""
    if not given:
        return rows, {}
    names = rows.columns
    attempts = tried(rows, {name: text for text, name in given.items()})
    good = {name: np.asarray(pc.is_valid(attempts.column(name).combine_chunks())) for name in given.values()}
    values = (f"{quoted(name)}.{TRIED_VALUE} AS {quoted(name)}" for name in given.values())
    return attempts.valued([*map(quoted, names), *values]), good
