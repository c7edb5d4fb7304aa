#!/usr/bin/env bash
# Spark 4.2.0 with its Kafka connector, broker 3.9.1: a batch read waits half a second for each partition.
#
# Behaviour: when a task has read its last record, a fetch for the next one is on its way, and the broker keeps it for
# fetch.max.wait.ms (500 by default), because there is no further record. The task then asks the broker for offsets on the
# same connection, behind that fetch. Sixteen partitions with ten records each take two cores 4.6 s, and 0.7 s
# with kafka.fetch.max.wait.ms=10. So do micro-batches of Structured Streaming, which read in the same way.
# Output seen (pyspark 4.2.0, connector 4.2.0, kafka_2.13 3.9.1, Java 17): the line at the end. The script fails if the
# default is less than three times as slow.
set -euo pipefail
d=$(mktemp -d)
broker=
trap 'if [ -n "$broker" ]; then kill "$broker"; wait "$broker" || true; fi; rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet pyspark==4.2.0 confluent-kafka==2.16.0
cat >"$d/pom.xml" <<'X'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>g</groupId><artifactId>a</artifactId><version>1</version><dependencies>
<dependency><groupId>ORG</groupId><artifactId>ART</artifactId><version>VER</version></dependency>
</dependencies></project>
X
jars() { # GROUP ARTIFACT VERSION FOLDER
  sed "s/ORG/$1/;s/ART/$2/;s/VER/$3/" "$d/pom.xml" >"$d/$4.xml"
  mvn -q -f "$d/$4.xml" dependency:copy-dependencies -DoutputDirectory="$d/$4" >"$d/$4.log"
}
jars org.apache.kafka kafka_2.13 3.9.1 broker
jars org.apache.spark spark-sql-kafka-0-10_2.13 4.2.0 connector
rm -f "$d"/connector/scala-library-*.jar "$d"/connector/hadoop-client-*.jar
read -r port other < <(python3 -c '
import socket
ports = [socket.socket() for _ in range(2)]
for one in ports:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in ports))')
cat >"$d/p" <<P
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$other
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$other
advertised.listeners=PLAINTEXT://127.0.0.1:$port
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$d/data
offsets.topic.replication.factor=1
P
java -cp "$d/broker/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAA -c "$d/p" >"$d/format.log" 2>&1
java -cp "$d/broker/*" kafka.Kafka "$d/p" >"$d/broker.log" 2>&1 &
broker=$!
PORT=$port JARS=$(echo "$d"/connector/*.jar | tr ' ' ',') PYSPARK_PYTHON="$d/v/bin/python" \
  "$d/v/bin/python" - 2>"$d/log" <<'P' | tee "$d/out"
import os
import sys
import time
from statistics import median

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

servers = {"bootstrap.servers": f"127.0.0.1:{os.environ['PORT']}"}
admin = AdminClient(servers)
for future in admin.create_topics([NewTopic("t", 16, 1)]).values():
    future.result(60)
producer = Producer(servers)
for number in range(160):
    producer.produce("t", b"x", partition=number % 16)
producer.flush()
settings = {"spark.ui.enabled": "false", "spark.jars": os.environ["JARS"]}
spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def seconds(more):
    spent = []
    for _ in range(5):
        reader = spark.read.format("kafka").options(subscribe="t", **more)
        begun = time.perf_counter()
        assert reader.option("kafka.bootstrap.servers", servers["bootstrap.servers"]).load().count() == 160
        spent.append(time.perf_counter() - begun)
    return median(spent)


seconds({})
default, short = seconds({}), seconds({"kafka.fetch.max.wait.ms": "10"})
print(f"by default {default:.1f} s, with fetch.max.wait.ms 10 {short:.1f} s", file=sys.stderr)
print("at least three times as slow" if default > 3 * short else "as fast")
P
tail -1 "$d/log"
diff "$d/out" - <<'T'
at least three times as slow
T
echo "as described"
