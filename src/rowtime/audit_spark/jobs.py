"""A job of Structured Streaming: a function that builds a streaming DataFrame from DataFrames, or a query in SQL."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final, NoReturn

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from rowtime.core.errors import RowtimeError, refuse
from rowtime.core.imported import described_error, load, staying

Frames = Mapping[str, DataFrame]
FUNCTION: Final = "job"
_START: Final = "Let the function return the DataFrame before its writeStream, and start it where the job really runs."


@dataclass(frozen=True)
class Job:
    """A job to audit: ``build`` returns its DataFrame for a session and the inputs by name.

    ``inputs``: the names of the inputs that it takes; None if it takes any.
    """

    name: str
    build: Callable[[SparkSession, Frames], DataFrame]
    inputs: Sequence[str] | None

    def frame(self, spark: SparkSession, inputs: Frames) -> DataFrame:
        """Return the DataFrame of the job; raises ``Refused`` (R632) if it fails, starts a query or returns none."""
        frame = self._built(spark, inputs)
        streams = any(one.isStreaming for one in inputs.values())
        if not isinstance(frame, DataFrame) or frame.isStreaming != streams:
            what = "one that does not come from its inputs" if isinstance(frame, DataFrame) else type(frame).__name__
            hint = "Let it compute its result from the DataFrames that it is given, and return it."
            raise refuse("R632", f"{self.name} does not return a streaming DataFrame, but {what}", hint)
        return frame

    def _built(self, spark: SparkSession, inputs: Frames) -> Any:
        try:
            with _no_query(self.name), staying():
                return self.build(spark, inputs)
        except RowtimeError:
            raise
        except Exception as error:
            hint = "Try it without the audit: the function gets a session and a streaming DataFrame for each input."
            raise refuse("R632", f"{self.name} fails: {described_error(error)}", hint) from error


def of_sql(text: str) -> Job:
    """Return the job of a query over tables that have the names of the inputs."""

    def build(spark: SparkSession, inputs: Frames) -> DataFrame:
        for name, frame in inputs.items():
            frame.createOrReplaceTempView(name)
        return spark.sql(text)

    return Job("the query", build, None)


def of_target(target: str) -> Job:
    """Return the job of ``FILE.py``, ``FILE.py:function`` or ``module:function``; the function is ``job`` by default.

    Raises ``Refused``: R630 if it cannot be imported, R632 if the module starts a query.
    """
    place, _, name = target.partition(":")
    name = name or FUNCTION
    try:
        with _no_query(target):
            function = _of_file(Path(place), name) if place.endswith(".py") else load(str(Path.cwd()), place, name)
    except RowtimeError:
        raise
    except Exception as error:
        hint = "Name a file or module with a function, for example jobs.py or jobs.py:late_orders."
        raise refuse("R630", f"{target} cannot be imported: {described_error(error)}", hint) from error
    if not callable(function):
        hint = (
            f"Write def {FUNCTION}(spark, orders), which returns the DataFrame; or name another function: FILE.py:name."
        )
        raise refuse("R630", f"{place} has no function {name}", hint)
    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])  # type: ignore[no-untyped-call]  # workers cannot import it
    return Job(target, lambda spark, inputs: function(spark, **inputs), _inputs(function))


def _of_file(path: Path, name: str) -> Any:
    spec = spec_from_file_location(f"job_of_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # as dataclasses need it
    if (folder := str(path.parent.absolute())) not in sys.path:
        sys.path.insert(0, folder)
    with staying():
        spec.loader.exec_module(module)
    return getattr(module, name, None)


def _inputs(function: Callable[..., Any]) -> Sequence[str] | None:
    """Return the names of the parameters behind the session."""
    parameters = [*inspect.signature(function).parameters.values()][1:]
    any_name = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
    return None if any_name else [one.name for one in parameters if one.default is inspect.Parameter.empty]


@contextmanager
def _no_query(name: str) -> Iterator[None]:
    """Refuse (R632) the start of a query: an audit writes nothing into the sinks of a job."""

    def start(*_: object, **__: object) -> NoReturn:
        raise refuse("R632", f"{name} starts a query, which would write into its sink", _START)

    before = {name: getattr(DataStreamWriter, name) for name in ("start", "toTable")}
    for method in before:
        setattr(DataStreamWriter, method, start)
    try:
        yield
    finally:
        for method, own in before.items():
            setattr(DataStreamWriter, method, own)
