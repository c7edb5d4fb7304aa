"""Pipelines over events with lifetimes, their oracles and random events, for the laws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.oracle import feed as f
from tests.oracle import lifetimes as o
from tests.oracle.lifetime_sessions import sessions

DECLARE = (
    "CREATE STREAM {} (kind STRING, start TIMESTAMP, stop TIMESTAMP, k INT) EVENT SHAPE BY kind (start, stop) {}; "
)
Gates = Mapping[str, o.Gated]


@dataclass(frozen=True)
class LifetimeLaw:
    """A query over the event streams s and r, and the rows that the oracle computes from the accepted events."""

    name: str
    operators: tuple[str, ...]
    sql: str
    oracle: Callable[[Gates], f.Feed]
    shape: str = ""
    gate: Mapping[str, Any] = field(default_factory=dict)
    reads: str = "s"
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    def transcript(self, made: Sequence[ScriptItem]) -> Transcript:
        """The items as a transcript; every writer is known from the start."""
        sql = DECLARE.format("s", self.shape) + DECLARE.format("r", self.shape) + self.sql
        return Transcript(self.name, self.name, sql, tuple(made), (), "exact", frozenset(), writers_of(made),
                          self.tables)  # fmt: skip

    def gates(self, made: Sequence[ScriptItem], known: Sequence[ScriptItem] = ()) -> Gates:
        """The accepted events of each stream; ``known``: items of all writers."""
        found = {name: o.gate([i for i in made if i.stream == name], **self.gate) for name in "sr"}
        for name, writers in writers_of(known or made).items():
            found[name].clocks = {w: found[name].clocks.get(w, f.BEGINNING) for w in writers}
            if any(item.at == f.END for item in made if item.stream == name):
                found[name].clocks = dict.fromkeys(writers, f.END)
        return found


@dataclass(frozen=True)
class ImportingLaw(LifetimeLaw):
    """s imports the bounds of r, which has those of ``lends``."""

    lent: str = ""
    lends: Mapping[str, Any] = field(default_factory=dict)

    def transcript(self, made: Sequence[ScriptItem]) -> Transcript:
        """The items as a transcript; every writer is known from the start."""
        sql = DECLARE.format("r", self.lent) + DECLARE.format("s", self.shape) + self.sql
        return Transcript(self.name, self.name, sql, tuple(made), (), "exact", frozenset(), writers_of(made))

    def gates(self, made: Sequence[ScriptItem], known: Sequence[ScriptItem] = ()) -> Gates:
        """The accepted events: of s as one writer, in the order of arrival over both streams."""
        found = replace(self, gate=self.lends)
        gates = dict(LifetimeLaw.gates(found, made, known))
        return {**gates, "s": o.importing(made, "s", writers_of(known or made), self.lends, **self.gate)}


@dataclass(frozen=True)
class LeavingLaw(LifetimeLaw):
    """A law whose items also say that writers leave (and do not return)."""

    def gates(self, made: Sequence[ScriptItem], known: Sequence[ScriptItem] = ()) -> Gates:
        """The accepted events, with the clocks that result from leaves."""
        found = super().gates(*([item for item in items if not item.leaves] for items in (made, known or made)))
        for name, gated in found.items():
            left = {item.writer for item in made if item.leaves and item.stream == name}
            gated.clocks = o.after_leaves(gated.clocks, left)
        return found


def writers_of(made: Sequence[ScriptItem]) -> dict[str, list[str]]:
    """The writers of each stream."""
    return {name: sorted({i.writer for i in made if i.stream == name} | {"x"}) for name in "sr"}


def _emitted(form: Callable[..., f.Feed], **options: Any) -> Callable[[Gates], f.Feed]:
    return lambda gates: form(gates["s"].events, gates["s"].clocks, **options)


def _altered(
    times: Callable[[int, int], tuple[int, int]], moved: Callable[[int], int] = lambda at: at
) -> Callable[[Gates], f.Feed]:
    def oracle(gates: Gates) -> f.Feed:
        clocks = {w: at if at in (f.BEGINNING, f.END) else moved(at) for w, at in gates["s"].clocks.items()}
        return o.intervals(o.altered(gates["s"].events, times), clocks)

    return oracle


def _quantized(start: int, end: int) -> tuple[int, int]:
    return start - start % 3, end if end >= f.END else end + -end % 3


def _by_payload(times: Callable[[o.Event], tuple[int, int]]) -> Callable[[Gates], f.Feed]:
    """Lifetimes that are computed from the event: the event is at the row that gave it its present lifetime."""

    def oracle(gates: Gates) -> f.Feed:
        events = []
        for event in gates["s"].events:
            (start, end), first = times(event), times(o.replace(event, end=f.END))
            changed = event.place if first == (start, end) else event.changed
            events.append(o.replace(event, start=start, end=end, changed=changed))
        return o.intervals([e for e in events if e.end > e.start], gates["s"].clocks)

    return oracle


def _kept(gates: Gates) -> f.Feed:
    events = [e for e in gates["s"].events if e.payload["k"]]
    return o.intervals([o.replace(e, payload={"j": e.payload["k"] + 1}) for e in events], gates["s"].clocks)


EVERY = {"every_rows": 2, "delay": 2}
SHAPES = (
    LifetimeLaw("points", ("event stream", "emit lifetimes"), "SELECT STREAM k FROM s EMIT POINTS (start)",
        _emitted(o.points)),
    LifetimeLaw("intervals under bounds of a guarded clock", ("event stream", "emit lifetimes"),
        "SELECT STREAM k FROM s EMIT INTERVALS", _emitted(o.intervals),
        "BOUND EVERY 2 ROWS DELAY INTERVAL '2' MICROSECOND EARLY BEYOND INTERVAL '4' MICROSECOND",
        {**EVERY, "beyond": 4}),
    LifetimeLaw("intervals in chain order", ("event stream", "emit lifetimes"),
        "SELECT STREAM k FROM s EMIT INTERVALS", _emitted(o.intervals)),
    LifetimeLaw("intervals in full order, adjusted", ("event stream", "emit lifetimes"),
        "SELECT STREAM k FROM s EMIT INTERVALS FULLY ORDERED", _emitted(o.intervals, fully=True),
        "ON LATE ADJUST", {"adjusts": True}),
    LifetimeLaw("edges under generated bounds", ("event stream", "emit lifetimes"),
        "SELECT STREAM k FROM s EMIT EDGES", _emitted(o.edges),
        "ON LATE ADJUST BOUND EVERY 2 ROWS DELAY INTERVAL '2' MICROSECOND", {"adjusts": True, **EVERY}),
    LifetimeLaw("changes under bounds of time", ("event stream", "emit changes"),
        "SELECT STREAM k FROM s EMIT CHANGES", lambda gates: o.changes(gates["s"]),
        "BOUND EVERY INTERVAL '3' MICROSECOND DELAY INTERVAL '1' MICROSECOND", {"every": 3, "delay": 1}),
    LifetimeLaw("a filter over events", ("event stream", "select"),
        "SELECT STREAM k + 1 AS j FROM s WHERE k > 0", _kept),
    LifetimeLaw("events made longer", ("alter lifetime",),
        "SELECT STREAM k FROM EXTEND(s, INTERVAL '2' MICROSECOND)",
        _altered(lambda start, end: (start, o.later(end, 2)))),
    LifetimeLaw("events made shorter and shifted", ("alter lifetime",),
        "SELECT STREAM k FROM SHIFT(EXTEND(s, INTERVAL '-2' MICROSECOND), INTERVAL '5' MICROSECOND)",
        _altered(lambda start, end: (start + 5, o.later(end, 3)), lambda at: at + 3)),
    LifetimeLaw("steps of time", ("alter lifetime",),
        "SELECT STREAM k FROM QUANTIZE(s, INTERVAL '3' MICROSECOND)", _altered(_quantized, lambda at: at - at % 3)),
    LifetimeLaw("one duration", ("alter lifetime",),
        "SELECT STREAM k FROM ALTER_DURATION(s, INTERVAL '2' MICROSECOND)",
        _altered(lambda start, _: (start, start + 2))),
    LifetimeLaw("durations of the payload", ("alter lifetime",),
        "SELECT STREAM k FROM ALTER_DURATION(s, s.k * INTERVAL '3' MICROSECOND)",
        _by_payload(lambda e: (e.start, e.start + 3 * e.payload["k"]))),
    LifetimeLaw("events of a limited length", ("alter lifetime",),
        "SELECT STREAM k FROM CLIP(s, AT MOST INTERVAL '3' MICROSECOND)",
        _by_payload(lambda e: (e.start, min(e.end, e.start + 3)))),
    LifetimeLaw("events limited by the payload", ("alter lifetime",),
        "SELECT STREAM k FROM CLIP(s, AT MOST IF(k = 0, NULL, k * INTERVAL '2' MICROSECOND))",
        _by_payload(lambda e: (e.start, min(e.end, e.start + 2) if e.payload["k"] else e.end))),
    LifetimeLaw("events within a period", ("alter lifetime",),
        "SELECT STREAM k FROM CLIP(s, WITHIN PERIOD (TIMESTAMP_MICROS(3), TIMESTAMP_MICROS(7 + k)))",
        _by_payload(lambda e: (max(e.start, 3), min(e.end, 7 + e.payload["k"])))),
    LifetimeLaw("starts that have to increase", ("event stream",),
        "SELECT STREAM k FROM s EMIT INTERVALS", _emitted(o.intervals),
        "ON LATE ADJUST BOUND EVERY 1 ROW STRICT", {"adjusts": True, "every_rows": 1, "delay": -1}),
    LifetimeLaw("starts that have to increase from step to step", ("event stream",),
        "SELECT STREAM k FROM s EMIT INTERVALS", _emitted(o.intervals),
        "BOUND EVERY INTERVAL '3' MICROSECOND STRICT", {"every": 3, "delay": -1}),
    LifetimeLaw("points at ends", ("alter lifetime",),
        "SELECT STREAM k FROM POINT_AT_END(TO_POINT(s))", _altered(lambda start, _: (start + 1, start + 2))),
)  # fmt: skip


def _same(a: f.Values, b: f.Values) -> bool:
    return bool(a["k"] == b["k"])


def _bound(gates: Gates) -> int:
    return min(gates["s"].clock, gates["r"].clock)


def _snapshots(gates: Gates) -> f.Feed:
    made = o.snapshots(gates["s"].events, "k", lambda k, alive: {"k": k, "c": len(alive), "t": k * len(alive)})
    return o.made(made, gates["s"].clock)


def _largest(gates: Gates) -> f.Feed:
    every = [o.replace(e, payload={**e.payload, "all": 0}) for e in gates["s"].events]
    made = o.snapshots(every, "all", lambda _, alive: {"m": max(e.payload["k"] for e in alive), "c": len(alive)})
    return o.made([e for e in made if e.payload["c"] > 1], gates["s"].clock)


def _first_starts(gates: Gates) -> f.Feed:
    made = o.snapshots(gates["s"].events, "k", lambda k, alive: {"k": k, "f": min(e.start for e in alive)})
    return o.made(made, gates["s"].clock)


def _hopping(gates: Gates) -> f.Feed:
    bound = gates["s"].clock
    found = o.windows(
        gates["s"].events, 4, 2, bound, lambda inside: {"c": len(inside), "m": max(e.payload["k"] for e in inside)}
    )
    return o.made(found, bound if bound in (f.BEGINNING, f.END) else bound + 2 - bound % 2)


def _lasting(gates: Gates, *, clips_start: bool = True) -> f.Feed:
    bound, events = gates["s"].clock, o.altered(gates["s"].events, lambda start, _: (start, start + 5))
    found = o.windows(
        events, 4, 4, bound, lambda inside: {"d": sum(e.end - e.start for e in inside)}, clips_start=clips_start
    )
    return o.made(found, bound if bound in (f.BEGINNING, f.END) else bound - bound % 4 + 4)


def listed(events: Sequence[o.Event], size: int, hop: int, bound: int) -> list[o.Event]:
    """For each window, one result per event in order: its position, its place in the window, and k."""
    whole = o.windows(events, size, hop, bound, lambda e: {"l": sorted((x.start, x.end, x.payload["k"]) for x in e)})
    return [
        o.Event(w.start, w.end, {"i": i, "a": start - w.start, "d": end - start, "k": k})
        for w in whole
        for i, (start, end, k) in enumerate(w.payload["l"])
    ]


def _each(gates: Gates) -> f.Feed:
    bound, events = gates["s"].clock, o.altered(gates["s"].events, lambda start, _: (start, start + 5))
    return o.made(listed(events, 4, 4, bound), bound if bound in (f.BEGINNING, f.END) else bound - bound % 4 + 4)


def _pairs(gates: Gates) -> f.Feed:
    pairs = o.joined(gates["s"].events, gates["r"].events, _same)
    return o.made([o.Event(start, end, {"k": a.payload["k"]}) for start, end, a, _ in pairs], _bound(gates))


def _started(gates: Gates) -> f.Feed:
    """Pairs, and left events without a match, with the starts of both sides."""
    pairs = o.joined(gates["s"].events, gates["r"].events, _same)
    found = [o.Event(start, end, {"a": a.start, "b": b.start}) for start, end, a, b in pairs]
    whole = [o.replace(e, payload={**e.payload, "start": e.start}) for e in gates["s"].events]
    alone = o.alone(whole, gates["r"].events, _same)
    return o.made(
        [*found, *(o.Event(e.start, e.end, {"a": e.payload["start"], "b": None}) for e in alone)], _bound(gates)
    )


def _later(gates: Gates) -> f.Feed:
    """Three events that are alive together: the second began after the first, the third with it."""
    found = []
    for start, end, a, b in o.joined(gates["s"].events, gates["r"].events, _same):
        for t in gates["r"].events:
            low, high = max(start, t.start), min(end, t.end)
            if a.start < b.start and t.start == a.start and _same(t.payload, a.payload) and low < high:
                found.append(o.Event(low, high, {"a": a.start, "b": b.start, "c": low}))
    return o.made(found, _bound(gates))


def _alone(gates: Gates) -> f.Feed:
    return o.made(o.alone(gates["s"].events, gates["r"].events, _same), _bound(gates))


def _outer(gates: Gates) -> f.Feed:
    pairs = o.joined(gates["s"].events, gates["r"].events, _same)
    made = [o.Event(start, end, {"k": a.payload["k"], "j": b.payload["k"]}) for start, end, a, b in pairs]
    alone = o.alone(gates["s"].events, gates["r"].events, _same)
    return o.made([*made, *(o.Event(e.start, e.end, {"k": e.payload["k"], "j": None}) for e in alone)], _bound(gates))


def _met(gates: Gates) -> f.Feed:
    return o.made(o.met(gates["s"].events, gates["r"].events, _same), _bound(gates))


def _full(gates: Gates, *, left: bool = True) -> f.Feed:
    """Pairs, the right events alone and, in a FULL JOIN, the left ones alone."""
    pairs = o.joined(gates["s"].events, gates["r"].events, _same)
    made = [o.Event(start, end, {"k": a.payload["k"], "j": b.payload["k"]}) for start, end, a, b in pairs]
    alone = o.alone(gates["r"].events, gates["s"].events, _same)
    made += [o.Event(e.start, e.end, {"k": None, "j": e.payload["k"]}) for e in alone]
    if left:
        alone = o.alone(gates["s"].events, gates["r"].events, _same)
        made += [o.Event(e.start, e.end, {"k": e.payload["k"], "j": None}) for e in alone]
    return o.made(made, _bound(gates))


def _labelled(gates: Gates) -> f.Feed:
    found = [
        o.replace(e, payload={"k": e.payload["k"], "word": word})
        for e in gates["s"].events
        for word in ([row["word"] for row in LABELS["labels"] if row["key"] == e.payload["k"]] or [None])
    ]
    return o.made(found, gates["s"].clock)


def _listed(gates: Gates, *, there: bool) -> f.Feed:
    """Events whose key is in a row of the table, each once; or in none."""
    keys = {row["key"] for row in LABELS["labels"]}
    events = [e for e in gates["s"].events if (e.payload["k"] in keys) is there]
    return o.made(events, gates["s"].clock)


def _in_no_row(gates: Gates) -> f.Feed:
    """Events whose key has no row of the table that may have the value; a NULL may be any value."""
    found = []
    for e in gates["s"].events:
        values = [row["value"] for row in VALUES["labels"] if row["key"] == e.payload["k"]]
        if not any(value in (None, e.payload["k"] + 1) for value in values):
            found.append(e)
    return o.made(found, gates["s"].clock)


def _valued(gates: Gates) -> f.Feed:
    """Events with the number of words that the table has for their key, and whether one of these is b."""
    found = []
    for e in gates["s"].events:
        words = [row["word"] for row in LABELS["labels"] if row["key"] == e.payload["k"]]
        found.append(o.replace(e, payload={"k": e.payload["k"], "n": len(words), "b": "b" in words}))
    return o.made(found, gates["s"].clock)


def _in_none(gates: Gates) -> f.Feed:
    return o.made(o.alone(gates["s"].events, gates["r"].events, lambda a, b: bool(b["k"] + 1 in (1, a["k"]))),
                  _bound(gates))  # fmt: skip


def _once(gates: Gates) -> f.Feed:
    return o.made(o.stitched([o.replace(e, payload={"z": 0}) for e in gates["s"].events], "z"), gates["s"].clock)


def _ranked(gates: Gates) -> f.Feed:
    every = [o.replace(e, payload={**e.payload, "all": 0}) for e in gates["s"].events]
    found = o.snapshots(every, "all", lambda _, alive: {"v": sorted((e.payload["k"] for e in alive), reverse=True)[:2]})
    rows = [o.Event(e.start, e.end, {"n": n, "v": v}) for e in found for n, v in enumerate(e.payload["v"], 1)]
    return o.made(rows, gates["s"].clock)


def _again(rows: Sequence[f.Row], bound: int, **gate: Any) -> f.Feed:
    """Rows that are events again, each after the bound of its rowtime unless the rows make bounds themselves."""
    items: list[ScriptItem] = []
    for row in rows:
        if not gate:
            items.append(ScriptItem(len(items), "v", "", None, row.at))
        items.append(ScriptItem(len(items), "v", "", row.values, None))
    found = o.gate(items, **gate)
    clock = found.clock if gate and bound < f.END else bound
    return o.intervals(found.events, {"": clock})


def _edges_again(gates: Gates) -> f.Feed:
    (items,) = o.edges(gates["s"].events, gates["s"].clocks).values()
    names = {"kind": "edge", "start": "start", "stop": "stop", "k": "k"}
    rows = [f.Row(row.at, {to: row.values[name] for to, name in names.items()}) for row in f.rows_of(items)]
    return _again(rows, f.clock_of(items))


def _moved_again(gates: Gates) -> f.Feed:
    (items,) = o.points(gates["s"].events, gates["s"].clocks).values()
    rows = [
        f.Row(at, {"kind": "interval", "start": at - 5 * row.values["k"], "stop": at + 9, "k": row.values["k"]})
        for row in f.rows_of(items)
        for at in [row.values["start"]]
    ]
    return _again(rows, f.clock_of(items), adjusts=True, every_rows=2, delay=2)


def _followed(gates: Gates) -> f.Feed:
    ended = o.altered([e for e in gates["s"].events if e.end < f.END], lambda _, end: (end, end + 4))
    points = o.altered(gates["r"].events, lambda start, _: (start, start + 1))
    pairs = o.joined(ended, points, _same)
    return o.made([o.Event(start, end, {"k": a.payload["k"]}) for start, end, a, _ in pairs], _bound(gates))


def _clipped(gates: Gates) -> f.Feed:
    return o.made(o.clipped(gates["s"].events, gates["r"].events, _same), _bound(gates))


def _greater(a: f.Values, b: f.Values) -> bool:
    return bool(b["k"] > a["k"] or b["k"] == 0)


def _clipped_where(gates: Gates) -> f.Feed:
    return o.made(o.clipped(gates["s"].events, gates["r"].events, _greater), _bound(gates))


def _signal(gates: Gates) -> f.Feed:
    events = o.altered(gates["s"].events, lambda start, _: (start, f.END))
    return o.made(o.clipped(events, events, _same), gates["s"].clock)


def _chopped(gates: Gates) -> f.Feed:
    bound = gates["s"].clock
    events = o.altered(gates["s"].events, lambda start, _: (start, start + 5))
    return o.made(o.chopped(events, 3, min(bound, 100)), bound)


def _stitched(gates: Gates) -> f.Feed:
    return o.made(o.stitched(gates["s"].events, "k"), gates["s"].clock)


def _counted(gates: Gates) -> f.Feed:
    bound = gates["s"].clock
    return o.made(o.counted(gates["s"].events, "k", 2, bound, lambda k, inside: {"k": k, "c": len(inside)}), bound)


def _judged(
    holds: Callable[[o.Event], bool], source: Callable[[Gates], Sequence[o.Event]], reads: str = "s"
) -> Callable[[Gates], f.Feed]:
    def oracle(gates: Gates) -> f.Feed:
        bound, events = min(gates[name].clock for name in reads), source(gates)
        return o.made([e for e in events if holds(e)], o.waiting(events, bound, holds))

    return oracle


def _judged_pairs(holds: Callable[[o.Event, o.Event], bool]) -> Callable[[Gates], f.Feed]:
    def oracle(gates: Gates) -> f.Feed:
        pairs = o.joined(gates["s"].events, gates["r"].events, _same)
        made = [o.Event(start, end, {"k": a.payload["k"]}) for start, end, a, b in pairs if holds(a, b)]
        return o.made(made, o.waiting_pairs(pairs, _bound(gates), holds))

    return oracle


PERIODS = (
    LifetimeLaw("events that contain a period", ("period filter",),
        "SELECT STREAM k FROM s WHERE LIFETIME(s) CONTAINS PERIOD (TIMESTAMP_MICROS(4 + k), TIMESTAMP_MICROS(7))",
        _judged(lambda e: o.stands("CONTAINS", e.times, (4 + e.payload["k"], 7)), lambda gates: gates["s"].events)),
    LifetimeLaw("events before a period or without a time", ("period filter", "select"),
        "SELECT STREAM k FROM s "
        "WHERE (LIFETIME(s) PRECEDES PERIOD (TIMESTAMP_MICROS(8), TIMESTAMP_MICROS(9)) AND k = 0 "
        "OR NOT LIFETIME(s) CONTAINS TIMESTAMP_MICROS(5) AND k = 1)",
        _judged(lambda e: o.stands("PRECEDES", e.times, (8, 9)) if e.payload["k"] == 0
                else not o.stands("CONTAINS", e.times, (5, 6)), lambda gates: gates["s"].events)),
    LifetimeLaw("what is left of events up to a time", ("period filter", "lifetime anti-join"),
        "CREATE VIEW u AS SELECT STREAM s.k AS k FROM s LEFT ANTI JOIN r ON s.k = r.k; SELECT STREAM k FROM u "
        "WHERE LIFETIME(u) IMMEDIATELY PRECEDES PERIOD (TIMESTAMP_MICROS(6), TIMESTAMP_MICROS(7)) "
        "OR LIFETIME(u) CONTAINS TIMESTAMP_MICROS(6)",
        _judged(lambda e: e.end == 6 or e.start <= 6 < e.end,
                lambda gates: o.alone(gates["s"].events, gates["r"].events, _same), "sr"), reads="sr"),
    LifetimeLaw("events after a period", ("select",),
        "SELECT STREAM k FROM s WHERE LIFETIME(s) SUCCEEDS PERIOD (TIMESTAMP_MICROS(1), TIMESTAMP_MICROS(4))",
        lambda gates: o.intervals([e for e in gates["s"].events if e.start >= 4], gates["s"].clocks)),
    LifetimeLaw("pairs of which one contains the other", ("period filter", "lifetime join"),
        "SELECT STREAM s.k AS k FROM s JOIN r ON s.k = r.k AND LIFETIME(s) CONTAINS LIFETIME(r)",
        _judged_pairs(lambda a, b: o.stands("CONTAINS", a.times, b.times)), reads="sr"),
    LifetimeLaw("pairs that are equal or not within", ("period filter", "lifetime join"),
        "SELECT STREAM s.k AS k FROM s JOIN r ON s.k = r.k WHERE LIFETIME(s) EQUALS LIFETIME(r) "
        "OR NOT LIFETIME(r) CONTAINS LIFETIME(s)",
        _judged_pairs(lambda a, b: a.times == b.times or not o.stands("CONTAINS", b.times, a.times)), reads="sr"),
)  # fmt: skip


def _sessions(longest: int = 0, *, point: bool = False, least: int = 3) -> Callable[[Gates], f.Feed]:
    """Sessions with a gap of 2; ``least``: the least duration of each event."""

    def oracle(gates: Gates) -> f.Feed:
        bound = gates["s"].clock

        def row(k: Any, inside: Sequence[o.Event]) -> f.Values:
            lasts = sum(e.end - e.start for e in inside if e.end < f.END)
            return {"k": k, "c": len(inside), **({"d": lasts} if longest else {})}

        found, low = sessions(gates["s"].events, "k", 2, longest, bound, row)
        if point:
            return o.made([o.replace(e, start=e.end - 1) for e in found], bound if bound in EDGES else bound + 1)
        return o.made(found, low if bound in EDGES else low + least)

    return oracle


def _sessions_of_limited(gates: Gates) -> f.Feed:
    limited = [o.replace(e, payload={**e.payload, "all": 0}, end=min(e.end, e.start + 3)) for e in gates["s"].events]
    found, low = sessions(limited, "all", 1, 0, gates["s"].clock, lambda _, e: {"m": max(x.payload["k"] for x in e)})
    return o.made(found, low if gates["s"].clock in EDGES else low + 2)


EDGES = (f.BEGINNING, f.END)
CUT = "GROUP BY SESSION(INTERVAL '2' MICROSECOND, INTERVAL '4' MICROSECOND), k"
LASTED = "k, COUNT(*) AS c, SUM(UNIX_MICROS(LIFETIME_END(e)) - UNIX_MICROS(LIFETIME_START(e))) AS d"
SESSIONS = (
    LifetimeLaw("sessions of events", ("lifetime sessions",),
        "SELECT STREAM k, COUNT(*) AS c FROM s GROUP BY SESSION(INTERVAL '2' MICROSECOND), k WITH UNBOUNDED STATE",
        _sessions()),
    LifetimeLaw("sessions of limited events without keys", ("lifetime sessions",),
        "SELECT STREAM MAX(k) AS m FROM CLIP(s, AT MOST INTERVAL '3' MICROSECOND) "
        "GROUP BY SESSION(INTERVAL '1' MICROSECOND)", _sessions_of_limited),
    LifetimeLaw("points at the ends of sessions", ("lifetime sessions",),
        "SELECT STREAM k, COUNT(*) AS c FROM s GROUP BY SESSION(INTERVAL '2' MICROSECOND, 'point at end'), k "
        "WITH UNBOUNDED STATE", _sessions(point=True)),
    LifetimeLaw("sessions with a longest duration", ("lifetime sessions",),
        f"SELECT STREAM {LASTED} FROM CLIP(s, AT MOST INTERVAL '9' MICROSECOND) AS e {CUT}",
        lambda gates: _sessions(4)({"s": o.Gated(
            [o.replace(e, end=min(e.end, e.start + 9)) for e in gates["s"].events], clocks=gates["s"].clocks)})),
)  # fmt: skip
OPEN_SESSIONS = LifetimeLaw("sessions of open events with a longest duration", ("lifetime sessions",),
    f"SELECT STREAM {LASTED} FROM s AS e {CUT}", _sessions(4))  # fmt: skip
"""For streams that do not end: the session of an event without an end would have infinitely many parts."""
LABELS = {"labels": [{"key": 1, "word": "a"}, {"key": 1, "word": "b"}, {"key": 2, "word": "c"}]}
VALUES = {"labels": [{"key": 0, "value": None}, {"key": 0, "value": 5}, {"key": 1, "value": 3}]}
TABLE = "CREATE TABLE labels (key INT, word STRING); "
LASTS = "UNIX_MICROS(LIFETIME_END(e)) - UNIX_MICROS(LIFETIME_START(e))"
EACH = (
    "CREATE VIEW w AS SELECT STREAM ARRAY_SORT(COLLECT_LIST(STRUCT("
    "LIFETIME_START(e) AS since, LIFETIME_END(e) AS until, k))) AS l FROM {} AS e GROUP BY {}; "
    "SELECT STREAM one.i AS i, one.a AS a, one.d AS d, one.k AS k FROM w LATERAL VIEW EXPLODE(TRANSFORM(l, (x, i) -> "
    "STRUCT(i, unix_micros(x.since) - unix_micros(w.ROWTIME) AS a, "
    "unix_micros(x.until) - unix_micros(x.since) AS d, x.k AS k))) AS one"
)
MADE = (
    LifetimeLaw("snapshots", ("snapshot",),
        "SELECT STREAM k, COUNT(*) AS c, SUM(k) AS t FROM s GROUP BY SNAPSHOT(), k", _snapshots),
    LifetimeLaw("the greatest of snapshots", ("snapshot sets",),
        "SELECT STREAM MAX(k) AS m, COUNT(*) AS c FROM s GROUP BY SNAPSHOT() HAVING COUNT(*) > 1", _largest),
    LifetimeLaw("the least of snapshots and keys", ("snapshot sets",),
        "SELECT STREAM k, COUNT(*) AS c, MIN(k) * COUNT(*) AS t FROM s GROUP BY SNAPSHOT(), k", _snapshots),
    LifetimeLaw("the first starts of snapshots", ("snapshot sets",),
        "SELECT STREAM k, MIN(unix_micros(e.ROWTIME)) AS f FROM s AS e GROUP BY SNAPSHOT(), k", _first_starts),
    LifetimeLaw("hopping windows over events", ("lifetime windows",),
        "SELECT STREAM COUNT(*) AS c, MAX(k) AS m FROM ALTER_DURATION(s, INTERVAL '3' MICROSECOND) "
        "GROUP BY HOP(INTERVAL '2' MICROSECOND, INTERVAL '4' MICROSECOND)",
        lambda gates: _hopping({"s": o.Gated(
            o.altered(gates["s"].events, lambda start, _: (start, start + 3)), clocks=gates["s"].clocks)})),
    LifetimeLaw("how long events last in a window", ("lifetime windows",),
        f"SELECT STREAM SUM({LASTS}) AS d FROM ALTER_DURATION(s, INTERVAL '5' MICROSECOND) AS e "
        "GROUP BY TUMBLE(INTERVAL '4' MICROSECOND, 'clip')", _lasting),
    LifetimeLaw("how long events have lasted in a window", ("lifetime windows",),
        f"SELECT STREAM SUM({LASTS}) AS d FROM ALTER_DURATION(s, INTERVAL '5' MICROSECOND) AS e "
        "GROUP BY TUMBLE(INTERVAL '4' MICROSECOND, 'clip end')", lambda gates: _lasting(gates, clips_start=False)),
    LifetimeLaw("a result for each event of a window", ("lifetime windows",),
        EACH.format("ALTER_DURATION(s, INTERVAL '5' MICROSECOND)", "TUMBLE(INTERVAL '4' MICROSECOND)"), _each),
    LifetimeLaw("a join of events", ("lifetime join",),
        "SELECT STREAM s.k AS k FROM s JOIN r ON s.k = r.k", _pairs, reads="sr"),
    LifetimeLaw("an anti-join of events", ("lifetime anti-join",),
        "SELECT STREAM s.k AS k FROM s LEFT ANTI JOIN r ON s.k = r.k", _alone, reads="sr"),
    LifetimeLaw("one event followed by another", ("alter lifetime", "lifetime join"),
        "SELECT STREAM a.k AS k FROM ALTER_DURATION(POINT_AT_END(s), INTERVAL '4' MICROSECOND) AS a "
        "JOIN TO_POINT(r) AS b ON a.k = b.k", _followed, reads="sr"),
    LifetimeLaw("events cut by others", ("clip",), "SELECT STREAM k FROM CLIP(s, r, k)", _clipped, reads="sr"),
    LifetimeLaw("events cut by some others", ("clip",),
        "SELECT STREAM k FROM CLIP(s, r WHERE r.k > s.k OR r.k = 0)", _clipped_where, reads="sr"),
    LifetimeLaw("points as a signal", ("clip",), "SELECT STREAM k FROM POINT_TO_SIGNAL(s, k)", _signal),
    LifetimeLaw("events in pieces", ("chop",),
        "SELECT STREAM k FROM CHOP(ALTER_DURATION(s, INTERVAL '5' MICROSECOND), INTERVAL '3' MICROSECOND)", _chopped),
    LifetimeLaw("events put together", ("stitch",), "SELECT STREAM k FROM STITCH(s)", _stitched),
    LifetimeLaw("windows of two starts", ("count windows",),
        "SELECT STREAM k, COUNT(*) AS c FROM s GROUP BY COUNT_WINDOW(2), k", _counted),
    LifetimeLaw("an outer join of events", ("lifetime join", "lifetime anti-join", "union all"),
        "SELECT STREAM s.k AS k, r.k AS j FROM s LEFT JOIN r ON s.k = r.k", _outer, reads="sr"),
    LifetimeLaw("a semi-join of events", ("lifetime anti-join",),
        "SELECT STREAM s.k AS k FROM s LEFT SEMI JOIN r ON s.k = r.k", _met, reads="sr"),
    LifetimeLaw("events for which others exist", ("lifetime anti-join",),
        "SELECT STREAM k FROM s WHERE EXISTS (SELECT STREAM * FROM r WHERE r.k = s.k)", _met, reads="sr"),
    LifetimeLaw("a right join of events", ("lifetime join", "lifetime anti-join", "union all"),
        "SELECT STREAM s.k AS k, r.k AS j FROM s RIGHT JOIN r ON s.k = r.k", lambda gates: _full(gates, left=False),
        reads="sr"),
    LifetimeLaw("a full join of events", ("lifetime join", "lifetime anti-join", "union all"),
        "SELECT STREAM s.k AS k, r.k AS j FROM s FULL JOIN r ON s.k = r.k", _full, reads="sr"),
    LifetimeLaw("events with the rows of a table", ("table join of events",),
        "CREATE TABLE labels (key INT, word STRING); "
        "SELECT STREAM s.k, word FROM s LEFT JOIN labels AS l ON l.key = s.k",
        _labelled, tables=LABELS),
    LifetimeLaw("events that have rows in a table", ("table join of events",),
        f"{TABLE}SELECT STREAM k FROM s LEFT SEMI JOIN labels ON labels.key = s.k",
        lambda gates: _listed(gates, there=True), tables=LABELS),
    LifetimeLaw("events that have no row in a table", ("table join of events", "table query"),
        f"{TABLE}SELECT STREAM k FROM s WHERE NOT EXISTS (SELECT * FROM labels WHERE key = s.k)",
        lambda gates: _listed(gates, there=False), tables=LABELS),
    LifetimeLaw("events that are in no row of a table with a NULL", ("table join of events", "table query"),
        "CREATE TABLE labels (key INT, value INT); "
        "SELECT STREAM k FROM s WHERE k + 1 NOT IN (SELECT value FROM labels WHERE key = s.k)",
        _in_no_row, tables=VALUES),
    LifetimeLaw("events with values of a table", ("table join of events", "table query"),
        f"{TABLE}SELECT STREAM k, CAST((SELECT COUNT(*) FROM labels WHERE key = s.k) AS INT) AS n, "
        "'b' IN (SELECT word FROM labels WHERE key = s.k) AS b FROM s", _valued, tables=LABELS),
    LifetimeLaw("events that are in none of others", ("lifetime anti-join",),
        "SELECT STREAM k FROM s WHERE k NOT IN (SELECT STREAM NULLIF(k + 1, 1) AS j FROM r)", _in_none, reads="sr"),
    LifetimeLaw("what is alike once", ("stitch",), "SELECT STREAM DISTINCT 0 * k AS z FROM s", _once),
    LifetimeLaw("the two greatest with their ranks", ("snapshot sets", "select"),
        "CREATE VIEW top AS SELECT STREAM SLICE(SORT_ARRAY(COLLECT_LIST(STRUCT(k AS v)), FALSE), 1, 2) AS best FROM s "
        "GROUP BY SNAPSHOT(); SELECT STREAM rank + 1 AS n, x.v AS v FROM top LATERAL VIEW POSEXPLODE(best) AS rank, x",
        _ranked),
    LifetimeLaw("edges that are events again", ("events of rows",),
        "CREATE VIEW m AS SELECT STREAM k FROM s EMIT EDGES (edge, since, until); "
        "CREATE VIEW v AS SELECT STREAM since, until, k FROM m EVENT SHAPE EDGE (since, until); "
        "SELECT STREAM k FROM v", _edges_again),
    LifetimeLaw("rows that are events with bounds of their own", ("events of rows",),
        "CREATE VIEW m AS SELECT STREAM k FROM s EMIT POINTS (at); "
        "CREATE VIEW v AS SELECT STREAM TIMESTAMP_MICROS(UNIX_MICROS(at) - 5 * k) AS since, "
        "TIMESTAMP_MICROS(UNIX_MICROS(at) + 9) AS until, k FROM m "
        "EVENT SHAPE INTERVAL (since, until) ON LATE ADJUST BOUND EVERY 2 ROWS DELAY INTERVAL '2' MICROSECOND; "
        "SELECT STREAM k FROM v", _moved_again),
    LifetimeLaw("the starts of both sides of a join", ("lifetime join", "lifetime anti-join", "union all"),
        "SELECT STREAM unix_micros(s.ROWTIME) AS a, unix_micros(r.ROWTIME) AS b FROM s LEFT JOIN r ON s.k = r.k",
        _started, reads="sr"),
    LifetimeLaw("the start of one side compared with the other", ("lifetime join",),
        "SELECT STREAM unix_micros(s.ROWTIME) AS a, unix_micros(r.ROWTIME) AS b, unix_micros(ROWTIME) AS c "
        "FROM s JOIN r ON s.k = r.k AND s.ROWTIME < r.ROWTIME JOIN r AS t ON t.ROWTIME = s.ROWTIME AND t.k = s.k",
        _later, reads="sr"),
)  # fmt: skip


IMPORTED = (
    ImportingLaw("events under the bounds of others", ("imported bounds", "events under imported bounds"),
        "SELECT STREAM k FROM s EMIT INTERVALS", _emitted(o.intervals), "BOUND FROM r",
        reads="sr"),
    ImportingLaw("events under the bounds of others and their own", ("imported bounds", "events under imported bounds"),
        "SELECT STREAM k FROM s EMIT CHANGES", lambda gates: o.changes(gates["s"]),
        "BOUND FROM r DELAY INTERVAL '1' MICROSECOND BOUND EVERY 2 ROWS DELAY INTERVAL '3' MICROSECOND",
        {"delay": 1, "every_rows": 2, "own_delay": 3}, reads="sr"),
    ImportingLaw("changes under delayed bounds of others, adjusted", ("events under imported bounds", "emit changes"),
        "SELECT STREAM k FROM s EMIT CHANGES", lambda gates: o.changes(gates["s"]),
        "ON LATE ADJUST BOUND FROM r DELAY INTERVAL '2' MICROSECOND", {"adjusts": True, "delay": 2},
        reads="sr"),
    ImportingLaw("a join of events with those whose bounds they take", ("imported bounds", "lifetime join"),
        "SELECT STREAM s.k AS k FROM s JOIN r ON s.k = r.k", _pairs, "ON LATE ADJUST BOUND FROM r", {"adjusts": True},
        "sr", lent="BOUND EVERY 2 ROWS DELAY INTERVAL '2' MICROSECOND", lends=EVERY),
)  # fmt: skip


@st.composite
def events(draw: Callable[..., Any], streams: str = "sssr") -> list[ScriptItem]:
    """Items of two event streams: points, intervals and edges in any order, bounds, perhaps an end."""
    writers = draw(st.sampled_from([("x",), ("x",), ("x", "y")]))
    time, length = (
        st.one_of(st.integers(0, 12), st.none() if draw(st.integers(0, 3)) == 0 else st.nothing()),
        st.integers(0, 6),
    )
    one = st.tuples(
        st.sampled_from(streams), st.sampled_from(writers),
        st.sampled_from(["point", "interval", "interval", "start", "start", "end", "end", "bound", "bound"]),
        time, length, st.integers(0, 1),
    )  # fmt: skip
    made: list[ScriptItem] = []
    for number, (name, writer, kind, at, more, drawn) in enumerate(draw(st.lists(one, min_size=5, max_size=14)), 1):
        if kind == "bound":
            made.append(ScriptItem(number, name, writer, None, at or 0))
            continue
        start, k = at, drawn
        if kind == "end":  # mostly the end of an event that exists
            open_ones = [i.values for i in made if i.values and i.values["kind"] == "start" and i.stream == name]
            if open_ones:
                start, k = open_ones[more % len(open_ones)]["start"], open_ones[more % len(open_ones)]["k"]
        stop = None if start is None or kind in ("point", "start") else start + more
        made.append(ScriptItem(number, name, writer, {"kind": kind, "start": start, "stop": stop, "k": k}, None))
    if draw(st.booleans()):
        made += [ScriptItem(len(made) + n, name, "x", None, f.END) for n, name in enumerate("sr", 1)]
    return made


LIFETIMES = (*SHAPES, *MADE, *SESSIONS, *PERIODS, *IMPORTED)
