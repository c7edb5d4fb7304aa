"""Statements and clauses of other systems: what to write here, for the hint of a text that does not parse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import Token, TokenType

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
