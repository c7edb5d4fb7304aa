"""Results of a query as notebooks show them; for programs they are plain lists and dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Thread
from typing import TYPE_CHECKING, Any

from rowtime.core import markup
from rowtime.core.errors import headline
from rowtime.plan.poisoned import Poisoned
from rowtime.plan.waiting import Wait

if TYPE_CHECKING:
    from rowtime.api.query import Query


EVERY = 1.0  # seconds between two updates of the display of a running query


class Ledger(dict[str, Mapping[str, int]]):
    """Rows in, accepted and refused by reason, for every gate."""

    def _repr_html_(self) -> str:
        reasons = dict.fromkeys(why for counts in self.values() for why, n in counts.items() if n)
        head = [*dict.fromkeys(["in", "accepted", *reasons])]
        rows = ([gate, *(counts.get(why, 0) for why in head)] for gate, counts in self.items())
        return markup.table(["gate", *head], rows)


class Waits(list[Wait | Poisoned]):
    """What is held, by which operator, and what would release it."""

    def _repr_html_(self) -> str:
        if not self:
            return markup.heading("nothing waits")
        rows = ((wait.operator, wait.stream, wait.writer, str(wait)) for wait in self)
        return markup.table(["operator", "stream", "writer", "what it waits for"], rows)


class Explained(str):
    """The text of EXPLAIN."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return markup.preformatted(self)


def follow(query: Query) -> None:
    """Display a query in IPython; in a notebook the numbers are updated until it ends."""
    import IPython  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - which has called
    from IPython import display  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - as above

    def page() -> dict[str, str]:
        return {"text/plain": repr(query), "text/html": query_page(query)}

    show: Any = display.display
    shown = show(page(), raw=True, display_id=True)
    if query.isActive and hasattr(IPython.get_ipython(), "kernel"):  # a terminal would print each update below the last

        def update() -> None:
            while not query.ended(EVERY):
                shown.update(page(), raw=True)
            shown.update(page(), raw=True)

        Thread(target=update, name="rowtime-shown", daemon=True).start()


def query_page(query: Query) -> str:
    """Show the current state of a query: its status, streams and outputs with bounds, ledger, and what waits."""
    entry, program, bounds = query.engine.entry, query.engine.program, query.bounds
    error = query.exception or query.failing
    ledger, control = query.ledger, entry.get("control", {})
    streams = (
        (node.name, ledger.get(node.name, {}).get("in", 0), bounds.get(node.name, "")) for node in program.streams
    )
    sinks = ((n.name, control.get(n.name, {}).get("sequence", 0), bounds.get(n.name, "")) for n in program.sinks)
    parts = [
        markup.heading(f"{query.status['message']}, tick {entry.get('tick', -1)}"),
        markup.preformatted(headline(error)) if error is not None else "",
        markup.table(["stream", "rows in", "bound"], streams),
        markup.table(["output", "rows out", "bound"], sinks),
        Ledger(ledger)._repr_html_() if ledger else "",
        Waits(query.waiting())._repr_html_(),
    ]
    return "".join(parts)
