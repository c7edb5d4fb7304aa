"""Finds functions and classes by module and name; the module may be in the folder that a program runs in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from traceback import extract_tb
from typing import Any


class LeftError(Exception):
    """The user's code wanted to end the program, by ``sys.exit`` for example, which it may not."""


def ended(left: BaseException) -> LeftError:
    """Return the error of code that wanted to end the program."""
    return LeftError(f"{described_error(left)}, which would end the program")


@contextmanager
def staying() -> Iterator[None]:
    """Turn what would end the program without being an error into an error; Ctrl-C still ends it."""
    try:
        yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as left:
        raise ended(left) from left


def load(folder: str, module: str, name: str) -> Any:
    """Return the object ``name`` of a module; it may have dots. ``folder`` is searched too, as `python -m` does."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    with staying():
        value: Any = import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    return value


def described_error(error: BaseException) -> str:
    """Return the type and the message of an error of a user's module, and the line where it was raised."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError | LeftError):  # they say where
        return str(error) if isinstance(error, LeftError) else text
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    users = [frame for frame in frames if frame.filename not in _OURS]
    return f"{text} (line {users[-1].lineno} of {users[-1].filename})" if users else text


_OURS = frozenset({__file__, import_module.__code__.co_filename})


_once = cache(load)


@dataclass(frozen=True)
class Imported:
    """A function that is imported when it is called: in a worker, which does not know the folder."""

    folder: str
    module: str
    name: str

    def __call__(self, *values: Any) -> Any:
        """Return the function's result."""
        try:  # as `staying`, for each row
            return _once(self.folder, self.module, self.name)(*values)
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as left:
            raise ended(left) from left
