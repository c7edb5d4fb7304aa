"""`check`: the problems of a script, and the order of an expression; without Spark."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from rowtime.core.columns import ROWTIME
from rowtime.core.errors import Problems
from rowtime.expr.facts import ROWTIME_FACT, Fact
from rowtime.expr.monotonicity import prove
from rowtime.expr.proof import Proof
from rowtime.plan.bind.catalog import Definitions
from rowtime.plan.bind.declared import declared
from rowtime.plan.bind.python_code import PythonCode
from rowtime.plan.program import compile_script
from rowtime.sql.script import parse_column, parse_expression


def check(
    text: str,
    home: Definitions | None = None,
    variables: Mapping[str, str] | None = None,
    *,
    imports: bool = False,
) -> Problems:
    """Return all problems of a script, errors first; it runs if none of them is an error.

    No code of the script runs, unless ``imports`` says that the Python modules which it names may be imported.
    """
    program = compile_script(text, home, variables, code=PythonCode(imports))
    return Problems([*program.problems, *program.warnings])


def order_of(expression: str, columns: Mapping[str, str]) -> str:
    """Return the order of an expression: constant, ascending, strictly ascending, descending, …, none.

    ``columns`` maps a column to its definition, ``"BIGINT STRICTLY ASCENDING CHECK (v > 0)"``; a condition limits its
    values. Raises ``Refused`` (R101) for text that does not parse.
    """
    return proof_of(expression, columns).order.value


def proof_of(expression: str, columns: Mapping[str, str]) -> Proof:
    """Return the order of an expression with the rules that prove it; see `order_of`."""
    return prove_text(expression, facts_of(columns))


def facts_of(columns: Mapping[str, str]) -> dict[str, Fact]:
    """Return the facts that definitions give about their columns, by lower-case name; and about ROWTIME."""
    facts = {ROWTIME: ROWTIME_FACT}
    for name, definition in columns.items():
        facts[name.lower()] = declared(parse_column(f"{name} {definition}"))
    return facts


def prove_text(expression: str, facts: Mapping[str, Fact]) -> Proof:
    """Return the order of an expression over columns with known ``facts``."""
    tree = parse_expression(expression)
    for column in list(tree.find_all(exp.Column)):
        name = ROWTIME if column.name.lower() == "rowtime" and "rowtime" not in facts else column.name.lower()
        column.set("this", exp.to_identifier(name, quoted=True))
    return prove(tree, facts)
