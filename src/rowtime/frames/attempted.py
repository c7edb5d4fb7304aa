"""Expressions that Spark computes row by row: one that fails is NULL, and does not end the job.

In ANSI mode an expression that cannot be computed (a division by zero, a text that is not a number, a sum that
overflows its type) ends the whole job. Spark's own `TryEval` turns the failure of one row into NULL. SQL has no name
for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from rowtime.core.columns import ENTRY
from rowtime.sql.generate import to_stored
from rowtime.sql.script import parse_expression

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

TRIED_VALUE: Final = "c0"
"""The field of a struct with the value of the first expression."""
_ALWAYS = "exists(array(true), x -> x)"
"""Is true. Spark computes it for each row, because it takes no function of this kind for a constant."""


def attempted(spark: SparkSession, expressions: Sequence[str]) -> Column:
    """Return a struct of the values of Spark SQL ``expressions``; NULL if one fails, independent of the others.

    Spark computes what stands twice in a query (also the operand of BETWEEN) before the rest, outside of an attempt. It
    leaves what stands in a branch of an IF where it is.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark
    from pyspark.sql.classic.column import Column  # noqa: PLC0415 - `check` does without Spark

    inside = ", ".join(f"'c{n}', {guarded(text)}" for n, text in enumerate(expressions))
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to a Spark expression
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
    tried = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(parser.parseExpression(f"named_struct({inside})"))
    value = Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(tried))
    return F.when(F.expr(_ALWAYS), value).otherwise(None)


_BUILDS = re.compile(
    r"map(?:_from_arrays|_from_entries|_concat)?\s*\(|transform_keys\s*\(|str_to_map\s*\(", re.IGNORECASE
)


def guarded(text: str) -> str:
    """Return Spark SQL that fails before a map gets a key that is NULL or comes twice.

    Spark's function that builds a map keeps the keys before such a key: for all rows that follow, it is spoilt.
    """
    if not _BUILDS.search(text):
        return text
    root = exp.paren(parse_expression(text), copy=False)
    for call in reversed([*root.find_all(exp.Anonymous)]):  # a nested call comes after the one around it
        name = call.name.lower()
        keys = _keys(name, [to_stored(given) for given in call.expressions], call)
        if keys and not (name == "map" and (isinstance(call.parent, exp.Bracket) or _has_plain_keys(call))):
            good = f"size(array_distinct({keys})) = size({keys}) AND NOT exists({keys}, {ENTRY} -> {ENTRY} IS NULL)"
            fails = "raise_error('a key of a map is NULL or comes twice')"
            tested = f"CASE WHEN {keys} IS NULL OR {good} THEN {to_stored(call)} ELSE {fails} END"
            call.replace(parse_expression(tested))
    return to_stored(root.this)


def _has_plain_keys(call: exp.Anonymous) -> bool:
    """Return True if the keys of a map are different literal texts, as in options, which have to be a map as it is.

    In brackets, Spark only compares the keys.
    """
    keys = call.expressions[::2]
    plain = all(isinstance(key, exp.Literal) and key.is_string for key in keys)
    return plain and len({key.name for key in keys}) == len(keys)


def _keys(name: str, given: Sequence[str], call: exp.Anonymous) -> str:
    """Return the keys of a map that a call builds, as an array; empty for another call."""
    keys = ""
    if name == "map" and given:
        keys = f"array({', '.join(given[::2])})"
    elif name == "map_from_arrays":
        keys = given[0]
    elif name == "map_concat" and given:
        keys = f"flatten(array({', '.join(f'map_keys({one})' for one in given)}))"
    elif name == "map_from_entries":  # the first field may have any name; a map of one entry has its key
        key = f"map_keys(map_from_entries(array({ENTRY})))[0]"
        keys = f"IF(exists({given[0]}, {ENTRY} -> {ENTRY} IS NULL), NULL, transform({given[0]}, {ENTRY} -> {key}))"
    elif name == "str_to_map":
        pairs, values = (*given[1:], *("','", "':'")[len(given) - 1 :])
        keys = f"transform(split({given[0]}, {pairs}), {ENTRY} -> split({ENTRY}, {values}, 2)[0])"
    elif name == "transform_keys" and isinstance(call.expressions[1], exp.Lambda):
        keys = f"transform(map_entries({given[0]}), {ENTRY} -> {_over_entry(call.expressions[1])})"
    return keys


def _over_entry(function: exp.Lambda) -> str:
    """Return a function of key and value as an expression over `ENTRY`."""
    fields = dict(zip((name.name for name in function.expressions), ("key", "value"), strict=False))

    def instead(node: exp.Expr) -> exp.Expr:
        of_name = isinstance(node.parent, exp.Column) or (isinstance(node.parent, exp.Dot) and node.arg_key != "this")
        named = isinstance(node, exp.Identifier) and not of_name and node.name in fields
        return parse_expression(f"{ENTRY}.{fields[node.name]}") if named else node

    return to_stored(exp.paren(function.this.copy(), copy=False).transform(instead))
