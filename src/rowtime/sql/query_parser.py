"""Parses queries and expressions: Spark's, with the clauses of event-time streams.

Parsing is generous and binding is strict: everything that reads like streaming SQL becomes a tree here, and the binder
says what is not possible, and where. ``nodes`` lists what the trees hold beyond sqlglot's own nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.parsers.spark import SparkParser

from rowtime.sql import nodes
from rowtime.sql.interval_parser import IntervalParser
from rowtime.sql.intervals import duration_of, months_of, singular
from rowtime.sql.join_parser import JoinParser
from rowtime.sql.match_parser import MatchParser
from rowtime.sql.numbers import number_of
from rowtime.sql.period_parser import PeriodParser
from rowtime.sql.places import locate
from rowtime.sql.window_parser import WindowParser

PANE_SETTINGS = {"duration": ("DURATION",), "period": ("PERIOD",), "offset": ("OFFSET",),
                 "discard_age": ("DISCARD", "AGE")}  # fmt: skip


Parse = Callable[..., exp.Expr | None]


def closed(parse: Parse) -> Parse:
    """Let a parser of a call's arguments demand the closing parenthesis: sqlglot takes a call without one."""

    def parsed(self: RowtimeParser) -> exp.Expr | None:
        call = parse(self)
        if not self._match(TokenType.R_PAREN, advance=False):
            self.raise_error("Expecting )")
        return call

    return parsed


class RowtimeParser(MatchParser, IntervalParser, PeriodParser, WindowParser, JoinParser):
    """Parses queries and expressions; statements are in ``statement_parser``."""

    STRICT_CAST = True  # ANSI mode: CAST fails if it cannot convert
    SUPPORTS_NTH_VALUE_FROM_MODIFIER = True
    FUNC_TOKENS = SparkParser.FUNC_TOKENS | {TokenType.SESSION}
    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        **PeriodParser.FUNCTIONS,
        "MONOTONIC": nodes.Monotonic.from_arg_list,
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Parse]] = {
        name: closed(parse)
        for name, parse in {
            **PeriodParser.FUNCTION_PARSERS,
            "CEILING": lambda self: self._parse_ceil_floor(exp.Ceil),
            "STEP": lambda self: self._parse_step(),
            "PANES": lambda self: self._parse_panes(),
        }.items()
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Parse]] = {
        **PeriodParser.NO_PAREN_FUNCTION_PARSERS,
        "CURRENT_ROW_TIMESTAMP": lambda self: self._parse_current_row_timestamp(),
    }

    # Two words that open a clause after a table; each word alone may be the table's alias.
    CLAUSE_PAIRS = (
        *(
            ("EMIT", what)
            for what in ("CHANGES", "EVERY", "POINTS", "INTERVALS", "EDGES", "AFTER", "STREAM", "ON", "FINAL")
        ),
        ("WINDOWED", "BY"),
        ("KEYS", "EXPIRE"),
        ("EVENT", "SHAPE"),
    )

    # SELECT STREAM

    def _parse_statement(self) -> exp.Expr | None:
        """Parse the query that follows WITH: statements do not nest in queries."""
        return self._parse_select(nested=True)

    def _parse_pipe_syntax_query(self, query: exp.Query) -> exp.Query | None:  # noqa: ARG002 - sqlglot's
        """Refuse ``query |> WHERE …``: sqlglot adds the clause to the query, and so names mean something else in it."""
        hint = "Put the query before it in parentheses: SELECT STREAM … FROM (query) AS q WHERE …."
        self.raise_error("|> is not supported", hint=hint)

    def _parse_select_query(self, *args: Any, **options: Any) -> exp.Expr | None:
        stream = self._curr.token_type == TokenType.SELECT and _is_word(self._next, "STREAM")
        query = super()._parse_select_query(*args, **options)
        if stream and query:
            first = query
            while isinstance(first, exp.SetOperation):
                first = first.this
            first.set("stream", value=True)
        return query

    def _parse_disjunction(self) -> exp.Expr | None:
        return balanced(super()._parse_disjunction())

    def _parse_conjunction(self) -> exp.Expr | None:
        return balanced(super()._parse_conjunction())

    def _parse_hint(self) -> exp.Hint | None:
        """Parse STREAM directly after SELECT, where Spark has its hints."""
        if self._prev.token_type == TokenType.SELECT and _is_word(self._curr, "STREAM"):
            self._advance()
        return super()._parse_hint()

    # Clauses of a query

    def _parse_query_modifiers(self, this: Any) -> Any:
        query = super()._parse_query_modifiers(this)
        if isinstance(query, exp.Select) and self._match_text_seq("WINDOWED", "BY"):
            query.set("windowed", self._parse_stagger())
            query = super()._parse_query_modifiers(query)
        return query

    def _parse_stagger(self) -> nodes.Stagger:
        first = self._prev
        if not self._match_text_seq("STAGGER"):
            self.raise_error("WINDOWED BY supports only STAGGER (PARTITION BY ... RANGE interval)")
        self._match_l_paren()
        keys = self._parse_partition_by()
        if not self._match(TokenType.RANGE):
            self.raise_error("STAGGER needs RANGE and an interval")
        node = self.expression(nodes.Stagger(expressions=keys, interval=self._parse_required_interval()))
        self._match_r_paren()
        locate(node, first, self._prev)
        return node

    def _parse_group(self, *args: Any, **options: Any) -> exp.Group | None:
        del args, options  # sqlglot's ways to begin after GROUP BY, which Spark does not have
        if not self._match(TokenType.GROUP_BY):
            return None
        first = self._prev
        group = self.expression(exp.Group(expressions=self._parse_csv(self._parse_group_key)))
        self._parse_sets_behind(group)
        if not group.expressions:
            self.raise_error("GROUP BY needs an expression")
        locate(group, first, self._prev)
        return group

    def _parse_sets_behind(self, group: exp.Group) -> None:
        """Parse ``GROUP BY a, b WITH ROLLUP`` and ``GROUP BY a, b GROUPING SETS (…)``, as in Spark."""
        keys = group.expressions
        if self._match_text_seq("WITH", "ROLLUP"):
            group.set("expressions", [self.expression(exp.Rollup(expressions=keys))])
        elif self._match_text_seq("WITH", "CUBE"):
            group.set("expressions", [self.expression(exp.Cube(expressions=keys))])
        elif sets := self._parse_grouping_sets():
            group.set("expressions", [sets])

    def _parse_group_key(self) -> exp.Expr | None:
        sets = self._parse_grouping_sets() or self._parse_cube_or_rollup()
        key = sets or self._parse_disjunction()
        if key and self._match_text_seq("WITHIN"):
            return self.expression(nodes.Within(this=key, interval=self._parse_required_interval()))
        return key

    def _parse_order(self, *args: Any, **options: Any) -> exp.Expr | None:
        first = self._curr
        order = super()._parse_order(*args, **options)
        if isinstance(order, exp.Order) and first.token_type == TokenType.ORDER_BY:
            locate(order, first, self._prev)
        return order

    def _parse_ordered(self, *args: Any, **options: Any) -> exp.Ordered | None:
        ordered = super()._parse_ordered(*args, **options)
        if ordered and self._match_text_seq("WITHIN"):
            ordered.set("within", self._parse_required_interval())
            while self._match_text_seq("EARLY", "BEYOND"):
                self._parse_early(ordered)
        return ordered

    def _parse_early(self, ordered: exp.Ordered) -> None:
        """Parse the text after EARLY BEYOND: a limit above the mark, or above the arrival time."""
        limit = self._parse_required_interval()
        key = "ahead" if self._match_text_seq("AFTER", "ARRIVAL") else "early"
        if ordered.args.get(key):
            self.raise_error(f"EARLY BEYOND{' … AFTER ARRIVAL' if key == 'ahead' else ''} is given twice", self._prev)
        ordered.set(key, limit)
        if key == "early":
            ordered.set("resync", self._parse_resync())

    def _parse_resync(self) -> exp.Expr | None:
        """Parse ``RESYNC AFTER n ROWS`` after EARLY BEYOND."""
        if not self._match_text_seq("RESYNC", "AFTER"):
            return None
        rows = self._parse_number()
        if rows is None or not self._match_texts(("ROWS", "ROW")):
            self.raise_error("RESYNC AFTER needs a number of rows, as in RESYNC AFTER 3 ROWS")
        return rows

    # Inputs of a query

    def _parse_table_alias(self, *args: Any, **options: Any) -> exp.TableAlias | None:
        if any(self._match_text_seq(*pair, advance=False) for pair in self.CLAUSE_PAIRS):
            return None
        if _is_word(self._curr, "MATCH_CONDITION"):
            return None
        return super()._parse_table_alias(*args, **options)

    def _parse_table_parts(self, *args: Any, **options: Any) -> exp.Table | exp.Dot | None:
        table = super()._parse_table_parts(*args, **options)
        self._parse_from_now(table)
        return table

    def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
        table = super()._parse_table(*args, **options)
        self._parse_from_now(table)
        first = self._curr
        if table and self._match_text_seq("MATCH_CONDITION"):
            match = self.expression(exp.Paren(this=self._parse_disjunction()))
            locate(match, first, self._prev)
            table.set("match", match)
        return self._parse_matches(table)

    def _parse_lateral(self) -> exp.Lateral | None:
        """``LATERAL VIEW EXPLODE(tags) x tag``: AS may be left out before the names of the columns."""
        lateral = super()._parse_lateral()
        alias = lateral.args.get("alias") if lateral is not None and lateral.args.get("view") else None
        opens_clause = any(self._match_text_seq(*pair, advance=False) for pair in self.CLAUSE_PAIRS)
        if alias is not None and alias.this and not alias.args.get("columns") and not opens_clause:
            first = self._parse_id_var(any_token=False)
            more = self._parse_csv(self._parse_id_var) if first is not None and self._match(TokenType.COMMA) else []
            alias.set("columns", [first, *more] if first is not None else [])
        return lateral

    def _parse_from_now(self, table: exp.Expr | None) -> None:
        """Parse ``s FROM NOW``, before the name of the input or after it."""
        first = self._curr
        if isinstance(table, exp.Table) and self._match_text_seq("FROM", "NOW"):
            now = self.expression(exp.Var(this="FROM NOW"))
            locate(now, first, self._prev)
            table.set("now", now)

    # Expressions

    def _parse_function_call(self, *args: Any, **options: Any) -> exp.Expr | None:
        first = self._curr
        call = super()._parse_function_call(*args, **options)
        if isinstance(call, exp.Expr):
            locate(call, first, self._prev)
        return call

    def _parse_lambda(self, *args: Any, **options: Any) -> exp.Expr | None:
        first = self._curr
        if self._next and self._next.token_type == TokenType.FARROW:
            return self._parse_named_argument()
        if not self._match(TokenType.TABLE):
            return super()._parse_lambda(*args, **options)
        argument = self.expression(nodes.TableArgument(this=self._parse_table()))
        argument.set("expressions", self._parse_argument_keys())
        locate(argument, first, self._prev)
        return argument

    def _parse_argument_keys(self) -> list[exp.Expr]:
        """Parse ``PARTITION BY k, l`` of ``TABLE s``: names, up to the next argument, or a list in parentheses."""
        if not self._match(TokenType.PARTITION_BY):
            return []
        if self._curr and self._curr.token_type == TokenType.L_PAREN:
            return list(self._parse_wrapped_csv(self._parse_column))
        keys = [self._parse_column()]
        while self._match(TokenType.COMMA, advance=False) and self._is_name_in_list(self._index + 2):
            self._match(TokenType.COMMA)
            keys.append(self._parse_column())
        return [key for key in keys if key is not None]

    def _is_name_in_list(self, after: int) -> bool:
        """Return True if the tokens before ``after`` are a name alone, and not a call or a named argument."""
        tokens = self._tokens
        return after < len(tokens) and tokens[after].token_type in (TokenType.COMMA, TokenType.DOT)

    def _parse_named_argument(self) -> exp.Kwarg:
        """Parse ``name => value``."""
        name = self._parse_var(any_token=True)
        self._match(TokenType.FARROW)
        return self.expression(exp.Kwarg(this=name, expression=self._parse_lambda()))

    def _parse_step(self) -> nodes.Step:
        this = self._parse_disjunction()
        if not self._match_text_seq("BY"):
            self.raise_error("STEP needs BY, as in STEP(x BY INTERVAL '10' SECOND)")
        by, first = self._parse_bitwise(), self._prev
        if isinstance(by, exp.Literal | exp.Neg | exp.Interval) and not _positive(by):
            self.raise_error("the step must be above zero", first)
        return self.expression(nodes.Step(this=this, expression=by))

    def _parse_current_row_timestamp(self) -> nodes.CurrentRowTimestamp:
        if self._match(TokenType.L_PAREN):
            self._match_r_paren()
        return self.expression(nodes.CurrentRowTimestamp())

    def _parse_ceil_floor(self, expr_type: type[Any]) -> Any:
        this = self._parse_lambda()
        decimals = self._parse_lambda() if self._match(TokenType.COMMA) else None
        unit = self._parse_time_unit() if self._match_text_seq("TO") else None
        return self.expression(expr_type(this=this, decimals=decimals, to=unit))

    def _parse_time_unit(self) -> exp.Var:
        token = self._curr
        unit = singular(token.text) if token else ""
        if unit not in nodes.TIME_UNITS:
            self.raise_error(f"a time unit is expected after TO, one of {', '.join(nodes.TIME_UNITS)}")
        self._advance()
        return self.expression(exp.Var(this=unit), token)

    def _parse_panes(self) -> nodes.Panes:
        """Parse ``PANES(t, DURATION interval, …)``: settings by name, in any order."""
        first, time = self._prev, self._parse_disjunction()
        settings: dict[str, exp.Expr] = {}
        while self._match(TokenType.COMMA):
            key = next((key for key, words in PANE_SETTINGS.items() if self._match_text_seq(*words)), None)
            if key is None or key in settings:
                self.raise_error("PANES takes DURATION, PERIOD, OFFSET and DISCARD AGE, each once with an interval")
            settings[key] = self._parse_required_interval()
        if time is None or "duration" not in settings:
            self.raise_error("PANES needs a time and a DURATION, as in PANES(t, DURATION INTERVAL '1' HOUR)")
        node = self.expression(nodes.Panes(this=time, **settings))
        locate(node, first, self._prev)
        return node


def _is_word(token: Token | None, word: str) -> bool:
    """Return True if a token is that word, and not a quoted name or a text."""
    return token is not None and token.token_type == TokenType.VAR and token.text.upper() == word


def _positive(step: exp.Expr) -> bool:
    if isinstance(step, exp.Interval):
        length = duration_of(step) if months_of(step) is None else months_of(step)
        return length is None or length > 0
    return (number_of(step) or 0) > 0


_CHAINED = 32  # terms that stay a chain


def balanced(node: exp.Expr | None) -> exp.Expr | None:
    """Turn a long chain of AND or OR into a shallow tree, so that a thousand conditions are not a thousand levels."""
    if not isinstance(node, (exp.And, exp.Or)):
        return node
    kind, terms, left = type(node), [], node
    while type(left) is kind:
        terms.append(left.expression)
        left = left.this
    terms = [left, *reversed(terms)]
    while len(terms) > _CHAINED:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [*(kind(this=one, expression=other) for one, other in pairs), *terms[len(terms) // 2 * 2 :]]
    return node if left is terms[0] else reduce(lambda one, other: kind(this=one, expression=other), terms)
