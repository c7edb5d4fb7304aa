"""What an operator is, and what it may use: the one interface between operators and everything else."""

from rowtime.operators.contract.edge import EDGES, Column, Delta, EventTime, Origin, Shape
from rowtime.operators.contract.lineage import AGGREGATION, NOTHING, TRANSFORMATION, Fired, Link, Made, Pairs, named
from rowtime.operators.contract.operator import Binary, Operator, Unary, walk
from rowtime.operators.contract.state import Closed, Control, UpTo
from rowtime.operators.contract.texts import micros, passed, quoted
from rowtime.operators.contract.tick import Tick

__all__ = [
    "AGGREGATION", "EDGES", "NOTHING", "TRANSFORMATION", "Binary", "Closed", "Column", "Control", "Delta", "EventTime",
    "Fired", "Link", "Made", "Operator", "Origin", "Pairs", "Shape", "Tick", "Unary", "UpTo", "micros", "named",
    "passed", "quoted", "walk",
]  # fmt: skip
