"""EMIT CHANGES of operators over events; the oracle computes the changes of every item."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.laws.lifetime_pipelines import EACH, LABELS, TABLE, Gates, LifetimeLaw, listed
from tests.oracle import feed as f
from tests.oracle import lifetimes as o

Inputs = Sequence[list[o.Event]]


def _speculated(
    result: Callable[[Inputs], list[o.Event]], reads: str, moved: Callable[[int], int] = lambda at: at
) -> Callable[[Gates], f.Feed]:
    return lambda gates: o.speculated([gates[name] for name in reads], result, moved)


def _snapshots(inputs: Inputs) -> list[o.Event]:
    return o.snapshots(inputs[0], "k", lambda k, alive: {"k": k, "c": len(alive), "t": k * len(alive)})


def _first_starts(inputs: Inputs) -> list[o.Event]:
    return o.snapshots(inputs[0], "k", lambda k, alive: {"k": k, "f": min(e.start for e in alive)})


def _largest(inputs: Inputs) -> list[o.Event]:
    every = [o.replace(e, payload={**e.payload, "all": 0}) for e in inputs[0]]
    return o.snapshots(every, "all", lambda _, alive: {"m": max(e.payload["k"] for e in alive), "c": len(alive)})


def _lasting(events: Sequence[o.Event]) -> list[o.Event]:
    return o.altered(events, lambda start, _: (start, start + 3))


def _hopping(inputs: Inputs) -> list[o.Event]:
    return o.windows(_lasting(inputs[0]), 4, 2, f.END, lambda e: {"c": len(e), "m": max(x.payload["k"] for x in e)})


def _limited_hopping(inputs: Inputs) -> list[o.Event]:
    limited = [o.replace(e, end=min(e.end, e.start + 2 + e.payload["k"])) for e in inputs[0]]
    return o.windows(limited, 4, 2, f.END, lambda e: {"c": len(e), "m": max(x.payload["k"] for x in e)})


def _pairs(inputs: Inputs) -> list[o.Event]:
    pairs = o.joined(inputs[0], inputs[1], lambda a, b: bool(a["k"] == b["k"]))
    return [o.Event(start, end, {"k": a.payload["k"]}) for start, end, a, _ in pairs]


def _alone(inputs: Inputs) -> list[o.Event]:
    return o.alone(inputs[0], inputs[1], lambda a, b: bool(a["k"] == b["k"]))


def _outer(inputs: Inputs) -> list[o.Event]:
    pairs = o.joined(inputs[0], inputs[1], lambda a, b: bool(a["k"] == b["k"]))
    made = [o.Event(start, end, {"k": a.payload["k"], "j": b.payload["k"]}) for start, end, a, b in pairs]
    return [*made, *(o.Event(e.start, e.end, {"k": e.payload["k"], "j": None}) for e in _alone(inputs))]


def _full(inputs: Inputs) -> list[o.Event]:
    alone = o.alone(inputs[1], inputs[0], _same)
    return [*_outer(inputs), *(o.Event(e.start, e.end, {"k": None, "j": e.payload["k"]}) for e in alone)]


def _labelled(inputs: Inputs) -> list[o.Event]:
    return [
        o.replace(e, payload={"k": e.payload["k"], "word": word})
        for e in inputs[0]
        for word in ([row["word"] for row in LABELS["labels"] if row["key"] == e.payload["k"]] or [None])
    ]


def _counted_pairs(inputs: Inputs) -> list[o.Event]:
    return o.snapshots(_pairs(inputs), "k", lambda k, alive: {"k": k, "c": len(alive)})


def _covering(inputs: Inputs) -> list[o.Event]:
    return [e for e in inputs[0] if o.stands("CONTAINS", e.times, (4 + e.payload["k"], 7))]


def _containing(inputs: Inputs) -> list[o.Event]:
    pairs = o.joined(inputs[0], inputs[1], lambda a, b: bool(a["k"] == b["k"]))
    held = [pair for pair in pairs if o.stands("CONTAINS", pair[2].times, pair[3].times)]
    return [o.Event(start, end, {"k": a.payload["k"]}) for start, end, a, _ in held]


def _same(a: f.Values, b: f.Values) -> bool:
    return bool(a["k"] == b["k"])


def _greater(a: f.Values, b: f.Values) -> bool:
    return bool(b["k"] > a["k"] or b["k"] == 0)


def _signal(inputs: Inputs) -> list[o.Event]:
    endless = o.altered(inputs[0], lambda start, _: (start, f.END))
    return o.clipped(endless, endless, _same)


def _lasts(inputs: Inputs) -> list[o.Event]:
    return o.windows(_lasting(inputs[0]), 4, 4, f.END, lambda inside: {"d": sum(e.end - e.start for e in inside)})


def _counted(inputs: Inputs) -> list[o.Event]:
    return o.counted(inputs[0], "k", 2, f.END, lambda k, inside: {"k": k, "c": len(inside)})


def _listed(inputs: Inputs) -> list[o.Event]:
    every = [o.replace(e, payload={**e.payload, "all": 0}) for e in inputs[0]]
    made = o.counted(every, "all", 3, f.END, lambda _, e: {"a": ",".join(sorted(str(x.payload["k"]) for x in e))})
    return [e for e in made if len(e.payload["a"]) > len("0,0,0")]


def _windows_of_keys(events: Sequence[o.Event]) -> list[o.Event]:
    return [
        window
        for k in (0, 1)
        for window in o.windows(
            [e for e in _lasting(events) if e.payload["k"] == k], 4, 2, f.END, lambda e, k=k: {"k": k, "c": len(e)}
        )
    ]


def _snapshots_of_windows(inputs: Inputs) -> list[o.Event]:
    every = [o.replace(e, payload={**e.payload, "all": 0}) for e in _windows_of_keys(inputs[0])]
    return o.snapshots(every, "all", lambda _, alive: {"t": sum(e.payload["c"] for e in alive)})


def _counted_windows(inputs: Inputs) -> list[o.Event]:
    windows = _windows_of_keys(inputs[0])
    return o.counted(windows, "k", 2, f.END, lambda k, inside: {"k": k, "t": sum(e.payload["c"] for e in inside)})


def _first_window(bound: int) -> int:
    """The start of the first window that ends after the bound."""
    return bound + 2 - bound % 2 - 4


WINDOWS = (
    "CREATE VIEW w AS SELECT STREAM k, COUNT(*) AS c FROM ALTER_DURATION(s, INTERVAL '3' MICROSECOND) "
    "GROUP BY HOP(INTERVAL '2' MICROSECOND, INTERVAL '4' MICROSECOND), k; "
)
SPECULATION = (
    LifetimeLaw("changes of how long events last", ("versions", "speculative groups"),
        "SELECT STREAM SUM(UNIX_MICROS(LIFETIME_END(e)) - UNIX_MICROS(LIFETIME_START(e))) AS d "
        "FROM ALTER_DURATION(s, INTERVAL '3' MICROSECOND) AS e GROUP BY TUMBLE(INTERVAL '4' MICROSECOND) EMIT CHANGES",
        _speculated(_lasts, "s")),
    LifetimeLaw("changes of events in pieces", ("versions", "speculative chop"),
        "SELECT STREAM k FROM CHOP(ALTER_DURATION(s, INTERVAL '5' MICROSECOND), INTERVAL '3' MICROSECOND, "
        "INTERVAL '1' MICROSECOND) EMIT CHANGES",
        _speculated(lambda inputs: o.chopped(
            o.altered(inputs[0], lambda start, _: (start, start + 5)), 3, 100, 1), "s")),
    LifetimeLaw("changes of events put together", ("versions", "speculative stitch"),
        "SELECT STREAM k FROM STITCH(s) EMIT CHANGES", _speculated(lambda inputs: o.stitched(inputs[0], "k"), "s")),
    LifetimeLaw("changes of events cut by others", ("versions", "speculative clip"),
        "SELECT STREAM k FROM CLIP(s, r, k) EMIT CHANGES",
        _speculated(lambda inputs: o.clipped(inputs[0], inputs[1], _same), "sr"), reads="sr"),
    LifetimeLaw("changes of events cut by some others", ("versions", "speculative clip"),
        "SELECT STREAM k FROM CLIP(s, r WHERE r.k > s.k OR r.k = 0) EMIT CHANGES",
        _speculated(lambda inputs: o.clipped(inputs[0], inputs[1], _greater), "sr"), reads="sr"),
    LifetimeLaw("changes of windows over limited events", ("versions", "speculative groups"),
        "SELECT STREAM COUNT(*) AS c, MAX(k) AS m FROM CLIP(s, AT MOST k * INTERVAL '1' MICROSECOND "
        "+ INTERVAL '2' MICROSECOND) GROUP BY HOP(INTERVAL '2' MICROSECOND, INTERVAL '4' MICROSECOND) EMIT CHANGES",
        _speculated(_limited_hopping, "s")),
    LifetimeLaw("changes of a signal", ("versions", "speculative clip"),
        "SELECT STREAM k FROM POINT_TO_SIGNAL(s, k) EMIT CHANGES", _speculated(_signal, "s")),
    LifetimeLaw("changes of events that contain a period", ("versions", "select"),
        "SELECT STREAM k FROM s WHERE LIFETIME(s) CONTAINS PERIOD (TIMESTAMP_MICROS(4 + k), TIMESTAMP_MICROS(7)) "
        "EMIT CHANGES", _speculated(_covering, "s")),
    LifetimeLaw("changes of pairs that contain each other", ("versions", "lifetime join"),
        "SELECT STREAM s.k AS k FROM s JOIN r ON s.k = r.k AND LIFETIME(s) CONTAINS LIFETIME(r) EMIT CHANGES",
        _speculated(_containing, "sr"), reads="sr"),
    LifetimeLaw("changes of snapshots", ("versions", "speculative groups", "emit changes"),
        "SELECT STREAM k, COUNT(*) AS c, SUM(k) AS t FROM s GROUP BY SNAPSHOT(), k EMIT CHANGES",
        _speculated(_snapshots, "s")),
    LifetimeLaw("changes of the greatest", ("versions", "speculative groups"),
        "SELECT STREAM MAX(k) AS m, COUNT(*) AS c FROM s GROUP BY SNAPSHOT() EMIT CHANGES", _speculated(_largest, "s")),
    LifetimeLaw("changes of the first starts", ("versions", "speculative groups"),
        "SELECT STREAM k, MIN(unix_micros(e.ROWTIME)) AS f FROM s AS e GROUP BY SNAPSHOT(), k EMIT CHANGES",
        _speculated(_first_starts, "s")),
    LifetimeLaw("changes of windows", ("versions", "speculative groups"),
        "SELECT STREAM COUNT(*) AS c, MAX(k) AS m FROM ALTER_DURATION(s, INTERVAL '3' MICROSECOND) "
        "GROUP BY HOP(INTERVAL '2' MICROSECOND, INTERVAL '4' MICROSECOND) EMIT CHANGES",
        _speculated(_hopping, "s")),
    LifetimeLaw("changes of a join", ("versions", "lifetime join"),
        "SELECT STREAM s.k AS k FROM s JOIN r ON s.k = r.k EMIT CHANGES", _speculated(_pairs, "sr"), reads="sr"),
    LifetimeLaw("changes of an anti-join", ("versions", "speculative anti-join"),
        "SELECT STREAM s.k AS k FROM s LEFT ANTI JOIN r ON s.k = r.k EMIT CHANGES", _speculated(_alone, "sr"),
        reads="sr"),
    LifetimeLaw("changes of an outer join", ("versions", "speculative anti-join", "lifetime join"),
        "SELECT STREAM s.k AS k, r.k AS j FROM s LEFT JOIN r ON s.k = r.k EMIT CHANGES", _speculated(_outer, "sr"),
        reads="sr"),
    LifetimeLaw("changes of a semi-join", ("versions", "speculative anti-join"),
        "SELECT STREAM s.k AS k FROM s LEFT SEMI JOIN r ON s.k = r.k EMIT CHANGES",
        _speculated(lambda inputs: o.met(inputs[0], inputs[1], _same), "sr"), reads="sr"),
    LifetimeLaw("changes of a full join", ("versions", "speculative anti-join", "lifetime join"),
        "SELECT STREAM s.k AS k, r.k AS j FROM s FULL JOIN r ON s.k = r.k EMIT CHANGES", _speculated(_full, "sr"),
        reads="sr"),
    LifetimeLaw("changes of events with the rows of a table", ("versions", "table join of events"),
        "CREATE TABLE labels (key INT, word STRING); "
        "SELECT STREAM s.k, word FROM s LEFT JOIN labels AS l ON l.key = s.k EMIT CHANGES",
        _speculated(_labelled, "s"), tables=LABELS),
    LifetimeLaw("changes of events that have rows in a table", ("versions", "table join of events"),
        f"{TABLE}SELECT STREAM k FROM s WHERE k IN (SELECT key FROM labels) EMIT CHANGES",
        _speculated(lambda inputs: [e for e in inputs[0] if e.payload["k"] in (1, 2)], "s"), tables=LABELS),
    LifetimeLaw("changes of what is alike once", ("versions", "speculative stitch"),
        "SELECT STREAM DISTINCT 0 * k AS z FROM s EMIT CHANGES", _speculated(
            lambda inputs: o.stitched([o.replace(e, payload={"z": 0}) for e in inputs[0]], "z"), "s")),
    LifetimeLaw("changes of snapshots of a join", ("versions", "speculative groups", "lifetime join"),
        "CREATE VIEW pairs AS SELECT STREAM s.k AS k FROM s JOIN r ON s.k = r.k; "
        "SELECT STREAM k, COUNT(*) AS c FROM pairs GROUP BY SNAPSHOT(), k EMIT CHANGES",
        _speculated(_counted_pairs, "sr"), reads="sr"),
    LifetimeLaw("changes of windows of two starts", ("versions", "speculative count windows"),
        "SELECT STREAM k, COUNT(*) AS c FROM s GROUP BY COUNT_WINDOW(2), k EMIT CHANGES", _speculated(_counted, "s")),
    LifetimeLaw("changes of some windows of three starts", ("versions", "speculative count windows"),
        "SELECT STREAM ARRAY_JOIN(ARRAY_SORT(COLLECT_LIST(k)), ',') AS a FROM s GROUP BY COUNT_WINDOW(3) "
        "HAVING COUNT(*) > 3 EMIT CHANGES", _speculated(_listed, "s")),
    LifetimeLaw("changes of a result for each event of a window", ("versions", "speculative groups"),
        EACH.format("ALTER_DURATION(s, INTERVAL '3' MICROSECOND)",
                    "HOP(INTERVAL '2' MICROSECOND, INTERVAL '4' MICROSECOND)") + " EMIT CHANGES",
        _speculated(lambda inputs: listed(_lasting(inputs[0]), 4, 2, f.END), "s")),
    LifetimeLaw("changes of snapshots of windows", ("versions", "speculative groups"),
        f"{WINDOWS}SELECT STREAM SUM(c) AS t FROM w GROUP BY SNAPSHOT() EMIT CHANGES",
        _speculated(_snapshots_of_windows, "s", _first_window)),
    LifetimeLaw("changes of windows of starts of windows", ("speculative groups", "speculative count windows"),
        f"{WINDOWS}SELECT STREAM k, SUM(c) AS t FROM w GROUP BY COUNT_WINDOW(2), k EMIT CHANGES",
        _speculated(_counted_windows, "s", _first_window)),
    LifetimeLaw("changes of windows of what is left over", ("versions", "speculative count windows"),
        "CREATE VIEW u AS SELECT STREAM s.k AS k FROM s LEFT ANTI JOIN r ON s.k = r.k; "
        "SELECT STREAM k, COUNT(*) AS c FROM u GROUP BY COUNT_WINDOW(2), k EMIT CHANGES",
        _speculated(lambda inputs: _counted([_alone(inputs)]), "sr"), reads="sr"),
)  # fmt: skip
