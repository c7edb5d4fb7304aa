"""Spark's functions of columns, which are imported when the first is called: `check` does without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.functions import *  # noqa: F403 - all that are found below
else:

    def __getattr__(name: str) -> Any:
        from pyspark.sql import functions  # noqa: PLC0415 - as said above

        return getattr(functions, name)
