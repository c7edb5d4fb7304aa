"""Explains why a text does not parse, with a guess at what was meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import Token, TokenType

from rowtime.core.errors import Problem
from rowtime.sql.filled import as_written
from rowtime.sql.places import place_at
from rowtime.sql.syntax_fault import SyntaxFault

KEYWORDS = (
    *("SELECT", "STREAM", "DISTINCT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "WITHIN", "INTERVAL", "UNION"),
    *("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "OUTER", "OVER", "PARTITION", "RANGE", "ROWS", "PRECEDING"),
    *("BETWEEN", "WINDOW", "FLOOR", "CEIL", "STEP", "MONOTONIC", "TIMESTAMP", "CREATE", "REPLACE", "FOREIGN"),
    *("TABLE", "VIEW", "PUMP", "FUNCTION", "USING", "OPTIONS", "INSERT", "INTO", "VALUES", "ALTER", "ROWTIME"),
    *("BOUND", "STRICT", "DROP", "CASCADE", "EXISTS", "EXPLAIN", "MONOTONICITY", "WAITING", "ASCENDING"),
    *("DESCENDING", "STRICTLY", "CHECK", "COMMENT", "STARTED", "STOPPED"),
)
"""Keywords to guess: a word close to the fault that nearly spells one is taken for it."""

TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING", "VARCHAR"),
    *("CHAR", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "ARRAY", "MAP", "STRUCT"),
)
"""Types of columns, which a definition may misspell too."""

_BEFORE_A_NAME = ("FROM", "JOIN", "INTO", "AS", "STREAM", "VIEW", "PUMP", "TABLE", "FUNCTION", ".", ",")
"""Words before a name of the user, which may resemble a keyword by chance."""

REWORDED = {
    "Expecting )": "a closing parenthesis is missing",
    "Expecting (": "an opening parenthesis is missing",
    "Expected table name": "the name of a stream or table is expected",
    "Required argument": "an expression is missing",
    "Required keyword": "an expression is missing",
    "Failed to parse any statement following CTE": "a query is expected after WITH",
}
"""Beginnings of sqlglot's messages, and rowtime's words for them."""

_QUOTE = re.compile(r"Missing (\S+) from \d+:(\d+)")
_NEARNESS = 0.75


def explain_fault(text: str, tokens: list[Token], fault: SyntaxFault) -> Problem:
    """Return the problem (R101) of a statement: what is wrong, where, and perhaps what was meant."""
    slashes = _slashes(tokens)
    if slashes is not None and slashes.start <= fault.start:
        what = "// does not begin a comment"
        hint = "Write -- before the rest of the line, or /* … */ around it."
        return Problem("R101", f"This does not parse: {what}.", place_at(text, slashes.start, slashes.end + 1), hint)
    what = _reworded(text, fault)
    if fault.at_end:
        what = f"the statement ends too early: {what}"
    return Problem(
        "R101",
        f"This does not parse: {what}.",
        place_at(text, fault.start, fault.end),
        fault.hint or foreign_hint(tokens) or _hint(tokens, fault),
    )


def _slashes(tokens: list[Token]) -> Token | None:
    """Return the first of two adjacent slashes, which are no SQL."""
    kind = TokenType.SLASH
    pairs = (
        (first, second)
        for first, second in zip(tokens, tokens[1:], strict=False)
        if first.token_type == second.token_type == kind
    )
    return next((first for first, second in pairs if second.start == first.end + 1), None)


def _reworded(text: str, fault: SyntaxFault) -> str:
    if "nexpected token" in fault.message:
        shown, start, end = as_written(text, fault.start, fault.end)
        return f"{shown[start : end + 1]} is not expected here"
    for beginning, ours in REWORDED.items():
        if fault.message.startswith(beginning):
            return ours
    return fault.message.rstrip(".")


def _hint(tokens: list[Token], fault: SyntaxFault) -> str:
    """Return a hint: the keyword that a word at or just before the fault nearly spells, or where a clause belongs."""
    if fault.message.startswith("Expecting )") and any(
        t.start == fault.start and t.text.upper() == "EMIT" for t in tokens
    ):
        return (
            "EMIT belongs at the end of a whole query. Turn this one into a view, CREATE VIEW name AS SELECT … "
            "EMIT …, and use its name here."
        )
    before = {token.start: previous for previous, token in zip(tokens, tokens[1:], strict=False)}
    words = [t for t in tokens if t.start <= fault.start and t.token_type == TokenType.VAR]
    for word in words[:-4:-1]:
        previous = before.get(word.start)
        if previous is not None and previous.text.upper() in _BEFORE_A_NAME:
            continue
        typed = _defines(tokens) and previous is not None and previous.token_type == TokenType.VAR
        if (near := _near(word.text, TYPES if typed else KEYWORDS)) is not None:
            return f"Did you mean {near} instead of {word.text}?"
    if "parenthesis" in fault.message or fault.message.startswith("Expecting )"):
        return "Check that each ( has its ), and that commas separate the items."
    return ""


def _defines(tokens: list[Token]) -> bool:
    """Return True for a statement that lists columns with their types."""
    words = [token.text.upper() for token in tokens[:4]]
    return words[:1] == ["CREATE"] and bool({"STREAM", "TABLE"} & set(words))


def _near(word: str, words: tuple[str, ...]) -> str | None:
    """Return the known word that another word nearly spells."""
    spelled = word.upper()
    near = difflib.get_close_matches(spelled, words, n=1, cutoff=_NEARNESS)
    return near[0] if near and spelled not in words and abs(len(near[0]) - len(spelled)) <= 1 else None


def spelling_fault(text: str, error: Exception) -> tuple[Problem, int]:
    """Return the problem of a text that cannot be split into tokens, and its offset."""
    cause = str(error.__cause__ or error)
    quote = _QUOTE.search(cause)
    if quote:
        at = min(int(quote[2]), len(text))
        line = text.rfind("\n", 0, at) + 1
        slashes = text.find("//", line, at)
        if slashes >= 0 and "'" not in text[line:slashes] and "--" not in text[line:slashes]:
            what, hint = "// does not begin a comment", "Write -- before the rest of the line, or /* … */ around it."
            return Problem("R101", f"This does not parse: {what}.", place_at(text, slashes, slashes + 1), hint), slashes
        return explain_spelling(text, at, f"the {quote[1]} that opens here is never closed"), at
    comment = text.rfind("/*")
    if comment >= 0 and "*/" not in text[comment:]:
        return explain_spelling(text, comment, "the comment that opens here is never closed"), comment
    at = getattr(error, "start", None) or 0
    return explain_spelling(text, at, "something near here is not a word, a number or a text"), at


def explain_spelling(text: str, at: int, what: str) -> Problem:
    """Return the problem (R101) of characters that form no token."""
    return Problem("R101", f"This does not parse: {what}.", place_at(text, at))


_SORTED = (
    "Sort by it in a view, with the time that rows may be late: CREATE VIEW v AS SELECT STREAM ts AS ROWTIME, … FROM s "
    "ORDER BY ts WITHIN INTERVAL '5' SECOND."
)
_BY_KEY = (
    "Rows of a stream are final. Values that change belong in a table with a key: CREATE STREAM x (k INT NOT NULL, …) "
    "USING delta OPTIONS (path '/data/x', key 'k'), and CREATE PUMP p AS INSERT INTO x SELECT STREAM …. There, a row "
    "replaces the row with its key."
)
_OPTIONS = (
    "Name the format, and its options in OPTIONS: CREATE STREAM s (…) USING kafka OPTIONS (subscribe 'topic', …)."
)
_SHOWN = "Write EXPLAIN SELECT STREAM * FROM s for the columns of s. The command rowtime streams lists all streams."
_VIEW = (
    "Write CREATE VIEW v AS SELECT STREAM …. To keep its rows, let a pump write them: CREATE PUMP p AS INSERT INTO o "
    "SELECT STREAM * FROM v."
)

_HINTS: Final[Mapping[str, str]] = {
    "MERGE": _BY_KEY,
    "UPDATE": _BY_KEY,
    "DELETE": _BY_KEY,
    "INSERT OVERWRITE": "Write INSERT INTO: rows of a stream are never replaced. In a table with a key, a row replaces "
    "the row with its key.",
    "BY NAME": "List the columns that the query gives, in its order: INSERT INTO o (a, b) SELECT STREAM ….",
    "DESCRIBE": _SHOWN,
    "DESC": _SHOWN,
    "SHOW": _SHOWN,
    "FROM": "Begin with SELECT: SELECT STREAM * FROM s.",
    "MATERIALIZED": _VIEW,
    "STREAMING": "Write CREATE STREAM x AS SELECT STREAM … FROM s.",
    "SOURCE": _OPTIONS,
    "SINK": "Write CREATE STREAM x (…) USING kafka OPTIONS (topic 'out', …), and CREATE PUMP p AS INSERT INTO x SELECT "
    "STREAM ….",
    "WATERMARK": _SORTED,
    "TIMESTAMP BY": _SORTED,
    "WITH": _OPTIONS,
    "TUMBLING": "Group by it: GROUP BY TUMBLE(ROWTIME, INTERVAL '5' MINUTE), k.",
    "HOPPING": "Group by it: GROUP BY HOP(ROWTIME, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE), k.",
    "SESSION": "Group by it: GROUP BY SESSION(ROWTIME, INTERVAL '5' MINUTE), k.",
    "TOP": "Write LIMIT 3 at the end for the first rows of a stream. For the first rows of each hour, use ROW_NUMBER.",
}
_FIRST: Final = ("MERGE", "UPDATE", "DELETE", "DESCRIBE", "DESC", "SHOW", "FROM")
_CREATED: Final = ("MATERIALIZED", "STREAMING", "SOURCE", "SINK")
_PASSED: Final = ("CREATE", "OR", "REPLACE", "REFRESH", "TEMPORARY", "LIVE")
_INSIDE: Final = {
    ("BY", "NAME"): "BY NAME",
    ("WATERMARK",): "WATERMARK",
    ("TIMESTAMP", "BY"): "TIMESTAMP BY",
    ("WINDOW", "TUMBLING"): "TUMBLING",
    ("WINDOW", "HOPPING"): "HOPPING",
    ("WINDOW", "SESSION"): "SESSION",
}


def foreign_hint(tokens: Sequence[Token]) -> str:
    """Return what to write for a statement of another system; empty for any other statement."""
    words = [token.text.upper() for token in tokens]
    form = _form(words)
    return _HINTS[form] if form else _path(tokens)


def _form(words: Sequence[str]) -> str:
    if words[0] in _FIRST:
        return words[0]
    if words[:2] == ["INSERT", "OVERWRITE"]:
        return "INSERT OVERWRITE"
    if words[0] == "CREATE":
        word_of_object = next((word for word in words if word not in _PASSED), "")
        if word_of_object in _CREATED:
            return word_of_object
    for pair, form in _INSIDE.items():
        if any(tuple(words[n : n + len(pair)]) == pair for n in range(1, len(words))):
            return form
    if words[0] == "CREATE" and _has(words, "WITH", "("):
        return "WITH"
    return "TOP" if words[0] == "SELECT" and "TOP" in words[1:4] else ""


def _has(words: Sequence[str], *pair: str) -> bool:
    return any((first, second) == pair for first, second in zip(words, words[1:], strict=False))


def _path(tokens: Sequence[Token]) -> str:
    """Return the function for ``js:a.b``, the field of a JSON text."""
    for number, colon in enumerate(tokens[1:-1], 1):
        before, after = tokens[number - 1], tokens[number + 1]
        joined = before.end + 1 == colon.start and colon.end + 1 == after.start
        if colon.token_type == TokenType.COLON and joined and before.text.isidentifier() and after.text.isidentifier():
            path = after.text
            for dot, name in zip(tokens[number + 2 :: 2], tokens[number + 3 :: 2], strict=False):
                if dot.text != ".":
                    break
                path += f".{name.text}"
            return f"Write GET_JSON_OBJECT({before.text}, '$.{path}') for a field of a JSON text."
    return ""
