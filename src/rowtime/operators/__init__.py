"""The operators of a streaming plan: one file an operator; `contract.py` says what one is."""

from rowtime.operators.group_by import GroupBy
from rowtime.operators.merge import Merge
from rowtime.operators.rejected import Rejected
from rowtime.operators.select import Select
from rowtime.operators.sink import Sink
from rowtime.operators.stream import Stream
from rowtime.operators.tsort import TSort
from rowtime.operators.union_all import UnionAll

OPERATORS = (Stream, Rejected, Select, TSort, UnionAll, GroupBy, Merge, Sink)
"""Every operator there is; the laws of `tests/laws` run over this list."""

__all__ = ["OPERATORS", "GroupBy", "Merge", "Rejected", "Select", "Sink", "Stream", "TSort", "UnionAll"]
