"""The SQL dialect: Spark's, with the clauses and functions of event-time streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

from rowtime.sql import calls, nodes
from rowtime.sql.query_parser import RowtimeParser


class RowtimeGenerator(SparkGenerator):
    """Writes a tree as rowtime's own SQL, for messages and EXPLAIN."""

    TYPE_MAPPING: ClassVar[dict[exp.DType, str]] = {**SparkGenerator.TYPE_MAPPING, exp.DType.TIME: "TIME"}
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **SparkGenerator.TRANSFORMS,
        **calls.TEXTS,
        exp.Cast: lambda self, e: e.meta.get("spelled") or self.cast_sql(e),
        exp.Literal: lambda self, e: e.meta.get("spelled") or self.literal_sql(e),
        # Spark does not parse ``>>`` after the word ARRAY, wherever that is in the text.
        exp.BitwiseLeftShift: lambda self, e: self.func("SHIFTLEFT", e.this, e.expression),
        exp.BitwiseRightShift: lambda self, e: self.func("SHIFTRIGHT", e.this, e.expression),
        exp.ILike: lambda self, e: self.ilike_sql(e),
        exp.WithinGroup: lambda self, e: f"{self.sql(e, 'this')} WITHIN GROUP ({self.sql(e, 'expression').lstrip()})",
        exp.IgnoreNulls: lambda self, e: f"{self.sql(e, 'this')} IGNORE NULLS",
        nodes.UnsignedShift: lambda self, e: self.func("SHIFTRIGHTUNSIGNED", e.this, e.expression),
        nodes.Worded: lambda self, e: e.name.format(*(self.sql(part) for part in e.expressions)),
        nodes.Step: lambda self, e: f"STEP({self.sql(e, 'this')} BY {self.sql(e, 'expression')})",
        nodes.CurrentRowTimestamp: lambda _self, _e: "CURRENT_ROW_TIMESTAMP",
        nodes.Within: lambda self, e: f"{self.sql(e, 'this')} WITHIN {self.sql(e, 'interval')}",
        nodes.Panes: lambda self, e: self.panes_text(e),
        nodes.PaneFact: lambda _self, e: e.name,
        nodes.TableArgument: lambda self, e: (
            f"TABLE {self.sql(e, 'this')}"
            + (f" PARTITION BY {self.expressions(e, flat=True)}" if e.expressions else "")
        ),
        nodes.Period: lambda self, e: f"PERIOD ({self.sql(e, 'this')}, {self.sql(e, 'expression')})",
        nodes.AtMost: lambda self, e: f"AT MOST {self.sql(e, 'this')}",
        nodes.WithinPeriod: lambda self, e: f"WITHIN {self.sql(e, 'this')}",
        nodes.Lifetime: lambda self, e: f"LIFETIME({self.sql(e, 'this')})",
        nodes.LifetimeEdge: lambda self, e: f"{e.args['which'].strip('_').upper()}({self.sql(e, 'this')})",
        nodes.PeriodPredicate: lambda self, e: f"{self.sql(e, 'this')} {e.args['how']} {self.sql(e, 'expression')}",
        nodes.Earliest: lambda self, e: self.sql(e, "this"),
        nodes.Before: lambda self, e: f"({self.sql(e, 'this')} - INTERVAL '1' MICROSECOND)",
        nodes.MatchRecognize: lambda self, e: self.match_text(e),
        nodes.SkipTo: lambda self, e: {"past": "PAST LAST ROW", "next": "TO NEXT ROW"}.get(
            e.name, f"TO {e.name.upper()} {self.sql(e, 'to')}"
        ),
        nodes.Subset: lambda self, e: f"{self.sql(e, 'this')} = ({self.expressions(e, flat=True)})",
        nodes.MatchScope: lambda self, e: f"{e.args['kind']} {self.sql(e, 'this')}",
        nodes.Stagger: lambda self, e: (
            f"STAGGER (PARTITION BY {self.expressions(e, flat=True)} RANGE {self.sql(e, 'interval')})"
        ),
    }

    def match_text(self, node: nodes.MatchRecognize) -> str:
        """Write an input with its MATCH_RECOGNIZE."""
        rows = node.args["rows"]
        define = [f"{part.alias} AS {self.sql(part, 'this')}" for part in node.args.get("define") or []]
        each = "ONE ROW PER MATCH" if rows == nodes.ONE_ROW else f"ALL ROWS PER MATCH {rows}"
        clauses = [
            self._listed("PARTITION BY ", node.args.get("partition_by")),
            self.sql(node, "order").strip(),
            self._listed("MEASURES ", node.args.get("measures")),
            each,
            f"AFTER MATCH SKIP {self.sql(node, 'skip')}" if node.args.get("skip") else "",
            f"PATTERN ({node.args['pattern'].name})",
            f"WITHIN {self.sql(node, 'within')}" if node.args.get("within") else "",
            self._listed("SUBSET ", node.args.get("subsets")),
            f"DEFINE {', '.join(define)}" if define else "",
        ]
        alias = f" AS {self.sql(node, 'alias')}" if node.args.get("alias") else ""
        return f"{self.sql(node, 'this')} MATCH_RECOGNIZE ({' '.join(filter(None, clauses))}){alias}"

    def _listed(self, word: str, parts: list[exp.Expr] | None) -> str:
        return f"{word}{', '.join(self.sql(part) for part in parts)}" if parts else ""

    def panes_text(self, node: nodes.Panes) -> str:
        """Write ``PANES(t, DURATION …)`` with the settings that are given."""
        words = {"duration": "DURATION", "period": "PERIOD", "offset": "OFFSET", "discard_age": "DISCARD AGE"}
        settings = (f"{word} {self.sql(node, key)}" for key, word in words.items() if node.args.get(key))
        return f"PANES({', '.join([self.sql(node, 'this'), *settings])})"

    def select_sql(self, expression: exp.Select) -> str:
        """Write STREAM after the first SELECT that is not inside WITH."""
        if not expression.args.get("stream"):
            return super().select_sql(expression)
        bare = expression.copy()
        bare.set("stream", None)
        bare.set("with_", None)
        text = "SELECT STREAM" + super().select_sql(bare).removeprefix("SELECT")
        return self.prepend_ctes(expression, text)

    def after_limit_modifiers(self, expression: exp.Expr) -> list[str]:
        """Write WINDOWED BY last, if there is neither GROUP BY nor ORDER BY; and EMIT AFTER WATERMARK."""
        windowed = self.sql(expression, "windowed")
        clause = f"{self.seg('WINDOWED BY')} {windowed}" if windowed else ""
        final = self.seg("EMIT AFTER WATERMARK") if expression.args.get("emit_final") else ""
        return [clause, *super().after_limit_modifiers(expression), final]

    def ordered_sql(self, expression: exp.Ordered) -> str:
        """Write a sort key, with the tolerance of a T-sort."""
        clauses = {
            "within": " WITHIN {}",
            "early": " EARLY BEYOND {}",
            "resync": " RESYNC AFTER {} ROWS",
            "ahead": " EARLY BEYOND {} AFTER ARRIVAL",
        }
        given = ((clause, self.sql(expression, key)) for key, clause in clauses.items())
        return super().ordered_sql(expression) + "".join(clause.format(text) for clause, text in given if text)

    def table_parts(self, expression: exp.Table) -> str:
        """Write the name of an input, with its window in a join."""
        return super().table_parts(expression) + self._input_window(expression)

    def wrap(self, expression: exp.Expr | str) -> str:
        """Write a query in parentheses, with its window in a join."""
        over = self._input_window(expression) if isinstance(expression, exp.Subquery) else ""
        return super().wrap(expression) + over

    def _input_window(self, expression: exp.Expr) -> str:
        return self.sql(expression, "over").removeprefix("ROWS")

    def nthvalue_sql(self, expression: exp.NthValue) -> str:
        """Write NTH_VALUE; with FROM LAST it counts from the end of its frame."""
        last = " FROM LAST" if expression.args.get("from_first") is False else ""
        return f"NTH_VALUE({self.sql(expression, 'this')}, {self.sql(expression, 'offset')}){last}"


class Rowtime(Spark):
    """Spark's dialect with streams; both ``"x"`` and backticks quote an identifier."""

    class Tokenizer(Spark.Tokenizer):
        """Splits SQL into tokens; only single quotes enclose text."""

        QUOTES = ["'"]
        IDENTIFIERS = ["`", '"']
        STRING_ESCAPES = ["\\", "'"]  # 'it''s' is one literal, as in the standard and in Spark 4
        RAW_STRINGS = [("r'", "'"), ("R'", "'")]
        KEYWORDS: ClassVar[dict[str, TokenType]] = {**Spark.Tokenizer.KEYWORDS, ">>>": nodes.UNSIGNED_SHIFT}
        # sqlglot keeps the rest of some statements as one string; rowtime needs every word as a token.
        COMMANDS: ClassVar[set[TokenType]] = set()

    Parser = RowtimeParser  # type: ignore[assignment]  # sqlglot declares the class it has itself
    Generator = RowtimeGenerator

    def tokenize(self, sql: str, dialect: Any = None) -> list[Token]:
        """Split a text into tokens."""
        return _types_closed(super().tokenize(sql, dialect))


def _types_closed(tokens: list[Token]) -> list[Token]:
    """Split ``>>>`` into three tokens where it closes nested types, as in ``MAP<STRING, ARRAY<STRUCT<n: INT>>>``."""
    if not any(token.token_type == nodes.UNSIGNED_SHIFT for token in tokens):
        return tokens
    closed: list[Token] = []
    depth = 0
    for before, token in zip([None, *tokens], tokens, strict=False):
        kind = token.token_type
        opens = kind == TokenType.LT and before is not None and before.token_type in _NESTED
        depth = depth + 1 if opens else max(depth - 1, 0) if kind == TokenType.GT else depth
        if kind == nodes.UNSIGNED_SHIFT and depth >= len(token.text):
            depth -= len(token.text)
            closed += [
                Token(TokenType.GT, ">", token.line, token.col, at, at) for at in range(token.start, token.end + 1)
            ]
        else:
            closed.append(token)
    return closed


_NESTED = (TokenType.STRUCT, TokenType.ARRAY, TokenType.MAP)
