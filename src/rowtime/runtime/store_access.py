"""Gives Spark and deltalake access to an object store: jars, an endpoint and credentials."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types

from rowtime.core import stores
from rowtime.core.errors import refuse
from rowtime.core.store_settings import without_tls
from rowtime.core.stores import Bucket, ObjectPlace, Place, on_store, place_of
from rowtime.operators.streams.table import tables_of
from rowtime.runtime.azure_access import azure_settings
from rowtime.runtime.google_access import CONNECTOR, OF_CONNECTOR, google_settings
from rowtime.runtime.jars import azure_jars, google_jars, store_jars
from rowtime.runtime.spark_paths import url_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.plan.program import Program

_JARS: Final = {"s3a": "org.apache.hadoop:hadoop-aws", "abfss": "org.apache.hadoop:hadoop-azure", "gs": CONNECTOR}
_S3: Final = ("s3:", "s3a:")
_AZURE: Final = ("az:", "abfss:")
_SIMPLE: Final = "SimpleAWSCredentialsProvider"
_TEMPORARY: Final = "TemporaryAWSCredentialsProvider"


def settings_for(places: Iterable[str | Place | None]) -> dict[str, str]:
    """Return what a session made by rowtime needs to read there: jars of Hadoop, or Google's connector.

    Those for S3 are large, and ``spark.jars`` would copy them at each start. Raises ``Failure`` (R502).
    """
    named = [str(place) for place in places]
    jars = store_jars() if "MASTER" not in os.environ and any(url.startswith(_S3) for url in named) else []
    if "MASTER" not in os.environ and any(url.startswith(_AZURE) for url in named):
        jars = [*jars, *azure_jars()]
    google = "MASTER" not in os.environ and any(url.startswith("gs:") for url in named)
    if google:
        jars = [*jars, *google_jars()]
    settings = {"spark.driver.extraClassPath": os.pathsep.join(jars)} if jars else {}
    return {**settings, **OF_CONNECTOR} if google else settings


def read_in_stores(program: Program) -> Iterator[str]:
    """Yield the places that a program reads in stores, from the options of its streams and tables."""
    sources = [*(node.source for node in program.streams), *(node.source for node in tables_of(program.operators))]
    yield from (value for _, options in sources for _, value in options if on_store(value))


def reach(spark: SparkSession, place: Place | None, what: str = "the checkpoint") -> None:
    """Give a session the driver's access to a place, unless the application configures it.

    The settings of the bucket apply to it alone. Hadoop looks for missing credentials itself. Raises ``Refused`` (R585)
    if Spark has no such file system.
    """
    if not isinstance(place, ObjectPlace):
        return
    url, conf = url_for_spark(place, what), spark.sparkContext.getConf()
    scheme = url.split(":")[0]
    for name, value in _hadoop_settings(scheme, url, place.bucket).items():
        if not conf.contains(f"spark.hadoop.{name}"):
            spark.conf.set(name, value)
    try:
        context = spark.sparkContext
        context._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(  # type: ignore[union-attr]  # noqa: SLF001 - PySpark has no public way
            scheme,
            context._jsc.hadoopConfiguration(),  # noqa: SLF001 - as above
        )
    except Py4JJavaError as error:
        jars = f", the jars of {_JARS[scheme]} in the version of Spark's Hadoop, for example" if scheme in _JARS else ""
        hint = f"Start the session with a file system for it{jars} (spark.jars or spark.jars.packages)."
        raise refuse("R585", f"Spark has no file system for {scheme}, where {what} {place} is", hint) from error


def _hadoop_settings(scheme: str, url: str, bucket: Bucket) -> dict[str, str]:
    if scheme == "s3a":
        return hadoop_settings(bucket)
    return google_settings() if scheme == "gs" else azure_settings(url)


def reachable(spark: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """Return options of a Spark reader, with a path in a store in the form for Spark's file system.

    The session can read it then. Raises what `place_of` and `reach` do; R581 to R583 if the driver may not read it.
    """
    reachable_options = dict(options)
    for name, path in options.items():
        if name.lower() == "path" and on_store(path):
            place = place_of(path, "its path")
            assert isinstance(place, ObjectPlace)
            place.is_dir()
            reach(spark, place, "its path")
            reachable_options[name] = url_for_spark(place, "its path")
    return reachable_options


def hadoop_settings(bucket: Bucket) -> dict[str, str]:
    """Return Hadoop's settings: for the bucket its settings, for all buckets those of the environment."""
    given, local = bucket.settings, bucket.settings.here
    place = f"fs.s3a.bucket.{bucket.url.partition('://')[2]}." if given.given() else "fs.s3a."
    region = os.environ.get("AWS_REGION", os.environ.get("AWS_DEFAULT_REGION", "us-east-1"))
    where = {"endpoint": local.endpoint, "path.style.access": "true"} if local.endpoint else {}
    if local.endpoint or given.region:
        where["endpoint.region"] = given.region or region
    if given.access_key_id:
        provider = _TEMPORARY if given.session_token else _SIMPLE
        where |= {"access.key": given.access_key_id, "secret.key": given.secret_access_key}
        where |= {"session.token": given.session_token} if given.session_token else {}
        where["aws.credentials.provider"] = f"org.apache.hadoop.fs.s3a.{provider}"
    return {place + name: value for name, value in where.items()}


def deltalake_settings(place: Place) -> dict[str, str]:
    """Return deltalake's settings for a store. Of two commits of one version, S3 refuses one."""
    if not isinstance(place, ObjectPlace):
        return {}
    waits = {"timeout": stores.REQUEST, "retry_timeout": f"{stores.RETRIED.total_seconds():g}s"}
    url, local = place.bucket.url, place.bucket.settings.here
    if url.startswith(_AZURE):
        return waits
    settings = {**waits, "allow_http": str(without_tls(url, local)).lower()}
    if url.startswith("gs:"):
        return settings
    return {**{f"aws_{name}": value for name, value in local.given().items()}, **settings, "conditional_put": "etag"}


@contextmanager
def asking(place: Place) -> Iterator[None]:
    """Translate errors of a store in a library at a place: R581 to R583."""
    try:
        yield
    except OSError as error:
        failure = place.failure(error) if isinstance(place, ObjectPlace) else None
        if failure is None or (isinstance(error, FileNotFoundError) and failure.problems[0].code == "R583"):
            raise
        raise failure from error
