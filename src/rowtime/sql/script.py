"""The entry point of the language: splits text into statements, with a problem for each that fails.

For any text the result is statements and problems, never an exception. Each statement is parsed on its own, so that one
mistake does not hide the next.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import TypeVar

from sqlglot import Token, TokenType, exp

from rowtime.core.errors import Problem, Refused
from rowtime.sql.dialect import Rowtime
from rowtime.sql.faults import explain_fault, explain_spelling, spelling_fault
from rowtime.sql.places import place_at
from rowtime.sql.schemas import in_schemas
from rowtime.sql.statement_parser import StatementParser, new_parser
from rowtime.sql.statements import ColumnDef, Script, Statement
from rowtime.sql.syntax_fault import SyntaxFault

T = TypeVar("T")

NESTED_TOO_DEEPLY = "the statement is nested too deeply"
NOT_UNDERSTOOD = "the statement is not understood"


def parse_script(text: str) -> Script:
    """Parse all statements of a text; each one that does not parse gives a problem (R101)."""
    tokens, fault = _tokens(text)
    groups = _split(tokens)
    defines = set[str]()
    if fault is not None and groups:
        defines |= _defined(groups.pop())  # the statement with the fault is not checked further
    statements: list[Statement] = []
    problems: list[Problem] = []
    for group in filter(None, groups):
        parsed: Statement | Problem = _guarded(StatementParser.statement, group, text)
        if isinstance(parsed, Problem):
            problems.append(parsed)
            defines |= _defined(group)
        else:
            statements.append(parsed)
    if fault is not None:
        problems.append(fault)
    return Script(text, in_schemas(statements), tuple(problems), frozenset(defines))


def _defined(tokens: list[Token]) -> set[str]:
    """Return the words of a CREATE up to its columns or query."""
    head = takewhile(lambda token: token.token_type not in (TokenType.L_PAREN, TokenType.ALIAS), tokens)
    words = [token.text.lower() for token in head]
    return set(words) if words[:1] == ["create"] else set()


def parse_expression(text: str) -> exp.Expr:
    """Parse one scalar expression. Raises ``Refused`` (R101)."""
    return _one(StatementParser.expression_of, text)


def parse_column(text: str) -> ColumnDef:
    """Parse one column as in CREATE STREAM: ``id BIGINT STRICTLY ASCENDING``. Raises ``Refused`` (R101)."""
    return _one(StatementParser.column_of, text)


def _one(parse: Callable[[StatementParser, list[Token], str], T], text: str) -> T:
    tokens, fault = _tokens(text)
    if fault is not None:
        raise Refused(fault)
    if not tokens:
        raise Refused(Problem("R101", "The script contains no SQL.", place_at(text, 0)))
    parsed = _guarded(parse, tokens, text)
    if isinstance(parsed, Problem):
        raise Refused(parsed)
    return parsed


def _tokens(text: str) -> tuple[list[Token], Problem | None]:
    """Return the tokens up to the first spelling fault (an unclosed quote, say)."""
    if "\0" in text:
        at = text.index("\0")
        return _tokens(text[:at])[0], explain_spelling(text, at, "a NUL byte is not allowed in SQL")
    try:
        return Rowtime().tokenize(text), None
    except Exception as error:  # noqa: BLE001 - sqlglot raises more than TokenError on odd input
        problem, at = spelling_fault(text, error)
    try:
        return Rowtime().tokenize(text[:at]), problem
    except Exception:  # noqa: BLE001 - the same
        return [], problem


def _split(tokens: list[Token]) -> list[list[Token]]:
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            groups.append([])
        else:
            groups[-1].append(token)
    return groups


def _guarded(parse: Callable[[StatementParser, list[Token], str], T], tokens: list[Token], text: str) -> T | Problem:
    try:
        return parse(new_parser(), tokens, text)
    except SyntaxFault as fault:
        return explain_fault(text, tokens, fault)
    except RecursionError:
        message = NESTED_TOO_DEEPLY
    except Exception:  # noqa: BLE001 - callers always get an answer; sqlglot may fail on odd input
        message = NOT_UNDERSTOOD
    return explain_fault(text, tokens, SyntaxFault(message, tokens[0].start, tokens[-1].end, at_end=False))
