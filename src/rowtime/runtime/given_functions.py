"""The functions of the user's session, in the session that rowtime derives from it.

A new session knows only Spark's own functions, and a cloned one would also have the user's settings and listeners. So
functions are copied from one registry to the other. A function stays what it is at the start for the whole run.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types

from rowtime.core.errors import refuse
from rowtime.frames.builtin import names_of, spark_functions
from rowtime.runtime.late_session import LateSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def take_functions(given: SparkSession, derived: SparkSession) -> None:
    """Copy the user's functions: those of Python, pandas, Arrow, Scala and Java, and temporary ones.

    A function with the name of one of Spark's is omitted. Spark calls its own too; before 4.2 it did not, and rowtime's
    rules about expressions go by these names.
    """
    mine, theirs = _registry(derived), _registry(given)
    ours, listed = mine.listFunction(), theirs.listFunction()
    own = frozenset(names_of(ours)) if listed.size() > ours.size() else None  # nobody can remove one of Spark's
    for number, name in enumerate([] if own is None else names_of(listed)):
        if own is not None and name not in own:
            identifier = listed.apply(number)
            info, builder = theirs.lookupFunction(identifier), theirs.lookupFunctionBuilder(identifier)
            mine.registerFunction(identifier, info.get(), builder.get())
    _go_where(given, derived)


def _go_where(given: SparkSession, derived: SparkSession) -> None:
    """Let a name without a database mean the same as to the user."""
    theirs, mine = (session._jsparkSession.sessionState().catalog() for session in (given, derived))  # noqa: SLF001 - no public way
    if (database := theirs.getCurrentDatabase()) != mine.getCurrentDatabase():
        mine.setCurrentDatabase(database)


def declare(derived: SparkSession, names: Collection[str]) -> None:
    """Register Python functions of the session again, as deterministic. Raises ``Refused`` (R107) for others."""
    jvm: Any = derived._jvm  # noqa: SLF001 - as above
    name_of = "org.apache.spark.sql.execution.python.UserDefinedPythonFunction"
    (constructor,) = jvm.java.lang.Class.forName(name_of).getConstructors()
    for name in names:
        call = _python_function(derived, name)
        if call is None:
            hint = "Only Python functions can be declared; Spark knows this of its own."
            raise refuse("R107", f"the session has no function of Python with the name {name}", hint)
        arguments = [name, call.func(), call.dataType(), call.evalType(), True]
        more = [jvm.java.util.ArrayList() for _ in range(constructor.getParameterCount() - len(arguments))]  # since 4.3
        anew = getattr(jvm, name_of)(*arguments, *more)
        derived._jsparkSession.udf().registerPython(name, anew)  # noqa: SLF001 - as above


def _python_function(derived: SparkSession, name: str) -> Any:
    """Return the expression of a Python function's call, without arguments; ``None`` for any other function."""
    jvm: Any = derived._jvm  # noqa: SLF001 - as above
    registry = _registry(derived)
    listed = registry.listFunction()
    names = names_of(listed)
    if name.lower() not in names:
        return None
    builder = registry.lookupFunctionBuilder(listed.apply(names.index(name.lower()))).get()
    try:
        call = builder.apply(jvm.PythonUtils.toSeq([]))
    except Py4JJavaError:  # a Scala function, which has a fixed number of arguments
        return None
    return call if call.getClass().getSimpleName() in ("PythonUDF", "PythonUDAF") else None


def python_functions(spark: SparkSession, names: AbstractSet[str]) -> dict[str, Any]:
    """Return a session's Python functions by lower-case name; those that do not load are omitted.

    A value is the function with its result type, as PySpark has packed them.
    """
    if isinstance(spark, LateSession):  # only a session without any comes late
        return {}
    from pyspark import cloudpickle  # noqa: PLC0415 - only for functions

    own, listed = spark_functions(spark), _registry(spark).listFunction()
    foreign = names - own
    if not foreign or listed.size() <= len(own):  # a session without functions of users
        return {}
    byte, functions = spark._jvm.scala.reflect.ClassTag.Byte(), {}  # type: ignore[union-attr]  # noqa: SLF001 - as above
    for name in sorted(foreign & {*map(str.lower, names_of(listed))}):
        if (call := _python_function(spark, name)) is not None:
            try:
                functions[name] = cloudpickle.loads(bytes(call.func().command().toArray(byte)))
            except Exception:  # noqa: BLE001, S112 - a module may raise anything when it is imported
                continue
    return functions


def _registry(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001 - PySpark has no public way
