"""The text of a row pattern, and its tree (SQL:2016, PATTERN).

A tree consists of frozen parts, one per element of the syntax. Names are compared without regard to case and shown as
they are first written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

MOST_REPEATS: Final = 1_000
"""The greatest number in a quantifier."""
MOST_PERMUTED: Final = 8
"""Parts of a PERMUTE: n parts have 2^n possible remaining sets."""
_DEEPEST: Final = 100  # parentheses inside each other
_TOKEN: Final = re.compile(
    r"(?P<skip>\s+|--[^\n]*|/\*.*?\*/)|(?P<open>\{-)|(?P<close>-\})|(?P<number>\d+)"
    r"|(?P<name>[^\W\d]\w*)|\"(?P<quoted>(?:[^\"]|\"\")+)\"|`(?P<ticked>(?:[^`]|``)+)`|(?P<sign>[()|,{}*+?^$])",
    re.DOTALL,
)


class PatternFault(Exception):
    """A fault in a pattern, at the characters ``start`` to ``end`` (exclusive) of its text."""

    def __init__(self, message: str, start: int, end: int, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.start, self.end, self.hint = message, start, end, hint


class Part:
    """A part of a pattern."""

    def parts(self) -> tuple[Part, ...]:
        """Return its direct parts."""
        return ()

    def walk(self) -> Iterator[Part]:
        """Yield itself and all parts below, from left to right."""
        yield self
        for part in self.parts():
            yield from part.walk()


@dataclass(frozen=True)
class Variable(Part):
    """One row that satisfies the variable's condition; ``at``: its place in the text."""

    name: str
    at: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Anchor(Part):
    """``^``, before the first row of a partition; or ``$``, after the last one."""

    first: bool


@dataclass(frozen=True)
class InTurn(Part):
    """One part after the other; without parts: no row."""

    of: tuple[Part, ...]

    def parts(self) -> tuple[Part, ...]:
        """Return all of them."""
        return self.of


@dataclass(frozen=True)
class Choice(Part):
    """One of some parts, the first one preferred."""

    of: tuple[Part, ...]

    def parts(self) -> tuple[Part, ...]:
        """Return all of them."""
        return self.of


@dataclass(frozen=True)
class Permuted(Part):
    """Some parts in any order, in lexicographic preference."""

    of: tuple[Part, ...]

    def parts(self) -> tuple[Part, ...]:
        """Return all of them."""
        return self.of


@dataclass(frozen=True)
class Repeated(Part):
    """From ``least`` to ``most`` times (``None``: no limit); ``greedy``: more often is preferred."""

    part: Part
    least: int
    most: int | None
    greedy: bool

    def parts(self) -> tuple[Part, ...]:
        """Return the repeated part."""
        return (self.part,)


@dataclass(frozen=True)
class LeftOut(Part):
    """``{- part -}``: its rows belong to the match, and ALL ROWS excludes them."""

    part: Part

    def parts(self) -> tuple[Part, ...]:
        """Return the excluded part."""
        return (self.part,)


def parse(text: str) -> Part:
    """Parse a pattern, without its outer parentheses; raises ``PatternFault``."""
    return _Parser(text).whole()


def variables(pattern: Part) -> dict[str, str]:
    """Return the variables in the order of the text: by their names in upper case, as they are first written."""
    names: dict[str, str] = {}
    for part in pattern.walk():
        if isinstance(part, Variable):
            names.setdefault(part.name.upper(), part.name)
    return names


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            what = f"a pattern cannot contain {text[at]}"
            raise PatternFault(what, at, at + 1, "Write names, ( ), |, *, +, ?, {n,m}, {- -}, PERMUTE, ^ and $.")
        kind, at = str(match.lastgroup), match.end()
        if kind != "skip":
            quote = {"quoted": '"', "ticked": "`"}.get(kind)
            word = match[kind] if quote is None else match[kind].replace(quote * 2, quote)
            yield _Token(kind, word, match.start(), match.end())
    yield _Token("end", "", len(text), len(text) + 1)


def _is_sign(token: _Token, *signs: str) -> bool:
    """Return True if a token is one of some signs, or the end of the text."""
    return token.kind == "end" or (token.kind in ("sign", "open", "close") and token.text in signs)


class _Parser:
    """Parses a pattern by recursive descent."""

    def __init__(self, text: str) -> None:
        self.tokens = list(_tokens(text))
        self.index = self.depth = 0

    @property
    def now(self) -> _Token:
        return self.tokens[self.index]

    def whole(self) -> Part:
        pattern = self._choice()
        if self.now.kind != "end":
            self._fault(f"the pattern ends before {self.now.text}")
        if not any(isinstance(part, Variable) for part in pattern.walk()):
            what = "the pattern has no variable, so it could only match no rows"
            raise PatternFault(what, 0, self.now.end, "Name at least one variable, for example PATTERN (A B+).")
        return pattern

    def _fault(self, message: str, hint: str = "") -> NoReturn:
        raise PatternFault(message, self.now.start, self.now.end, hint)

    def _takes(self, *signs: str) -> bool:
        if self.now.kind in ("sign", "open", "close") and self.now.text in signs:
            self.index += 1
            return True
        return False

    def _need(self, sign: str, opened: _Token) -> None:
        if not self._takes(sign):
            what = f"{opened.text} is not closed: {sign} is expected"
            raise PatternFault(what, opened.start, opened.end, f"Write {sign} behind what belongs to it.")

    def _choice(self) -> Part:
        self.depth += 1
        if self.depth > _DEEPEST:
            self._fault(f"the pattern has more than {_DEEPEST} parentheses inside each other", "Write it shorter.")
        ways = [self._in_turn()]
        while self._takes("|"):
            bar = self.tokens[self.index - 1]
            before = self.tokens[self.index - 2]
            if _is_sign(before, "(", "{-", "|", ",") or _is_sign(self.now, ")", "-}", "|", ","):
                what = "an alternative of | is empty"
                raise PatternFault(what, bar.start, bar.end, "Leave | out, or write () for no row.")
            ways.append(self._in_turn())
        self.depth -= 1
        return ways[0] if len(ways) == 1 else Choice(tuple(ways))

    def _in_turn(self) -> Part:
        parts = []
        while (part := self._repeated()) is not None:
            parts.append(part)
        return parts[0] if len(parts) == 1 else InTurn(tuple(parts))

    def _repeated(self) -> Part | None:
        part = self._primary()
        if part is None:
            if self.now.text and self.now.text in "*+?{" and self.now.kind == "sign":
                self._fault(f"{self.now.text} repeats nothing", "Write it behind a variable or a part in parentheses.")
            return None
        limits = self._quantifier()
        if limits is None:
            return part
        greedy = not self._takes("?")
        if self.now.kind == "sign" and self.now.text in "*+?{":
            self._fault("a part has two quantifiers", "Put the part with its first quantifier in parentheses.")
        return Repeated(part, *limits, greedy)

    def _primary(self) -> Part | None:
        token = self.now
        if token.kind in ("name", "quoted", "ticked"):
            self.index += 1
            if token.kind == "name" and token.text.upper() == "PERMUTE" and self._takes("("):
                return self._permuted(token)
            return Variable(token.text, (token.start, token.end))
        if self._takes("^", "$"):
            return Anchor(first=token.text == "^")
        for sign, end in (("(", ")"), ("{-", "-}")):
            if self._takes(sign):
                if sign == "{-" and self.now.kind == "number":
                    self._fault("a quantifier cannot be negative", "Write {n}, {n,}, {,m} or {n,m}.")
                part = self._choice()
                self._need(end, token)
                return part if sign == "(" else LeftOut(part)
        return None

    def _permuted(self, token: _Token) -> Part:
        opened, parts = self.tokens[self.index - 1], [self._choice()]
        while self._takes(","):
            parts.append(self._choice())
        self._need(")", opened)
        if any(isinstance(part, InTurn) and not part.of for part in parts):
            what = "PERMUTE has a part without a variable"
            raise PatternFault(what, token.start, token.end, "Write its parts with commas, PERMUTE(A, B).")
        if len(parts) > MOST_PERMUTED:
            what = f"PERMUTE of {len(parts)} parts has too many orders"
            raise PatternFault(what, token.start, token.end, f"Give it at most {MOST_PERMUTED} parts.")
        return Permuted(tuple(parts))

    def _quantifier(self) -> tuple[int, int | None] | None:
        for sign, limits in {"*": (0, None), "+": (1, None), "?": (0, 1)}.items():
            if self._takes(sign):
                return limits
        opened = self.now
        if not self._takes("{"):
            return None
        least, comma = self._number(), self._takes(",")
        most = self._number() if comma else least
        if least is None and most is None:
            self._fault("a quantifier needs a number", "Write {n}, {n,}, {,m} or {n,m}.")
        end = self.now.end
        self._need("}", opened)
        if most is not None and (least or 0) > most:
            what = f"the quantifier {{{least},{most}}} has a minimum above its maximum"
            raise PatternFault(what, opened.start, end, f"Write {{{most},{least}}}.")
        if most == 0:
            raise PatternFault("the quantifier repeats nothing: its maximum is 0", opened.start, end, "Leave it out.")
        return least or 0, most

    def _number(self) -> int | None:
        token = self.now
        if token.kind != "number":
            return None
        self.index += 1
        if len(token.text) > len(str(MOST_REPEATS)) or int(token.text) > MOST_REPEATS:
            what = f"the number {token.text} in a quantifier is above {MOST_REPEATS}"
            raise PatternFault(what, token.start, token.end, "Write a smaller one, or * or + for no limit.")
        return int(token.text)
