"""Adds the name of the stream or the table to problems with its input."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from rowtime.core.errors import RowtimeError

OF_STORES: Final = ("R581", "R582", "R583")
"""Codes of a store's errors about a bucket and a key, which do not say who read them."""


@contextmanager
def naming(reader: str, name: str, codes: Collection[str] = ()) -> Iterator[None]:
    """Prefix each problem with the reader: ``reader`` is the kind of the ``name``, a stream or a table.

    ``codes``: those of the problems to prefix; all if none is given.
    """
    try:
        yield
    except RowtimeError as error:
        if codes and not any(problem.code in codes for problem in error.problems):
            raise
        names = (f"the {reader} {name}", f"{name} declares")
        problems = (
            problem
            if any(words in problem.message for words in names)
            else replace(problem, message=f"{names[0]}: {problem.message}")
            for problem in error.problems
        )
        raise type(error)(*problems) from error
