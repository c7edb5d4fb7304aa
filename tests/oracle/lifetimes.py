"""Oracle of events with lifetimes (semantics 9): the gate, altered lifetimes, and how events leave the engine.

Every function sees the whole input at once. An open event has the end END.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tests.oracle.feed import BEGINNING, END, Bound, Feed, Row, Values, sortable
from tests.oracle.merge import merge

FIRST = -62_135_596_800_000_000
LAST = 253_402_300_799_999_999


class Item(Protocol):
    """An item of a stream: its number, its writer, and a row's values or a bound."""

    number: int
    stream: str
    writer: str
    values: Values | None
    at: int | None


@dataclass(frozen=True)
class Event:
    """An event [start, end) with its payload, its origin, and the item that changed it last."""

    start: int
    end: int
    payload: Values
    writer: str = ""
    place: int = 0
    changed: int = 0

    @property
    def times(self) -> tuple[int, int]:
        """The lifetime."""
        return self.start, self.end


@dataclass(frozen=True)
class Change:
    """The effect of one item: an insert, or (with ``new``) a retraction to a new end; and the bound that it met."""

    event: Event
    at: int
    new: int | None = None


@dataclass
class Gated:
    """The accepted events of a stream."""

    events: list[Event] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    refused: set[tuple[int, str]] = field(default_factory=set)
    clocks: dict[str, int] = field(default_factory=dict)
    adjusted: int = 0

    @property
    def clock(self) -> int:
        """The bound of the stream."""
        return min(self.clocks.values(), default=BEGINNING)


@dataclass
class _Writer:
    clock: int = BEGINNING
    highest: int = BEGINNING
    rows: int = 0
    open: list[tuple[int, Event]] = field(default_factory=list)  # with the given start


def gate(
    items: Sequence[Item],
    *,
    adjusts: bool = False,
    every_rows: int | None = None,
    every: int | None = None,
    delay: int = 0,
    beyond: int | None = None,
    times: Sequence[str] = ("kind", "start", "stop"),
) -> Gated:
    """The items one by one, in order of arrival."""
    found, writers = Gated(), {item.writer: _Writer() for item in items}
    for item in items:
        if item.values is None:
            assert item.at is not None
            for writer in writers.values() if item.at >= END else [writers[item.writer]]:
                writer.clock = max(writer.clock, item.at)
            continue
        writer = writers[item.writer]
        before, raised = writer.clock, writer.highest
        kind, start = item.values["kind"], item.values["start"]
        early = beyond is not None and start is not None and kind != "end" and writer.highest > BEGINNING
        early = early and before < END and start > max(writer.highest, before) + (beyond or 0)
        if early and _well_formed(item.values):
            found.refused.add((item.number, "EARLY"))
        else:
            _take(found, writer, item, adjusts, times)
        writer.rows += 1
        if start is not None and kind != "end" and not early:
            writer.highest = max(writer.highest, start)
        if _generates(writer, raised, every_rows, every):
            writer.clock = max(before, writer.highest - delay)
    found.clocks = {name: writer.clock for name, writer in writers.items()}
    return found


def _generates(writer: _Writer, raised: int, every_rows: int | None, every: int | None) -> bool:
    """Return whether the last row of its writer makes a bound; ``raised``: the greatest start before it."""
    step = every_rows is not None and writer.rows % every_rows == 0
    if every is not None and writer.highest > BEGINNING:
        step = raised == BEGINNING or writer.highest // every > raised // every
    return step and writer.highest > BEGINNING


def _well_formed(values: Values) -> bool:
    start, stop = values["start"], values["stop"]
    return values["kind"] != "interval" or stop is None or stop >= start


def importing(
    items: Sequence[Item],
    reads: str,
    writers: Mapping[str, Sequence[str]],
    lends: Mapping[str, Any],
    *,
    adjusts: bool = False,
    delay: int = 0,
    every_rows: int | None = None,
    own_delay: int = 0,
) -> Gated:
    """The gate of stream ``reads``, as one writer, under the bounds of the other stream, whose gate is ``lends``.

    Items arrive in the order of their numbers. An item is certain when no item of another writer can come before it.
    ``every_rows``: its own rows make bounds too, ``own_delay`` behind the greatest start.
    """
    mine = [item for item in items if item.stream == reads]
    others = [item for item in items if item.stream != reads]
    ended = [any(i.at == END for i in part) for part in (mine, others)]
    last = [
        END if over else min(max((i.number for i in part if i.writer == w and (i.values or n)), default=0) for w in of)
        for n, (part, over, of) in enumerate(
            zip(
                (mine, others),
                ended,
                (writers[reads], *(w for name, w in writers.items() if name != reads)),
                strict=True,
            )
        )
    ]
    found, alone, bound = Gated(), _Writer(), BEGINNING
    for item in items:
        if item.number > min(last) or (item.number == min(last) and item.stream != reads):
            break
        if item.stream == reads and item.values is not None:
            _take(found, alone, replace(item, writer=""), adjusts, ("kind", "start", "stop"))
            alone.rows += 1
            if item.values["start"] is not None and item.values["kind"] != "end":
                alone.highest = max(alone.highest, item.values["start"])
            if _generates(alone, BEGINNING, every_rows, None):
                alone.clock = max(alone.clock, alone.highest - own_delay)
            continue
        lent = gate([other for other in others if other.number <= item.number], **lends)
        known = min(lent.clocks.get(writer, BEGINNING) for writer in writers[others[0].stream]) if others else BEGINNING
        if bound < known < END:
            bound, alone.clock = known, max(alone.clock, known - delay)
    found.clocks = {"": END if all(ended) else alone.clock}
    return found


def _take(found: Gated, writer: _Writer, item: Item, adjusts: bool, times: Sequence[str]) -> None:
    assert item.values is not None
    kind, start, stop = (item.values[name] for name in ("kind", "start", "stop"))
    payload = {name: value for name, value in item.values.items() if name not in (*times, "rowtime")}
    bound, number = writer.clock, item.number

    def refuse(reason: str) -> None:
        found.refused.add((number, reason))

    if start is None:
        return refuse("NULL_ROWTIME")
    kind = "start" if kind == "interval" and stop is None else kind  # it is open, as a start edge is
    end = start + 1 if kind == "point" else END if kind == "start" or stop is None else stop
    if kind not in ("point", "interval", "start", "end") or end < start or (kind == "end" and end == END):
        return refuse("MALFORMED")
    if kind == "end":
        return _end(found, writer, item, (start, end), payload)
    moved = start
    if start < bound:
        reaches = kind == "start" or (kind == "interval" and end > bound)
        if not adjusts or not reaches or bound >= END:
            return refuse("LATE")
        moved = bound
        found.adjusted += 1
    if end <= moved:
        return None
    event = Event(moved, end, payload, item.writer, number, number)
    found.events.append(event)
    found.changes.append(Change(event, bound))
    if kind == "start":
        writer.open.append((start, event))
    return None


def _end(found: Gated, writer: _Writer, item: Item, times: tuple[int, int], payload: Values) -> None:
    start, end = times
    if end < writer.clock:
        found.refused.add((item.number, "LATE"))
        return
    match = next((pair for pair in writer.open if pair[0] == start and pair[1].payload == payload), None)
    if match is None:
        found.refused.add((item.number, "UNMATCHED_EDGE"))
        return
    writer.open.remove(match)
    event = match[1]
    found.changes.append(Change(replace(event, changed=item.number), writer.clock, max(end, event.start)))
    found.events.remove(event)
    if end > event.start:
        found.events.append(replace(event, end=end, changed=item.number))


def after_leaves(clocks: Mapping[str, int], left: Collection[str]) -> dict[str, int]:
    """Semantics 2.6: the clocks after these writers have left: at least those of the other writers.

    Without present writers, the greatest shown clock counts.
    """
    here = [at for writer, at in clocks.items() if writer not in left]
    bound = min(here) if here else max(clocks.values(), default=BEGINNING)
    return {writer: max(at, bound) if writer in left else at for writer, at in clocks.items()}


# -- altered lifetimes ------------------------------------------------------------------


def altered(events: Sequence[Event], times: Callable[[int, int], tuple[int, int]]) -> list[Event]:
    """Each event with other times; an event without length is dropped."""
    found = [
        replace(event, **dict(zip(("start", "end"), times(event.start, event.end), strict=True))) for event in events
    ]
    return [event for event in found if event.end > event.start]


def later(end: int, by: int) -> int:
    """Move the end; an event without an end keeps none."""
    return end if end >= END else end + by


# -- leaving the engine -----------------------------------------------------------------


def points(events: Sequence[Event], clocks: dict[str, int]) -> Feed:
    """A row for each start that lies below the bound."""
    bound = min(clocks.values(), default=BEGINNING)
    rows = [(e.writer, e.start, e.place, {"start": e.start, **e.payload}) for e in events if e.start < bound]
    return _merged(rows, clocks)


def intervals(events: Sequence[Event], clocks: dict[str, int], *, fully: bool = False) -> Feed:
    """A row for each end that the bound has reached; in full order, none that began after the oldest open one."""
    bound = min(clocks.values(), default=BEGINNING)
    ended = [e for e in events if e.end <= bound]
    if not fully:
        return _merged([(e.writer, min(e.end, LAST), e.changed, _interval(e)) for e in ended], clocks)
    least = {w: min([at, *(e.start for e in events if e.end > bound and e.writer == w)]) for w, at in clocks.items()}
    return _merged([(e.writer, e.start, e.place, _interval(e)) for e in ended], least, fully=True)


def edges(events: Sequence[Event], clocks: dict[str, int]) -> Feed:
    """A row for each start below the bound and each end that the bound has reached."""
    bound = min(clocks.values(), default=BEGINNING)
    found = [
        (e.writer, e.end, e.place, {"edge": "end", **_interval(e)}, 0) for e in events if e.end <= bound and e.end < END
    ]
    started = [e for e in events if e.start < bound]
    found += [
        (e.writer, e.start, e.place, {"edge": "start", "start": e.start, "stop": None, **e.payload}, 1) for e in started
    ]
    return _merged([row[:4] for row in found], clocks, [(row[4], row[0], row[2]) for row in found])


def made(events: Sequence[Event], bound: int) -> Feed:
    """Events that an operator made, as intervals: an event that ends at the bound waits until the bound has passed."""
    rows = [("", min(e.end, LAST), 0, _interval(e)) for e in events if e.end <= bound]
    return _merged(rows, {"": bound}, [tuple(row[3].values()) for row in rows])


def changes(found: Gated) -> Feed:
    """Every change in the order of the bounds met, then of arrival."""
    rows = []
    for change in found.changes:
        event, new = change.event, change.new
        values = {
            "change": "insert" if new is None else "retract",
            "start": event.start,
            "stop": _stop(event.end),
            "new_stop": new,
        }
        rows.append((event.writer, max(change.at, FIRST), event.changed, {**values, **event.payload}))
    return _merged(rows, {writer: max(at, FIRST) for writer, at in found.clocks.items()})


def _interval(event: Event) -> dict[str, Any]:
    return {"start": event.start, "stop": _stop(event.end), **event.payload}


def _stop(end: int) -> int | None:
    return None if end >= END else end


def _merged(
    rows: Sequence[tuple[str, int, int, Values]],
    clocks: dict[str, int],
    keys: Sequence[tuple[Any, ...]] | None = None,
    *,
    fully: bool = False,
) -> Feed:
    """Rows (writer, rowtime, place, values) in stream order; with keys, those strictly below the bound."""
    if fully:
        keys = [(place, writer) for writer, _, place, _ in rows]
    feed: dict[str, list[Row | Bound]] = {writer: [] for writer in clocks}
    for n, (writer, at, place, values) in sorted(enumerate(rows), key=lambda pair: (pair[1][1], pair[1][2])):
        feed[writer].append(Row(at, values, place, keys[n] if keys else ()))
    for writer, at in clocks.items():
        feed[writer].append(Bound(at))
    return merge(feed, keyed=bool(keys) or fully)


# -- what each change changes -----------------------------------------------------------


def speculated(
    gates: Sequence[Gated],
    result: Callable[[Sequence[list[Event]]], list[Event]],
    moved: Callable[[int], int] = lambda at: at,
) -> Feed:
    """The difference that every change of the inputs makes to the ``result`` of the events so far.

    The changes are in the order of the bounds that they met, then input, writer and position. ``moved``: the function
    of the last bound.
    """
    changes = {n: {(w, c.event.changed): c for c in g.changes for w in [c.event.writer]} for n, g in enumerate(gates)}
    rows = [
        (f"{n}/{writer}", max(change.at, FIRST), position, {"n": n, "at": (writer, position)})
        for n, found in changes.items()
        for (writer, position), change in found.items()
    ]
    clocks = {f"{n}/{w}": max(at, FIRST) for n, gated in enumerate(gates) for w, at in gated.clocks.items()}
    ((*merged, bound),) = _merged(rows, clocks).values()
    events: list[list[Event]] = [[] for _ in gates]
    made: list[Row | Bound] = []
    before: list[Event] = []
    for row in merged:
        assert isinstance(row, Row)
        change, mine = changes[row.values["n"]][row.values["at"]], events[row.values["n"]]
        event = change.event
        if change.new is not None:
            mine.remove(next(e for e in mine if (e.writer, e.place) == (event.writer, event.place)))
            event = replace(event, end=change.new)
        if event.end > event.start:
            mine.append(event)
        now = result(events)
        made += [Row(row.at, values) for values in _differences(before, now)]
        before = now
    return {"": [*made, bound if bound.at in (FIRST, END) else Bound(moved(bound.at))]}


def _differences(before: Sequence[Event], now: Sequence[Event]) -> list[Values]:
    """Retractions, then inserts: a shortened event is one retraction, a removed one is retracted to its start."""
    gone, come = ([_whole(e) for e in events] for events in (before, now))
    for whole in list(gone):
        if whole in come:
            gone.remove(whole)
            come.remove(whole)
    rows = []
    for start, payload in {whole[::2]: None for whole in (*gone, *come)}:
        old, new = ([w[1] for w in wholes if w[::2] == (start, payload)] for wholes in (gone, come))
        if len(old) == len(new) == 1 and new[0] < old[0]:
            rows.append(("retract", start, _stop(old[0]), new[0], payload))
            continue
        rows += [("retract", start, _stop(end), start, payload) for end in old]
        rows += [("insert", start, _stop(end), None, payload) for end in new]
    rows.sort(key=lambda row: (row[0] == "insert", row[1], *map(sortable, row[2:4]), [sortable(v) for _, v in row[4]]))
    names = ("change", "start", "stop", "new_stop")
    return [{**dict(zip(names, row, strict=False)), **dict(row[4])} for row in rows]


def _whole(event: Event) -> tuple[int, int, tuple[tuple[str, Any], ...]]:
    return event.start, event.end, tuple(event.payload.items())


# -- operators that combine events ------------------------------------------------------


def snapshots(events: Sequence[Event], key: str, row: Callable[[Any, list[Event]], Values]) -> list[Event]:
    """For each group, the events that are alive between two changes of it."""
    found = []
    for value in dict.fromkeys(e.payload[key] for e in events):
        group = [e for e in events if e.payload[key] == value]
        times = sorted({t for e in group for t in (e.start, e.end)})
        for start, end in zip(times, times[1:], strict=False):
            alive = [e for e in group if e.start <= start and end <= e.end]
            if alive:
                found.append(Event(start, end, row(value, alive)))
    return found


def windows(
    events: Sequence[Event],
    size: int,
    hop: int,
    bound: int,
    row: Callable[[list[Event]], Values],
    *,
    clips_start: bool = True,
) -> list[Event]:
    """For each window that ends up to the bound, the events that overlap it, clipped to it."""
    last = max((e.end if e.end < END else e.start for e in events), default=0) if bound >= END else bound
    found = []
    for at in range(-size * hop, last + 1, hop):
        inside = [e for e in events if e.start < at + size and at < e.end]
        cut = [
            replace(e, start=max(e.start, at) if clips_start else e.start, end=min(e.end, at + size)) for e in inside
        ]
        if cut and at + size <= bound:
            found.append(Event(at, at + size, row(cut)))
    return found


def joined(
    left: Sequence[Event], right: Sequence[Event], on: Callable[[Values, Values], bool]
) -> list[tuple[int, int, Event, Event]]:
    """The pairs that meet, while both are alive."""
    pairs = [(max(a.start, b.start), min(a.end, b.end), a, b) for a in left for b in right if on(a.payload, b.payload)]
    return [pair for pair in pairs if pair[0] < pair[1]]


def alone(left: Sequence[Event], right: Sequence[Event], on: Callable[[Values, Values], bool]) -> list[Event]:
    """Each left event while no right event that it meets is alive."""
    found = []
    for event in left:
        at = event.start
        for other in sorted((b for b in right if on(event.payload, b.payload)), key=lambda b: b.start):
            if at < min(other.start, event.end):
                found.append(replace(event, start=at, end=min(other.start, event.end)))
            at = max(at, other.end)
        if at < event.end:
            found.append(replace(event, start=at))
    return found


def met(left: Sequence[Event], right: Sequence[Event], on: Callable[[Values, Values], bool]) -> list[Event]:
    """Each left event while a right event that it meets is alive."""
    found = []
    for event in left:
        others = [b for b in right if on(event.payload, b.payload)]
        times = sorted((max(b.start, event.start), min(b.end, event.end)) for b in others)
        pieces: list[tuple[int, int]] = []
        for start, end in times:
            if pieces and start <= pieces[-1][1] and start < end:
                pieces[-1] = pieces[-1][0], max(pieces[-1][1], end)
            elif start < end:
                pieces.append((start, end))
        found += [replace(event, start=start, end=end) for start, end in pieces]
    return found


def clipped(left: Sequence[Event], right: Sequence[Event], on: Callable[[Values, Values], bool]) -> list[Event]:
    """Each left event up to the first later start of a right event that it meets."""
    found = []
    for event in left:
        cuts = [b.start for b in right if b.start > event.start and on(event.payload, b.payload)]
        found.append(replace(event, end=min([event.end, *cuts])))
    return found


def chopped(events: Sequence[Event], by: int, bound: int, offset: int = 0) -> list[Event]:
    """Each event in pieces between offset + k · ``by``, to a little after the bound."""
    found = []
    for event in events:
        cuts = [at for at in range(offset, min(event.end, bound + 2 * by), by) if event.start < at < event.end]
        times = [event.start, *cuts, *([event.end] if event.end <= bound else [])]
        found += [replace(event, start=x, end=y) for x, y in zip(times, times[1:], strict=False)]
    return found


def stitched(events: Sequence[Event], key: str) -> list[Event]:
    """Events of one payload that touch or overlap, combined."""
    found: list[Event] = []
    for event in sorted(events, key=lambda e: (e.payload[key], e.start)):
        if found and found[-1].payload == event.payload and event.start <= found[-1].end:
            found[-1] = replace(found[-1], end=max(found[-1].end, event.end))
        else:
            found.append(event)
    return found


def counted(
    events: Sequence[Event], key: str, size: int, bound: int, row: Callable[[Any, list[Event]], Values]
) -> list[Event]:
    """For each group the events of every ``size`` start times in a row, as a point at the last, below the bound."""
    found = []
    for value in dict.fromkeys(e.payload[key] for e in events):
        group = [e for e in events if e.payload[key] == value and e.start < bound]
        starts = sorted({e.start for e in group})
        for n in range(len(starts) - size + 1):
            inside = [e for e in group if e.start in starts[n : n + size]]
            found.append(Event(starts[n + size - 1], starts[n + size - 1] + 1, row(value, inside)))
    return found


# -- predicates and bounds of lifetimes -------------------------------------------------

FAR = 60
"""Greater than every time of a law: between it and END nothing changes."""


def stands(how: str, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """A period predicate of SQL:2011 over two periods [start, end)."""
    (start, end), (other_start, other_end) = one, other
    return {
        "CONTAINS": start <= other_start and other_end <= end,
        "OVERLAPS": start < other_end and other_start < end,
        "EQUALS": (start, end) == (other_start, other_end),
        "PRECEDES": end <= other_start,
        "SUCCEEDS": start >= other_end,
        "IMMEDIATELY PRECEDES": end == other_start,
        "IMMEDIATELY SUCCEEDS": start == other_end,
    }[how]


def _ends(start: int, end: int, bound: int) -> Sequence[int]:
    """The ends that an event may still have; if the end is below the bound, it is known."""
    return [end] if end < bound or bound >= END else [*range(max(bound, start + 1), FAR), END]


def waiting(events: Sequence[Event], bound: int, holds: Callable[[Event], bool]) -> int:
    """The least start of the events that may or may not satisfy it, or the bound."""
    open_ones = [e.start for e in events if len({holds(replace(e, end=x)) for x in _ends(e.start, e.end, bound)}) > 1]
    return min([bound, *open_ones])


def waiting_pairs(
    pairs: Sequence[tuple[int, int, Event, Event]], bound: int, holds: Callable[[Event, Event], bool]
) -> int:
    """The same for pairs, that is for the ends of both."""
    starts = [
        start
        for start, _, a, b in pairs
        if len(
            {
                holds(replace(a, end=x), replace(b, end=y))
                for x in _ends(start, a.end, bound)
                for y in _ends(start, b.end, bound)
            }
        )
        > 1
    ]
    return min([bound, *starts])
