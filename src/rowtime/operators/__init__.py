"""The operators of a streaming plan: one file an operator; `contract.py` says what one is."""

from rowtime.operators.alter_lifetime import AlterLifetime
from rowtime.operators.anti_join import AntiJoin, SpeculativeAntiJoin
from rowtime.operators.bounded_events import BoundedEvents
from rowtime.operators.chop import Chop, SpeculativeChop
from rowtime.operators.clip import Clip, SpeculativeClip
from rowtime.operators.count_windows import CountWindows, SpeculativeCountWindows
from rowtime.operators.delay import Delay
from rowtime.operators.emit_changes import EmitChanges
from rowtime.operators.emit_lifetimes import EmitLifetimes
from rowtime.operators.event_stream import EventStream
from rowtime.operators.event_time import EventTimed
from rowtime.operators.group_by import GroupBy
from rowtime.operators.group_values import GroupByValues
from rowtime.operators.hop import Hop
from rowtime.operators.imported_bounds import ImportedBounds
from rowtime.operators.join import Join
from rowtime.operators.lifetime_join import LifetimeJoin
from rowtime.operators.lifetime_windows import LifetimeWindows
from rowtime.operators.limit import Limit
from rowtime.operators.merge import Merge
from rowtime.operators.ordered import Ordered
from rowtime.operators.over import Over
from rowtime.operators.panes import Panes
from rowtime.operators.passed_bounds import PassedBounds
from rowtime.operators.period_filter import PeriodFilter
from rowtime.operators.permit_gate import PermitGate
from rowtime.operators.pump_gate import PumpGate
from rowtime.operators.rejected import Rejected
from rowtime.operators.select import Select
from rowtime.operators.session import SessionGroup
from rowtime.operators.session_rows import SessionRows
from rowtime.operators.sink import Sink
from rowtime.operators.snapshot import Snapshot
from rowtime.operators.snapshot_sets import SnapshotSets
from rowtime.operators.sort_by import SortBy
from rowtime.operators.sort_by_values import SortByValues
from rowtime.operators.speculative_groups import SpeculativeGroups
from rowtime.operators.stagger import Stagger
from rowtime.operators.stitch import SpeculativeStitch, Stitch
from rowtime.operators.stream import Stream
from rowtime.operators.table import Table
from rowtime.operators.table_function import TableFunctionCall
from rowtime.operators.table_join import TableJoin
from rowtime.operators.tsort import TSort
from rowtime.operators.union_all import UnionAll
from rowtime.operators.versions import Versions

OPERATORS = (
    Stream, Rejected, Select, Hop, TableFunctionCall, Ordered, TSort, SortBy, SortByValues, UnionAll, GroupBy,
    GroupByValues, Over, SessionGroup, SessionRows, Stagger, Join, Limit, Merge, Sink, EventTimed, Panes, PassedBounds,
    Delay, PermitGate, AlterLifetime, EmitChanges, EmitLifetimes, EventStream, Snapshot, LifetimeWindows, LifetimeJoin,
    AntiJoin, Chop, Clip, Stitch, CountWindows, PeriodFilter, Versions, SpeculativeGroups, SnapshotSets,
    SpeculativeAntiJoin, SpeculativeChop, SpeculativeClip, SpeculativeStitch, SpeculativeCountWindows, ImportedBounds,
    BoundedEvents,
    Table, TableJoin, PumpGate,
)  # fmt: skip
"""Every operator there is; the laws of `tests/laws` run over this list."""

__all__ = [
    "OPERATORS",
    "AlterLifetime",
    "AntiJoin",
    "BoundedEvents",
    "Chop",
    "Clip",
    "CountWindows",
    "Delay",
    "EmitChanges",
    "EmitLifetimes",
    "EventStream",
    "EventTimed",
    "GroupBy",
    "GroupByValues",
    "Hop",
    "ImportedBounds",
    "Join",
    "LifetimeJoin",
    "LifetimeWindows",
    "Limit",
    "Merge",
    "Ordered",
    "Over",
    "Panes",
    "PassedBounds",
    "PeriodFilter",
    "PermitGate",
    "PumpGate",
    "Rejected",
    "Select",
    "SessionGroup",
    "SessionRows",
    "Sink",
    "Snapshot",
    "SnapshotSets",
    "SortBy",
    "SortByValues",
    "SpeculativeAntiJoin",
    "SpeculativeChop",
    "SpeculativeClip",
    "SpeculativeCountWindows",
    "SpeculativeGroups",
    "SpeculativeStitch",
    "Stagger",
    "Stitch",
    "Stream",
    "TSort",
    "Table",
    "TableFunctionCall",
    "TableJoin",
    "UnionAll",
    "Versions",
]
