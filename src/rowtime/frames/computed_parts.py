"""Which parts of an expression are computed, and may fail, beside a NULL: in DuckDB as in Spark.

DuckDB computes nothing behind a part that is NULL for all rows at hand, so other rows would decide what fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from rowtime.frames.values import Value

_SAFE: Final = frozenset(
    {exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Dot, exp.And, exp.Or, exp.Not}
    | {exp.Is, exp.In, exp.Between, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.UnixMicros}
    | {
        exp.Coalesce,
        exp.Case,
        exp.If,
        exp.Nullif,
        exp.Length,
        exp.Trim,
        exp.Substring,
        exp.Replace,
        exp.Concat,
        exp.DPipe,
    }
    | {exp.ConcatWs, exp.Left, exp.Right, exp.Pad, exp.StrPosition, exp.Upper, exp.Lower, exp.SHA, exp.SHA2, exp.MD5}
    | {exp.RegexpLike, exp.RegexpExtract, exp.RegexpReplace, exp.SplitPart, exp.RegexpSplit, exp.Sqrt, exp.Sign}
)
"""Nodes that never fail, for values that `comparable` accepts."""


def is_safe(node: exp.Expr) -> bool:
    """Return True if an expression never fails."""
    return _SAFE.issuperset(map(type, node.walk()))


def after(divisor: exp.Expr, sql: str, quotient: str) -> str:
    """Return a quotient whose divisor is computed first: Spark computes no dividend if it is NULL."""
    return quotient if is_safe(divisor) else f"CASE WHEN ({sql}) IS NOT NULL THEN {quotient} END"


def together_computed(parts: Sequence[exp.Expr], texts: Sequence[str], sign: str) -> str:
    """Return texts between which a sign stands, of which Spark computes each."""
    whole = f"({sign.join(texts)})"
    later = [text for part, text in zip(parts[1:], texts[1:], strict=True) if not is_safe(part)]
    if not later:
        return whole
    computed = ", ".join(f"v{n} := {text}" for n, text in enumerate(later))
    return f"CASE WHEN struct_pack({computed}) IS NOT NULL THEN {whole} END"


def all_hold(texts: Sequence[str], parts: Sequence[exp.Expr]) -> Value:
    """Return whether all hold: DuckDB stops at NULL too, so one before a part that may fail comes again at the end."""
    last = max((n for n, part in enumerate(parts) if not is_safe(part)), default=0)
    first = [f"({text} OR ({text} IS NULL))" for text in texts[:last]]
    return Value(f"({' AND '.join([*first, *texts[last:], *texts[:last]])})", "boolean")
