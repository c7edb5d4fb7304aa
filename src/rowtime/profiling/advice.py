"""What a profile recommends: WITHIN, EARLY BEYOND and IDLE AFTER, with what each costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from rowtime.core.counts import counted
from rowtime.operators.contract.lateness import LADDER, in_words, interval
from rowtime.profiling.facts import Facts, wide_limit

KEEP: Final = 0.999
_SHARES: Final = (0.99, KEEP)
_BARELY: Final = 2
"""A tolerance that keeps all rows is recommended if it is at most twice the one that keeps nearly all."""
_CLEARLY: Final = 4
_SOME: Final = 0.001


@dataclass(frozen=True)
class Point:
    """A tolerance ``within`` (µs), the rows ``late`` with it, and the share of rows that it keeps, from 0 to 1."""

    within: int
    late: int
    kept: float

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"within": self.within, "late": self.late, "kept": self.kept}


@dataclass(frozen=True)
class Advice:
    """The recommended clauses (µs; ``None``: none is needed, or none is known).

    ``within``: the recommended tolerance; ``nearly``: the least that keeps 99.9 % of the rows, ``most`` 99 %,
    ``everything`` all; ``knee``: beyond it each further second keeps few rows. ``early``: no honest row is further
    above the mark. ``idle``: twice the longest silence of a writer that came back.
    """

    within: Point
    nearly: Point
    most: Point
    everything: Point
    knee: Point
    early: int | None
    idle: int | None


def curve(facts: Facts) -> list[Point]:
    """Return the rows that each tolerance keeps, from none to the one that keeps all."""
    late, points = facts.late, [point(facts, 0)]
    for edge in LADDER:
        points.append(point(facts, edge))
        if edge >= late.greatest:
            return _useful(points)
    return _useful([*points, point(facts, late.greatest)])


def _useful(points: list[Point]) -> list[Point]:
    """Leave out the short tolerances that keep no more than none."""
    first = next((n for n, at in enumerate(points) if at.late < points[0].late), 1)
    return [points[0], *points[max(1, first - 1) :]]


def point(facts: Facts, within: int) -> Point:
    """Return the rows that a tolerance keeps; exact for those of the ladder, and from the greatest lateness on."""
    late = facts.late.rows if within == 0 else facts.late.beyond(within)
    return Point(within, late, 1 - late / facts.timed if facts.timed else 1.0)


def advice_of(facts: Facts, keep: float = KEEP) -> Advice:
    """Return what is recommended; ``keep``: the share of rows that WITHIN should keep."""
    most, nearly, wanted = (point(facts, _covering(facts, share)) for share in (*_SHARES, keep))
    everything = point(facts, _covering(facts, 1))
    within = everything if everything.within <= _BARELY * wanted.within else wanted
    several = len(facts.merged.places) > 1
    idle = _wider(facts.silences.greatest) if several and facts.silences.greatest else None
    return Advice(within, nearly, most, everything, knee(curve(facts)), _early(facts), idle)


def _covering(facts: Facts, share: float) -> int:
    """Return the least tolerance that keeps a share of the rows."""
    lost = math.floor((1 - share) * facts.timed + 1e-9)
    return facts.late.covering(facts.late.rows - lost)


def _early(facts: Facts) -> int | None:
    if facts.lone or facts.limit is not None:
        return facts.limit
    return wide_limit(facts.honest) if facts.honest else None


def _wider(micros: int) -> int:
    """Return the least edge that is at least twice a duration; twice it, if no edge is."""
    return next((edge for edge in LADDER if edge >= 2 * micros), 2 * micros)


def knee(points: list[Point]) -> Point:
    """Return the point that is furthest above the line from the first to the last one, over the logarithm of WITHIN."""
    if len(points) < 3:  # noqa: PLR2004 - none between two
        return points[-1]
    xs = [math.log(max(1, at.within)) for at in points[1:]]
    least, greatest = points[1].kept, points[-1].kept
    if xs[-1] == xs[0] or greatest == least:
        return points[-1]
    above = [
        (at.kept - least) / (greatest - least) - (x - xs[0]) / (xs[-1] - xs[0])
        for at, x in zip(points[1:], xs, strict=True)
    ]
    return points[1 + above.index(max(above))]


def own_helps(facts: Facts) -> tuple[Point, Point] | None:
    """Return what keeps 99.9 % of the rows with one clock, and with clocks of their own, if these are clearly better.

    Both points count the late rows of all clocks.
    """
    if facts.own is None:
        return None
    one, own = facts.late, facts.own.clock.late
    lost = math.floor((1 - KEEP) * facts.timed + 1e-9)
    with_one, with_own = one.covering(one.rows - lost), own.covering(own.rows - lost)
    if not facts.timed or one.rows < _SOME * facts.timed or with_own * _CLEARLY > with_one:
        return None
    left = own.rows if with_own == 0 else own.beyond(with_own)
    return point(facts, with_one), Point(with_own, left, 1 - left / facts.timed)


def clauses(facts: Facts, advice: Advice) -> str:
    """Return WITHIN as SQL, and the guard if rows need one."""
    early = "" if facts.limit is None else f" EARLY BEYOND {interval(facts.limit)}"
    return f"WITHIN {interval(advice.within.within)}{early}"


def costs(facts: Facts, advice: Advice) -> list[str]:
    """Return the recommendations in words, with what each costs."""
    lines = [_cost(advice.within, "recommended")]
    others = [(advice.knee, "the knee"), (advice.most, ""), (advice.nearly, ""), (advice.everything, "")]
    shown = {advice.within.within}
    for at, why in others:
        if at.within not in shown:
            lines.append(_cost(at, why))
            shown.add(at.within)
    if advice.early is not None:
        lines.append(f"EARLY BEYOND {interval(advice.early)}: {_early_cost(facts)}")
    if advice.idle is not None:
        silent = in_words(facts.silences.greatest)
        lines.append(
            f"IDLE AFTER {interval(advice.idle)}: no writer was silent for longer than {silent} and came back; a "
            "silent writer holds results back for so long"
        )
    return lines


def _cost(at: Point, why: str) -> str:
    late = "no row is late" if not at.late else f"{rows_that(at.late, 'is', 'are')} late"
    wait = "results do not wait" if not at.within else f"results wait {in_words(at.within)}"
    kept = "keeps all rows" if not at.late else f"keeps {_percent(at.kept)} of the rows"
    return f"WITHIN {interval(at.within)}{f' ({why})' if why else ''}: {kept}, {late}; {wait}"


def rows_that(count: int, one: str, many: str) -> str:
    """Return a number of rows with a verb: ``1 row is``, ``2 rows are``."""
    return f"{counted(count, 'rows')} {one if count == 1 else many}"


def _percent(share: float) -> str:
    """Return a share below 1 in percent, never rounded up to 100."""
    for digits in range(1, 7):
        text = f"{share * 100:.{digits}f}"
        if float(text) < 100:  # noqa: PLR2004 - percent
            return f"{text} %"
    return "nearly 100 %"


def _early_cost(facts: Facts) -> str:
    if facts.lone or facts.early:
        return f"{rows_that(facts.early, 'is', 'are')} refused as EARLY, and no row after them is late because of them"
    return (
        f"against rows from the future, of which there are none here: no row is further above the mark than "
        f"{in_words(facts.honest)}; one task judges the rows of a tick behind a guard"
    )
