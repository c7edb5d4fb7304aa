"""Messages of Java and Spark at every start are dropped, and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

NOISE = "WARNING: Using incubator modules: jdk.incubator.vector"
HADOOP = "26/01/01 00:00:00 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform"
REAL = "OpenJDK 64-Bit Server VM warning: no space left"
CODE = """import os, subprocess, sys, time
from rowtime.runtime.start_noise import quiet_start
jvm = '''import sys, time
for line in sys.argv[1:]:
    print(line, file=sys.stderr, flush=True)
    time.sleep(0.05)
sys.stderr.write("half a ")
sys.stderr.flush()
sys.stdin.readline()
print("line", file=sys.stderr, flush=True)
print(sys.argv[1], file=sys.stderr, flush=True)'''
try:
    with quiet_start():
        child = subprocess.Popen([sys.executable, "-c", jvm, *sys.argv[2:]], stdin=subprocess.PIPE)
        time.sleep(1)
        if sys.argv[1] == "fails":
            raise ZeroDivisionError
except ZeroDivisionError:
    pass
child.communicate(b"\\n")
time.sleep(0.3)
print("ours", file=sys.stderr)"""


@pytest.mark.parametrize("ends", ["starts", "fails"])
def test_noise_is_hidden_unless_the_start_fails(ends: str) -> None:
    command = [sys.executable, "-c", CODE, ends, NOISE, REAL, HADOOP]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stderr.splitlines()
    later = ["half a line", NOISE, "ours"]
    if ends == "starts":
        assert found == [REAL, *later], "once Spark runs, nothing is left out"
    else:
        assert sorted(found) == sorted([REAL, NOISE, HADOOP, *later])
