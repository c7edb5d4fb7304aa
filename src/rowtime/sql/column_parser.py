"""Parses column definitions, names and other small parts of statements."""

from __future__ import annotations

from typing import Any

from sqlglot import Token, TokenType, exp

from rowtime.core.errors import Place
from rowtime.sql.places import place_at
from rowtime.sql.query_parser import RowtimeParser
from rowtime.sql.statements import ColumnDef, DeclaredOrder, EventTimeDef, Name, OptionPlace, Options

RESOLUTIONS = tuple(
    f"{unit}{end}" for unit in ("SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND") for end in ("S", "")
)
UNITS = (*RESOLUTIONS, "DAYS", "DAY")
"""What a number in JSON can count since 1970, in a column of type TIMESTAMP or DATE."""
MODES = ("OUTPUT_EVENT_TIME", "INPUT_WATERMARK", "MANUAL")


CATALOG = "LOCALDB"
"""The catalog name that SQLstream's scripts may write before a schema."""

_BEHIND = "EVENT TIME comes after the list of columns, as in CREATE STREAM s (t TIMESTAMP) EVENT TIME (t)"


class ColumnParser(RowtimeParser):
    """Parses names, lists of columns and the declarations of a column."""

    def reset(self) -> None:
        """Forget what an earlier parse has read."""
        super().reset()
        self._units: list[tuple[str, str]] = []  # of the present column: the path below it, and the unit

    def _place(self, first: Token, last: Token) -> Place:
        return place_at(self.sql, first.start, last.end)

    def _required(self, *words: str) -> None:
        for word in words:
            if not self._match_text_seq(word):
                self.raise_error(f"{word} is expected")

    def _required_expression(self) -> exp.Expr:
        expression = self._parse_disjunction()
        if expression is None:
            self.raise_error("an expression is expected")
        return expression

    def _text(self, what: str) -> str:
        if not self._match(TokenType.STRING):
            self.raise_error(f"{what} is expected, in single quotes")
        return self._prev.text

    def _name(self, *, any_token: bool = False) -> Name:
        first = self._curr
        parts = [self._name_part(any_token=any_token)]
        if parts[0].upper() == CATALOG and self._match(TokenType.DOT, advance=False):
            self.raise_error("catalogs are not supported", first, hint=f"Leave {parts[0]} out, and the dot after it.")
        while self._match(TokenType.DOT):
            parts.append(self._name_part(any_token=True))
        return Name(".".join(parts), self._place(first, self._prev))

    def _name_part(self, *, any_token: bool) -> str:
        part = self._parse_id_var(any_token=any_token)
        if part is None:
            self.raise_error("a name is expected")
        return part.name

    def _column_names(self) -> tuple[str, ...]:
        """Parse ``(a, b)``, or nothing."""
        return tuple(name.text for name in self._listed_names())

    def _listed_names(self) -> tuple[Name, ...]:
        """Parse ``(a, b)`` with places, or nothing; the parenthesis may also begin a query."""
        if not self._match(TokenType.L_PAREN, advance=False) or self._next.token_type in (
            TokenType.SELECT,
            TokenType.WITH,
            TokenType.L_PAREN,
        ):
            return ()
        return tuple(self._parse_wrapped_csv(self._listed_name))

    def _listed_name(self) -> Name:
        first = self._curr
        return Name(self._name_part(any_token=True), self._place(first, self._prev))

    def _event_time(self) -> EventTimeDef:
        """Parse ``(t, LAG INTERVAL '10' SECOND, …)``: a column or field, then settings by name, in any order."""
        self._match_l_paren()
        first, column, settings, fields = self._curr, self._name_part(any_token=True), {}, []
        while self._match(TokenType.DOT):
            fields.append(self._name_part(any_token=True))
        while self._match(TokenType.COMMA):
            key, value = self._event_setting()
            if key in settings:
                word = {"gap": "MINIMUM GAP", "early": "EARLY BEYOND"}.get(key, key.upper())
                self.raise_error(f"{word} of EVENT TIME is given twice", self._prev)
            settings[key] = value
        place = self._place(first, self._prev)
        self._match_r_paren()
        return EventTimeDef(column, place=place, fields=tuple(fields), **settings)

    def _event_setting(self) -> tuple[str, Any]:
        if self._match_text_seq("LAG"):
            return "lag", self._parse_required_interval()
        if self._match_text_seq("MINIMUM", "GAP"):
            return "gap", self._parse_required_interval()
        if self._match_text_seq("EARLY", "BEYOND"):
            return "early", self._parse_required_interval()
        if self._match_text_seq("RESOLUTION") and self._match_texts(RESOLUTIONS):
            return "resolution", self._prev.text.upper().removesuffix("S")
        if not self._match_text_seq("MODE") or not self._match_texts(MODES):
            self.raise_error(
                "EVENT TIME takes LAG, MINIMUM GAP and EARLY BEYOND with an interval, "
                f"RESOLUTION {', '.join(RESOLUTIONS[::2])}, and MODE {', '.join(MODES)}"
            )
        return "mode", self._prev.text.upper()

    def _signature(self) -> dict[str, Any]:
        """Parse ``(x INT, …) RETURNS type`` of a scalar function, and ``RETURN body`` of an SQL one; or nothing."""
        if not self._match(TokenType.L_PAREN):
            return {}
        given = [] if self._match(TokenType.R_PAREN, advance=False) else self._parse_csv(self._column)
        if any(parameter.units for parameter in given):
            self.raise_error("RESOLUTION is for columns of a stream")
        self._match_r_paren()
        self._required("RETURNS")
        kind = self._parse_types(schema=True)
        if kind is None:
            self.raise_error("RETURNS needs a type of Spark SQL, as in RETURNS BIGINT")
        facts = {"parameters": tuple(given), "returns": kind.sql(self.dialect)}
        return {**facts, "body": self._required_expression()} if self._match_text_seq("RETURN") else facts

    def _columns(self) -> tuple[ColumnDef, ...]:
        return tuple(self._parse_wrapped_csv(self._column))

    def _column(self) -> ColumnDef:
        first = self._curr
        name = self._name_part(any_token=True)
        place = self._place(first, self._prev)
        if name.upper() == "EVENT" and self._match_text_seq("TIME", advance=False):
            self.raise_error(_BEHIND, first)
        self._units = []
        kind = self._parse_types(schema=True)
        if kind is None:
            self.raise_error(f"column {name} needs a type of Spark SQL, as in {name} STRING")
        self._units = [(f"{name}.{path}", unit) for path, unit in self._units]
        nullable, order, checks, comment = True, None, [], ""
        options: Options = ()
        while True:
            if self._match_text_seq("NOT", "NULL"):
                nullable = False
            elif self._match_texts(("STRICTLY", "ASCENDING", "DESCENDING"), advance=False):
                order = self._order(again=order is not None)
            elif self._match_text_seq("CHECK"):
                checks.append(self._parse_wrapped(self._required_expression))
            elif self._match_texts(("COMMENT", "DESCRIPTION")):
                comment = self._text("a comment")
            elif self._match_text_seq("OPTIONS"):
                options = self._options()[0]
            elif self._match_text_seq("RESOLUTION"):
                self._units.append((name, self._unit()))
            elif self._match_text_seq("EVENT", "TIME"):
                self.raise_error(_BEHIND, self._prev)
            else:
                break
        facts = (nullable, order, tuple(checks), comment, options, tuple(dict.fromkeys(self._units)))
        return ColumnDef(name, kind.sql(self.dialect), *facts, place=place)

    def _unit(self) -> str:
        if not self._match_texts(UNITS):
            self.raise_error(f"RESOLUTION takes {', '.join(UNITS[::2])}")
        return self._prev.text.upper().removesuffix("S")

    def _parse_struct_types(self, type_required: bool = False) -> exp.Expr | None:  # noqa: FBT001, FBT002 - sqlglot's
        """Parse a field of a struct, which may have a unit for its numbers."""
        before = len(self._units)
        part = super()._parse_struct_types(type_required=type_required)
        if isinstance(part, exp.ColumnDef):
            own = [("", self._unit())] if self._match_text_seq("RESOLUTION") else self._units[before:]
            self._units[before:] = [(".".join(filter(None, (part.name, path))), unit) for path, unit in own]
        return part

    def _options(self) -> tuple[Options, tuple[OptionPlace, ...]]:
        """Parse ``(name 'value', …)`` after OPTIONS, with the place of each."""
        pairs = self._parse_wrapped_csv(self._option, optional=False)
        return tuple(option for option, _ in pairs), tuple(place for _, place in pairs)

    def _option(self) -> tuple[tuple[str, str], OptionPlace]:
        first = self._curr
        quoted = self._match(TokenType.STRING)
        key = self._prev.text if quoted else self._name(any_token=True).text
        name = self._place(first, self._prev)
        self._match(TokenType.EQ)
        begin = self._curr
        sign = "-" if self._match(TokenType.DASH) else ""
        values = (TokenType.NUMBER,) if sign else (TokenType.STRING, TokenType.NUMBER, TokenType.TRUE, TokenType.FALSE)
        if not self._match_set(values):
            self.raise_error(f"option {key} needs a value, as in {key} 'value'")
        value = self._place(begin, self._prev)
        return (key, sign + self._prev.text), OptionPlace(name, value, begin.start, self._prev.end)

    def _order(self, *, again: bool) -> DeclaredOrder:
        if again:
            self.raise_error("a column can have only one order")
        strict = self._match_text_seq("STRICTLY")
        if not self._match_texts(("ASCENDING", "DESCENDING")):
            self.raise_error("STRICTLY needs ASCENDING or DESCENDING")
        ascending = self._prev.text.upper() == "ASCENDING"
        if not self._match_text_seq("WITHIN"):
            return DeclaredOrder(ascending, strict)
        if self._match(TokenType.NUMBER, advance=False):
            return DeclaredOrder(ascending, strict, within_rows=self._row_count())
        return DeclaredOrder(ascending, strict, within=self._parse_required_interval())

    def _row_count(self) -> int:
        if not self._curr.text.isdecimal():
            self.raise_error("WITHIN takes a whole number of rows, as in WITHIN 100 ROWS")
        self._advance()
        count = int(self._prev.text)
        if not self._match_texts(("ROWS", "ROW")):
            self.raise_error("ROWS is expected, as in WITHIN 100 ROWS")
        return count
