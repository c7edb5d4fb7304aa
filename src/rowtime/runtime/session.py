"""The Spark session in which rowtime computes: one of its own, derived from the user's.

Semantics 6: other time zones break the rules of monotonicity, so the derived session runs in UTC and ANSI mode; the
user's session is neither changed nor refused. Other settings of the application that could change a value are not
passed on either: a row means the same in every session.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from rowtime.core.errors import refuse
from rowtime.runtime import class_archive, java
from rowtime.runtime.java_process import JavaProcess
from rowtime.runtime.late_session import LateSession

_UNSAFE = (
    "BooleanSimplification",  # i + 1 > 0 OR TRUE
    "NullPropagation",  # coalesce(i + 1, 0) IS NULL, i + 1 = NULL
    "OptimizeCsvJsonExprs",  # FROM_JSON(text, 'a INT, b INT', MAP('mode', 'FAILFAST')).b
    "OptimizeIn",  # i + 1 IN (NULL)
    "ReorderAssociativeOperator",  # i + 2147483647 + 1 would fail for every row, i * 2 * 0 for none
    "ReplaceNullWithFalseInPredicate",  # WHERE IF(i + 1 > 0, FALSE, NULL)
    "SimplifyBinaryComparison",  # i + 1 <=> i + 1
    "SimplifyConditionals",  # IF(i + 1 > 0, 1, 1)
    "SimplifyConditionalsInPredicate",  # WHERE IF(i + 1 > 0, FALSE, FALSE)
    "SimplifyExtractValueOps",  # NAMED_STRUCT('a', i + 1, 'b', 2).b, ARRAY(i + 1, 2)[1]
)
_CONF: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Steps of Spark's optimizer that drop expressions which fail for a row, or compute constants of them beforehand.
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in _UNSAFE
    ),
    # Otherwise Spark computes what stands twice behind an AND or OR before it, also for rows that stop there.
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
    # A tick is small and its plans are known: adaptive execution costs more than it saves.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # State is read by explicit paths; listing them must not become a Spark job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # Statistics of files omit NaN, so Spark evaluates filters over struct fields (`sources.statistics`).
    "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources": "",
    # Each reading would leave its listing in a cache that no other reading uses, up to 250 MB.
    "spark.sql.hive.filesourcePartitionFileCacheSize": "0",
}

_DAEMON = "rowtime.runtime.executors.worker_daemon"
_SHORT = 50  # bytes of a folder in which a socket can be
_QUERY = re.compile(r"\bselect\b", re.IGNORECASE)
_NEEDS_MORE = re.compile(r"kafka|jdbc|://", re.IGNORECASE)
"""Connectors with jars, and stores with settings."""

PASSED = (
    # PySpark turns off the isolation of artifacts; with it, each session starts a Python daemon of its own.
    "spark.sql.artifact.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.catalog.",
    "spark.sql.codegen.",
    "spark.sql.debug.",
    "spark.sql.defaultCatalog",
    "spark.sql.execution.pyspark.udf.",
    "spark.sql.execution.python.udf.",
    "spark.sql.files.maxPartition",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.openCostInBytes",
    "spark.sql.inMemoryColumnarStorage.",
    "spark.sql.leafNodeDefaultParallelism",
    "spark.sql.maxMetadataStringLength",
    "spark.sql.maxPlanStringLength",
    "spark.sql.parquet.compression.codec",
    "spark.sql.redaction.",
    "spark.sql.shuffle.partitions",
    "spark.sql.ui.",
)
"""Prefixes of application settings that are passed on: speed, memory, catalogs, and display.

Any other setting of Spark's SQL may change a value or a type, so Spark's own default holds.
"""


def new_spark(
    jars: Sequence[str] = (), master: str | None = None, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a local session for a process without one, as quiet as Spark gets. Raises R510 without Java."""
    return session_with(_application(jars, master, conf or {}))


def early_java(text: str, conf: Mapping[str, str]) -> AbstractContextManager[None]:
    """Let Java start beside what is done inside: a session with ``conf`` may come.

    ``text``: of the script, and of all that may name its places. Java does not start early if the words say that there
    will be no session, or that it needs jars or settings which only the program knows.
    """
    if _QUERY.search(text) is None or _NEEDS_MORE.search(text) is not None:
        return nullcontext()
    return launched_early(_application((), None, conf))


def late_spark(conf: Mapping[str, str], prepare: Callable[[SparkSession], SparkSession]) -> SparkSession | None:
    """Return the session that ``prepare`` makes of a local one with ``conf``; using it waits until Spark has started.

    ``None`` if no Java was launched early for it, or if it has a page.
    """
    settings = _application((), None, conf)
    if settings.get("spark.ui.enabled") != "false" or not is_launched(settings):
        return None
    return LateSession(lambda: prepare(session_with(settings)))


def page_of(spark: SparkSession) -> str | None:
    """Return the address of Spark's page, if it has one."""
    return None if isinstance(spark, LateSession) else spark.sparkContext.uiWebUrl


def _application(jars: Sequence[str], master: str | None, conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with the name of the application, and the master unless Spark is started elsewhere."""
    local = master or ("SPARK_REMOTE" not in os.environ and "MASTER" not in os.environ)
    return {
        "spark.app.name": "rowtime",
        **({"spark.master": master or "local[*]"} if local else {}),
        **settings_for(master or os.environ.get("MASTER", "local[*]"), jars, conf),
    }


def settings_for(master: str, jars: Sequence[str], conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session; a local one uses only this machine's own address. Jars are added to ``conf``.

    ``MASTER`` is set by ``spark-submit``; it also sets memory and address of its driver, which stay.
    """
    quiet = Path(__file__).with_name("log4j2.properties")
    wanted = {}
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        wanted = {
            "spark.driver.memory": os.environ.get("ROWTIME_DRIVER_MEMORY", "4g"),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # It takes a tenth of the start, and few ticks have jobs that it could show.
            "spark.ui.enabled": "false",
            **({"spark.python.daemon.module": _DAEMON} if _runs_here(conf) else {}),
            # Over TCP, a Python worker waits 40 ms for the end of its input in each stage. Spark 4.0 ignores it.
            **({"spark.python.unix.domain.socket.enabled": "true"} if _has_short_paths() else {}),
        }
    jars = [*jars, *filter(None, conf.get("spark.jars", "").split(","))]
    return {
        "spark.ui.showConsoleProgress": "false",
        # Otherwise each function of a column looks for the user's line, which is rowtime's, and imports IPython for it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Only errors, on standard error; the user's own extraJavaOptions stay as they are.
        "spark.driver.defaultJavaOptions": " ".join(
            [f'-Dlog4j2.configurationFile="file:{quiet}"', *class_archive.options()]
        ),
        **wanted,
        **conf,
        **({"spark.jars": ",".join(jars)} if jars else {}),
    }


def _runs_here(conf: Mapping[str, str]) -> bool:
    """Return True if workers run the Python of this environment, so that they have rowtime."""
    command = conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable
    return Path(shutil.which(command) or command).absolute().parent == Path(sys.executable).absolute().parent


def _has_short_paths() -> bool:
    """Return True if sockets can be files in the folder for temporary files: their paths have at most 100 bytes."""
    return os.name == "posix" and len(os.fsencode(tempfile.gettempdir())) < _SHORT


def whole_files(spark: SparkSession) -> None:
    """Let every task read one whole file: rows of text files are numbered by their task.

    A split is closed as soon as its size plus the cost of opening the next file passes the
    greatest size; with a cost of that size every split holds one file, and no file is cut.
    """
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(2**50))
    spark.conf.set("spark.sql.files.openCostInBytes", str(2**50))


def derive(spark: SparkSession) -> SparkSession:
    """Return a session of rowtime's own over the same Spark application; R212 for Spark Connect."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        what = "the session is one of Spark Connect, which has no driver in this process"
        raise refuse("R212", what, "Run the pipeline where Spark's driver runs, with a session of its own.")
    derived = spark.newSession()
    for key in _keys(derived):
        # Spark knows the setting, and it is not the application's own.
        if key.startswith("spark.sql.") and not key.startswith(PASSED) and derived.conf.isModifiable(key):
            derived.conf.unset(key)
    for key, value in _CONF.items():
        derived.conf.set(key, value)
    # Workers that have not come yet are not counted, so the application's setting comes first.
    parallel = str(max(1, derived.sparkContext.defaultParallelism))
    given = derived.sparkContext._conf
    partitions = given.get("spark.sql.shuffle.partitions", parallel)
    derived.conf.set("spark.sql.shuffle.partitions", partitions or parallel)
    return derived


def _keys(spark: SparkSession) -> list[str]:
    """Return the names of the settings that are set, in two calls; PySpark's own function makes one for each."""
    jvm: Any = spark._jvm
    joined: str = jvm.java.lang.String.join("\n", spark.conf._jconf.getAllAsJava().keySet())
    return joined.split("\n")


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread, for a while.

    Spark parses type names (`TIMESTAMP`) by the settings of the active session, whichever session is used: in the
    user's session it may mean TIMESTAMP_NTZ.
    """
    if isinstance(spark, LateSession) and not spark.is_here():
        with spark.active_here():
            yield
        return
    sessions: Any = SparkSession._get_j_spark_session_class(spark._jvm)
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


# ruff: noqa: SLF001 - PySpark has no public way to the JVM of the process

_RUNS_ALREADY: Final = ("MASTER", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")
"""Variables that say that Spark runs already, or somewhere else."""
_launched: Final[list[JavaProcess]] = []
"""The Java that waits for a session; at most one."""
_starting: Final[list[JavaProcess]] = []
"""The Java in which a session is being created."""
_turn: Final = Lock()
"""Held while a session is created: others then use the same Java."""


@contextmanager
def launched_early(settings: Mapping[str, str]) -> Iterator[None]:
    """Let Java start beside what is done inside, for a session with ``settings``; without that session, it ends.

    Nothing is launched if Spark runs already, or if its Java is to be searched for.
    """
    if SparkContext._gateway is None and java.named() is not None and not any(map(os.environ.get, _RUNS_ALREADY)):
        _use_this_python()
        _launched.append(JavaProcess(settings))
    try:
        yield
    finally:
        for processes in (_launched, _starting):
            while processes:
                processes.pop().end()


def is_launched(settings: Mapping[str, str]) -> bool:
    """Return True if a Java with these settings waits for its session."""
    return any(process.settings == settings for process in _launched)


def session_with(settings: Mapping[str, str]) -> SparkSession:
    """Return a session with ``settings``, the name of the application and the master included.

    Raises ``Failure`` (R510) without Java, and what Spark raises.
    """
    _use_this_python()
    with _turn, java.available():
        if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
            return _created(settings)
        process = _java_with(settings)
        session = None
        try:
            process.connect()
            session = _created(settings)
        finally:
            process.started(spark=session is not None)
            if process in _starting:
                _starting.remove(process)
        return session


def _use_this_python() -> None:
    """Let Spark's workers run the Python of this process; by default they run the `python3` of the PATH."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def _created(settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _java_with(settings: Mapping[str, str]) -> JavaProcess:
    early = _launched.pop() if _launched else None
    if early is not None and early.settings != settings:
        early.end()
        early = None
    process = early or JavaProcess(settings)
    _starting.append(process)
    return process
