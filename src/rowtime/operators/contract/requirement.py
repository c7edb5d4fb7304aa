"""What an operator needs of its inputs, as values that the planner compares with what an edge has.

Order is a property of an edge (semantics 2.5). An operator names its requirement; ``plan/enforce.py`` alone
sees that it is met, and puts a merge where an edge falls short. EXPLAIN shows ``words``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from rowtime.operators.contract.edge import Shape, Trait


@dataclass(frozen=True)
class Requirement:
    """What one input must give: its edge has all of ``traits``.

    How an edge that falls short gets there: by a merge, which ``numbers`` the rows, and keeps where they came from, for
    a gate that refuses them (``origins``, or ``traced`` where the gate came to ask for it later). ``own``: only numbers
    of a merge will do, which begin with 0 and leave none out. ``near``: the merge is directly below; else below the
    projections and filters of the same query that the rows pass on the way. ``name``: of the merge, behind its query's.
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
        """True if an edge of this shape has what is required; of numbers that are its own no shape tells."""
        return not self.own and self.traits <= shape.traits


def _of(words: str, *traits: Trait, numbers: bool = True) -> Requirement:
    return Requirement(words, frozenset(traits), numbers=numbers)


_SEQUENCE = (Trait.PLACED, Trait.SINGLE, Trait.MERGED)

UNORDERED: Final = _of("nothing")
WRITERS: Final = _of("the order of each writer", Trait.PLACED, Trait.MERGED)
"""The rows of a writer in the order in which they came; what has none counts as one writer's, in its own order."""
PLACED: Final = _of("a place in its stream for each row", Trait.PLACED, Trait.BY_PLACE)
"""Equal rowtimes go by writer and position."""
SEQUENCE: Final = _of("stream order", *_SEQUENCE)
"""The rows of one writer, each with its position."""
GATED: Final = replace(SEQUENCE, origins=True)
"""The same, for a gate: what it refuses is told with the writer and position that the row came with."""
NUMBERED: Final = replace(_of("stream order", *_SEQUENCE, Trait.BY_PLACE, Trait.RELEASED), near=True)
"""The same, and no row runs ahead of the bound: what is new follows all that was there before."""
TIMED: Final = replace(_of("stream order", *_SEQUENCE, Trait.RELEASED), traced=True)
"""The same, for what declares an event time: a bound is made of rows that have come, and may refuse what follows."""
BATCH: Final = replace(SEQUENCE, traced=True)
"""The same of the rows of a set, which have no order in which they could be released."""
COUNTED: Final = replace(NUMBERED, words="stream order, numbered", own=True)
"""The same, where the position of a row is its number from the beginning."""
RELEASED: Final = _of("stream order", Trait.SINGLE, Trait.RELEASED, numbers=False)
"""The order alone; positions are not looked at."""
EVENT_TIME: Final = _of("the order in which the event time was declared", Trait.EVENT_TIME)
"""No merge can give it: binding refuses what has none."""
VERSIONS: Final = _of("versions, in their order", Trait.SINGLE)
"""Versions of events, all up to the last one; made in `Versions`, and passed on by what reads them."""
