"""What the definition of a stream demands of each row by itself: NOT NULL, CHECK."""

from __future__ import annotations

from sqlglot import exp

from rowtime.core.errors import refuse
from rowtime.expr.conditions import col
from rowtime.expr.monotonicity import is_plain
from rowtime.plan.bind.catalog import StreamDef, suggestion
from rowtime.sql.script import parse_expression


def demands_of(stream: StreamDef) -> tuple[exp.Expr, ...]:
    """All that a row must satisfy, over the stream's columns. Raises ``Refused`` (R102, R103)."""
    required = (exp.Not(this=exp.Is(this=col(name), expression=exp.null())) for name in stream.required)
    return (*required, *checks_of(stream))


def checks_of(stream: StreamDef) -> tuple[exp.Expr, ...]:
    """The conditions of CHECK, over the stream's columns. Raises ``Refused`` (R102, R103)."""
    known = {name.lower(): name for name, _ in stream.columns}
    checks: list[exp.Expr] = []
    for text in stream.checks:
        check = parse_expression(text)
        for column in list(check.find_all(exp.Column)):
            if column.name.lower() not in known:
                hint = suggestion(column.name, known.values())
                raise refuse("R103", f"CHECK ({text}): {stream.name} has no column {column.name}", hint)
            column.replace(col(known[column.name.lower()]))
        if not is_plain(check):
            raise refuse("R102", f"CHECK ({text}) is not computed from the columns of a row alone")
        checks.append(check)
    return tuple(checks)
