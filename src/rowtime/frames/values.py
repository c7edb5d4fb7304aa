"""Values of expressions: SQL of DuckDB with the value's type in Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from zlib import crc32

from sqlglot import exp

from rowtime.frames.kinds import DECIMAL, PLAIN, WHOLE, decimal, sql_type
from rowtime.frames.words import Untranslated, in_text

T = TypeVar("T")
TEXTS: Final = 4096  # that a scope remembers

DIGITS: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}  # as in Spark
WIDTH: Final = {name: n for n, name in enumerate(WHOLE)}
_COLUMN: Final = re.compile(r"(?:[lr]\.)?\w+", re.ASCII)
NUMBER: Final = re.compile(r"-?\d+")
_DOUBLE_DIGITS: Final = 15  # each such number is a DOUBLE
_EXACT_DIGITS: Final = 34  # of a decimal that Java negates
_MIN_BIGINT: Final = -(2**63)


USUAL: Final = frozenset({"this", "expression", "expressions"})
READS: Final[Mapping[type, frozenset[str]]] = {
    exp.ArrayAgg: frozenset({"this", "nulls_excluded"}),
    exp.ArraySlice: frozenset({"this", "start", "end", "is_length"}),
    exp.ArraySort: frozenset({"this", "asc", "nulls_first"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Bracket: frozenset({"this", "expressions", "offset"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to", "safe"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Concat: USUAL | {"safe"},  # Spark's functions do this by default
    exp.ConcatWs: USUAL | {"safe", "coalesce", "flatten"},
    exp.Count: USUAL | {"big_int"},
    exp.DPipe: USUAL | {"safe"},
    exp.Div: USUAL | {"safe"},
    exp.Greatest: USUAL | {"ignore_nulls"},
    exp.Least: USUAL | {"ignore_nulls"},
    exp.GenerateSeries: frozenset({"start", "end", "step"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Interval: frozenset({"this", "unit"}),
    exp.Lag: frozenset({"this", "offset", "default"}),
    exp.Lead: frozenset({"this", "offset", "default"}),
    exp.Like: USUAL | {"negate"},
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Mode: frozenset({"this", "deterministic"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Pad: USUAL | {"fill_pattern", "is_left"},
    exp.RegexpExtract: USUAL | {"group", "null_if_pos_overflow"},
    exp.RegexpReplace: USUAL | {"replacement"},
    exp.Round: frozenset({"this", "decimals"}),
    exp.RowNumber: frozenset(),
    exp.DenseRank: frozenset(),
    exp.Replace: USUAL | {"replacement"},
    exp.SHA2: frozenset({"this", "length"}),
    exp.SplitPart: frozenset({"this", "delimiter", "part_index"}),
    exp.StrPosition: frozenset({"this", "substr"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.TimestampDiff: USUAL | {"unit"},
    exp.TimestampTrunc: frozenset({"this", "unit"}),
    exp.Translate: frozenset({"this", "from_", "to"}),
    exp.Trim: frozenset({"this", "position"}),
    exp.TsOrDsAdd: USUAL | {"unit"},
    exp.VarMap: frozenset({"keys", "values"}),
    exp.Window: frozenset({"this", "over", "partition_by", "order", "spec"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
}
"""The parts of a node that its rule reads, if these are not the `USUAL` ones."""
_CALLS: Final = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe, exp.Concat, exp.Replace, exp.Contains,
    exp.StartsWith, exp.EndsWith, exp.ConcatWs, exp.StrPosition, exp.DateDiff, exp.TimestampDiff, exp.TsOrDsAdd,
    exp.Bracket, exp.ArrayContains,
)  # fmt: skip
"""What is NULL beside a NULL, but not before the other parts are computed, which may fail."""
IN_ORDER: Final = ("binary", "interval ", "time(")
"""How types begin whose values DuckDB holds in the order of Spark, besides `kinds.PLAIN`."""
_MAYBE_NULL: Final = (exp.Null, exp.Case, exp.If, exp.Nullif)


@dataclass(frozen=True)
class Value:
    """SQL of DuckDB, and the type of its value in Spark."""

    sql: str
    type: str

    @property
    def whole(self) -> bool:
        """Return True for integers."""
        return self.type in WHOLE


@dataclass(frozen=True)
class Scope:
    """The columns by their names in lower case; ``rules`` translate expressions over them, except those in ``left``."""

    columns: Mapping[str, Value]
    rules: Mapping[type | str, Rule] = field(repr=False)
    left: frozenset[str] = frozenset()
    _known: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False, compare=False)

    def remembered(self, key: tuple[str, str], make: Callable[[], T]) -> T:
        """Return what was made for a kind of text and a text, or make it."""
        value: T | None = self._known.get(key)
        if value is None:
            if len(self._known) > TEXTS:
                self._known.clear()
            value = self._known[key] = make()
        return value

    def value(self, node: exp.Expr) -> Value:
        """Translate one expression; raises ``Untranslated``."""
        rule = self.rules.get(node.name.lower() if isinstance(node, exp.Anonymous) else type(node))
        if rule is None:
            raise Untranslated(f"{type(node).__name__} {node.name}")
        only(node, READS.get(type(node), USUAL))
        if isinstance(node, _CALLS) and any(map(_is_null_constant, node.iter_expressions())):
            raise Untranslated("NULL")  # DuckDB computes nothing else beside it
        if self.left and mark_of(node) in self.left:
            raise Untranslated("a value that only Spark knows")
        try:
            value = rule(node, self)
            return Value(value.sql.replace(_HERE, in_text(_message(node))), value.type) if _HERE in value.sql else value
        except (
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
        ) as odd:  # a tree of a form that no rule knows, or none that can be written (`X''`)
            raise Untranslated(type(node).__name__) from odd

    def carried(self, node: exp.Expr) -> Value:
        """Translate a value that nothing compares: a column may have any type."""
        is_whole = isinstance(node, exp.Column) and not node.args.get("table")
        column = self.columns.get(node.name.lower()) if is_whole else None
        return self.value(node) if column is None else column

    def boolean(self, node: exp.Expr) -> str:
        """Translate a condition; raises ``Untranslated``."""
        value = self.value(node)
        if value.type != "boolean":
            raise Untranslated(value.type)
        return value.sql


_HERE: Final = "\ue000left\ue001"
"""Stands for the mark of an expression, in the translation of its own node."""
Rule = Callable[[exp.Expr, Scope], Value]
"""Translates one kind of node."""


def _is_null_constant(node: exp.Expr) -> bool:
    return node.find(*_MAYBE_NULL) is not None and node.find(exp.Column) is None


def only(node: exp.Expr, parts: Collection[str]) -> None:
    """Refuse a node with parts that its rule does not read: a step, a zone, a default."""
    more = [name for name, part in node.args.items() if part and name not in parts]
    if more:
        raise Untranslated(f"{', '.join(more)} of {type(node).__name__}")


def cast(of: Value, kind: str) -> Value:
    """Return a value in another type in which it is the same number."""
    if of.type == kind:
        return of
    if of.type == "void" or _widens(of.type, kind):
        # DuckDB converts a long decimal in two steps, each of which rounds; its text is rounded once, as in Spark.
        long = kind == "double" and DECIMAL.fullmatch(of.type) is not None and size_of(of.type)[0] > _DOUBLE_DIGITS
        return Value(f"CAST({f'CAST({of.sql} AS VARCHAR)' if long else of.sql} AS {sql_type(kind)})", kind)
    raise Untranslated(f"{of.type} as {kind}")


def size_of(kind: str) -> tuple[int, int]:
    """Return the digits of an exact number, and those behind the point; raises ``Untranslated`` for another type."""
    if kind in DIGITS:
        return DIGITS[kind], 0
    match = DECIMAL.fullmatch(kind)
    if match is None:
        raise Untranslated(kind)
    return int(match[1]), int(match[2])


def _widens(kind: str, wide: str) -> bool:
    """Return True if a number has the same value in another type, or fails, or is the DOUBLE that it is in Spark."""
    if kind in WHOLE and wide in (*WHOLE, "double"):
        return True
    if kind == "double":
        return wide == kind
    digits, scale = size_of(kind)
    if wide == "double":
        return True
    more, places = size_of(wide)
    return more - places >= digits - scale and places >= scale


def wider(one: str, other: str) -> str:
    """Return the common type of two values."""
    if other in (one, "void"):
        return one
    if one == "void":
        return other
    if one in WHOLE and other in WHOLE:
        return max(one, other, key=WIDTH.__getitem__)
    if "double" in (one, other) and _widens(one, "double") and _widens(other, "double"):
        return "double"
    if DECIMAL.fullmatch(one) or DECIMAL.fullmatch(other):
        (digits, scale), (more, places) = size_of(one), size_of(other)
        return decimal(max(digits - scale, more - places) + max(scale, places), max(scale, places))
    raise Untranslated(f"{one} and {other}")


def together(values: Sequence[Value]) -> tuple[list[Value], str]:
    """Return values in their common type."""
    kind = "void"
    for value in values:
        kind = wider(kind, value.type)
    if kind == "void":
        raise Untranslated(kind)
    return [cast(value, kind) for value in values], kind


def comparable(values: Sequence[Value]) -> list[Value]:
    """Return values that are compared in a common type."""
    aligned, kind = together(values)
    if not kind.startswith(IN_ORDER):
        plain(Value("", kind))
    return aligned


def plain(of: Value) -> Value:
    """Check that a value has an order."""
    if of.type not in PLAIN and not DECIMAL.fullmatch(of.type):
        raise Untranslated(of.type)
    return of


def signed(of: Value) -> Value:
    """Check that a value is a number whose sign Spark changes without rounding it."""
    if of.type != "double" and size_of(of.type)[0] > _EXACT_DIGITS:
        raise Untranslated(of.type)
    return of


def holds_or_fails(test: str) -> str:
    """Return a DuckDB condition that fails, by a division by zero, if it is false."""
    return f"1 // CAST({test} AS INTEGER) = 1"


def holds_or_leaves(test: str) -> str:
    """Return a DuckDB condition that fails if it is false: only Spark knows the value (`queries.Left`)."""
    return f"CAST(CASE {test} WHEN true THEN 'true' WHEN false THEN {_HERE} END AS BOOLEAN)"


def mark_of(node: exp.Expr) -> str:
    """Return what stands for an expression in the message of an error."""
    return f"{crc32(node.sql().encode()):08x}"


def _message(node: exp.Expr) -> str:
    return f"left to Spark {mark_of(node)}: {node.sql()}"


def once(sql: str, use: Callable[[str], str]) -> str:
    """Return SQL that uses a value several times: a column as it is, anything else by a name."""
    if _COLUMN.fullmatch(sql):
        return use(sql)
    taken, n = f"{sql} {use('')}", 0
    while f"v{n}" in taken:
        n += 1
    return f"list_transform([{sql}], lambda v{n}: {use(f'v{n}')})[1]"


def number(n: int, kind: str | None = None) -> Value:
    """Return a whole number, in Spark's smallest type or in a given one."""
    kind = kind or ("int" if -(2**31) <= n < 2**31 else "bigint")
    if not _MIN_BIGINT < n < 2**63:
        raise Untranslated(str(n))
    return Value(f"CAST({n} AS {WHOLE[kind]})", kind)


def constant(node: exp.Expr) -> int:
    """Return a literal whole number; ``5L`` is a cast."""
    if isinstance(node, exp.Neg):
        return -constant(node.this)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal | exp.Neg):
        return constant(node.this)
    if isinstance(node, exp.Literal) and not node.is_string and NUMBER.fullmatch(node.name):
        return int(node.name)
    raise Untranslated(node.sql())
