"""Generators: functions that make several rows of one, as EXPLODE does."""

from __future__ import annotations

from sqlglot import exp

_NAMES = frozenset({
    "COLLATIONS", "EXPLODE", "EXPLODE_OUTER", "INLINE", "INLINE_OUTER", "JSON_TUPLE", "POSEXPLODE", "POSEXPLODE_OUTER",
    "SQL_KEYWORDS", "STACK", "VARIANT_EXPLODE", "VARIANT_EXPLODE_OUTER",
})  # fmt: skip


def generator(node: exp.Expr) -> exp.Expr | None:
    """The call of a generator in an expression, if there is one."""
    return next((part for part in node.walk() if _generates(part)), None)


def _generates(part: exp.Expr) -> bool:
    return isinstance(part, exp.Anonymous) and part.name.upper() in _NAMES
