"""Monotonicity: which order an expression over a stream has, with its proof (semantics 6).

There is one rule per kind of node, in the table of `expr.rules`. A node without a rule has no order: unknown is no.
``columns`` gives the facts about each column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from rowtime.core.columns import ARRIVAL
from rowtime.core.errors import Refused
from rowtime.core.time import to_micros
from rowtime.expr.facts import NULL, Fact, Kind, exactly, kind_of
from rowtime.expr.order import Order
from rowtime.expr.proof import Proof
from rowtime.expr.rules import NAMED, RULES
from rowtime.expr.rules.casts import cast
from rowtime.expr.rules.table import Conclusion, Parts, Rule
from rowtime.expr.rules.times import NOT_THE_ROWTIME
from rowtime.sql.intervals import Duration, Months, span_of
from rowtime.sql.nodes import CurrentRowTimestamp, Monotonic

Columns = Mapping[str, Fact]

NON_DETERMINISTIC: frozenset[str] = frozenset({
    "RAND", "RANDN", "RANDOM", "UUID", "SHUFFLE", "SPARK_PARTITION_ID", "MONOTONICALLY_INCREASING_ID",
    "RANDSTR", "UNIFORM", "CLOCK_TIMESTAMP", "REFLECT", "JAVA_METHOD", "TRY_REFLECT", "CURRENT_TIME", "LOCALTIME",
    *(f"KLL_{way}_{kind}" for way in ("SKETCH_AGG", "MERGE_AGG", "SKETCH_MERGE")
      for kind in ("BIGINT", "DOUBLE", "FLOAT")),
})  # fmt: skip
"""Functions whose value is not a function of the rows; queries that use them are refused (semantics 3).

KLL sketches drop values at random as soon as they have more than fit.
"""

OF_SESSION: frozenset[str] = frozenset({
    "COLLATIONS", "CURRENT_CATALOG", "CURRENT_DATABASE", "CURRENT_PATH", "CURRENT_SCHEMA", "CURRENT_USER",
    "INPUT_FILE_BLOCK_LENGTH", "INPUT_FILE_BLOCK_START", "INPUT_FILE_NAME", "PYTHON_WORKER_LOGS", "SESSION_USER",
    "SQL_KEYWORDS", "USER", "VERSION",
})  # fmt: skip
"""Functions of the user, session or file that runs a query: after a restart elsewhere the answer differs."""

_MANY = (exp.AggFunc, exp.Window, exp.Subquery, exp.Query)


def prove(node: exp.Expr, columns: Columns) -> Proof:
    """Return the order of an expression, with the tree of rules that proves it."""
    return _Prover(columns).proof(node)


def order_of(node: exp.Expr, columns: Columns) -> Order:
    """Return the order of a bound expression; ``Order.NONE`` if no rule proves one."""
    return prove(node, columns).order


def number_of(node: exp.Expr) -> Decimal | None:
    """Return the value of a constant number; ``None`` for anything else, and if it cannot be computed here."""
    return prove(node, {}).fact.constant if is_constant(node) else None


def is_constant(node: exp.Expr) -> bool:
    """Return True if there is no column, aggregate, window or non-deterministic call inside."""
    banned = (exp.Column, exp.Star, CurrentRowTimestamp, *_MANY)
    return not any(isinstance(part, banned) or non_deterministic(part) for part in node.walk())


def is_plain(node: exp.Expr) -> bool:
    """Return True if the value depends only on the columns of one row."""
    return not any(isinstance(part, (*_MANY, Monotonic)) or non_deterministic(part) for part in node.walk())


def non_deterministic(node: exp.Expr) -> bool:
    """Return True for a call whose value is not a function of its row."""
    if isinstance(node, exp.CurrentUser | exp.SessionUser):
        return True
    if not isinstance(node, exp.Anonymous):
        return False
    name = node.name.upper()
    return name in NON_DETERMINISTIC or name in OF_SESSION or (name == "AES_ENCRYPT" and _makes_its_own_start(node))


def _makes_its_own_start(call: exp.Anonymous) -> bool:
    """Return True for AES_ENCRYPT with a random initialization vector; ECB needs none."""
    mode = call.expressions[2] if len(call.expressions) > 2 else None  # noqa: PLR2004 - value, key, mode, padding, vector
    given = len(call.expressions) > 4  # noqa: PLR2004 - the same
    return not given and not (isinstance(mode, exp.Literal) and mode.name.upper() == "ECB")


def ruled(rule: Rule, node: exp.Expr, parts: Parts) -> Conclusion:
    """Return the result of a rule; a call with too few arguments gets none, and Spark reports it."""
    try:
        return rule(node, parts)
    except IndexError:
        return Conclusion(Fact(), "the call has too few arguments")


class _Prover:
    """Proves an expression; as `Parts` it proves the parts that a rule asks for, and remembers them."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._used: list[list[Proof]] = [[]]

    def of(self, node: exp.Expr) -> Fact:
        proof = self.proof(node)
        if all(proof.expression != used.expression for used in self._used[-1]):
            self._used[-1].append(proof)
        return proof.fact

    def proof(self, node: exp.Expr) -> Proof:
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            return Proof(node, *self._column(node))
        self._used.append([])
        try:
            fact, rule = self._conclusion(node)
        finally:
            parts = tuple(self._used.pop())
        if is_constant(node) and not non_deterministic(node):
            parts = ()
        return Proof(node, fact, rule, parts)

    def _column(self, node: exp.Column) -> tuple[Fact, str]:
        fact = self._columns.get(node.name)
        if node.name == ARRIVAL:
            return Fact(kind=Kind.TIMESTAMP), NOT_THE_ROWTIME
        if fact is None:
            return Fact(), "nothing is known about the column"
        return fact, "as declared" if fact.order.monotonic else "the column has no known order"

    def _conclusion(self, node: exp.Expr) -> tuple[Fact, str]:
        if is_constant(node):
            return _constant(node, self), "no column in it"
        if non_deterministic(node):
            return Fact(), "it gives another result each time it is called"
        named = NAMED.get(node.name.upper()) if isinstance(node, exp.Anonymous) else None
        rule = named or RULES.get(type(node))
        if rule is None:
            name = node.name.upper() if isinstance(node, exp.Anonymous) else node.key.upper()
            return Fact(), f"{name} has no rule"
        return ruled(rule, node, self)


# -- constants, folded first ------------------------------------------------------------


def _constant(node: exp.Expr, prover: _Prover) -> Fact:
    """Return a constant with its kind and, if it is folded here, its value."""
    node = node.unnest()
    if isinstance(node, exp.Cast):
        return _converted(node, prover)
    leaf = _LEAVES.get(type(node))
    if leaf is not None:
        return leaf(node)
    rule = RULES.get(type(node)) or (NAMED.get(node.name.upper()) if isinstance(node, exp.Anonymous) else None)
    fact = ruled(rule, node, prover)[0] if rule is not None else Fact()
    return replace(fact, order=Order.CONSTANT)


def _literal(node: exp.Literal) -> Fact:
    if node.is_string:
        return Fact(Order.CONSTANT, Kind.TEXT)
    try:
        value = Decimal(node.name)
    except InvalidOperation:
        return Fact(Order.CONSTANT)
    kind = Kind.FLOAT if "E" in node.name.upper() else Kind.DECIMAL if "." in node.name else Kind.INTEGER
    return exactly(value, kind)


def _interval(node: exp.Interval) -> Fact:
    try:
        span = span_of(node)
    except ValueError:
        return Fact(Order.CONSTANT)
    if isinstance(span, Duration):
        return exactly(Decimal(span.micros), Kind.DAYS)
    return exactly(Decimal(span.count), Kind.MONTHS) if isinstance(span, Months) else Fact(Order.CONSTANT)


def _converted(node: exp.Cast, prover: _Prover) -> Fact:
    inner, kind = prover.of(node.this), kind_of(node.args["to"].sql("spark"))
    if inner.null or inner.kind is Kind.TEXT:
        at = _INSTANT.fullmatch(node.this.name) if isinstance(node.this, exp.Literal) and kind.time else None
        return Fact(Order.CONSTANT, kind, null=inner.null) if at is None else _at(at[0], kind)
    converted = cast(inner, node.args["to"].sql("spark"), fails=True).fact
    return (
        Fact(Order.CONSTANT, kind, converted.low, converted.high, converted.zero)
        if converted.kind is kind
        else Fact(Order.CONSTANT, kind)
    )


def _at(text: str, kind: Kind) -> Fact:
    """Return the fact of a literal date or timestamp in UTC."""
    try:
        return exactly(Decimal(to_micros(text)), kind)
    except Refused:
        return Fact(Order.CONSTANT, kind)


_INSTANT = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?")
"""Texts that Spark and `to_micros` read alike."""
_LEAVES: dict[type[exp.Expr], Callable[[Any], Fact]] = {
    exp.Null: lambda _node: NULL,
    exp.Boolean: lambda _node: Fact(Order.CONSTANT, Kind.BOOLEAN),
    exp.Pi: lambda _node: exactly(Decimal("3.141592653589793"), Kind.FLOAT),
    exp.CurrentDate: lambda _node: Fact(Order.CONSTANT, Kind.DATE),
    exp.CurrentTimestamp: lambda _node: Fact(Order.CONSTANT, Kind.TIMESTAMP),
    exp.Literal: _literal,
    exp.Interval: _interval,
}
