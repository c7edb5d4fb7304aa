"""Parses calls and literals and keeps their spelling, so that Spark gives them its own meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from sqlglot import Token, TokenType, exp
from sqlglot.parsers.spark import SparkParser

from rowtime.core.types import LONGEST_TEXT
from rowtime.sql import calls, nodes
from rowtime.sql.numbers import whole_number
from rowtime.sql.syntax_fault import FaultParser

_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "FLOOR", "CEIL")
_BITS = ((TokenType.PIPE, exp.BitwiseOr), (TokenType.CARET, exp.BitwiseXor), (TokenType.AMP, exp.BitwiseAnd))
_NESTED: Final = frozenset({TokenType.STRUCT, TokenType.ARRAY, TokenType.MAP, TokenType.OBJECT, TokenType.UNION})
_CHARACTER_SETS = ("_UTF8", "_UTF16", "_UTF32", "_LATIN1", "_ISO_8859_1", "_US_ASCII")
_SUFFIXES = ("L", "S", "Y", "D", "F", "BD")  # suffixes of a number that give its type


class CallParser(FaultParser):
    """Reads calls; those of `calls.KNOWN` become nodes, which keep their names."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = dict(calls.FUNCTIONS)
    FUNCTIONS_WITH_ALIASED_ARGS: ClassVar[set[str]] = set()
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr | None]]] = {
        **{name: SparkParser.FUNCTION_PARSERS[name] for name in _SYNTAX},
        "SUBSTRING": lambda self: self._parse_part("SUBSTRING"),
        "SUBSTR": lambda self: self._parse_part("SUBSTR"),
        "TRIM": lambda self: self._parse_trimmed(),
        "OVERLAY": lambda self: self._parse_worded("OVERLAY", ("PLACING", "FROM", "FOR")),
        "POSITION": lambda self: self._parse_worded("POSITION", ("IN",)),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr | None]]] = {
        name: parser for name, parser in SparkParser.NO_PAREN_FUNCTION_PARSERS.items() if name in ("CASE", "IF")
    }
    TYPE_LITERAL_PARSERS: ClassVar[dict[exp.DType, Callable[..., exp.Expr]]] = {
        **SparkParser.TYPE_LITERAL_PARSERS,
        # Spark allows this type only for constants, and refuses a CAST to it.
        exp.DType.TIME: lambda self, text, kind: self._parse_time_text(text, kind),
    }
    PRIMARY_PARSERS: ClassVar[dict[TokenType, Callable[..., exp.Expr | None]]] = {
        **SparkParser.PRIMARY_PARSERS,
        TokenType.STRING: lambda self, token: self._parse_text(token),
    }

    def _parse_bitwise(self) -> exp.Expr | None:
        """Parse in Spark's order: sums and ``||`` bind before shifts, and these before ``&``, ``^`` and ``|``."""
        return self._parse_level(0)

    def _parse_level(self, level: int) -> exp.Expr | None:
        this = self._parse_shift() if level == len(_BITS) else self._parse_level(level + 1)
        while level < len(_BITS) and self._match(_BITS[level][0]):
            this = self.expression(_BITS[level][1](this=this, expression=self._parse_level(level + 1)))
        return this

    def _parse_shift(self) -> exp.Expr | None:
        this = self._parse_sum()
        while (kind := self._matched_shift()) is not None:
            this = self.expression(kind(this=this, expression=self._parse_sum()))
        return this

    def _matched_shift(self) -> type[exp.Binary] | None:
        if self._match(nodes.UNSIGNED_SHIFT):
            return nodes.UnsignedShift
        if self._match_pair(TokenType.LT, TokenType.LT):
            return exp.BitwiseLeftShift
        return exp.BitwiseRightShift if self._match_pair(TokenType.GT, TokenType.GT) else None

    def _parse_sum(self) -> exp.Expr | None:
        this = self._parse_term()
        while self._match(TokenType.DPIPE):
            this = self.expression(exp.DPipe(this=this, expression=self._parse_term(), safe=True))
        return this

    def _parse_text(self, token: Token) -> exp.Expr:
        """Keep a text's spelling, because Spark reads the escapes in it in its own way."""
        text = self.expression(exp.Literal(this=token.text, is_string=True), token)
        spelled = self.sql[token.start : token.end + 1]
        if spelled[:1] == spelled[-1:] == "'":
            text.meta["spelled"] = spelled
        return text

    def _parse_time_text(self, text: exp.Expr, kind: exp.DataType) -> exp.Expr:
        cast = self.expression(exp.Cast(this=text, to=kind))
        cast.meta["spelled"] = f"TIME {text.meta.get('spelled')}"
        return cast

    def build_cast(self, strict: bool, **options: Any) -> exp.Expr:  # noqa: FBT001 - as sqlglot calls it
        """Build a cast; ``1L`` is a cast of 1 but keeps its text: ``-9223372036854775808L`` is one number."""
        suffix, number = self._prev.text.upper(), options.get("this")
        cast = super().build_cast(strict, **options)
        if suffix in _SUFFIXES and isinstance(number, exp.Literal) and not number.is_string:
            cast.meta["spelled"] = f"{number.name}{suffix}"
        return cast

    def _parse_trimmed(self) -> exp.Expr:
        """Parse ``TRIM(BOTH x FROM y)``; without these words it is a call like any other."""
        way = self._prev.text.upper() if self._match_texts(("BOTH", "LEADING", "TRAILING")) else ""
        what = None if self._match(TokenType.FROM, advance=False) else self._parse_lambda()
        if not self._match(TokenType.FROM):
            more = self._parse_csv(self._parse_lambda) if self._match(TokenType.COMMA) else []
            return self.expression(exp.Anonymous(this="TRIM", expressions=[what, *more]))
        words = " ".join(filter(None, ["TRIM(", way, "{}" if what else "", "FROM {})"])).replace("( ", "(")
        parts = [part for part in (what, self._parse_bitwise()) if part is not None]
        return self.expression(nodes.Worded(this=words, expressions=parts))

    def _parse_part(self, name: str) -> exp.Expr:
        """Parse ``SUBSTRING(s FROM 2 FOR 3)``, or the form with commas."""
        part = self._parse_substring()
        part.meta["called"] = name
        return part

    def _parse_worded(self, name: str, words: tuple[str, ...]) -> exp.Expr:
        """Parse ``OVERLAY(a PLACING b FROM c)``: a call with words instead of commas."""
        values = [self._parse_bitwise() if words == ("IN",) else self._parse_lambda()]
        while self._match(TokenType.COMMA) or self._match_texts(words):
            values.append(self._parse_lambda())
        return self.expression(exp.Anonymous(this=name, expressions=values))

    def _skip_character_set(self) -> None:
        """Skip the name of an encoding directly in front of a text: all texts are Unicode."""
        word, text = self._curr, self._next
        if word is None or text is None or word.token_type != TokenType.VAR:
            return
        if text.token_type == TokenType.STRING and text.start == word.end + 1 and word.text.startswith("_"):
            if word.text.upper() not in _CHARACTER_SETS:
                what = f"{word.text[1:]} is not a character set"
                self.raise_error(what, word, hint="Leave it out: texts are always Unicode.")
            self._advance()
        sign, coded = (*self._tokens[self._index + 1 : self._index + 3], None, None)[:2]
        beside = (
            word.text.upper() == "U"
            and sign
            and coded
            and (sign.text, sign.start, coded.start) == ("&", word.end + 1, word.end + 2)
        )
        if beside and coded is not None and coded.token_type == TokenType.STRING:
            hint = r"Write the text alone; '\u00e9' is a character by its number."
            self.raise_error("U& cannot begin a text", word, hint=hint)

    def _parse_type(self, *args: Any, **options: Any) -> exp.Expr | None:
        """Parse a type; ``X 'FF'`` with a blank is the same as without it; ``_UTF8'a'`` is ``'a'``."""
        self._skip_character_set()
        named = self._curr and self._curr.token_type == TokenType.VAR and self._curr.text.upper() == "X"
        if named and self._next and self._next.token_type == TokenType.STRING:
            self._advance(2)
            return self.expression(nodes.Worded(this=f"X'{self._prev.text}'"))
        return super()._parse_type(*args, **options)

    def _parse_types(self, *args: Any, **options: Any) -> exp.Expr | None:
        """Parse ``STRING COLLATE UNICODE_CI`` wherever a type may be, also inside another type.

        Before ``(`` these words are functions. Trying a type first would double the time with each level.
        """
        before = self._next is not None and self._next.token_type == TokenType.L_PAREN
        if before and self._curr is not None and self._curr.token_type in _NESTED:
            return None
        kind = super()._parse_types(*args, **{**options, "with_collation": False})
        if isinstance(kind, exp.DataType) and kind.this in exp.DataType.TEXT_TYPES and kind.expressions:
            length = whole_number(kind.expressions[0].this)
            if length is not None and length > LONGEST_TEXT:
                self.raise_error(f"the length of a text type is at most {LONGEST_TEXT:,}", self._prev)
        if isinstance(kind, exp.DataType) and kind.this is exp.DType.TEXT and self._match(TokenType.COLLATE):
            name = self._parse_id_var()
            if name is None:
                self.raise_error("the name of a collation is expected, for example STRING COLLATE UNICODE_CI")
            else:
                kind.set("collate", exp.var(name.name))
        return kind
