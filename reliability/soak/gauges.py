"""Gauges of a running query: its processes, its files, the time of its ticks."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.memory import heap_after_collection, resident
from reliability.soak.growth import Tolerance
from reliability.soak.processors import below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOLERANCES: Mapping[str, Tolerance] = {
    "tick": Tolerance(" ms", 0.5, 100),
    "without others": Tolerance(" ms", 0.5, 100),
    "Python": Tolerance(" MiB", 0.1, 10),
    "its workers": Tolerance(" MiB", 0.2, 40),
    "heap after GC": Tolerance(" MiB", 0.1, 10, min),  # Spark lets go of what it has broadcast a while later
    "Java outside the heap": Tolerance(" MiB", 0.1, 15),
    "open files": Tolerance("", 0.1, 20),
    "files of state": Tolerance("", 0.25, 20),
    "bytes of state": Tolerance(" kB", 0.25, 100),
    "files of the journal": Tolerance("", 0.0, 70),  # between 64 and 128 by design
    "bytes of the newest entry": Tolerance("", 0.1, 500),
    "other files": Tolerance("", 0.0, 10),
    "files of Spark": Tolerance("", 0.25, 100),
}
TICK = ("tick", "without others")
"""The time of a tick, and that multiplied by the share of the processors that other programs left."""
BY_NATURE = ("rejected",)  # the ledger keeps every refused row


def measured(spark: SparkSession, checkpoint: Path, local: Path) -> dict[str, float]:
    """Return all gauges but the time of ticks; ``local``: the folder of Spark's temporary files."""
    heap = settled_heap(spark)
    beans = spark._jvm.java.lang.management.ManagementFactory  # noqa: SLF001 - Python has no other way to ask Java
    java = str(spark._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001
    return {
        "Python": resident("self"),
        "its workers": sum(map(resident, below(java))),
        "heap after GC": heap,
        "Java outside the heap": beans.getMemoryMXBean().getNonHeapMemoryUsage().getUsed() >> 20,
        "open files": sum(len(os.listdir(f"/proc/{process}/fd")) for process in ("self", java)),  # noqa: PTH208
        **files(checkpoint),
        "files of Spark": len(_sizes(local)),
    }


def settled_heap(spark: SparkSession, most: int = 8) -> int:
    """Return MiB of Java's heap once two collections in a row, a second apart, freed nothing; after ``most`` at most.

    Spark releases broadcasts after a collection, on a thread of its own.
    """
    heaps = [heap_after_collection(spark)]
    while len(heaps) < most and not (len(heaps) > 2 and min(heaps[-2:]) >= heaps[-3]):
        time.sleep(1)
        heaps.append(heap_after_collection(spark))
    return min(heaps)


def files(checkpoint: Path) -> dict[str, float]:
    """Return the files of a checkpoint, except those that it collects by design."""
    sizes = {name: _sizes(checkpoint / name) for name in ("state", "journal", *BY_NATURE)}
    named = sum(map(len, sizes.values()))
    entries = {path.name: size for path, size in sizes["journal"].items() if path.suffix == ".json"}
    return {
        "files of state": len(sizes["state"]),
        "bytes of state": sum(sizes["state"].values()) / 1000,
        "files of the journal": len(sizes["journal"]),
        "bytes of the newest entry": entries[max(entries)] if entries else 0,
        "other files": len(_sizes(checkpoint)) - named,
    }


def _sizes(folder: Path) -> dict[Path, int]:
    """Return the size of each file below a folder; one that is deleted meanwhile does not count."""
    found = {}
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                found[path] = path.stat().st_size
        except FileNotFoundError:
            continue
    return found
