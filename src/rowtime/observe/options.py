"""The observers of a run, from the options of its start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rowtime.observe.lineage import lineage_of
from rowtime.observe.metrics import metrics_at
from rowtime.observe.observer import Observer

if TYPE_CHECKING:
    from rowtime.client.home import Home


@contextmanager
def observing(options: dict[str, Any], home: Home) -> Iterator[dict[str, Any]]:
    """Yield the options with observers for ``metrics`` and ``lineage``; if the start fails, their servers end."""
    metrics, lineage = options.pop("metrics", None), options.pop("lineage", None)
    observers: list[Observer] = []
    try:
        if metrics is not None:
            observers.append(metrics_at(metrics))
        if (sender := lineage_of(lineage, home)) is not None:
            observers.append(sender)
        yield {**options, "observers": [*options.pop("observers", ()), *observers]}
    except BaseException:
        for observer in observers:
            observer.given_up()
        raise
