"""Where small ticks are computed."""

from __future__ import annotations

from enum import StrEnum


class SmallTicks(StrEnum):
    """Where the ticks are computed that need nothing of Spark but a place: the driver's process, or a task of Spark."""

    DRIVER = "driver"
    SPARK = "spark"
