"""Adds the pump's name to errors of a machine or a server while a sink writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.errors import PythonException

from rowtime.core.errors import Failure, Problem
from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.runtime.retries import of_the_machine

UNREACHABLE = ("R501", "R581", "R582", "R583")  # a server, or a store
FOLDER_HINT = (
    "Check that the folder exists and is no file, who may write to it, and the space on its disk. The tick is repeated."
)


@contextmanager
def naming(node: SinkNode) -> Iterator[None]:
    """Raise ``Failure`` (R511) for errors of a file system; prefix those of a server or store with the pump's name."""
    pump = node.name.removesuffix(".sink")
    try:
        yield
    except OSError as error:
        where = dict(node.options).get("path") or error.filename or node.format
        what = f"{pump} cannot write to {where}: {error.strerror or error}"
        if error.filename is not None and str(error.filename) != where:
            what = f"{what} ({error.filename})"
        raise Failure(Problem("R511", what, hint=FOLDER_HINT)) from error
    except PythonException as error:  # a Spark task writes
        message = of_the_machine(str(error))
        if message is None:
            raise
        raise Failure(Problem("R511", f"{pump} cannot write: {message}", hint=FOLDER_HINT)) from error
    except Failure as failure:
        if not any(problem.code in UNREACHABLE for problem in failure.problems):
            raise
        named = (replace(problem, message=f"{pump}: {problem.message}") for problem in failure.problems)
        raise Failure(*named) from failure
