"""Connector jars: the Java libraries of Spark's Kafka connector and of databases, found in a cache or fetched.

PySpark ships without its Kafka connector and without drivers of databases. ``mvn`` resolves them with their
dependencies (so that mirrors and credentials of the user's Maven settings count), once for each version, into
``~/.cache/rowtime/jars``. Jars that Spark ships itself are excluded: two versions of one library on a class path are
worse than none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyspark

from rowtime.core.errors import Failure, Problem
from rowtime.runtime.google_access import CONNECTOR

SCALA: Final = "2.13"
DRIVERS: Final = {"postgresql": "org.postgresql:postgresql:42.7.5"}  # by the name in a JDBC URL
OFFLINE_SECONDS: Final = 60
ONLINE_SECONDS: Final = 300
CONNECT_MILLIS: Final = 10_000

# The plugin's version is pinned, because its options are set below.
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

# Spark's own poms put a mirror of Maven Central first, and Maven gives up if that host cannot be reached, even if
# Central can. An empty repository with the same id makes it continue with Central, or with the repository of the user's
# settings.
_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>rowtime</groupId><artifactId>jars</artifactId><version>1</version>
  <packaging>pom</packaging>
  <repositories>
    <repository><id>gcs-maven-central-mirror</id><url>{nothing}</url></repository>
  </repositories>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY: Final = (
    "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
)
_WHOLE: Final = """<classifier>{}</classifier>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"""


def connector(version: str | None = None) -> str:
    """The Maven coordinates of the Kafka connector of a Spark version, by default of this PySpark."""
    return f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{version or pyspark.__version__}"


def kafka_jars(version: str | None = None, *, cache: Path | None = None) -> list[str]:
    """The paths of the connector's jars, for ``spark.jars``, without those that Spark ships.

    ``version`` is for users who know that another Spark version's connector works with theirs; it is never chosen for
    them. Raises ``Failure`` (R502) if the jars are neither cached nor available; the first fetch may take up to five
    minutes.
    """
    return _not_shipped(fetch([connector(version)], cache=cache))


def avro_jars() -> list[str]:
    """The jars of Spark's reader of Avro, for this PySpark, for ``spark.jars``. Raises ``Failure`` (R502) as above."""
    return _not_shipped(fetch([f"org.apache.spark:spark-avro_{SCALA}:{pyspark.__version__}"]))


def jdbc_jars(url: str) -> list[str]:
    """Return the jars of the driver for a JDBC URL, for ``spark.jars``; none for an unknown driver.

    Raises ``Failure`` (R502) as above.
    """
    driver = DRIVERS.get(url.split(":")[1] if ":" in url else "")
    return _not_shipped(fetch([driver])) if driver else []


def store_jars() -> list[str]:
    """The jars by which Spark reads from S3, in the version of its Hadoop. Raises ``Failure`` (R502) as above."""
    return fetch([f"org.apache.hadoop:hadoop-aws:{_hadoop()}"])


def azure_jars() -> list[str]:
    """The same for Azure, some 6 MB. Raises ``Failure`` (R502) as above."""
    return _not_shipped(fetch([f"org.apache.hadoop:hadoop-azure:{_hadoop()}"]))


def google_jars() -> list[str]:
    """Google's own connector for Google Cloud Storage, some 40 MB. Raises ``Failure`` (R502) as above."""
    return fetch([CONNECTOR])


def _hadoop() -> str:
    """Return the version of Spark's Hadoop."""
    return next(spark_jars().glob("hadoop-client-api-*.jar")).stem.removeprefix("hadoop-client-api-")


def fetch(coordinates: Sequence[str], *, cache: Path | None = None) -> list[str]:
    """Return the jars of ``group:artifact:version`` coordinates with run-time dependencies; ``…:shaded`` includes them.

    Raises ``Failure`` (R502). A directory of the cache is complete or absent, so two processes may fetch at once.
    """
    home = _kept_in(coordinates, cache)
    if not home.is_dir():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as work:
            _place(_resolve(coordinates, Path(work)), home)
    return sorted(str(jar) for jar in home.glob("*.jar"))


def kept(coordinates: Sequence[str], *, cache: Path | None = None) -> bool:
    """Return True if they have been fetched before."""
    return _kept_in(coordinates, cache).is_dir()


def artifact(jar: str) -> str:
    """Return the artifact's name of a jar's path: ``…/kafka-clients-3.9.1.jar`` is ``kafka-clients``."""
    return re.sub(r"-\d[^-]*(-[A-Za-z]\w*)?\.jar$", "", Path(jar).name)


def shipped() -> set[str]:
    """Return the artifacts whose jars PySpark includes."""
    return {artifact(jar.name) for jar in spark_jars().glob("*.jar")}


def _kept_in(coordinates: Sequence[str], cache: Path | None) -> Path:
    root = cache or caches() / "jars"
    return root / "+".join(c.split(":", 1)[1].replace(":", "-") for c in coordinates)


def _not_shipped(jars: Sequence[str]) -> list[str]:
    theirs = shipped()
    return [jar for jar in jars if artifact(jar) not in theirs]


def caches() -> Path:
    """Return rowtime's folder among the user's caches. Raises ``RuntimeError`` if there is no home folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rowtime"


def spark_jars() -> Path:
    """Return the folder of the jars of Spark itself."""
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"


def _place(jars: Path, home: Path) -> None:
    try:
        jars.rename(home)
    except OSError:
        if not home.is_dir():  # another process was first: its jars are the same
            raise


def _resolve(coordinates: Sequence[str], work: Path) -> Path:
    """Let Maven copy the jars below ``work``; first from its own repository, then from remote ones."""
    mvn = shutil.which("mvn")
    if mvn is None:
        raise _missing(coordinates, "mvn is not installed")
    (work / "nothing").mkdir()
    listed = "\n".join(_dependency(*coordinate.split(":")) for coordinate in coordinates)
    pom = _POM.format(nothing=(work / "nothing").as_uri(), dependencies=listed)
    (work / "pom.xml").write_text(pom, encoding="utf-8")
    if _run(mvn, work, OFFLINE_SECONDS, "--offline"):
        why = _run(mvn, work, ONLINE_SECONDS, "--update-snapshots")
        if why:
            raise _missing(coordinates, why)
    return work / "jars"


def _dependency(group: str, name: str, version: str, classifier: str = "") -> str:
    """Return one dependency of the pom. A jar with a classifier includes its libraries."""
    return _DEPENDENCY.format(group, name, version, _WHOLE.format(classifier) if classifier else "")


def _run(mvn: str, work: Path, seconds: int, mode: str) -> str:
    """Run Maven; return its error message, or nothing."""
    command = [mvn, "--batch-mode", "--quiet", mode, "-f", str(work / "pom.xml"), _COPY]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={work / 'jars'}"]
    command += [f"-Dmaven.wagon.http.connectionTimeout={CONNECT_MILLIS}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)  # noqa: S603 - mvn of the PATH, arguments of our own
    except subprocess.TimeoutExpired:
        return f"mvn did not finish within {seconds} s"
    return "" if done.returncode == 0 else _reason(done.stdout + done.stderr)


def _reason(output: str) -> str:
    """Return the first error that Maven printed, without prefixes: other lines say how to see more."""
    absent = re.search(r"Could not find artifact (\S+)", output)
    if absent:  # Maven blames the first repository, which is our empty one
        return f"{absent[1]} is in no repository that mvn asked"
    errors = [line.split("[ERROR]", 1)[1].strip() for line in output.splitlines() if "[ERROR]" in line]
    return errors[0] if errors else "mvn failed without a word"


def _missing(coordinates: Sequence[str], why: str) -> Failure:
    hint = (
        "Install Maven (mvn) and let it reach a repository that has them, or give Spark the "
        "jars yourself: spark.jars with their paths, or spark.jars.packages with the coordinates. A connector is "
        "published some time after its Spark: pip install 'rowtime[kafka]' takes a Spark that has one."
    )
    return Failure(Problem("R502", f"the jars of {', '.join(coordinates)} cannot be fetched: {why}", hint=hint))
