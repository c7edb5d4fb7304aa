"""The page Waiting: what is held, by what and since when, the ways to release it, and their commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool

from rowtime.core.errors import refuse
from rowtime.core.time import to_micros, to_text, wall_clock
from rowtime.plan.lateness import LateRows, late_rows
from rowtime.plan.poisoned import Poisoned
from rowtime.plan.remedies import CHECKPOINT, TIME, Way
from rowtime.plan.stored import StoredPlan
from rowtime.plan.waiting import Wait, waiting
from rowtime.state.journal import Entry
from rowtime.web.commands import run_rowtime
from rowtime.web.pages import fragment, mark_of, page
from rowtime.web.pipelines import facts_of, page_of
from rowtime.web.watched import Pipeline, Watched

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from rowtime.web.watched import Pipeline, Watched


class Waiting:
    """What waits in a pipeline; ``acts``: statements may be executed."""

    def __init__(self, watched: Watched, *, acts: bool) -> None:
        self._watched, self._acts = watched, acts

    def page(self, _request: Request, pipeline: Pipeline) -> Response:
        """Show the whole page."""
        return page_of("waiting", "Waiting", **self._values(pipeline))

    def part(self, request: Request, pipeline: Pipeline) -> Response:
        """Show what waits, for a page that is open."""
        context = self._values(pipeline)
        return fragment(request, "waiting_part.html", context["mark"], context)

    async def act(self, request: Request, pipeline: Pipeline) -> Response:
        """Execute a statement; raises ``Refused`` (R705) if that is not allowed, or it is no longer offered."""
        if not self._acts:
            raise refuse("R705", "this console does not run actions", "Start it with --allow-actions.")
        form = dict(parse_qsl((await request.body()).decode(errors="replace")))
        offer = offered(_waits(pipeline), form.get("way", ""))
        if offer is None:
            raise refuse("R705", "this action is no longer offered", "See the page Waiting for the current ones.")
        if offer.way.lasting and form.get("sure") != "yes":
            raise refuse("R705", offer.way.lasting, "Tick the box to confirm.")
        arguments = command(offer.way, pipeline, self._watched, form.get("time", ""))
        went_well, output = await run_in_threadpool(carry_out, arguments)
        outcome = {"arguments": arguments, "went_well": went_well, "output": output}
        return page("acted.html", {**outcome, "pipeline": pipeline, "title": "Done", "facts": facts_of(pipeline)})

    def _values(self, pipeline: Pipeline) -> dict[str, Any]:
        items, late = _waits(pipeline), _late(pipeline)
        mark = mark_of(items, late)
        return {"pipeline": pipeline, "waits": items, "late": late, "acts": self._acts, "mark": mark}


def _waits(pipeline: Pipeline) -> list[Held]:
    records = pipeline.records
    plan, entry = records.plan, records.last
    return waits(plan, entry, wall_clock()) if plan is not None and entry is not None else []


def _late(pipeline: Pipeline) -> list[LateRows]:
    plan, entry = pipeline.records.plan, pipeline.records.last
    return late_rows(plan, entry) if plan is not None and entry is not None else []


PATIENCE: Final = 60  # seconds


def command(way: Way, pipeline: Pipeline, watched: Watched, time: str) -> list[str]:
    """Return the arguments of ``rowtime`` for a remedy.

    Raises ``Refused``: R705 if there is no command for it, R301 if ``time`` is needed and is not an instant.
    """
    if not way.command:
        raise refuse("R705", "this is not a command of rowtime", "Follow the instructions on the page.")
    replacements = {CHECKPOINT: str(pipeline.place)}
    if TIME in way.command:
        replacements[TIME] = to_text(to_micros(time))
    at_home = () if CHECKPOINT in way.command else ("--home", str(watched.home.path))
    return [*(replacements.get(word, word) for word in way.command), *at_home]


def carry_out(arguments: Sequence[str]) -> tuple[bool, str]:
    """Run ``rowtime`` with these arguments; return whether it succeeded, and its output."""
    ran = run_rowtime(arguments, PATIENCE)
    return ran.returncode == 0, (ran.stdout + ran.stderr).strip()


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
