"""The former spelling of calls, in the plans of old checkpoints.

In those versions sqlglot's own nodes stood for most functions, and its generator spelled them its own way (``NVL`` as
``COALESCE``, say). A plan without ``spelling`` has such texts; they are only compared, never run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import TokenType, exp
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from rowtime.sql import calls
from rowtime.sql.dialect import Rowtime
from rowtime.sql.generate import StoredText, to_rowtime, to_spark
from rowtime.sql.statement_parser import StatementParser

_OURS = ("PERIOD", "LIFETIME", "LIFETIME_START", "LIFETIME_END", "CEILING", "STEP", "PANES")
_SPELLED = (*calls.TEXTS, exp.Cast, exp.Literal, exp.ILike,
            exp.WithinGroup, exp.IgnoreNulls)  # fmt: skip


class _FormerParser(StatementParser):
    """Parses calls as sqlglot does."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        **SparkParser.FUNCTIONS,
        "MONOTONIC": StatementParser.FUNCTIONS["MONOTONIC"],
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr | None]]] = {
        **SparkParser.FUNCTION_PARSERS,
        **{name: StatementParser.FUNCTION_PARSERS[name] for name in _OURS},
    }
    FUNCTIONS_WITH_ALIASED_ARGS: ClassVar[set[str]] = SparkParser.FUNCTIONS_WITH_ALIASED_ARGS
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr | None]]] = {
        **SparkParser.NO_PAREN_FUNCTION_PARSERS,
        "CURRENT_ROW_TIMESTAMP": StatementParser.NO_PAREN_FUNCTION_PARSERS["CURRENT_ROW_TIMESTAMP"],
    }
    PRIMARY_PARSERS: ClassVar[dict[TokenType, Callable[..., exp.Expr | None]]] = SparkParser.PRIMARY_PARSERS
    TYPE_LITERAL_PARSERS: ClassVar[dict[exp.DType, Callable[..., exp.Expr]]] = SparkParser.TYPE_LITERAL_PARSERS


class _FormerText(StoredText):
    """Writes them as sqlglot does."""

    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **{kind: text for kind, text in StoredText.TRANSFORMS.items() if kind not in _SPELLED},
        **{kind: text for kind, text in SparkGenerator.TRANSFORMS.items() if kind in _SPELLED},
    }


def to_former(expression: exp.Expr) -> str:
    """Return the Spark SQL text of an expression as it is in a plan without ``spelling``."""
    text = to_rowtime(expression)
    dialect = Rowtime()
    try:
        read = _FormerParser(dialect=dialect).expression_of(dialect.tokenize(text), text)
        return _FormerText(dialect=dialect, unsupported_level=ErrorLevel.IGNORE, comments=False).generate(read)
    except SqlglotError:
        return to_spark(expression)
