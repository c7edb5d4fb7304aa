"""Secrets: which options and variables hold them, and how texts are shown without them.

A secret is the value of an option whose name says so (``password``, ``passphrase``, a key, a token), or the secret part
of a URL. Checkpoints and homes store ``${name}`` in its place; messages and EXPLAIN show an ellipsis.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

Replacing = Callable[[int, str], str]  # takes the number of a part, and the part
Known = Callable[[str], bool]
"""Returns True for the name of an option that has a meaning, and none that is secret."""

HIDDEN: Final = "…"
CONFIDENTIAL: Final = (
    r"pass(?:word|wd|phrase|code)|passw|\bpass\b|pwd|secret|token|credential|authorization|jaas|sslkey"
    r"|basic[._]auth|(?:private|access|api|account|encryption|keystore|shared|storage|secret|master|sas)[._-]?key"
)
_NAME: Final = re.compile(CONFIDENTIAL, re.IGNORECASE)
_OF_VARIABLE: Final = re.compile(rf"{CONFIDENTIAL}|(?:^|_)(?:pw|key|pass|auth)(?:$|_|\d)", re.IGNORECASE)
_NO_SECRET: Final = frozenset(
    {"key", "key.column", "key.columns", "rowtime.column", "sasl.oauthbearer.token.endpoint.url"}
)
_WITH_USER: Final = "basic.auth.user.info"  # user:password
_IN_URL: Final = re.compile(
    rf"[?&;,]\s*[\w.-]*(?:{CONFIDENTIAL}|\bsig\b|signature)[\w.-]*=(?P<one>[^&;,\s]*)"
    r"|//[^/@\s:]*:(?P<two>[^/\s]*|[^@\s]*)@|thin:[^/@\s]*/(?P<three>[^@\s]*)@",
    re.IGNORECASE,
)
_PARAMETER: Final = re.compile(r"[?&;]\s*([\w.-]+)=([^&;\s]*)")
VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_SHORTEST: Final = 4  # characters; a shorter one would match in every text
_SHORTEST_UNKNOWN: Final = 8  # of the value of an option that nobody knows, which may be a word

_IN_JAAS: Final = re.compile(
    rf"[\w.\-]*(?:{CONFIDENTIAL})[\w.\-]*\s*=\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<bare>[^\s;\"]+))", re.IGNORECASE
)


def is_secret(option: str) -> bool:
    """Return True if the whole value of an option is secret, by the option's name."""
    name = option.lower().removeprefix("kafka.")
    return name not in _NO_SECRET and _NAME.search(name) is not None


def is_secret_variable(name: str) -> bool:
    """Return True if the name of a variable says that it holds a secret."""
    return _OF_VARIABLE.search(name) is not None


def secret_spans(option: str, value: str) -> list[tuple[int, int]]:
    """Return which parts of an option's value are secret: all of it, the part after a user name, or parts of a URL."""
    if option.lower().endswith(_WITH_USER):
        start = value.find(":") + 1
        return [(start, len(value))] if start < len(value) else []
    if is_secret(option):
        return [(0, len(value))] if value else []
    spans = (_part(match, ("one", "two", "three")) for match in _IN_URL.finditer(value))
    return [span for span in spans if span[0] < span[1]]


def hidden_spans(option: str, value: str, known: Known) -> list[tuple[int, int]]:
    """Return which parts of an option's value people are not shown: more than what is secret for sure.

    That is the whole value of an option that is not known, because its name may be a misspelt one; in a URL likewise.
    An empty ``option``: a text of a query, of which only the secrets are hidden.
    """
    spans = secret_spans(option, value)
    if not option or is_secret(option):
        return spans
    if not known(option) and not spans:
        return [(0, len(value))] if value else []
    unknown = [] if ":" not in value else [m.span(2) for m in _PARAMETER.finditer(value) if not known(m[1])]
    return sorted({*spans, *(span for span in unknown if not any(a < span[1] and span[0] < b for a, b in spans))})


def shown(option: str, value: str, known: Known) -> str:
    """Return the value of an option as people see it."""
    return _replaced(value, hidden_spans(option, value, known), lambda _, __: HIDDEN)


def without_secrets(option: str, value: str) -> str:
    """Return the value of an option as files keep it."""
    return _replaced(value, secret_spans(option, value), lambda _, __: HIDDEN)


def _literal_spans(option: str, written: str) -> list[tuple[int, int]]:
    """Like `secret_spans`; in JAAS settings only the values of secret names, so that one variable can replace each."""
    if "jaas" in option.lower():
        spans = [_part(match, ("quoted", "bare")) for match in _IN_JAAS.finditer(written)]
        return spans or secret_spans(option, written)
    return secret_spans(option, written)


def kept(stream: str, option: str, written: str) -> tuple[str, dict[str, str]]:
    """Return an option's value as files may hold it, and the values of its variables that nothing else defines.

    ``written``: the value with its variables. A secret written as a literal gets a variable of its own.
    """
    literal: dict[str, str] = {}

    def named(number: int, text: str) -> str:
        if VARIABLE.fullmatch(text):
            return text
        name = re.sub(r"\W", "_", f"secret_{stream}_{option}{f'_{number + 1}' if number else ''}")
        literal[name] = text
        return f"${{{name}}}"

    return _replaced(written, _literal_spans(option, written), named), literal


def filled(text: str, variables: Mapping[str, str]) -> str:
    """Fill in those variables of a text that have a value."""
    return VARIABLE.sub(lambda match: variables.get(match[1], match[0]), text)


def variables_in(text: str) -> list[str]:
    """Return the names of the variables in a text."""
    return VARIABLE.findall(text)


@dataclass(frozen=True)
class Secrets:
    """The secrets of a script, with the text shown in place of each."""

    known: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, options: Iterable[tuple[str, str]], variables: Mapping[str, str], known: Known) -> Secrets:
        """Return the secrets in option values, and in variables whose names say so."""
        options = [*options]
        parts = (value[start:end] for name, value in options for start, end in hidden_spans(name, value, known))
        hidden = {part: HIDDEN for part in parts if len(part) >= _SHORTEST_UNKNOWN}
        hidden |= {value[start:end]: HIDDEN for name, value in options for start, end in secret_spans(name, value)}
        hidden |= {value: f"${{{name}}}" for name, value in variables.items() if is_secret_variable(name)}
        return cls({value: to for value, to in hidden.items() if len(value) >= _SHORTEST})

    def hide(self, text: str) -> str:
        """Return the text without secrets; longer ones are replaced first, so that no part of one remains."""
        for value in sorted(self.known, key=len, reverse=True):
            text = text.replace(value, self.known[value])
        return text


def _part(match: re.Match[str], names: Iterable[str]) -> tuple[int, int]:
    return next(match.span(name) for name in names if match[name] is not None)


def _replaced(value: str, spans: list[tuple[int, int]], by: Replacing) -> str:
    parts: list[str] = []
    end = 0
    for number, (start, stop) in enumerate(spans):
        parts += [value[end:start], by(number, value[start:stop])]
        end = stop
    return "".join([*parts, value[end:]])
