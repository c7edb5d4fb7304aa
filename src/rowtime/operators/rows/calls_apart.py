"""Calls that Spark computes for all rows before the expressions around them: Python functions.

Their arguments are computed there too, so an attempt (`attempt`) of ``f(1 / v)`` does not catch a failure in them. So
such a call is computed separately, for the rows whose arguments can be computed; for the others it fails in its
attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.core.columns import ARGUMENTS, CALLED, UNCALLED
from rowtime.frames.catalyst import functions_of
from rowtime.sql.generate import to_stored
from rowtime.sql.script import parse_expression

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Attempted = Callable[["SparkSession", list[str]], "Column"]


def calls_python(spark: SparkSession, tree: exp.Expr) -> bool:
    """Return True if an expression calls a function that is not one of Spark's."""
    names = [call.name.lower() for call in tree.find_all(exp.Anonymous)]
    return bool(names) and not functions_of(spark).issuperset(names)


def apart(rows: DataFrame, texts: Iterable[str], attempted: Attempted) -> tuple[DataFrame, dict[str, str]]:
    """Return the rows with a column per call of a user's function that computes its arguments, and texts over these.

    ``texts``: Spark SQL of expressions; those without such calls are not in the result.
    """
    trees = {text: parse_expression(text) for text in texts if "(" in text}
    builtin = functions_of(rows.sparkSession) if trees else frozenset()
    columns: dict[str, exp.Expr] = {}
    rewritten: dict[str, str] = {}
    for text, tree in trees.items():
        root = exp.paren(tree, copy=False)
        calls = [call for call in root.find_all(exp.Anonymous) if call.name.lower() not in builtin]
        for call in reversed(calls):  # a nested call comes after the one around it
            plain = all(isinstance(value, exp.Column | exp.Literal) for value in call.expressions)
            if plain or call.find_ancestor(exp.Lambda):  # a lambda cannot contain a Python function
                continue
            if (spelled := to_stored(call)) not in columns:
                rows, columns[spelled] = _computed(rows, call, len(columns), attempted)
            call.replace(columns[spelled].copy())
            rewritten[text] = to_stored(root.this)
    return rows, rewritten


def _computed(rows: DataFrame, call: exp.Anonymous, number: int, attempted: Attempted) -> tuple[DataFrame, exp.Expr]:
    """Return the rows with the value of a call, and its replacement, which fails if an argument does."""
    tried, value, fails = f"{ARGUMENTS}{number}", f"{CALLED}{number}", f"{UNCALLED}{number}"
    given = rows.withColumn(tried, attempted(rows.sparkSession, [to_stored(argument) for argument in call.expressions]))
    text = f"{call.name}({', '.join(f'{tried}.c{n}' for n in range(len(call.expressions)))})"
    kind = given.selectExpr(text).schema.fields[0].dataType.simpleString()
    good = given.where(f"{tried} IS NOT NULL").selectExpr("*", f"{text} AS {value}", f"false AS {fails}")
    bad = given.where(f"{tried} IS NULL").selectExpr("*", f"CAST(NULL AS {kind}) AS {value}", f"true AS {fails}")
    stands = parse_expression(f"if({fails}, raise_error('an argument fails'), {value})")
    return good.unionByName(bad).drop(tried), stands
