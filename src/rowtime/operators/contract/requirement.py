"""What an operator requires of its inputs, as values that the planner compares with the properties of an edge.

Order is a property of an edge (semantics 2.5). An operator names its requirement; only ``plan/enforce.py`` makes sure
that it is met, and inserts a merge where an edge lacks it. EXPLAIN shows ``words``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from rowtime.operators.contract.edge import Shape, Trait


@dataclass(frozen=True)
class Requirement:
    """A requirement on one input: its edge has all of ``traits``.

    If an edge lacks one, a merge provides it. The merge ``numbers`` the rows, and keeps their former places for a gate
    that refuses them (``origins``, or ``traced`` if the gate needed it only in a later version). ``own``: only a
    merge's numbers are sufficient, because they begin with 0 and leave none out. ``near``: the merge is directly below;
    otherwise below the projections and filters of the same query that the rows pass on the way. ``name``: of the merge,
    after its query's.
    """

    words: str
    traits: frozenset[Trait] = frozenset()
    numbers: bool = True
    origins: bool = False
    traced: bool = False
    own: bool = False
    near: bool = False
    name: str = "merge"

    def met(self, shape: Shape) -> bool:
        """Return True if an edge of this shape meets the requirement; a shape does not tell whose numbers it has."""
        return not self.own and self.traits <= shape.traits


def _of(words: str, *traits: Trait, numbers: bool = True) -> Requirement:
    return Requirement(words, frozenset(traits), numbers=numbers)


_SEQUENCE = (Trait.PLACED, Trait.SINGLE, Trait.MERGED)

UNORDERED: Final = _of("nothing")
WRITERS: Final = _of("the order of each writer", Trait.PLACED, Trait.MERGED)
"""The rows of a writer in the order of arrival; rows without writers count as one writer's, in their own order."""
PLACED: Final = _of("a place in its stream for each row", Trait.PLACED, Trait.BY_PLACE)
"""Equal rowtimes are ordered by writer and position."""
SEQUENCE: Final = _of("stream order", *_SEQUENCE)
"""The rows of one writer, each with its position."""
GATED: Final = replace(SEQUENCE, origins=True)
"""The same, for a gate: refused rows are reported with their original writer and position."""
NUMBERED: Final = replace(_of("stream order", *_SEQUENCE, Trait.BY_PLACE, Trait.RELEASED), near=True)
"""The same, and no row is ahead of the bound: new rows follow all earlier ones."""
TIMED: Final = replace(_of("stream order", *_SEQUENCE, Trait.RELEASED), traced=True)
"""The same, to declare an event time: a bound is made from rows that have come, and may refuse later ones."""
BATCH: Final = replace(SEQUENCE, traced=True)
"""The same for the rows of a set, which have no order in which they could be released."""
COUNTED: Final = replace(NUMBERED, words="stream order, numbered", own=True)
"""The same, with the row's number from the beginning as its position."""
RELEASED: Final = _of("stream order", Trait.SINGLE, Trait.RELEASED, numbers=False)
"""Only the order; positions do not matter."""
EVENT_TIME: Final = _of("the order in which the event time was declared", Trait.EVENT_TIME)
"""A merge cannot provide it: the binder refuses an input without it."""
VERSIONS: Final = _of("versions, in their order", Trait.SINGLE)
"""Versions of events, all up to the last one; made by `Versions`, and passed on by operators on versions."""
