"""Items of writers that leave, are set aside and return, for the laws over leaving."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from rowtime.testing.transcripts import ScriptItem
from tests.laws.as_of_pipelines import AS_OF
from tests.laws.buffer_pipelines import BUFFERS
from tests.laws.join_pipelines import JOINS
from tests.laws.match_pipelines import MATCHES
from tests.laws.over_pipelines import OVER
from tests.laws.panes_pipelines import PANES
from tests.laws.pipelines import LAWS, Feeds, Law, feeds, items
from tests.laws.pipelines import _streams as judged
from tests.laws.session_pipelines import SESSIONS
from tests.laws.sorted_pipelines import SORTED
from tests.laws.window_pipelines import WINDOWS
from tests.oracle import feed as f

CLAUSES = "IDLE AFTER INTERVAL '1000' DAY"
NAMES = (
    "filter and projection",
    "t-sort",
    "t-sort with a further key",
    "union all",
    "group by with partial results",
    "group by within",
    "rejected rows",
)
FAMILIES = (
    "windows on both sides",
    "a left join of an interval",
    "an anti join of windows",
    "three inputs",
    "the last row of the key",
    "ranges of time a key",
    "sessions with partial results",
    "groups of hopping windows",
    "distinct rows of groups",
    "panes that overlap",
    "panes where regions meet",
    "a gate with permits",
    "a match within a time",
)
"""One or more laws of each other family: joins, OVER, sessions, windows, sets, panes, buffers, matches."""
LEAVING = tuple(
    replace(law, name=f"{law.name}, whose writers come and go", clauses=CLAUSES)
    for law in (*LAWS, *JOINS, *AS_OF, *OVER, *SESSIONS, *WINDOWS, *SORTED, *PANES, *BUFFERS, *MATCHES)
    if law.name in (*NAMES, *FAMILIES)
)


@dataclass(frozen=True)
class Script:
    """Items, and the numbers of those after which a writer of stream a is set aside because it is silent.

    ``all_silent``: then the other writer is silent too, and stays because its clock is greater.
    """

    items: Sequence[ScriptItem]
    idle: Mapping[int, str]
    all_silent: bool = False

    def silent(self) -> dict[int, tuple[tuple[str, str], ...]]:
        """The writers that are silent after an item."""
        return {n: tuple(("a", w) for w in ("xy" if self.all_silent else who)) for n, who in self.idle.items()}

    def returns(self) -> list[int]:
        """The numbers of the items at which a writer returns; the journal has their positions."""
        away: set[tuple[str, str]] = set()
        found = []
        for item in self.items:
            who = (item.stream, item.writer)
            if item.leaves:
                away.add(who)
            elif who in away and not _is_end(item):
                away.discard(who)
                found.append(item.number)
            if item.number in self.idle:
                away.add(("a", self.idle[item.number]))
        return found

    def cuts(self) -> set[int]:
        """The positions at which a tick has to end, because of an event outside of the writers."""
        return {*self.idle, *(number - 1 for number in self.returns() if number > 1)}


@st.composite
def scripts(draw: Callable[..., Any]) -> Script:
    """Items of two streams, in which writers leave at any position and may return."""
    made: list[ScriptItem] = draw(items())
    ends = [item for item in made if _is_end(item)]
    rest = [item for item in made if not _is_end(item)]
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(rest)))
        stream = draw(st.sampled_from("aab"))
        rest.insert(place, ScriptItem(0, stream, draw(st.sampled_from("xy")), None, None, leaves=True))
    numbered = [replace(item, number=number) for number, item in enumerate([*rest, *ends], 1)]
    idle = {}
    if draw(st.booleans()) and len(rest) > 2:
        number = draw(st.integers(2, len(rest) - 1))
        idle[number] = draw(st.sampled_from("xy"))
    found = _set_aside(numbered, idle)
    return _all_silent(numbered, found) if draw(st.booleans()) else Script(numbered, found)


def _set_aside(made: Sequence[ScriptItem], idle: Mapping[int, str]) -> dict[int, str]:
    """The writers that can be set aside: present, and not the last one."""
    found = {}
    for number, writer in idle.items():
        away: set[str] = set()
        for item in made[:number]:
            if item.stream == "a":
                (away.add if item.leaves else away.discard)(item.writer)
        here = {item.writer for item in made if item.stream == "a"} | {"x"}
        if writer in here - away and len(here - away) > 1:
            found[number] = writer
    return found


def _all_silent(made: Sequence[ScriptItem], idle: Mapping[int, str]) -> Script:
    """The script in which both writers are silent at once; if their clocks are equal, only one is."""
    for number in idle:
        so_far = Script([item for item in made if item.number <= number], {})
        (clocks,), _ = judged(fed(LAWS[0], so_far, made), "a")
        x, y = (f.clock_of(clocks.get(writer, ())) for writer in "xy")
        if x != y:
            return Script(made, {number: "x" if x < y else "y"}, all_silent=True)
    return Script(made, idle)


def _is_end(item: ScriptItem) -> bool:
    return item.at is not None and item.at >= f.END


def fed(law: Law, script: Script, known: Sequence[ScriptItem] = ()) -> Feeds:
    """The items for the oracle; a writer that returns gets the present clock of each gate.

    ``known``: items of all writers.
    """
    found: dict[str, dict[str, list[f.Item]]] = {
        name: {writer: [] for writer in feed} for name, feed in feeds(known or script.items).items()
    }
    returns, away = set(script.returns()), set()
    for item in script.items:
        mine = found[item.stream]
        if item.leaves:
            mine[item.writer].append(f.Leave())
            away.add((item.stream, item.writer))
        elif item.values is not None or item.at is not None:
            if item.number in returns:
                mine[item.writer].append(f.Return(_gates(law, item.stream, found)))
                away.discard((item.stream, item.writer))
            if item.values is not None:
                mine[item.writer].append(f.Row(item.values["rowtime"], item.values, item.number))
            else:
                for writer in mine if _is_end(item) else [item.writer]:
                    mine[writer].append(f.Bound(item.at or 0))
        if item.number in script.idle:
            found["a"][script.idle[item.number]].append(f.Leave())
            away.add(("a", script.idle[item.number]))
    return found


def _gates(law: Law, stream: str, found: Feeds) -> Mapping[str, int]:
    """The clocks of the stream and of the query."""
    before = {name: {writer: [*items] for writer, items in feed.items()} for name, feed in found.items()}
    (clocks,), _ = judged(before, stream)
    expected, _ = law.oracle(before)
    return {stream: f.bound_of(clocks), "query": f.bound_of(expected)}
