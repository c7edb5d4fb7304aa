"""Home: every pipeline with its state, its rows, how fresh its outputs are, and what failed last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rowtime.core.errors import Problem, RowtimeError
from rowtime.core.time import BEGINNING, END
from rowtime.plan.stored import StoredPlan
from rowtime.state.liveness import Liveness
from rowtime.web.moments import Moment
from rowtime.web.records import problems_of
from rowtime.web.watched import Pipeline


@dataclass(frozen=True)
class Card:
    """One pipeline. Rows are counted since its checkpoint began; instants are µs UTC.

    ``bound``: up to where its slowest output is complete; ``None`` before the first tick. ``problems``: why no more can
    be shown. ``damage``: which entries of its journal cannot be read; the others are shown.
    """

    key: str
    name: str
    where: str
    liveness: Liveness
    tick: int | None = None
    at: int | None = None
    rows_in: int = 0
    rows_out: int = 0
    refused: int = 0
    held: int = 0
    bound: int | None = None
    problems: Sequence[Problem] = ()
    damage: Sequence[Problem] = ()

    def freshness(self, now: int) -> int | None:
        """Return how far the slowest output is behind the clock (µs); ``None`` without a bound, or after the end."""
        return None if self.bound is None or self.bound in (BEGINNING, END) else now - self.bound


def cards(pipelines: Sequence[Pipeline], budget: float) -> list[Card]:
    """Return all pipelines, in order; ``budget``: seconds for reading."""
    return [card(pipeline, budget / max(1, len(pipelines))) for pipeline in pipelines]


def card(pipeline: Pipeline, budget: float) -> Card:
    """Return the line of one pipeline."""
    records = pipeline.records
    names = (pipeline.key, pipeline.name, str(pipeline.place))
    try:
        records.refresh(budget)
        plan, moments = records.plan, records.moments
    except (RowtimeError, OSError, ValueError, KeyError, TypeError) as error:
        return Card(*names, records.liveness, problems=problems_of(error))
    if plan is None or not moments:
        return Card(*names, records.liveness)
    return replace(_card(names, records.liveness, plan, moments[-1]), damage=records.damage)


def _card(names: tuple[str, str, str], alive: Liveness, plan: StoredPlan, last: Moment) -> Card:
    sinks = plan.of_kind("sink")
    return Card(
        *names,
        alive,
        last.tick,
        last.at,
        sum(last.count(name, "in") for name in plan.formats),
        sum(last.written.get(name, 0) for name in sinks),
        sum(last.refused(gate) for gate in last.totals),
        sum(last.held.values()),
        min((last.bound(name) for name in sinks), default=None),
    )
