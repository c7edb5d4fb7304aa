"""What an operator is, and what it may use: the one interface between operators and everything else."""

from rowtime.operators.contract.edge import EDGES, Column, Delta, EventTime, Origin, Shape
from rowtime.operators.contract.lineage import NOTHING, Fired, Link, Pairs, named
from rowtime.operators.contract.operator import Operator, Unary, walk
from rowtime.operators.contract.state import (
    LARGE,
    C,
    Closed,
    Control,
    Keeper,
    Kept,
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
    "EDGES",
    "LARGE",
    "NOTHING",
    "C",
    "Closed",
    "Column",
    "Control",
    "Delta",
    "EventTime",
    "Fired",
    "Keeper",
    "Kept",
    "Link",
    "Named",
    "Operator",
    "Origin",
    "Pairs",
    "Route",
    "Segment",
    "Segments",
    "Shape",
    "StateNote",
    "Tick",
    "Unary",
    "UpTo",
    "micros",
    "named",
    "passed",
    "quoted",
    "walk",
]
