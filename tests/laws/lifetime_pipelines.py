"""Pipelines over events with lifetimes, their oracles and random events: what the laws are tried on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.oracle import feed as f
from tests.oracle import lifetimes as o

DECLARE = (
    "CREATE STREAM {} (kind STRING, start TIMESTAMP, stop TIMESTAMP, k INT) EVENT SHAPE BY kind (start, stop) {}; "
)
Gates = Mapping[str, o.Gated]


@dataclass(frozen=True)
class LifetimeLaw:
    """A query over the event streams s and r, and the rows that the oracle derives from what passed their gates."""

    name: str
    operators: tuple[str, ...]
    sql: str
    oracle: Callable[[Gates], f.Feed]
    shape: str = ""
    gate: Mapping[str, Any] = field(default_factory=dict)
    reads: str = "s"

    def transcript(self, made: Sequence[ScriptItem]) -> Transcript:
        """The items as a transcript; every writer is known from the start."""
        sql = DECLARE.format("s", self.shape) + DECLARE.format("r", self.shape) + self.sql
        return Transcript(self.name, self.name, sql, tuple(made), (), "exact", frozenset(), writers_of(made))

    def gates(self, made: Sequence[ScriptItem]) -> Gates:
        """What passes the gate of each stream."""
        found = {name: o.gate([i for i in made if i.stream == name], **self.gate) for name in "sr"}
        for name, writers in writers_of(made).items():
            found[name].clocks = {w: found[name].clocks.get(w, f.BEGINNING) for w in writers}
            if any(item.at == f.END for item in made if item.stream == name):
                found[name].clocks = dict.fromkeys(writers, f.END)
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


def _kept(gates: Gates) -> f.Feed:
    events = [e for e in gates["s"].events if e.payload["k"]]
    return o.intervals([o.replace(e, payload={"j": e.payload["k"] + 1}) for e in events], gates["s"].clocks)


EVERY = {"every_rows": 2, "delay": 2}
SHAPES = (
    LifetimeLaw("points", ("event stream", "emit lifetimes"), "SELECT STREAM k FROM s EMIT POINTS (start)",
        _emitted(o.points)),
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


def _hopping(gates: Gates) -> f.Feed:
    bound = gates["s"].clock
    found = o.windows(
        gates["s"].events, 4, 2, bound, lambda inside: {"c": len(inside), "m": max(e.payload["k"] for e in inside)}
    )
    return o.made(found, bound if bound in (f.BEGINNING, f.END) else bound + 2 - bound % 2 - 4)


def _pairs(gates: Gates) -> f.Feed:
    pairs = o.joined(gates["s"].events, gates["r"].events, _same)
    return o.made([o.Event(start, end, {"k": a.payload["k"]}) for start, end, a, _ in pairs], _bound(gates))


def _alone(gates: Gates) -> f.Feed:
    return o.made(o.alone(gates["s"].events, gates["r"].events, _same), _bound(gates))


def _outer(gates: Gates) -> f.Feed:
    pairs = o.joined(gates["s"].events, gates["r"].events, _same)
    made = [o.Event(start, end, {"k": a.payload["k"], "j": b.payload["k"]}) for start, end, a, b in pairs]
    alone = o.alone(gates["s"].events, gates["r"].events, _same)
    return o.made([*made, *(o.Event(e.start, e.end, {"k": e.payload["k"], "j": None}) for e in alone)], _bound(gates))


def _clipped(gates: Gates) -> f.Feed:
    return o.made(o.clipped(gates["s"].events, gates["r"].events, _same), _bound(gates))


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


MADE = (
    LifetimeLaw("snapshots", ("snapshot",),
        "SELECT STREAM k, COUNT(*) AS c, SUM(k) AS t FROM s GROUP BY SNAPSHOT(), k", _snapshots),
    LifetimeLaw("hopping windows over events", ("lifetime windows",),
        "SELECT STREAM COUNT(*) AS c, MAX(k) AS m FROM ALTER_DURATION(s, INTERVAL '3' MICROSECOND) "
        "GROUP BY HOP(INTERVAL '2' MICROSECOND, INTERVAL '4' MICROSECOND)",
        lambda gates: _hopping({"s": o.Gated(
            o.altered(gates["s"].events, lambda start, _: (start, start + 3)), clocks=gates["s"].clocks)})),
    LifetimeLaw("a join of events", ("lifetime join",),
        "SELECT STREAM s.k AS k FROM s JOIN r ON s.k = r.k", _pairs, reads="sr"),
    LifetimeLaw("an anti-join of events", ("lifetime anti-join",),
        "SELECT STREAM s.k AS k FROM s LEFT ANTI JOIN r ON s.k = r.k", _alone, reads="sr"),
    LifetimeLaw("events cut by others", ("clip",), "SELECT STREAM k FROM CLIP(s, r, k)", _clipped, reads="sr"),
    LifetimeLaw("points as a signal", ("clip",), "SELECT STREAM k FROM POINT_TO_SIGNAL(s, k)", _signal),
    LifetimeLaw("events in pieces", ("chop",),
        "SELECT STREAM k FROM CHOP(ALTER_DURATION(s, INTERVAL '5' MICROSECOND), INTERVAL '3' MICROSECOND)", _chopped),
    LifetimeLaw("events put together", ("stitch",), "SELECT STREAM k FROM STITCH(s)", _stitched),
    LifetimeLaw("windows of two starts", ("count windows",),
        "SELECT STREAM k, COUNT(*) AS c FROM s GROUP BY COUNT_WINDOW(2), k", _counted),
    LifetimeLaw("an outer join of events", ("lifetime join", "lifetime anti-join", "union all"),
        "SELECT STREAM s.k AS k, r.k AS j FROM s LEFT JOIN r ON s.k = r.k", _outer, reads="sr"),
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
        if kind == "end":  # mostly of an event that is there
            open_ones = [i.values for i in made if i.values and i.values["kind"] == "start" and i.stream == name]
            if open_ones:
                start, k = open_ones[more % len(open_ones)]["start"], open_ones[more % len(open_ones)]["k"]
        stop = None if start is None or kind in ("point", "start") else start + more
        made.append(ScriptItem(number, name, writer, {"kind": kind, "start": start, "stop": stop, "k": k}, None))
    if draw(st.booleans()):
        made += [ScriptItem(len(made) + n, name, "x", None, f.END) for n, name in enumerate("sr", 1)]
    return made


LIFETIMES = (*SHAPES, *MADE)
