"""CHAR(n) and VARCHAR(n): texts of n characters, or of n at most.

As Spark has it: blanks behind the last character that fits are cut off, a longer text does not fit, and a CHAR that is
shorter is filled with blanks.
"""

from __future__ import annotations

from sqlglot import exp

from rowtime.expr.store_assignment import is_padded, length_of
from rowtime.operators.contract import quoted


def sized_text(name: str, kind: str) -> exp.Expr:
    """The condition that a text of a column fits its type."""
    rest = exp.Anonymous(this="SUBSTRING", expressions=[_column(name), exp.Literal.number((length_of(kind) or 0) + 1)])
    return exp.EQ(this=exp.Anonymous(this="RTRIM", expressions=[rest]), expression=exp.Literal.string(""))


def in_size(name: str, kind: str) -> str:
    """The column as Spark SQL in the length of its type; a text that is too long stays as it is."""
    length, column = length_of(kind), quoted(name)
    made = f"rpad({column}, {length}, ' ')" if is_padded(kind) else f"left({column}, {length})"
    return f"CASE WHEN rtrim(substring({column}, {(length or 0) + 1})) = '' THEN {made} ELSE {column} END AS {column}"


def _column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))
