"""The queries of the cases of `transcripts/streams`, written by hand; one unit of time is a second.

Rows and bounds have the number of their item as rowtime, so the order of arrival is the order of the case; the event
time is the column t.
"""

from __future__ import annotations

S = "CREATE STREAM s (n INT, t TIMESTAMP, v STRING, part INT) EVENT TIME (t, MODE MANUAL, {}); "
GAP = "MINIMUM GAP INTERVAL '0' SECOND"
FACTS = "unix_micros(PANE_START) AS start, unix_micros(PANE_END) AS end, PANE_TIMING AS timing, PANE_INDEX AS index"
LISTS = "COLLECT_LIST(unix_micros(t)) AS times, COLLECT_LIST(v) AS vals"


def fires(settings: str, keys: str = "") -> str:
    """Every fire of the panes, with its rows."""
    first, last = (f"{keys}, ", f", {keys}") if keys else ("", "")
    return S.format(GAP) + f"SELECT STREAM {first}{FACTS}, {LISTS} FROM s GROUP BY PANES(t, {settings}){last}"


def _span(seconds: int) -> str:
    return f"INTERVAL '{seconds}' SECOND"


def panes(duration: int, period: int | None = None, age: int = 0, offset: int | None = None) -> str:
    """The settings of PANES."""
    parts = {"DURATION": duration, "PERIOD": period, "OFFSET": offset, "DISCARD AGE": age}
    return ", ".join(f"{word} {_span(given)}" for word, given in parts.items() if given is not None)


SETTINGS = {
    "S01": {"duration": 10, "period": 5, "age": 15},
    "S02": {"duration": 60, "age": 360},
    "S03": {"duration": 3, "period": 1, "age": 10},
    "S05": {"duration": 3, "period": 1, "age": 5},
    "S06": {"duration": 10},
    "S08": {"duration": 10, "age": 5},
    "S09": {"duration": 10, "age": 100},
    "S10": {"duration": 10},
    "S12": {"duration": 5, "period": 5, "offset": 12},
    "S16": {"duration": 5, "age": 30},
    "S18": {"duration": 10},
}
KEYS = {"S03": "part"}
PANES = {name: fires(panes(**given), KEYS.get(name, "")) for name, given in SETTINGS.items()}
"""Cases whose answer is the fires of one query."""

BOTH = "CREATE STREAM s0 (n INT); CREATE STREAM s1 (n INT); SELECT STREAM n FROM s0 UNION ALL SELECT STREAM n FROM s1"
"""S13: the bound after the union is the least of the inputs."""

GENERATED = (
    "CREATE STREAM s (n INT, t TIMESTAMP, v STRING, part INT) "
    "EVENT TIME (t, LAG INTERVAL '1' SECOND, MINIMUM GAP INTERVAL '0.2' SECOND); "
    "SELECT STREAM PANE_END AS e, COUNT(*) AS c FROM s GROUP BY PANES(t, DURATION INTERVAL '1' SECOND)"
)
"""S15: the bound of the operator, and the one that it sends."""

BUFFERED = S.format(GAP) + (
    f"CREATE VIEW sent EVENT TIME (t, {GAP}) AS SELECT STREAM * FROM s; "
    "SELECT STREAM PANE_END AS e, COUNT(*) AS c FROM sent GROUP BY PANES(t, DURATION INTERVAL '1' SECOND)"
)
"""S17: a new declaration of the event time promises the time of the last row sent."""

TWICE = S.format(GAP) + (
    f"CREATE VIEW sums AS SELECT STREAM SUM(CAST(v AS INT)) AS v FROM s GROUP BY PANES(t, {panes(10)}); "
    "SELECT STREAM SUM(v) AS v FROM sums GROUP BY STEP(sums.ROWTIME BY INTERVAL '20' SECOND)"
)
"""S18: the second window; no result of the first is late for it."""
