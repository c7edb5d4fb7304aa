"""What a tick would have to keep and cannot: intervals of years and months, and NULL without a type.

Spark does not pass such intervals to other programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sqlglot import exp

from rowtime.expr.facts import Fact, Kind
from rowtime.expr.many_rows import AGGREGATES
from rowtime.expr.monotonicity import prove
from rowtime.expr.readable import readable
from rowtime.plan.bind.struct_fields import Fault

MONTHS: Final = "an interval of years and months, which cannot be stored"
MONTHS_HINT: Final = "Add it to a date, or count the months as a number."
UNTYPED: Final = "of the type VOID, which cannot be stored"
UNTYPED_HINT: Final = "Say a type: CAST(NULL AS INT), or CAST(ARRAY() AS ARRAY<INT>)."
_CHOICES: Final = (
    "ARRAY", "COALESCE", "GREATEST", "IF", "IFNULL", "LEAST", "MAP", "NAMED_STRUCT", "NULLIF", "NVL", "STRUCT",
)  # fmt: skip
_WITH_PARTS: Final = (exp.Mul, exp.Neg, exp.Distinct, exp.If, exp.Coalesce, exp.Array, exp.Struct)


def of_months(node: exp.Expr, columns: Mapping[str, Fact]) -> bool:
    """Return True for an expression over these columns that is certainly an interval of months, or contains one."""
    inner = node.unnest()
    if isinstance(inner, exp.Filter | exp.IgnoreNulls):
        return of_months(inner.this, columns)
    if prove(inner, columns).fact.kind is Kind.MONTHS:
        return True
    if isinstance(inner, exp.Case):
        parts = [*(branch.args["true"] for branch in inner.args["ifs"]), inner.args.get("default")]
    elif isinstance(inner, _WITH_PARTS) or _named(inner, *_CHOICES):
        parts = [*inner.iter_expressions()]
    else:
        return _keeps(inner, columns)
    return any(of_months(part, columns) for part in parts if part is not None)


def kept_months(bound: exp.Expr, columns: Mapping[str, Fact]) -> Iterator[Fault]:
    """Yield the aggregates of such intervals in an expression over these columns."""
    for call in bound.walk():
        if _keeps(call, columns) and not call.find_ancestor(exp.Window):
            what = f"{readable(call)} keeps {MONTHS}"
            yield Fault(call, what, MONTHS_HINT, "R189")
            return


def _keeps(call: exp.Expr, columns: Mapping[str, Fact]) -> bool:
    aggregate = isinstance(call, exp.AggFunc) or _named(call, *AGGREGATES)
    if not aggregate or (isinstance(call, exp.Count) and not isinstance(call.this, exp.Distinct)):
        return False
    return any(of_months(argument, columns) for argument in call.iter_expressions())


def _named(node: exp.Expr, *names: str) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in names
