"""The contract of operators: the one interface between operators and everything else."""

from typing import TYPE_CHECKING

from rowtime.operators.contract.distribution import ByKeys, DiffersError, Distribution, Gathered
from rowtime.operators.contract.edge import EDGES, Column, Delta, EventTime, Origin, Shape
from rowtime.operators.contract.fires import FireColumns
from rowtime.operators.contract.lineage import (
    AGGREGATION,
    NOTHING,
    TRANSFORMATION,
    Derivation,
    Fired,
    Link,
    Pairs,
    named,
)
from rowtime.operators.contract.operator import Binary, Operator, Unary
from rowtime.operators.contract.state import Closed, Control, UpTo
from rowtime.operators.contract.texts import micros, passed
from rowtime.operators.contract.tick import Tick
from rowtime.operators.contract.walk import walk
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
else:
    DataFrame = None  # for annotations only: `check` works without Spark

__all__ = [
    "AGGREGATION",
    "EDGES",
    "NOTHING",
    "TRANSFORMATION",
    "Binary",
    "ByKeys",
    "Closed",
    "Column",
    "Control",
    "DataFrame",
    "Delta",
    "Derivation",
    "DiffersError",
    "Distribution",
    "EventTime",
    "FireColumns",
    "Fired",
    "Gathered",
    "Link",
    "Operator",
    "Origin",
    "Pairs",
    "Shape",
    "Tick",
    "Unary",
    "UpTo",
    "micros",
    "named",
    "passed",
    "quoted",
    "walk",
]  # fmt: skip
