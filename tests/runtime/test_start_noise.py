"""Messages of Java and Spark at every start are dropped, and nothing else."""

from __future__ import annotations

import subprocess
import sys

NOISE = "WARNING: Using incubator modules: jdk.incubator.vector"
HADOOP = "26/01/01 00:00:00 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform"
REAL = "OpenJDK 64-Bit Server VM warning: no space left"
CODE = """import subprocess, sys, time
from rowtime.runtime.java_process import StartNoise
jvm = '''import sys, time
for line in sys.argv[1:]:
    print(line, file=sys.stderr, flush=True)
    time.sleep(0.05)
sys.stderr.write("half a ")
sys.stderr.flush()
sys.stdin.readline()
print("line", file=sys.stderr, flush=True)
print(sys.argv[1], file=sys.stderr, flush=True)'''
noise = StartNoise()
child = subprocess.Popen([sys.executable, "-c", jvm, *sys.argv[2:]], stdin=subprocess.PIPE, stderr=noise.pipe)
noise.passed()
noise.copy()
time.sleep(1)
print("ours", file=sys.stderr, flush=True)
noise.ended(started=sys.argv[1] == "starts")
child.communicate(b"\\n")
time.sleep(0.3)"""


def standard_error(ends: str) -> list[str]:
    command = [sys.executable, "-c", CODE, ends, NOISE, REAL, HADOOP]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stderr.splitlines()


def test_noise_is_hidden_if_spark_starts() -> None:
    assert standard_error("starts") == [REAL, "ours", "half a line", NOISE], "once Spark runs, nothing is left out"


def test_nothing_is_hidden_if_spark_does_not_start() -> None:
    first, *others = standard_error("fails")
    assert first == REAL
    assert sorted(others) == sorted(["ours", NOISE, HADOOP, "half a line", NOISE])


LAST_WORDS = """import os
from rowtime.runtime.java_process import StartNoise
noise = StartNoise()
noise.copy()
noise.ended(started=True)
for number in range(20):
    os.write(noise.pipe, b"line %d\\n" % number)"""


def test_the_last_lines_are_shown_though_this_process_ends() -> None:
    command = [sys.executable, "-c", LAST_WORDS]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stderr
    assert shown.splitlines() == [f"line {number}" for number in range(20)]
