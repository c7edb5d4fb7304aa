"""SQL as messages show it, with an asterisk for each character of a secret; the text may not parse.

A value is secret by the name before it, if it says so; and in a definition, whose options hold credentials, unless the
name is known to be another's: a misspelt ``pasword`` is nobody's name. Queries are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from rowtime.core.secrets import CONFIDENTIAL, VARIABLE, Known, hidden_spans, secret_spans

# Matches in text that may not parse: a name, then a quoted value (perhaps never closed) or a number. The value itself
# is searched too: after the table name 'secrets', say, the value is the text up to the next quote.
_IN_SQL: Final = re.compile(
    rf"(?<![\w.\-])(?=[\w.\-]*(?:{CONFIDENTIAL})[\w.\-]*[\"'`]?\s*=?\s*"
    r"(?:'(?P<quoted>(?:[^']|'')*)|(?P<bare>-?\d[\w.]*)))",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(
    r"(?P<comment>--[^\r\n]*|/\*.*?(?:\*/|\Z))|(?P<text>'(?:[^']|'')*'?)|(?P<name>\"[^\"]*\"?|`[^`]*`?|[^\W\d][\w.\-]*)"
    r"|(?P<number>\d[\w.]*)|(?P<mark>[^\s])",
    re.DOTALL,
)
_QUERY: Final = re.compile(
    r"(?:WITH|SELECT|INSERT|EXPLAIN|ALTER|VALUES)\b"
    r"|CREATE\s+(?:OR\s+\w+\s+)?(?:TEMP(?:ORARY)?\s+)?(?:VIEW|PUMP|FUNCTION|SCHEMA)\b",
    re.IGNORECASE,
)
_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "INSERT"})
_LISTS: Final = frozenset({"OPTION", "OPTIONS", "PROPERTIES", "TBLPROPERTIES", "SERDEPROPERTIES"})
_NO_OPTION: Final = frozenset(
    {"INTERVAL", "DATE", "TIME", "TIMESTAMP", "COMMENT", "TYPE", "WRITER", "SCHEMA"}
    | {"WITHIN", "AFTER", "BEYOND", "LIKE", "BETWEEN", "AND", "OR", "NOT"}
)
"""Words before a text or a number that is no option's value."""


def starred(text: str, known: Known) -> str:
    """Return SQL with an asterisk for each character of a secret, so that places stay valid."""
    spans = [match.span("quoted" if match["quoted"] is not None else "bare") for match in _IN_SQL.finditer(text)]
    spans += _of_options(text, known)
    letters, open_ = list(text), {at for match in VARIABLE.finditer(text) for at in range(*match.span())}
    for start, end in spans:
        hidden = (at for at in range(start, end) if at not in open_ and letters[at] not in "\r\n")
        for at in hidden:
            letters[at] = "*"
    return "".join(letters)


def _of_options(text: str, known: Known) -> Iterator[tuple[int, int]]:
    """Yield the secret parts of texts and numbers: of URLs anywhere, and of values in definitions."""
    tokens = [match for match in _TOKEN.finditer(VARIABLE.sub(_as_word, text)) if match.lastgroup != "comment"]
    defines, begins, checked = True, True, 0
    item: list[re.Match[str]] | None = None  # the tokens of an entry of a list of options
    for number, token in enumerate(tokens):
        word, after = token[0].upper(), tokens[number + 1 : number + 2]
        if begins:
            defines, checked = _QUERY.match(text, token.start()) is None, 0
        begins = word == ";"
        if lists := word in (*_LISTS, "WITH") and after and after[0][0] == "(":
            item = []
        if word in _QUERIES or lists:
            defines = bool(lists)
        if checked or (word == "(" and number and tokens[number - 1][0].upper() == "CHECK"):
            checked += (word == "(") - (word == ")")
        if item is not None and word in ("(", ",", ")", ";"):
            item = [] if word in ("(", ",") else None
        elif item is not None and not lists:
            if item and token.lastgroup == "name":  # a value without quotes, or in those of names
                option, (at, end) = _plain(item[0]), _inside(token)
                yield from ((at + a, at + b) for a, b in hidden_spans(option, text[at:end], known))
            item.append(token)
        if token.lastgroup not in ("text", "number"):
            continue
        name = _name_before(tokens[max(0, number - 3) : number])
        at, end = _inside(token)
        if defines and not checked and _is_value(token, name, after) and not secret_spans(name, text[at:end]):
            yield from [] if known(name) else [(at, end)]
        yield from ((at + a, at + b) for a, b in hidden_spans(name if defines else "", text[at:end], known))
    yield from _shifted(text, [token for token in tokens if token.lastgroup == "text"])


def _inside(token: re.Match[str]) -> tuple[int, int]:
    """Return the place of a number or a plain name, or of what is between the quotes of a text or a name."""
    quote = token[0][0]
    if quote not in "'\"`":
        return token.span()
    return token.start() + 1, max(token.start() + 1, token.end() - token[0].endswith(quote))


def _plain(token: re.Match[str]) -> str:
    return token[0].strip("\"`'")


def _shifted(text: str, texts: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """If a quote is missing, yield what touches the quotes of two texts: it may be the inside of one."""
    if texts and (len(texts[-1][0]) == 1 or not texts[-1][0].endswith("'")):
        for before, after in pairwise(texts):
            if text[before.end() : after.start()].strip(" \t\r\n,()") and text[before.end()] not in " \t\r\n,();":
                yield before.end(), after.start()


def _as_word(variable: re.Match[str]) -> str:
    """Return a word of the same length in the place of a variable."""
    return "_" * len(variable[0])


def _name_before(tokens: list[re.Match[str]]) -> str:
    """Return the name that a value follows, or nothing."""
    while tokens and tokens[-1][0] in ("=", "-"):
        tokens = tokens[:-1]
    return _plain(tokens[-1]) if tokens and tokens[-1].lastgroup in ("name", "text") else ""


def _is_value(token: re.Match[str], name: str, after: list[re.Match[str]]) -> bool:
    """Return True if a text or a number in a definition may be the value of an option."""
    if token.lastgroup == "number":
        return bool(name) and name.upper() not in _NO_OPTION
    names = bool(after) and (after[0][0] == "=" or after[0].lastgroup in ("text", "number")) and not name
    return not names and name.upper() not in _NO_OPTION
