"""The memory of the driver's two processes."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from benchmarks.engines import Engines


def memory_of(engines: Engines) -> dict[str, int]:
    """Return resident MiB of the driver's two processes, and Java's heap after full collections."""
    heap = heap_after_collection(engines.spark, collections=3)
    java = engines.spark._jvm.java.lang.ProcessHandle.current().pid()  # noqa: SLF001 - no other way to ask Java
    return {"python_mib": resident("self"), "java_mib": resident(str(java)), "java_heap_mib": heap}


def heap_after_collection(spark: SparkSession, collections: int = 1) -> int:
    """Return MiB of Java's heap after full collections, a second apart.

    Spark drops a broadcast only after a collection has found that nobody uses it.
    """
    java = spark._jvm.java.lang  # noqa: SLF001 - Python has no other way to ask Java
    gc.collect()  # what Python still names, Java keeps
    for number in range(collections):
        time.sleep(min(number, 1))
        java.System.gc()
    runtime = java.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory()) >> 20


def resident(process: str) -> int:
    """Return the resident MiB of a process; 0 for one that is gone."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("VmRSS")), 0)
