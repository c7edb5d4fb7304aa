"""Spark's daemon of Python workers, with what the tasks of ticks import: a worker is a fork of it.

Otherwise each worker imports it in its first task, which takes more than a second (`spark.python.daemon.module`).
"""

from __future__ import annotations

from pyspark.daemon import manager

import rowtime.runtime.executors.tasks  # noqa: F401 - for the forks

if __name__ == "__main__":
    manager()
