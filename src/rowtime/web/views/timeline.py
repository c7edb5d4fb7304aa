"""Timeline: event time on the horizontal axis, and a lane for everything with a clock, as it was after a tick.

Every place on the axis is a share of the window, 0 at its left end and 1 at its right; ``None`` is outside. An entry
has counts, and for each gate the least and greatest time of its tick's rows, over which accepted rows are spread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from rowtime.core.clock import NOBODY, least
from rowtime.core.time import BEGINNING, END, HOUR, MAX_MICROS, MIN_MICROS, SECOND, to_text
from rowtime.plan.holders import holder
from rowtime.plan.stored import StoredPlan
from rowtime.state.journal import Entry
from rowtime.web.moments import Moment
from rowtime.web.refusals import Refusals
from rowtime.web.words import is_instant

BINS: Final = 240
DRAWN: Final = 2_000  # moments; of more, some are combined
BARS: Final = 80  # of a lane
NAMED: Final = 3  # writers of a stream that are named: the slowest ones
STEPS: Final = 1_000  # ticks at which the scrubber stops, besides the newest
NEWEST: Final = 128
LABELS: Final = 9
FAR: Final = 100  # the window's length times this: instants further away are not shown by default
FULL: Final = 95  # percentile of rows in a part of the window that is drawn full


@dataclass(frozen=True)
class Window:
    """The visible part of event time, from ``low`` to ``high`` (µs UTC)."""

    low: int
    high: int

    def place(self, at: int) -> float | None:
        """Return the place of an instant; infinite ones are outside."""
        share = (at - self.low) / max(1, self.high - self.low)
        return round(share, 5) if is_instant(at) and 0 <= share <= 1 else None

    def bins(self, times: Any) -> list[tuple[float, int]]:
        """Return how many of these instants are in each non-empty part of the window."""
        counts, edges = np.histogram(times, bins=BINS, range=(self.low, max(self.high, self.low + 1)))
        width = max(1, self.high - self.low)
        return [(round((edges[n] - self.low) / width, 5), int(counts[n])) for n in np.flatnonzero(counts)]


@dataclass(frozen=True)
class Selection:
    """A request: after which ``tick``, from ``low`` to ``high``, and ``at``: why this instant is not out yet."""

    tick: int | None = None
    low: int | None = None
    high: int | None = None
    at: int | None = None


def timeline(
    plan: StoredPlan, entry: Entry, moments: Sequence[Moment], refusals: Refusals, wanted: Selection
) -> dict[str, Any]:
    """Return the whole picture after the tick of ``entry``, as plain values."""
    names = lanes_of(plan, moments)
    past = [moment for moment in moments if moment.tick <= entry["tick"]] or [Moment.of(entry)]
    window = _window(names, past, entry, wanted)
    return {
        "tick": entry["tick"],
        "at": to_text(entry["at"]),
        "window": {"low": to_text(window.low), "high": to_text(window.high), "from": window.low, "to": window.high},
        "axis": _axis(window),
        "walls": _walls(plan, past, window),
        "lanes": [_lane(plan, name, entry, past, window, refusals, wanted.at) for name in names],
        "asked": None if wanted.at is None else {"text": to_text(wanted.at), "place": window.place(wanted.at)},
        "why": None if wanted.at is None else why(plan, entry, wanted.at),
    }


def steps(moments: Sequence[Moment]) -> list[int]:
    """Return the ticks at which the scrubber stops: the newest, and an even selection of older ones."""
    old, new = moments[:-NEWEST], moments[-NEWEST:]
    stride = max(1, -(-len(old) // STEPS))
    return [moment.tick for moment in (*old[::stride], *new)]


def lanes_of(plan: StoredPlan, moments: Sequence[Moment]) -> list[str]:
    """Return what has a clock, or has ever held rows: streams, gates, merges, groups, outputs; sources first."""
    holding = {name for moment in moments for name, rows in moment.held.items() if rows}

    def own(name: str) -> bool:
        answers = plan.operators[name].answers
        return answers.is_gate or answers.merges_writers or answers.holds_results or name in holding

    at_ends = {*plan.formats, *plan.of_kind("sink")}
    return [name for name in plan.operators if name in at_ends or own(name)]


def why(plan: StoredPlan, entry: Entry, at: int) -> dict[str, Any]:
    """Return why an instant is not out yet: for each output that has not reached it, what holds it."""
    clocks = entry["clocks"]
    lines = []
    for sink in plan.of_kind("sink"):
        bound = least(clocks.get(sink, {}).values())
        if bound >= at:
            continue
        stream, writer = holder(plan, clocks, plan.operators[sink].inputs[0])
        who = f"writer {writer} of {stream}" if writer not in ("", NOBODY) else stream
        own = to_text(clocks.get(stream, {}).get(writer, BEGINNING))
        name = sink.removesuffix(".sink")
        lines.append(f"{to_text(at)} is not out of {name}, which stands at {to_text(bound)}: {who} stands at {own}.")
    return {"out": not lines, "lines": lines or [f"{to_text(at)} is out: every output has passed it."]}


def _window(names: Sequence[str], past: Sequence[Moment], entry: Entry, wanted: Selection) -> Window:
    bounds = [at for name in names for at in _extent(name, past)]
    writers = [at for name in names for at in entry["clocks"].get(name, {}).values()]
    ends = [at for segments in entry.get("segments", {}).values() for segment in segments for at in segment[2:4]]
    outputs = [at for name in past[-1].written for at in _extent(name, past)]
    instants = _near(outputs, [at for at in (*bounds, *writers) if MIN_MICROS <= at <= MAX_MICROS])
    reach = max(instants, default=0)
    near = [at for at in ends if MIN_MICROS <= at <= reach + (reach - min(instants, default=0))]
    low = wanted.low if wanted.low is not None else min(instants, default=0)
    high = wanted.high if wanted.high is not None else max([*instants, *near], default=0)
    if wanted.at is not None and wanted.low is None and is_instant(wanted.at):
        low, high = min(low, wanted.at), max(high, wanted.at)
    margin = 0 if wanted.low is not None else max(SECOND, (high - low) // 40)
    return Window(low - margin, max(high + margin, low + 1))


def _extent(name: str, past: Sequence[Moment]) -> list[int]:
    """Return the first and the last bound of a lane; if it has ended also the times of its accepted rows."""
    first = next((at for moment in past if is_instant(at := moment.bound(name))), None)
    last = next((at for moment in reversed(past) if is_instant(at := moment.bound(name))), None)
    places = [at for at in (first, last) if at is not None]
    if past[-1].bound(name) >= END:
        times = [times for moment in past if (times := moment.times(name))]
        places += [min(low for low, _ in times), max(high for _, high in times)] if times else []
    return places


def _near(outputs: Sequence[int], instants: Sequence[int]) -> list[int]:
    """Return the instants that can be shown together with those of the outputs.

    The arrival times of a stream may be years away from the times that a T-sort above it promotes.
    """
    near = [at for at in outputs if MIN_MICROS <= at <= MAX_MICROS]
    if not near:
        return [*instants]
    low, high = first, last = min(near), max(near)
    for at in sorted(instants, key=lambda one: max(first - one, one - last, 0)):  # the nearest first
        if max(low - at, at - high) > FAR * max(high - low, HOUR):
            continue
        low, high = min(low, at), max(high, at)
        near.append(at)
    return near


def _axis(window: Window) -> list[dict[str, Any]]:
    """Return instants to write below the lanes: round ones, as many as fit."""
    span = max(1, window.high - window.low)
    step = next((size for size in _ROUND if span / size <= LABELS), _ROUND[-1])
    step *= max(1, -(-span // (step * LABELS)))
    first = -(-window.low // step) * step
    marks = range(first, window.high + 1, step)
    return [{"place": window.place(at), "text": _clock_text(at, step)} for at in marks]


_ROUND: Final = tuple(
    n * unit
    for unit, counts in (
        (1, (1, 10, 100, 1_000, 10_000, 100_000)),
        (SECOND, (1, 2, 5, 10, 20, 30)),
        (60 * SECOND, (1, 2, 5, 10, 20, 30)),
        (3_600 * SECOND, (1, 2, 3, 6, 12)),
        (86_400 * SECOND, (1, 2, 7, 30, 90, 365)),
    )
    for n in counts
)


def _clock_text(at: int, step: int) -> str:
    """Return an instant without its common parts: no date if marks are minutes apart, no time if days."""
    text = to_text(at)
    if step >= 86_400 * SECOND:
        return text[:10]
    if at % (86_400 * SECOND) == 0:
        return text[:10]
    return text[11:16] if step >= 60 * SECOND else text[11:]


def _walls(plan: StoredPlan, past: Sequence[Moment], window: Window) -> list[dict[str, Any]]:
    """Return the second axis: after which tick, and at what time of day, the outputs reached a place."""
    sinks = plan.of_kind("sink")
    marks: list[dict[str, Any]] = []
    labelled = -1.0
    for moment in past:
        place = window.place(min((moment.bound(name) for name in sinks), default=BEGINNING))
        if place is None or (marks and place == marks[-1]["place"]):
            continue
        text = ""
        if place - labelled >= 1 / LABELS:
            text, labelled = to_text(moment.at)[11:19], place
        marks.append({"place": place, "tick": moment.tick, "text": text})
    stride = max(1, len(marks) // BINS)
    return [wall for n, wall in enumerate(marks) if wall["text"] or n % stride == 0]


def _lane(  # noqa: PLR0913 - its state, and the request
    plan: StoredPlan,
    name: str,
    entry: Entry,
    past: Sequence[Moment],
    window: Window,
    refusals: Refusals,
    at: int | None,
) -> dict[str, Any]:
    operator, clocks, last = plan.operators[name], entry["clocks"].get(name, {}), past[-1]
    bound = least(clocks.values())
    reasons = last.reasons(name)
    return {
        "name": name,
        "kind": operator.kind,
        "bound": {
            "place": window.place(bound),
            "text": to_text(bound),
            "beyond": bound > window.high,
            "outside": is_instant(bound) and window.place(bound) is None,
        },
        "behind": at is not None and bound < at,
        "density": _density(name, past, window),
        "rows": last.written.get(name, last.count(name)),
        "refused": reasons,
        "marks": _marks(refusals, name, last.tick, window) if reasons else [],
        "bars": _bars(entry, name, window),
        "held": last.held.get(name, 0),
        "holds": "open groups" if operator.answers.holds_results else "rows",
        "writers": _writers(clocks, window) if name in plan.formats else None,
    }


def _density(name: str, past: Sequence[Moment], window: Window) -> list[tuple[float, float]]:
    """Return accepted rows by part of the window, as shares of a full one: spread over their tick's times.

    If these are unknown, as for sinks and combined ticks, rows are placed where the clock moved. A clock that was still
    for long has all those rows at one place, which must not make the others invisible.
    """
    past = [*past[: -1 : len(past) // DRAWN + 1], past[-1]]
    bounds = np.array([moment.bound(name) for moment in past], dtype=float)
    counts = np.array([moment.written.get(name, moment.count(name)) for moment in past], dtype=float)
    finite = np.array([is_instant(moment.bound(name)) for moment in past])
    by_moment = [_times(name, past, n) for n in range(len(past))]
    if not counts[-1] or not (finite.any() or any(by_moment)):
        return []
    if finite.any():
        bounds = np.clip(bounds, bounds[finite][0], bounds[finite][-1])
    low, high = np.concatenate([bounds[:1], bounds[:-1]]), bounds
    for n, times in enumerate(by_moment):
        low[n], high[n] = times or (low[n], high[n])
    edges = np.linspace(window.low, window.high, BINS + 1)
    shares = (np.clip(edges, low[:, None], high[:, None] + 1) - low[:, None]) / (high - low + 1)[:, None]
    rows = np.diff(np.diff(counts, prepend=0.0) @ shares)
    filled = np.flatnonzero(rows > 0)
    if not filled.size:
        return []
    full = np.percentile(rows[filled], FULL)
    return [(round(float(n) / BINS, 5), round(min(1.0, float(rows[n] / full)), 3)) for n in filled]


def _times(name: str, past: Sequence[Moment], n: int) -> tuple[int, int] | None:
    """Return the least and greatest time of a gate's accepted rows since the moment before, if that was one tick."""
    before = past[n - 1].tick if n else -1
    return past[n].times(name) if past[n].tick == before + 1 else None


def _marks(refusals: Refusals, gate: str, tick: int, window: Window) -> list[dict[str, Any]]:
    """Return refused rows at the times for which they were refused, by reason."""
    files = refusals.of(gate, tick)
    if not files:
        return []
    times = np.concatenate([file.times for file in files])
    reasons = np.concatenate([file.reasons for file in files])
    return [
        {"place": place, "count": count, "reason": str(reason), "outside": outside}
        for reason in dict.fromkeys(reasons.tolist())
        for place, count, outside in _placed(times[reasons == reason], window)
    ]


def _placed(times: Any, window: Window) -> Iterator[tuple[float, int, bool]]:
    """Yield refused rows by place; those outside of the window, such as early ones, are at its edges."""
    for edge, beyond in ((0.0, times < window.low), (1.0, times > window.high)):
        if count := int(np.count_nonzero(beyond)):
            yield edge, count, True
    yield from ((place, count, False) for place, count in window.bins(times))


def _bars(entry: Entry, name: str, window: Window) -> list[dict[str, Any]]:
    """Return what an operator holds: from the least to the greatest time of each part of its state."""
    parts = [
        (segment[2], segment[3], segment[1])
        for key, segments in entry.get("segments", {}).items()
        if key.rsplit("/", 1)[0] == name
        for segment in segments
        if MIN_MICROS <= segment[2] <= segment[3] <= MAX_MICROS
        and segment[2] <= window.high
        and segment[3] >= window.low
    ]
    return [
        {"from": window.place(max(low, window.low)), "to": window.place(min(high, window.high)), "rows": rows,
         "text": f"{to_text(low)} to {to_text(high)}"}
        for low, high, rows in _joined(sorted(parts))
    ]  # fmt: skip


def _joined(parts: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return at most ``BARS`` parts: neighbours are joined, the nearest first."""
    while len(parts) > BARS:
        gap = sorted(b[0] - a[1] for a, b in pairwise(parts))[len(parts) // 2]
        joined: list[tuple[int, int, int]] = []
        for low, high, rows in parts:
            if joined and low - joined[-1][1] <= gap:
                before = joined.pop()
                joined.append((before[0], max(before[1], high), before[2] + rows))
            else:
                joined.append((low, high, rows))
        parts = joined
    return [*parts]


def _writers(clocks: Mapping[str, int], window: Window) -> dict[str, Any]:
    """Describes the clocks of the writers of a stream: how many at each place, and the slowest by name."""
    named = {name: at for name, at in clocks.items() if name != NOBODY}
    slowest = sorted(named, key=lambda name: (named[name], name))[:NAMED]
    return {
        "count": len(named),
        "places": window.bins([at for at in named.values() if is_instant(at)]),
        "slowest": [
            {"name": name, "text": to_text(named[name]), "place": window.place(named[name])} for name in slowest
        ],
    }
