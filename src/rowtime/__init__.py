"""rowtime: event-time streaming SQL on Apache Spark.

    import rowtime as rt

    pipeline = rt.Pipeline()
    pipeline.sql("CREATE STREAM clicks (page STRING); SELECT STREAM page FROM clicks")
    query = pipeline.run_available()

What is exported here is the public surface; names are resolved on first use, so that
``rowtime check`` and a writer of a stream log load neither Spark nor Java.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rowtime.api.altering import alter
    from rowtime.api.events import Events
    from rowtime.api.migrating import migrate
    from rowtime.api.pipeline import Pipeline
    from rowtime.api.query import Query
    from rowtime.api.relations import EventTime, Folded, Relation
    from rowtime.api.rows import Rows, floor, hop, session, tumble
    from rowtime.api.verification import verify
    from rowtime.audit.readmit import readmit
    from rowtime.client.writer import open_writer as writer
    from rowtime.core.errors import Failure, Problem, Refused, RowtimeError
    from rowtime.core.store_settings import configure_stores
    from rowtime.observe.metrics import Metrics
    from rowtime.operators.rows.table_function import TableFunction
    from rowtime.plan.check import check, order_of
    from rowtime.profiling.profiled import profile
    from rowtime.profiling.result import Profile
    from rowtime.runtime.sinks.contract import Batch
    from rowtime.runtime.sources.contract import Limits

__version__ = "0.2.0"

_WHERE = {
    "Pipeline": ("rowtime.api.pipeline", "Pipeline"),
    "Query": ("rowtime.api.query", "Query"),
    "Batch": ("rowtime.runtime.sinks.contract", "Batch"),
    "TableFunction": ("rowtime.operators.rows.table_function", "TableFunction"),
    "EventTime": ("rowtime.api.relations", "EventTime"),
    "Events": ("rowtime.api.events", "Events"),
    "Folded": ("rowtime.api.relations", "Folded"),
    "Relation": ("rowtime.api.relations", "Relation"),
    "Rows": ("rowtime.api.rows", "Rows"),
    "floor": ("rowtime.api.rows", "floor"),
    "hop": ("rowtime.api.rows", "hop"),
    "session": ("rowtime.api.rows", "session"),
    "tumble": ("rowtime.api.rows", "tumble"),
    "Metrics": ("rowtime.observe.metrics", "Metrics"),
    "Limits": ("rowtime.runtime.sources.contract", "Limits"),
    "alter": ("rowtime.api.altering", "alter"),
    "readmit": ("rowtime.audit.readmit", "readmit"),
    "migrate": ("rowtime.api.migrating", "migrate"),
    "verify": ("rowtime.api.verification", "verify"),
    "configure_stores": ("rowtime.core.store_settings", "configure_stores"),
    "profile": ("rowtime.profiling.profiled", "profile"),
    "Profile": ("rowtime.profiling.result", "Profile"),
    "check": ("rowtime.plan.check", "check"),
    "order_of": ("rowtime.plan.check", "order_of"),
    "writer": ("rowtime.client.writer", "open_writer"),
    "Problem": ("rowtime.core.errors", "Problem"),
    "Refused": ("rowtime.core.errors", "Refused"),
    "Failure": ("rowtime.core.errors", "Failure"),
    "RowtimeError": ("rowtime.core.errors", "RowtimeError"),
}

__all__ = [
    "Batch", "EventTime", "Events", "Failure", "Folded", "Limits", "Metrics", "Pipeline", "Problem", "Profile",
    "Query", "Refused", "Relation", "Rows", "RowtimeError", "TableFunction", "alter", "check", "configure_stores",
    "floor", "hop", "migrate", "order_of", "profile", "readmit", "session", "tumble", "verify", "writer",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'rowtime' has no attribute {name!r}")
    module, attribute = _WHERE[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    """List the public names, also those that have not been used yet, for ``dir`` and completion."""
    return sorted({*globals(), *_WHERE} - {"TYPE_CHECKING", "Any", "annotations", "import_module", "_WHERE"})
