# ruff: noqa: E501 - a spelling a line
"""Random joins over columns of event times, which are promoted in a view or by a declared order, and their oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.laws.join_pipelines import _keys, _numbers
from tests.laws.pipelines import HALF, SECOND, Feeds, Law, _streams
from tests.oracle import feed as f
from tests.oracle.join import join
from tests.oracle.merge import merge
from tests.oracle.ordered import ordered
from tests.oracle.tsort import tsort


def _interval(micros: int) -> str:
    return f"INTERVAL '{micros / SECOND}' SECOND"


@dataclass(frozen=True)
class Spelling:
    """A way to limit the distance b.ev - a.ev to ``low`` … ``high``.

    ``unit``: it compares whole units; ``of``: those of two times. A unit of 1 µs compares the times themselves.
    """

    sql: Callable[[int, int], str]
    unit: int = 1
    of: Callable[[int, int], int] = lambda a, b: b - a

    def holds(self, low: int, high: int) -> Callable[[f.Values, f.Values], bool]:
        return lambda a, b: low // self.unit <= self.of(a["ev"], b["ev"]) <= high // self.unit


def _truncated(a: int, b: int) -> int:
    return abs(b - a) // SECOND * (1 if b >= a else -1)


def _seconds(micros: int) -> str:
    """The whole seconds of a distance, rounded down."""
    return _interval(micros // SECOND * SECOND)


def _whole(low: int, high: int) -> str:
    return f"BETWEEN {low // SECOND} AND {high // SECOND}"


SPELLINGS = (
    Spelling(lambda p, q: f"b.ev BETWEEN a.ev + {_interval(p)} AND a.ev + {_interval(q)}"),
    Spelling(lambda p, q: f"a.ev BETWEEN b.ev - {_interval(q)} AND b.ev - {_interval(p)}"),
    Spelling(lambda p, q: f"a.ev <= b.ev - {_interval(p)} AND NOT (FALSE) AND b.ev + {_interval(-q)} <= a.ev"),
    Spelling(lambda p, q: f"b.ev - a.ev >= {_interval(p)} AND b.ev - a.ev <= {_interval(q)}"),
    Spelling(lambda p, q: f"b.ev > a.ev + {_interval(p - HALF)} + {_interval(HALF)} - INTERVAL '1' MICROSECOND AND b.ev <= a.ev + {_interval(q)}"),
    Spelling(lambda p, q: f"TIMESTAMPADD(MICROSECOND, {p}, a.ev) <= b.ev AND b.ev <= TIMESTAMPADD(MICROSECOND, {q}, a.ev)"),
    Spelling(lambda p, q: f"UNIX_MICROS(b.ev) - UNIX_MICROS(a.ev) BETWEEN {p} AND {q}"),
    Spelling(lambda p, q: f"TIMESTAMPDIFF(SECOND, a.ev, b.ev) {_whole(p, q)}", SECOND, _truncated),
    Spelling(lambda p, q: f"FLOOR(b.ev TO SECOND) BETWEEN FLOOR(a.ev TO SECOND) + {_seconds(p)} AND DATE_TRUNC('SECOND', a.ev) + {_seconds(q)}", SECOND, lambda a, b: b // SECOND - a // SECOND),
    Spelling(lambda p, q: f"CEIL(a.ev TO SECOND) <= CEIL(b.ev TO SECOND) - {_seconds(p)} AND CEIL(b.ev TO SECOND) - {_seconds(q)} <= CEIL(a.ev TO SECOND)", SECOND, lambda a, b: -(-b // SECOND) - -(-a // SECOND)),
    Spelling(lambda p, q: f"UNIX_SECONDS(b.ev) >= UNIX_SECONDS(a.ev) + {p // SECOND} AND UNIX_SECONDS(b.ev) - {q // SECOND} <= UNIX_SECONDS(a.ev)", SECOND, lambda a, b: b // SECOND - a // SECOND),
)  # fmt: skip
SIDES = {"JOIN": (False, False), "LEFT JOIN": (True, False), "RIGHT JOIN": (False, True), "FULL JOIN": (True, True)}


@st.composite
def pipelines(draw: Callable[..., Any]) -> Law:
    """A join of a and b over their columns ev."""
    spelling, kind = draw(st.sampled_from(SPELLINGS)), draw(st.sampled_from([*SIDES]))
    low, high = sorted(draw(st.tuples(*[st.integers(-6, 6).map(lambda n: n * HALF)] * 2)))
    late = draw(st.tuples(*[st.sampled_from([HALF, SECOND, 2 * SECOND])] * 2))
    declared, below = draw(st.booleans()), draw(st.booleans())
    tolerance = f"ASCENDING WITHIN {_interval(late[0])}" if declared else ""
    sides = []
    for name, within in zip("ab", late, strict=True):
        promoted = f"SELECT STREAM ev AS ROWTIME, * FROM {name} ORDER BY ev WITHIN {_interval(within)}"
        sides.append(name if declared and name == "a" else f"({promoted}) AS {name}")
    limit = spelling.sql(low, high)
    condition = f"ON a.v = b.v AND {limit}"
    if below and kind == "JOIN":
        kind, condition = ",", f"WHERE a.v = b.v AND {limit}"
    sql = f"SELECT STREAM a.n AS an, b.n AS bn FROM {f' {kind} '.join(sides)} {condition}"
    # What is compared in whole units limits the times to less than a unit more.
    wide = (low // spelling.unit - 1) * spelling.unit + 1, (high // spelling.unit + 1) * spelling.unit - 1
    stamps = (max(0, wide[1]), max(0, -wide[0]))
    outer = SIDES.get(kind, (False, False))

    def oracle(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
        streams, refused = _streams(feeds, "a", "b")
        if declared:  # its order is judged over the merge of its writers
            kept = ordered("a", merge(streams[0]), lambda v: v["ev"], within=late[0])
            streams[0], refused = kept.feed, [*refused, *kept.refused]
        judged = [tsort(x, one, lambda v: v["ev"], w) for x, one, w in zip("ab", streams, late, strict=True)]
        refused += [refusal for one in judged for refusal in one.refused]
        near = spelling.holds(low, high)
        made = join(
            judged[0].feed, judged[1].feed, *wide, lambda a, b: _keys(a, b) and near(a, b), _numbers,
            *(stamp if one else None for stamp, one in zip(stamps, outer, strict=True)),
        )  # fmt: skip
        return made, refused

    return Law("joins over event times", ("join", "t-sort"), sql, oracle, f"n INT, v INT, ev TIMESTAMP {tolerance}")
