"""One driver as a process of its own: ``python -m reliability.crash.driver FOLDER CASE [POINT TIMES SIGNAL]``.

It says ``ready`` and runs a case to its end, or sends itself a signal when it passes a point for the given time. If
``PYSPARK_GATEWAY_PORT`` is set, it uses the Java of that gateway, which outlives it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from reliability.crash.cases import close
from reliability.crash.stores import made
from rowtime.runtime.retries import Retries, permanent

if TYPE_CHECKING:
    from rowtime.runtime.engine import Engine


def attached() -> SparkSession:
    """Return a session in the Java of the gateway that the environment names."""
    gateway = launch_gateway()
    java = gateway.jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    return SparkSession(SparkContext(gateway=gateway, jsc=java))


def main(folder: str, told: str, point: str = "", times: str = "0", sent: str = "SIGKILL") -> None:
    spark = attached() if "PYSPARK_GATEWAY_PORT" in os.environ else None
    engine = made(told, Path(folder)).engine(spark)
    passed: list[str] = []

    def hook(here: str) -> None:
        passed.append(here)
        if passed.count(point) == int(times):
            os.kill(os.getpid(), getattr(signal, sent))
            passed.clear()

    engine.hook = hook if point else lambda _here: None
    print("ready", flush=True)
    while _ticked(engine):
        print("tick", flush=True)
    close(engine)


def _ticked(engine: Engine) -> bool:
    """Run a tick; after a failure that is not permanent try again, as a continuous pipeline does."""
    retries = Retries()
    while True:
        try:
            return engine.tick() is not None
        except Exception as error:
            if permanent(error):
                raise
            retries.failed(error)
            time.sleep(retries.pause)


if __name__ == "__main__":
    main(*sys.argv[1:])
