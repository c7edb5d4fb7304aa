"""The session in which a pipeline runs: derived from the user's session, or from a new one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowtime.api.python_functions import PythonFunction, check_names, register
from rowtime.core.errors import refuse
from rowtime.core.stores import Place
from rowtime.operators.streams.table import tables_of
from rowtime.plan.formats.registry import AVRO, form_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.client.home import Home
    from rowtime.plan.program import Program

_CLASSES = "spark.driver.extraClassPath"


@dataclass
class Sessions:
    """Makes sessions from ``given``, the user's session, or a new one with the settings ``conf``.

    ``python``: functions by name. ``deterministic``: names of functions of the given session that are declared so.
    ``renewed``: names of functions that may have changed. Raises ``Refused`` (R542) for settings beside a session.
    """

    given: SparkSession | None
    conf: Mapping[str, str]
    python: dict[str, PythonFunction] = field(default_factory=dict)
    deterministic: set[str] = field(default_factory=set)
    renewed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.given is not None and self.conf:
            what = "conf has no effect here: it is for a session that rowtime makes, but you gave one"
            raise refuse("R542", what, "Leave one of the two out.")

    def session_for(self, program: Program, home: Home, place: Place | None) -> SparkSession:
        """Return the session in which a program runs; it can read the checkpoint at ``place``.

        It may be one that starts meanwhile, if the driver needs it only to compute.
        """
        from rowtime.frames.queries import warm  # noqa: PLC0415 - as Spark
        from rowtime.runtime.given_functions import declare, take_functions  # noqa: PLC0415 - as Spark
        from rowtime.runtime.session import derive, late_spark, new_spark, whole_files  # noqa: PLC0415 - only a run needs Spark
        from rowtime.runtime.store_access import reach, read_in_stores, settings_for  # noqa: PLC0415

        scripted = {name: PythonFunction(*python) for name, python in program.catalog.python.items()}
        of_text = any(stream.source[0] in ("csv", "json") for stream in program.streams)

        def derived(spark: SparkSession) -> SparkSession:
            own = derive(spark)
            if of_text:
                whole_files(own)
            return own

        if self.given is None:
            conf = _with(self.conf, settings_for([place, home.path, *read_in_stores(program)]))
            jars = _jars(program)
            if not (jars or program.catalog.scalars or scripted or self.python or self.deterministic):
                late = late_spark(conf, derived)
                if late is not None:
                    warm()
                    return late
            spark = derived(new_spark(jars, conf=conf))
        else:
            spark = derived(self.given)
            take_functions(self.given, spark)
        check_names(spark, [*program.catalog.scalars, *self.python])
        register(spark, {**scripted, **self.python})
        declare(spark, self.deterministic)
        warm()
        reach(spark, place)
        if place is not None and any(stream.source[0] == "log" for stream in program.streams):
            reach(spark, home.path, "the home")
        return spark


def _with(conf: Mapping[str, str], needed: Mapping[str, str]) -> dict[str, str]:
    """Merge the user's settings over the required ones; class paths are joined."""
    settings = {**needed, **conf}
    if _CLASSES in needed and _CLASSES in conf:
        settings[_CLASSES] = os.pathsep.join([needed[_CLASSES], conf[_CLASSES]])
    return settings


def _jars(program: Program) -> list[str]:
    formats = {*(stream.source[0] for stream in program.streams), *(sink.format for sink in program.sinks)}
    connectors = [(node.format, node.options) for node in program.sinks]
    connectors += [node.source for node in tables_of(program.operators)]
    urls = [dict(options).get("url", "") for kind, options in connectors if kind == "jdbc"]
    from rowtime.runtime.jars import avro_jars, jdbc_jars, kafka_jars  # noqa: PLC0415

    topics = kafka_jars() if "kafka" in formats else []
    forms = {form_of(stream.source[1], "format") for stream in program.streams}
    forms |= {form_of(sink.options, "value.format") for sink in program.sinks}
    records = avro_jars() if "kafka" in formats and forms & {*AVRO} else []
    return [*topics, *records, *(jar for url in urls for jar in jdbc_jars(url))]
