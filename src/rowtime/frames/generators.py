"""Functions that make several rows of one: DuckDB makes a row of each element of an array.

The array is computed like any other value, by DuckDB or by Spark. Several such functions in one select list give all
combinations, as in Spark: the last one varies fastest. JSON_TUPLE has one row for each, so it is a value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rowtime.frames.kinds import element_of, fields_of
from rowtime.frames.translated import Item
from rowtime.frames.values import Value
from rowtime.frames.words import Untranslated, in_text
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame

_CALL: Final = re.compile(
    r"\s*(?P<name>explode|explode_outer|inline|inline_outer|stack)\s*\((?P<inside>.*)\)\s+AS\s+(?P<alias>`(?:[^`]|``)+`|\w+)\s*",
    re.IGNORECASE | re.DOTALL,
)
_SIGN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|[(),\[\]]", re.DOTALL)


@dataclass(frozen=True)
class Generator:
    """One item of a select list that gives a row for each element of an array.

    ``array``: the array in Spark SQL; ``outer``: whether there is a row of NULL without an element; ``takes_apart``:
    whether the elements are structs of a single field, which is the value.
    """

    name: str
    array: str
    outer: bool = False
    takes_apart: bool = False

    @property
    def item(self) -> str:
        """Return the array as an item of a select list."""
        return f"{self.array} AS {quoted(self.name)}"

    @property
    def is_plain(self) -> bool:
        """Return True if the SQL of the array stands once in that of the elements."""
        return not self.outer and not self.takes_apart

    def over(self, array: Value) -> Value:
        """Return the elements of the array; raises ``Untranslated`` for another type."""
        element, sql = element_of(array.type), array.sql
        if self.outer:
            sql = f"CASE WHEN len({sql}) > 0 THEN {sql} ELSE [NULL] END"
        if not self.takes_apart:
            return Value(f"unnest({sql})", element)
        fields = fields_of(element)
        if len(fields) != 1:
            raise Untranslated(element)
        [(name, kind)] = fields.items()
        return Value(f"struct_extract(unnest({sql}), {in_text(name)})", kind)


@lru_cache(maxsize=4096)
def generator_of(text: str) -> Generator | None:
    """Return the generator that an item of a select list calls; ``None`` for another item."""
    match = _CALL.fullmatch(text)
    if match is None:
        return None
    name, inside, alias = match["name"].lower(), match["inside"], match["alias"]
    alias = alias[1:-1].replace("``", "`") if alias.startswith("`") else alias
    arguments = _arguments(inside)
    if name == "stack":
        return Generator(alias, _stacked(*arguments)) if len(arguments) > 1 else None
    if len(arguments) != 1:
        return None
    return Generator(alias, inside, name.endswith("_outer"), name.startswith("inline"))


def _arguments(inside: str) -> list[str]:
    """Return the arguments of a call by what its parentheses contain; none if they close before its end."""
    parts, depth, begin = list[str](), 0, 0
    for sign in _SIGN.finditer(inside):
        depth += (sign[0] in "([") - (sign[0] in ")]")
        if depth < 0:  # `explode(a) + (b)`
            return []
        if sign[0] == "," and not depth:
            parts.append(inside[begin : sign.start()].strip())
            begin = sign.end()
    return [*parts, inside[begin:].strip()]


def _stacked(count: str, *values: str) -> str:
    """Return the array of the values of STACK with one column; rows without a value have NULL."""
    array = f"array({', '.join(values)})"
    if count == str(len(values)):
        return array
    return f"slice(concat({array}, array_repeat(NULL, {count})), 1, {count})"


def with_rows(rows: Frame, texts: Sequence[str]) -> Frame:
    """Return a select list with generators; raises ``Untranslated`` and ``Uncomputed``."""
    places: dict[int, Generator] = {}
    given: list[str] = []
    at = 0
    for text in texts:
        call = generator_of(text)
        if call is not None:
            places[at] = call
        given.append(text if call is None else call.item)
        at += len(rows.fields) if text == "*" else 1
    rows = rows.valued(given)
    for place, call in places.items():
        items = [Item(name, Value(f"c{n}", kind)) for n, (name, kind) in enumerate(rows.fields)]
        items[place] = Item(call.name, call.over(items[place].value))
        rows = rows._selected(items)  # noqa: SLF001 - one of ours
    return rows
