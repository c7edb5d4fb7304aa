"""Work on several large arrays or files at once: numpy and Arrow let other threads run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

LARGE: Final = 100_000
"""Rows: below it, a thread takes longer to start than to copy a column."""


def processors() -> int:
    """Return how many threads of this process can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def at_once(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return the result of ``work`` for each item, computed by a thread for each processor."""
    if len(items) < 2:  # noqa: PLR2004 - there is nothing to divide
        return [*map(work, items)]
    with ThreadPoolExecutor(min(len(items), processors())) as pool:
        return [*pool.map(work, items)]


def per_column(work: Callable[[T], R], columns: Iterable[T], rows: int) -> list[R]:
    """Return the result of ``work`` for each column of so many rows, by threads if these are many."""
    return at_once(work, [*columns]) if rows >= LARGE else [*map(work, columns)]
