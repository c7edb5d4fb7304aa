"""Spark's column functions, imported when the first one is called: `check` works without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.functions import *  # noqa: F403 - all functions looked up below
else:

    def __getattr__(name: str) -> Any:
        from pyspark.sql import functions  # noqa: PLC0415 - see above

        return getattr(functions, name)
