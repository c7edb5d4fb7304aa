"""Which observers a run is asked for, by the options of its start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rowtime.observe.metrics import metrics_at
from rowtime.observe.observer import Observer


@contextmanager
def observing(options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The options with observers in place of ``metrics``; if the start fails, what serves them ends."""
    known: list[Observer] = [*options.pop("observers", ())]
    found: list[Observer] = []
    if (metrics := options.pop("metrics", None)) is not None:
        found.append(metrics_at(metrics))
    try:
        yield {**options, "observers": [*known, *found]}
    except BaseException:
        for one in found:
            one.given_up()
        raise
