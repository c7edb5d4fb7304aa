"""Where small ticks are computed."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Final

from rowtime.core.errors import refuse

VARIABLE: Final = "ROWTIME_SMALL_TICKS"


class SmallTicks(StrEnum):
    """Where the ticks are computed that need nothing of Spark but a place: the driver's process, or a task of Spark."""

    DRIVER = "driver"
    SPARK = "spark"

    @classmethod
    def chosen(cls, given: str | None) -> SmallTicks:
        """Return the place that is given, or that of the environment; by default tasks of Spark. Raises R541."""
        name = given or os.environ.get(VARIABLE) or cls.SPARK
        if name not in [*cls]:
            what = f"small_ticks is {name!r}; it is where small ticks are computed"
            raise refuse("R541", what, f"Use one of: {', '.join(cls)}.")
        return cls(name)
