"""Random damage to texts, bytes and JSON values."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

TOKENS = re.compile(r"\s+|'(?:[^']|'')*'|\"[^\"]*\"|\w+|.", re.DOTALL)
LONGEST = 50_000  # characters of a text: the cost of longer ones is measured elsewhere
ODD = (
    "\0",
    "'",
    '"',
    "`",
    "\\",
    "\u2028",
    "\ufeff",
    "é",
    "😀",
    "\ud800",
    "%",
    "--",
    "/*",
    "*/",
    "$",
    "${",
    ";",
    "(",
    ")",
)
NUMBERS = ("0", "-1", "9223372036854775807", "9223372036854775808", "1e400", "-0", "0.1", "4611686018427387904", "NaN")
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, "", "x", [], {}, [[]], {"a": {}}, 2**62, -(2**62), 2**63, -(2**63) - 1, 2**200),
    *(float("nan"), float("inf"), "2024-01-01", "end", "\0", "\ud800", "../../etc", "9" * 5000),
)


def tokens_of(text: str) -> list[str]:
    """Return the words, quoted texts, blanks and signs of a text; joined they are the text."""
    return TOKENS.findall(text)


def text(random_: random.Random, seeds: Sequence[str], words: Sequence[str]) -> str:
    """Return a seed with some tokens or characters changed, or parts of two seeds."""
    parts = tokens_of(random_.choice(seeds))
    for _ in range(random_.choice((1, 1, 2, 3, 8))):
        _token_change(random_)(random_, parts, words, seeds)
    changed = "".join(parts)[:LONGEST]
    if random_.random() < 0.2:
        at = random_.randrange(len(changed) + 1)
        changed = changed[:at] + random_.choice(ODD) + changed[at + random_.randrange(3) :]
    return changed


def _token_change(random_: random.Random) -> Callable[..., None]:
    return random_.choice((_drop, _repeat, _swap, _replace, _replace, _insert, _splice, _cut, _nest))


def _place(random_: random.Random, parts: list[str]) -> int:
    return random_.randrange(len(parts)) if parts else 0


def _drop(random_: random.Random, parts: list[str], *_: Sequence[str]) -> None:
    at = _place(random_, parts)
    del parts[at : at + random_.choice((1, 1, 2, 5))]


def _repeat(random_: random.Random, parts: list[str], *_: Sequence[str]) -> None:
    at = _place(random_, parts)
    parts[at:at] = parts[at : at + random_.choice((1, 3, 9))] * random_.choice((1, 1, 2, 20))


def _swap(random_: random.Random, parts: list[str], *_: Sequence[str]) -> None:
    if parts:
        one, other = _place(random_, parts), _place(random_, parts)
        parts[one], parts[other] = parts[other], parts[one]


def _replace(random_: random.Random, parts: list[str], words: Sequence[str], *_: Sequence[str]) -> None:
    at = _place(random_, parts)
    parts[at : at + 1] = [random_.choice((*words, *NUMBERS))]


def _insert(random_: random.Random, parts: list[str], words: Sequence[str], *_: Sequence[str]) -> None:
    at = _place(random_, parts)
    parts[at:at] = [" ", random_.choice((*words, *NUMBERS, *ODD)), " "]


def _splice(random_: random.Random, parts: list[str], _: Sequence[str], seeds: Sequence[str]) -> None:
    other = tokens_of(random_.choice(seeds))
    start = _place(random_, other)
    at = _place(random_, parts)
    parts[at:at] = other[start : start + random_.choice((2, 5, 20))]


def _cut(random_: random.Random, parts: list[str], *_: Sequence[str]) -> None:
    del parts[_place(random_, parts) :]


def _nest(random_: random.Random, parts: list[str], *_: Sequence[str]) -> None:
    at, depth = _place(random_, parts), random_.choice((1, 2, 50, 500))
    opening, closing = random_.choice((("(", ")"), ("CAST(", " AS INT)"), ("-", ""), ("CASE WHEN ", " THEN 1 END")))
    parts[at : at + 1] = [opening * depth, *parts[at : at + 1], closing * depth]


def data(random_: random.Random, seed: bytes) -> bytes:
    """Return bytes with some of them changed, cut off, repeated or inserted."""
    changed = bytearray(seed)
    for _ in range(random_.choice((1, 1, 2, 5))):
        at = random_.randrange(len(changed) + 1)
        match random_.randrange(5):
            case 0:
                del changed[at:]
            case 1:
                changed[at : at + 1] = random_.randbytes(1)
            case 2:
                changed[at:at] = random_.randbytes(random_.choice((1, 4, 64)))
            case 3:
                changed[at:at] = changed[at : at + 8]
            case _:
                del changed[at : at + random_.choice((1, 4, 64))]
    return bytes(changed)


def value(random_: random.Random, seed: Any) -> Any:
    """Return a JSON value in which one part has another value, is missing or has another name."""
    if random_.random() < 0.15 or not isinstance(seed, dict | list) or not seed:
        return random_.choice(VALUES)
    if isinstance(seed, list):
        at = random_.randrange(len(seed))
        return [*seed[:at], *([] if random_.random() < 0.2 else [value(random_, seed[at])]), *seed[at + 1 :]]
    changed = dict(seed)
    key = random_.choice(list(changed))
    match random_.randrange(5):
        case 0:
            del changed[key]
        case 1:
            changed[f"{key}{random_.choice(ODD)}"] = changed.pop(key)
        case _:
            changed[key] = value(random_, changed[key])
    return changed
