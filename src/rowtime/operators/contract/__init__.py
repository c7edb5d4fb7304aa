"""What an operator is, and what it may use: the one interface between operators and everything else."""

from rowtime.operators.contract.edge import A, Column, Delta, EventTime, P, Shape, T, W
from rowtime.operators.contract.operator import Operator, Unary, walk
from rowtime.operators.contract.state import LARGE, Control, Kept, Named, Route, Segment, Segments
from rowtime.operators.contract.texts import micros, passed, quoted
from rowtime.operators.contract.tick import Tick

__all__ = [
    "LARGE",
    "A",
    "Column",
    "Control",
    "Delta",
    "EventTime",
    "Kept",
    "Named",
    "Operator",
    "P",
    "Route",
    "Segment",
    "Segments",
    "Shape",
    "T",
    "Tick",
    "Unary",
    "W",
    "micros",
    "passed",
    "quoted",
    "walk",
]
