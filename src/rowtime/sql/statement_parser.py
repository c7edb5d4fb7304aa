"""Parses statements: CREATE, ALTER, DROP, INSERT, EXPLAIN and queries.

Each method reads one construct at the current token; the dialect's parser reads queries and expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError

from rowtime.sql import statements as st
from rowtime.sql.dialect import Rowtime
from rowtime.sql.places import locate
from rowtime.sql.schema_parser import SchemaParser

QUERY_WORDS = ("SELECT", "WITH", "(", "VALUES")


FINAL = (("AFTER", "WATERMARK"), ("STREAM", "AFTER", "WATERMARK"), ("ON", "WINDOW", "CLOSE"), ("FINAL",))
"""The words after EMIT for final rows, in Beam and Calcite, in RisingWave and in ksqlDB."""
_EARLIER = (("AFTER", "DELAY"), ("STREAM", "AFTER", "DELAY"))
_OTHER_PLANS = ("EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL", "ANALYZE")

_WORDS = {"refresh": "REFRESH EVERY", "early": "EARLY BEYOND", "ahead": "EARLY BEYOND … AFTER ARRIVAL"}


class StatementParser(SchemaParser):
    """Parses one statement at a time, with places in the text of the whole script."""

    def statement(self, tokens: list[Token], text: str) -> st.Statement:
        """Parse the statement that all of the tokens form. Raises ``SyntaxFault``."""
        statement: st.Statement = self._all_of(tokens, text, self._statement)
        return statement

    def expression_of(self, tokens: list[Token], text: str) -> exp.Expr:
        """Parse the scalar expression that all of the tokens form. Raises ``SyntaxFault``."""
        expression: exp.Expr = self._all_of(tokens, text, self._required_expression)
        return expression

    def column_of(self, tokens: list[Token], text: str) -> st.ColumnDef:
        """Parse the column definition that all of the tokens form. Raises ``SyntaxFault``."""
        column: st.ColumnDef = self._all_of(tokens, text, self._column)
        return column

    def _all_of(self, tokens: list[Token], text: str, parse: Callable[[], Any]) -> Any:
        self.reset()
        self.furthest = None
        self.sql = text
        self._chunks = [tokens]
        self._advance_chunk()
        try:
            parsed = parse()
            if self._curr:
                self.raise_error("Unexpected token")
        except ParseError as error:
            raise (self.furthest or error) from None
        return parsed

    def _statement(self) -> st.Statement:
        facts: dict[str, Any] = {"place": self._place(self._curr, self._curr), "text": self._source(self._tokens[0])}
        word = self._curr.text.upper()
        if word in QUERY_WORDS:
            return st.Query(query=self._query(), **facts)
        parsers = {
            "CREATE": self._create,
            "ALTER": self._alter,
            "DROP": self._drop,
            "INSERT": self._insert,
            "EXPLAIN": self._explain,
            "SET": self._set,
            "USE": self._use,
        }
        if not self._match_texts(tuple(parsers)):
            self.raise_error("a statement begins with SELECT, CREATE, ALTER, DROP, INSERT or EXPLAIN")
        return parsers[word](facts)

    def _source(self, first: Token) -> str:
        return self._find_sql(first, self._tokens[-1])

    # Queries

    def _query(self) -> exp.Query:
        query = self._parse_select(nested=True)
        if query is not None:
            query = self._parse_query_modifiers(self._parse_set_operations(query))
        if not isinstance(query, exp.Query):
            self.raise_error("a query is expected")
        self._query_options(query)
        return query

    def _query_options(self, query: exp.Query) -> None:
        """Parse the options after a query's last clause, in any order."""
        while True:
            if self._match_text_seq("WITH", "UNBOUNDED", "STATE"):
                query.set("unbounded_state", value=True)
            elif self._match_text_seq("ON", "ERROR", "STOP"):
                query.set("on_error_stop", value=True)
            elif final := self._emits_when_final():
                query.set("emit_final", final)
            elif self._match_text_seq("EMIT", "CHANGES"):
                query.set("emit_changes", value=True)
            elif emit := self._emit():
                query.set("emit", emit)
            elif self._match_text_seq("EMIT", "EVERY"):
                query.set("emit_every", self._parse_required_interval())
            elif self._match_text_seq("KEYS", "EXPIRE", "AFTER"):
                query.set("keys_expire", self._parse_required_interval())
            else:
                return

    def _emits_when_final(self) -> exp.Var | None:
        """Parse the words of other systems for final results, which groups give here anyway."""
        first = self._curr
        if any(self._match_text_seq("EMIT", *words, advance=False) for words in _EARLIER):
            hint = (
                "Group by PANES(t, DURATION …) and write EMIT EVERY INTERVAL '1' MINUTE to get early rows, then "
                "final ones."
            )
            self.raise_error("a group goes out when it is complete, not earlier", hint=hint)
        if not any(self._match_text_seq("EMIT", *words) for words in FINAL):
            if self._match_text_seq("EMIT", "STREAM"):
                hint = "Write SELECT STREAM and leave EMIT STREAM out: a group goes out once, when it is complete."
                self.raise_error("EMIT STREAM is not part of this SQL", first, hint=hint)
            return None
        final = self.expression(exp.Var(this="EMIT"))
        locate(final, first, self._prev)
        return final

    def _explain(self, facts: dict[str, Any]) -> st.Explain:
        kind: Literal["PLAN", "MONOTONICITY", "WAITING"] = "PLAN"
        if self._match_text_seq("MONOTONICITY"):
            kind = "MONOTONICITY"
        elif self._match_text_seq("WAITING"):
            kind = "WAITING"
        elif not self._match_text_seq("PLAN") and self._match_texts(_OTHER_PLANS, advance=False):
            what = f"EXPLAIN does not support {self._curr.text.upper()}"
            self.raise_error(what, hint="Write EXPLAIN, EXPLAIN MONOTONICITY or EXPLAIN WAITING before the query.")
        if not self._match_text_seq("FOR") and self._match_texts(("WITH", "WITHOUT", "INCLUDING", "EXCLUDING", "AS")):
            what = f"EXPLAIN PLAN takes no option for what it shows ({self._prev.text.upper()})"
            self.raise_error(what, self._prev, hint="Write EXPLAIN PLAN FOR before the query.")
        return st.Explain(kind=kind, query=self._query(), **facts)

    # CREATE

    def _create(self, facts: dict[str, Any]) -> st.Statement:
        if self._match_text_seq("OR", "REPLACE"):
            facts["replace"] = True
        temporary = self._match_texts(("TEMPORARY", "TEMP")) is True
        if self._match_text_seq("SCHEMA"):
            return self._create_schema(facts)
        if self._match_text_seq("SERVER"):
            return self._create_server(facts)
        foreign = self._match_text_seq("FOREIGN")
        if temporary and (foreign or not self._match_texts(("VIEW", "FUNCTION", "STREAM"), advance=False)):
            self.raise_error("only a STREAM, a VIEW or a FUNCTION can be TEMPORARY", hint="Leave TEMPORARY out.")
        if self._match_text_seq("STREAM"):
            return self._create_stream({**facts, "temporary": temporary}, foreign=foreign)
        if foreign or not self._match_texts(("VIEW", "PUMP", "TABLE", "FUNCTION")):
            hint = (
                "Name the format in the definition of the stream: CREATE STREAM s (…) USING csv OPTIONS (path '/data')."
            )
            self.raise_error("CREATE makes a STREAM, VIEW, PUMP, TABLE or FUNCTION", hint=hint if foreign else "")
        return {
            "VIEW": self._create_view,
            "PUMP": self._create_pump,
            "TABLE": self._create_table,
            "FUNCTION": self._create_function,
        }[self._prev.text.upper()](facts)

    def _create_server(self, facts: dict[str, Any]) -> st.CreateServer:
        """Parse ``CREATE SERVER s TYPE 'KAFKA' FOREIGN DATA WRAPPER ecda OPTIONS (…)``, in any order."""
        facts, kind, clauses = self._named(facts), "", dict[str, Any]()
        while True:
            if self._match_text_seq("TYPE"):
                kind = self._text("a type") if self._match(TokenType.STRING, advance=False) else self._name().text
            elif self._match_text_seq("FOREIGN", "DATA", "WRAPPER"):
                self._name()
            elif self._match_text_seq("OPTIONS"):
                clauses["options"], clauses["option_places"] = self._options()
            elif comment := self._comment():
                clauses["comment"] = comment
            else:
                return st.CreateServer(type=kind, **clauses, **facts)

    def _named(self, facts: dict[str, Any]) -> dict[str, Any]:
        if self._match_text_seq("IF", "NOT", "EXISTS"):
            facts["if_not_exists"] = True
        return {**facts, "name": self._name()}

    def _create_stream(self, facts: dict[str, Any], *, foreign: bool) -> st.CreateStream:
        facts = self._named(facts)
        renamed = self._column_names() if self._lists_names() else ()
        untyped = bool(renamed) or not self._match(TokenType.L_PAREN, advance=False)
        columns, clauses = () if untyped else self._columns(), self._clauses(stream=True)
        self._partitioned(clauses)
        if "resync" in clauses and "early" not in clauses:
            self.raise_error("RESYNC requires EARLY BEYOND, as in EARLY BEYOND INTERVAL '1' HOUR RESYNC AFTER 3 ROWS")
        query = self._query() if self._match_text_seq("AS") else None
        if query is None and untyped:
            what = f"column {renamed[0]} needs a type of Spark SQL" if renamed else "a stream needs columns"
            self.raise_error(what, hint="Write CREATE STREAM s (a STRING, …), or CREATE STREAM s AS SELECT STREAM ….")
        return st.CreateStream(columns=columns, query=query, renamed=renamed, foreign=foreign, **clauses, **facts)

    def _lists_names(self) -> bool:
        """Return True at ``(a, b)``, a list of columns without types."""
        if not self._match(TokenType.L_PAREN, advance=False):
            return False
        behind = self._tokens[self._index + 2 : self._index + 3]
        return bool(behind) and behind[0].token_type in (TokenType.COMMA, TokenType.R_PAREN)

    def _create_table(self, facts: dict[str, Any]) -> st.CreateTable:
        facts = self._named(facts)
        return st.CreateTable(columns=self._columns(), **self._clauses(stream=False), **facts)

    def _clauses(self, *, stream: bool) -> dict[str, Any]:
        """Parse the clauses after the columns, in any order, each at most once."""
        clauses: dict[str, Any] = {}
        while clause := self._clause(stream=stream):
            key, value = clause
            if key in clauses:
                self.raise_error(f"{_WORDS.get(key, key.upper().replace('_', ' '))} is given twice", self._prev)
            clauses[key] = value
        if "options" in clauses:
            clauses["options"], clauses["option_places"] = clauses["options"]
        return clauses

    def _clause(self, *, stream: bool) -> tuple[str, Any] | None:
        if self._match_text_seq("USING"):
            return "using", self._name().text
        if self._match_text_seq("OPTIONS"):
            return "options", self._options()
        if self._match_texts(("COMMENT", "DESCRIPTION")):
            return "comment", self._text("a comment")
        if not stream and self._match_text_seq("REFRESH"):
            self._match_text_seq("EVERY")
            return "refresh", self._parse_required_interval()
        return (self._partitions() or self._stream_clause()) if stream else None

    def _stream_clause(self) -> tuple[str, Any] | None:
        if self._match_text_seq("IDLE", "AFTER"):
            return "idle_after", self._parse_required_interval()
        if guard := self._guard():
            return guard
        if self._match_text_seq("EVENT", "TIME"):
            return "event_time", self._event_time()
        if self._match_text_seq("EVENT", "SHAPE"):
            return "shape", self._event_shape()
        if self._match_text_seq("SERVER"):
            return "server", self._name().text
        return None

    def _partitions(self) -> tuple[str, Any] | None:
        if not self._match_texts(("PARTITIONED BY",)):
            return None
        first = self._curr
        names, at = self._column_names(), self._place(first, self._prev)
        return "partitioned_by", (names, st.OptionPlace(at, at, first.start, self._prev.end))

    def _partitioned(self, clauses: dict[str, Any]) -> None:
        """Turn ``PARTITIONED BY`` into an option, so that it is stored with the stream's lasting options."""
        if (partitions := clauses.pop("partitioned_by", None)) is not None:
            names, at = partitions
            clauses["options"] = (*clauses.get("options", ()), ("partitionBy", ", ".join(names)))
            clauses["option_places"] = (*clauses.get("option_places", ()), at)

    def _guard(self) -> tuple[str, Any] | None:
        if self._match_text_seq("EARLY", "BEYOND"):
            limit = self._parse_required_interval()
            return ("ahead" if self._match_text_seq("AFTER", "ARRIVAL") else "early"), limit
        resync = self._parse_resync()
        return ("resync", resync) if resync else None

    def _create_view(self, facts: dict[str, Any]) -> st.CreateView:
        facts = self._named(facts)
        columns = self._column_names()
        comment = self._comment()
        event_time = self._event_time() if self._match_text_seq("EVENT", "TIME") else None
        comment = comment or self._comment()
        if self._match_text_seq("EVENT", "SHAPE", advance=False):
            self.raise_error("EVENT SHAPE comes after the query of a view", hint="Write AS SELECT … EVENT SHAPE …")
        self._required("AS")
        query = self._query()
        shape = self._event_shape() if self._match_text_seq("EVENT", "SHAPE") else None
        facts |= {"event_time": event_time, "shape": shape, "comment": comment}
        return st.CreateView(columns=columns, query=query, **facts)

    def _create_pump(self, facts: dict[str, Any]) -> st.CreatePump:
        facts = self._named(facts)
        comment = self._comment()
        stopped = self._match_texts(("STARTED", "STOPPED")) and self._prev.text.upper() == "STOPPED"
        comment = comment or self._comment()
        self._required("AS")
        self._required("INSERT", "INTO")
        target, listed = self._target()
        return st.CreatePump(
            target=target, query=self._query(), started=not stopped, comment=comment, **_list(listed), **facts
        )

    def _create_function(self, facts: dict[str, Any]) -> st.CreateFunction:
        name = self._name()
        facts |= self._signature()
        if not self._curr and "body" not in facts:
            self.raise_error("a function needs a definition")
        first = self._curr
        while self._curr and "body" not in facts and not self._match_texts(("COMMENT", "DESCRIPTION"), advance=False):
            self._advance()
        definition = "" if "body" in facts else self._find_sql(first, self._prev)
        comment = self._comment()
        return st.CreateFunction(name=name, definition=definition, comment=comment, **facts)

    # INSERT, ALTER, DROP

    def _insert(self, facts: dict[str, Any]) -> st.InsertValues | st.CreatePump:
        self._required("INTO")
        target, listed = self._target()
        columns = tuple(name.text for name in listed)
        if not self._match_text_seq("VALUES"):
            return st.CreatePump(name=None, target=target, query=self._query(), **_list(listed), **facts)
        rows = tuple(self._parse_csv(lambda: tuple(self._parse_wrapped_csv(self._required_expression))))
        if not rows:
            self.raise_error("VALUES needs a row in parentheses")
        return st.InsertValues(stream=target, columns=columns, rows=rows, **facts)

    def _target(self) -> tuple[st.Name, tuple[st.Name, ...]]:
        """Parse what INSERT INTO writes to, and its columns."""
        self._match_text_seq("TABLE")
        return self._name(), self._listed_names()

    def _alter(self, facts: dict[str, Any]) -> st.Statement:
        if self._match_text_seq("PUMP"):
            pumps = tuple(self._parse_csv(self._pumps))
            if len(pumps) == 1 and not pumps[0].text.endswith("*") and self._match_text_seq("TAKE", "OVER"):
                return st.TakeOver(pump=pumps[0], **facts)
            if not self._match_texts(("START", "STOP")):
                self.raise_error("ALTER PUMP needs START, STOP or TAKE OVER")
            return st.AlterPump(pumps=pumps, start=self._prev.text.upper() == "START", **facts)
        if self._match_text_seq("VIEW"):
            view = self._name()
            self._required("SET", "ROWTIME", "BOUND")
            at = self._required_expression()
            return st.SetBound(stream=view, at=at, strict=bool(self._match_text_seq("STRICT")), view=True, **facts)
        self._required("STREAM")
        stream = self._name()
        writer = self._text("a writer's name") if self._match_text_seq("WRITER") else None
        return self._alter_stream(stream, writer, facts)

    def _pumps(self) -> st.Name:
        """Parse the name of a pump, ``*`` or ``schema.*``; ``*.*`` means the pumps of every schema."""
        first, parts = self._curr, list[str]()
        if self._match_text_seq("*", ".", "*"):
            return st.Name("*.*", self._place(first, self._prev))
        while True:
            parts.append("*" if self._match(TokenType.STAR) else self._name_part(any_token=bool(parts)))
            if parts[-1] == "*" or not self._match(TokenType.DOT):
                return st.Name(".".join(parts), self._place(first, self._prev))

    def _alter_stream(self, stream: st.Name, writer: str | None, facts: dict[str, Any]) -> st.Statement:
        if self._match_text_seq("END"):
            return st.EndStream(stream=stream, writer=writer, **facts)
        if self._match_text_seq("SET", "ROWTIME", "BOUND"):
            at = self._required_expression()
            strict = self._match_text_seq("STRICT")
            return st.SetBound(stream=stream, writer=writer, at=at, strict=strict, **facts)
        if self._match_text_seq("SET", "BOUND", "OF"):
            column = self._name()
            if not self._match(TokenType.EQ):
                self.raise_error("SET BOUND OF takes a column, = and a value")
            at = self._parse_unary() or self._required_expression()
            strict = self._match_text_seq("STRICT")
            return st.SetBound(stream=stream, writer=writer, at=at, strict=strict, column=column, **facts)
        if writer is not None or not self._match_text_seq("SET", "(", "IDLE", "AFTER"):
            self.raise_error(
                "ALTER STREAM needs SET ROWTIME BOUND, SET BOUND OF column, SET (IDLE AFTER interval) or END"
            )
        after = self._parse_required_interval()
        self._match_r_paren()
        return st.SetIdle(stream=stream, after=after, **facts)

    def _drop(self, facts: dict[str, Any]) -> st.Drop | st.DropSchema:
        if self._match_text_seq("SCHEMA"):
            return self._drop_schema(facts)
        foreign = self._match_text_seq("FOREIGN")
        if not self._match_texts(("STREAM",) if foreign else get_args(st.Kind)):
            self.raise_error("DROP takes a STREAM, VIEW, PUMP, TABLE or FUNCTION")
        kind: st.Kind = self._prev.text.upper()  # type: ignore[assignment]  # one of the words just matched
        if_exists = self._match_text_seq("IF", "EXISTS")
        return st.Drop(kind=kind, if_exists=if_exists, name=self._name(), cascade=self._cascade(), **facts)


def _list(names: tuple[st.Name, ...]) -> dict[str, Any]:
    """Return the columns that a pump lists, and their place."""
    return {"columns": tuple(name.text for name in names), "column_places": tuple(name.place for name in names)}


def new_parser() -> StatementParser:
    """Return a parser for one statement."""
    return StatementParser(dialect=Rowtime())
