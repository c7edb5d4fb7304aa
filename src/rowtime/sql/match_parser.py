"""Parses MATCH_RECOGNIZE after an input: clauses become a tree, the pattern stays a text (`kernels.matching`)."""

from __future__ import annotations

from typing import Any

from sqlglot import TokenType, exp

from rowtime.sql import nodes
from rowtime.sql.places import locate
from rowtime.sql.syntax_fault import FaultParser

_ROWS = {
    ("ONE", "ROW", "PER", "MATCH"): (nodes.ONE_ROW,),
    ("ALL", "ROWS", "PER", "MATCH"): (nodes.SHOW_EMPTY, nodes.OMIT_EMPTY, nodes.WITH_UNMATCHED),
}
_SCOPES = ("FINAL", "RUNNING")


class MatchParser(FaultParser):
    """Parses MATCH_RECOGNIZE (…) and the words that only it uses."""

    def reset(self) -> None:
        """Start with other tokens."""
        super().reset()
        self._matching = 0  # the nesting depth of MATCH_RECOGNIZE

    def _is_match(self) -> bool:
        word = self._curr
        named = bool(word) and word.token_type == TokenType.VAR and word.text.upper() == "MATCH_RECOGNIZE"
        return named and bool(self._next) and self._next.token_type == TokenType.L_PAREN

    def _parse_table_alias(self, *args: Any, **options: Any) -> exp.TableAlias | None:
        return None if self._is_match() else super()._parse_table_alias(*args, **options)

    def _parse_matches(self, source: exp.Expr | None) -> exp.Expr | None:
        """Parse MATCH_RECOGNIZE after an input, if it follows."""
        while source is not None and self._is_match():
            first = self._curr
            self._advance()
            self._advance()
            self._matching += 1
            try:
                clauses = self._parse_match_clauses(source)
            finally:
                self._matching -= 1
            self._match_r_paren()
            locate(clauses, first, self._prev)
            alias = super()._parse_table_alias()
            if alias is not None:
                clauses.set("alias", alias)
            source = clauses
        return source

    def _parse_match_clauses(self, source: exp.Expr) -> nodes.MatchRecognize:
        keys = self._parse_partition_by()
        order = self._parse_order()
        measures = self._parse_csv(self._parse_measure) if self._match_text_seq("MEASURES") else []
        rows = self._parse_match_rows()
        skip = self._parse_skip() if self._match_text_seq("AFTER", "MATCH") else None
        pattern = self._parse_pattern()
        within = self._parse_required_interval() if self._match_text_seq("WITHIN") else None  # type: ignore[attr-defined]
        subsets = self._parse_csv(self._parse_subset) if self._match_text_seq("SUBSET") else []
        define = self._parse_csv(self._parse_definition) if self._match_text_seq("DEFINE") else []
        return self.expression(
            nodes.MatchRecognize(
                this=source, partition_by=keys, order=order, measures=measures, rows=rows, skip=skip, pattern=pattern,
                within=within, subsets=subsets, define=define,
            )
        )  # fmt: skip

    def _parse_measure(self) -> exp.Expr:
        value = self._parse_disjunction()
        self._need("AS", "a measure needs a name", "Write LAST(A.price) AS price, for example.")
        name = self._parse_id_var(any_token=True)
        return self.expression(exp.Alias(this=value, alias=name))

    def _need(self, word: str, message: str, hint: str) -> None:
        if not self._match_text_seq(word):
            self.raise_error(message, hint=hint)

    def _parse_match_rows(self) -> str:
        for words, (kind, *others) in _ROWS.items():
            if self._match_text_seq(*words):
                return next((other for other in (kind, *others) if self._match_text_seq(*other.split())), kind)
        return nodes.ONE_ROW

    def _parse_skip(self) -> exp.Expr:
        first = self._prev
        self._need("SKIP", "SKIP is expected after AFTER MATCH", "Write AFTER MATCH SKIP PAST LAST ROW, for example.")
        if self._match_text_seq("PAST", "LAST", "ROW"):
            skip = nodes.SkipTo(this="past")
        elif self._match_text_seq("TO", "NEXT", "ROW"):
            skip = nodes.SkipTo(this="next")
        elif self._match_text_seq("TO"):
            ends = ("FIRST", "LAST")
            # FIRST and LAST may be names of variables too.
            named = self._next is None or self._next.text.upper() == "PATTERN"
            end = "" if named else next((word for word in ends if self._match_text_seq(word)), "")
            skip = nodes.SkipTo(this=(end or "LAST").lower(), to=self._parse_id_var(any_token=True))
        else:
            hint = "Write PAST LAST ROW, TO NEXT ROW, TO FIRST v, TO LAST v or TO v."
            self.raise_error("AFTER MATCH SKIP needs to know where the next match may begin", hint=hint)
        locate(skip, first, self._prev)
        return self.expression(skip)

    def _parse_pattern(self) -> exp.Expr:
        """Return the text between the parentheses, with its place in the script."""
        self._need("PATTERN", "MATCH_RECOGNIZE needs a PATTERN", "Write PATTERN (A B+ C), for example.")
        opened = self._curr
        if not self._match(TokenType.L_PAREN):
            self.raise_error("PATTERN needs parentheses", hint="Write PATTERN (A B+ C), for example.")
        first, depth = self._curr, 1
        while self._curr and depth:
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self._curr.token_type, 0)
            self._advance()
        if depth:
            self.raise_error("the parenthesis of PATTERN is not closed", opened)
        begin, end = opened.end + 1, self._prev.start
        pattern = self.expression(exp.Var(this=self.sql[begin:end]))
        locate(pattern, first if first is not self._prev else opened, self._prev)
        pattern.meta["begins"] = begin
        return pattern

    def _parse_subset(self) -> exp.Expr:
        name = self._parse_id_var(any_token=True)
        if not self._match(TokenType.EQ):
            self.raise_error("SUBSET needs = and its variables", hint="Write SUBSET U = (A, B), for example.")
        names = self._parse_wrapped_csv(lambda: self._parse_id_var(any_token=True))
        return self.expression(nodes.Subset(this=name, expressions=names))

    def _parse_definition(self) -> exp.Expr:
        name = self._parse_id_var(any_token=True)
        self._need("AS", "a variable in DEFINE needs a condition", "Write DEFINE A AS A.price > 10, for example.")
        return self.expression(exp.Alias(this=self._parse_disjunction(), alias=name))

    def _parse_unary(self) -> exp.Expr | None:
        """Parse ``FINAL`` or ``RUNNING`` before a call."""
        scope = self._curr
        called = bool(self._matching and scope and scope.text.upper() in _SCOPES and self._next)
        if not called or scope.token_type == TokenType.IDENTIFIER or self._next.token_type in _AFTER_NAMES:
            return super()._parse_unary()
        self._advance()
        scoped = self.expression(nodes.MatchScope(this=super()._parse_unary(), kind=scope.text.upper()))
        locate(scoped, scope, self._prev)
        return scoped


_AFTER_NAMES = frozenset(
    {
        TokenType.DOT, TokenType.L_PAREN, TokenType.COMMA, TokenType.R_PAREN, TokenType.ALIAS, TokenType.EQ,
        TokenType.GT, TokenType.LT, TokenType.GTE, TokenType.LTE, TokenType.NEQ, TokenType.PLUS, TokenType.DASH,
        TokenType.STAR, TokenType.SLASH, TokenType.AND, TokenType.OR, TokenType.IS, TokenType.IN, TokenType.BETWEEN,
    }
)  # fmt: skip
"""Tokens that may follow a column with such a name."""
