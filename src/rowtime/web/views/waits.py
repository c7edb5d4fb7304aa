"""Waiting: what is held, by what and since when, and the ways to release it; a warning if one cannot be undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rowtime.plan.poisoned import Poisoned
from rowtime.plan.remedies import TIME, Way
from rowtime.plan.stored import StoredPlan
from rowtime.plan.waiting import Wait, waiting
from rowtime.state.journal import Entry
from rowtime.web.pages import mark_of


@dataclass(frozen=True)
class Offer:
    """A remedy as the page offers it; ``key`` identifies it in a request. ``asks``: it needs an instant."""

    key: str
    way: Way

    @property
    def asks(self) -> bool:
        """Return True if the user has to give an instant."""
        return TIME in self.way.command


@dataclass(frozen=True)
class Held:
    """One thing that waits, and its remedies."""

    wait: Wait | Poisoned
    offers: Sequence[Offer]

    @property
    def who(self) -> str:
        """Return what it waits for."""
        return self.wait.who if isinstance(self.wait, Wait) else self.wait.stream

    @property
    def why(self) -> str:
        """Return why it waits, as a sentence."""
        why = self.wait.release.split(":", 1)[0]
        return f"{why[:1].upper()}{why[1:]}."

    @property
    def poisoned(self) -> bool:
        """Return True for a clock that is too far ahead."""
        return isinstance(self.wait, Poisoned)


def waits(plan: StoredPlan, entry: Entry, now: int) -> list[Held]:
    """Return everything that waits, in the order of the plan; clocks that are too far ahead come first."""
    items = waiting(plan, entry, now)
    return [Held(item, [*_offers(item)] if isinstance(item, Wait) else ()) for item in items]


def offered(listed: Sequence[Held], key: str) -> Offer | None:
    """Return the remedy with a key, if it is still offered."""
    return next((offer for held in listed for offer in held.offers if offer.key == key), None)


def _offers(wait: Wait) -> Sequence[Offer]:
    return [Offer(mark_of(wait.operator, wait.stream, wait.writer, str(way)), way) for way in wait.ways]
