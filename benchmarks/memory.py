"""How much memory the driver's two processes take."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.engines import Engines


def memory_of(engines: Engines) -> dict[str, int]:
    """Resident MiB of the driver's two processes; Java's heap after full collections.

    Spark drops what it has broadcast only after a collection has found that nobody wants it.
    """
    java = engines.spark._jvm.java.lang  # noqa: SLF001 - Python has no other way to ask Java
    gc.collect()  # what Python still names, Java keeps
    for _ in range(3):
        java.System.gc()
        time.sleep(1)
    runtime = java.Runtime.getRuntime()
    return {
        "python_mib": resident("self"),
        "java_mib": resident(str(java.ProcessHandle.current().pid())),
        "java_heap_mib": int(runtime.totalMemory() - runtime.freeMemory()) >> 20,
    }


def resident(process: str) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmRSS"))
