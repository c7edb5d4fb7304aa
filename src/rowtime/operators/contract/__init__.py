"""What an operator is, and what it may use: the one interface between operators and everything else."""

from rowtime.operators.contract.edge import EDGES, Column, Delta, EventTime, Origin, Shape
from rowtime.operators.contract.lineage import NOTHING, Fired, Link, Pairs, named
from rowtime.operators.contract.operator import Operator, Unary, walk
from rowtime.operators.contract.state import Closed, Control, UpTo
from rowtime.operators.contract.texts import micros, passed, quoted
from rowtime.operators.contract.tick import Tick

__all__ = [
    "EDGES", "NOTHING", "Closed", "Column", "Control", "Delta", "EventTime", "Fired", "Link", "Operator", "Origin",
    "Pairs", "Shape", "Tick", "Unary", "UpTo", "micros", "named", "passed", "quoted", "walk",
]  # fmt: skip
