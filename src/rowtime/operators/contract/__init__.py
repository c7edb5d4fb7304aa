"""What an operator is, and what it may use: the one interface between operators and everything else."""

from rowtime.operators.contract.edge import A, Column, Delta, EventTime, P, Shape, T, W
from rowtime.operators.contract.lineage import (
    ASKED_AT,
    ASKED_FROM,
    ASKED_UPTO,
    ASKED_VERSION,
    NOTHING,
    Fired,
    Link,
    Pairs,
    named,
)
from rowtime.operators.contract.operator import Operator, Unary, walk
from rowtime.operators.contract.state import (
    LARGE,
    C,
    Closed,
    Control,
    Keeper,
    Named,
    Route,
    Segment,
    Segments,
    StateNote,
    UpTo,
)
from rowtime.operators.contract.texts import micros, passed, quoted
from rowtime.operators.contract.tick import Tick

__all__ = [
    "ASKED_AT",
    "ASKED_FROM",
    "ASKED_UPTO",
    "ASKED_VERSION",
    "LARGE",
    "NOTHING",
    "A",
    "C",
    "Closed",
    "Column",
    "Control",
    "Delta",
    "EventTime",
    "Fired",
    "Keeper",
    "Link",
    "Named",
    "Operator",
    "P",
    "Pairs",
    "Route",
    "Segment",
    "Segments",
    "Shape",
    "StateNote",
    "T",
    "Tick",
    "Unary",
    "UpTo",
    "W",
    "micros",
    "named",
    "passed",
    "quoted",
    "walk",
]
