"""Beam's transcripts of triggers, as panes of rowtime; they are read from Beam's wheel, or from a folder.

The time of an element is its value in seconds. A transcript is played action by action: the elements as rows, a
watermark as a bound of the writer (``EVENT TIME (at, MODE MANUAL)``). What Beam expects after an action must come in
the tick of that action. Any other result is "different on purpose" only if the rows themselves show the reason.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from conformance.verdicts import DIFFERENT, REFUSED, RIGHT, WRONG, Suite, Verdict
from rowtime.core.time import to_micros
from rowtime.testing.runner import Outcome, play
from rowtime.testing.transcripts import ScriptItem, Transcript

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHEEL: Final = "apache-beam==2.61.0"  # as in requirements/flink.lock
INSIDE: Final = "apache_beam/testing/data/trigger_transcripts.yaml"
SECOND: Final = 1_000_000
_FIXED: Final = re.compile(r"FixedWindows\((\d+)\)")
_SLIDING: Final = re.compile(r"SlidingWindows\((\d+), *(\d+)\)")
LATER: Final = "8.3: a late row fires its pane at the next advance of the bound, not at once"
BELOW: Final = "8.3: a row below the bound less the discard age is refused, also if its pane is not complete"
STAMP: Final = "8.4: a fire has the end of its pane as its rowtime; MIN or MAX gives the earliest or the latest time"
Fire = Mapping[str, Any]


def transcripts(cache: Path, folder: Path | None) -> list[dict[str, Any]]:
    """Return the documents of the file in the wheel, which pip downloads into ``cache``, or of files in a folder."""
    if folder is not None:
        texts = [path.read_text() for path in sorted(folder.rglob("*trigger_transcripts*.yaml"))]
    else:
        texts = [zipfile.ZipFile(_wheel(cache)).read(INSIDE).decode()]
    return [case for text in texts for case in yaml.safe_load_all(text) if case]


def _wheel(cache: Path) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    name = WHEEL.replace("apache-beam==", "apache_beam-")
    found = sorted(cache.glob(f"{name}-*.whl"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "-d", str(cache), WHEEL], check=True)
        found = sorted(cache.glob(f"{name}-*.whl"))
    return found[0]


def suite(spark: SparkSession, cache: Path, folder: Path | None = None) -> Suite:
    """Return the verdicts over all transcripts."""
    source = f"`{Path(INSIDE).name}` in the wheel {WHEEL}"
    try:
        cases = transcripts(cache, folder)
    except (OSError, subprocess.CalledProcessError) as error:
        return Suite("Beam: triggers", source, missing=f"the wheel cannot be had: {error}")
    return Suite("Beam: triggers", source, [verdict(spark, case) for case in cases])


def verdict(spark: SparkSession, case: Mapping[str, Any]) -> Verdict:
    """Return the verdict over a transcript."""
    name = str(case["name"])
    reason = _lacking(case)
    if reason:
        return Verdict(name, REFUSED, reason)
    played = Played.of(spark, case)
    said, rule = played.judged()
    if "error" in case:  # such a transcript is itself wrong, and has to be found so
        return Verdict(name, RIGHT) if said else Verdict(name, WRONG, "a wrong transcript agrees")
    if not said:
        return Verdict(name, RIGHT)
    return Verdict(name, DIFFERENT, rule) if rule else Verdict(name, WRONG, said)


def _lacking(case: Mapping[str, Any]) -> str:
    """Return what rowtime has no SQL for, in words; empty if it has all."""
    window, trigger = _window(case), str(case.get("trigger_fn", "Default"))
    if "AfterCount" in trigger:
        return "panes fire by the event time (EMIT EVERY), not after a number of rows (AfterCount)"
    if window.startswith("CustomTimestamping"):
        return "a window function in Python that moves the times of rows"
    if not (_FIXED.fullmatch(window) or _SLIDING.fullmatch(window)):
        return f"panes that fire again have fixed or sliding windows, not {window.split('(')[0]}"
    if not trigger.startswith(("Default", "AfterWatermark")):
        return f"the trigger {trigger.split('(', maxsplit=1)[0]}"
    return ""


def _window(case: Mapping[str, Any]) -> str:
    return str(case.get("window_fn", case.get("windowfn")))


@dataclass(frozen=True)
class Played:
    """A transcript beside the result: the fires of each action, and what was refused."""

    case: Mapping[str, Any]
    expected: Sequence[Sequence[Fire]]
    found: Sequence[Sequence[Fire]]
    refused: Sequence[int]

    @classmethod
    def of(cls, spark: SparkSession, case: Mapping[str, Any]) -> Played:
        """Play a transcript, and at its end a bound that releases late fires."""
        items: list[ScriptItem] = []
        ends: list[int] = []
        expected: list[list[Fire]] = []
        mark = 0
        for action in case["transcript"]:
            if "expect" in action:
                expected[-1] = [*action["expect"]]
                continue
            if "input" in action:
                for value in action["input"]:
                    values = {"rowtime": len(items) * SECOND, "at": value * SECOND}
                    items.append(ScriptItem(len(items) + 1, "s", "main", values, None))
            elif "watermark" in action:
                mark = action["watermark"]
                items.append(ScriptItem(len(items) + 1, "s", "main", None, mark * SECOND))
            else:
                continue
            ends.append(len(items))
            expected.append([])
        items.append(ScriptItem(len(items) + 1, "s", "main", None, (mark + 1) * SECOND))
        cut = [*ends, len(items)]
        told = Transcript(case["name"], case["name"], _sql(case), tuple(items), (), "exact", frozenset())
        outcome = play(spark, told, cut)
        found = [[_fire(row) for tick, row in outcome.rows if tick == number] for number in range(len(cut))]
        return cls(case, [*expected, []], found, _refused(outcome))

    def judged(self) -> tuple[str, str]:
        """Return what differs, in words, and the rule that explains it; both are empty if nothing differs."""
        stamps = str(self.case.get("timestamp_combiner", "")).removeprefix("OUTPUT_AT_")
        at_once = [*map(_matched, self.expected, self.found)]
        if all(at_once) and not self.refused:
            return ("", "") if all(map(self._stamped, self.expected, self.found)) else self._by_stamp(stamps)
        if self.refused:
            left = [[{**one, "values": self._accepted(one)} for one in some] for some in self.expected]
            rest = [[one for one in some if one["values"]] for some in left]
            if all(map(_matched, rest, self.found)):
                return f"refused {self.refused}", BELOW
        whole = [[one for some in side for one in some] for side in (self.expected, self.found)]
        late = [one for one in whole[1] if one["timing"] == "LATE"]
        if late and _matched(*whole):
            return "late fires come later", LATER
        return f"expected {[*map(list, self.expected)]}, found {self.found}, refused {self.refused}", ""

    def _accepted(self, fire: Fire) -> list[int]:
        return [value for value in fire.get("values", ()) if value not in self.refused]

    def _stamped(self, expected: Sequence[Fire], found: Sequence[Fire]) -> bool:
        return all(
            "timestamp" not in one or any(_alike(one, fire) and fire["end"] - 1 == one["timestamp"] for fire in found)
            for one in expected
        )

    def _by_stamp(self, stamps: str) -> tuple[str, str]:
        name = {"EARLIEST": "earliest", "LATEST": "latest"}.get(stamps)
        same = name is not None and all(
            any(_alike(one, fire) and fire[name] == one["timestamp"] for fire in found)
            for expected, found in zip(self.expected, self.found, strict=True)
            for one in expected
        )
        return "another time", STAMP if same else ""


def _sql(case: Mapping[str, Any]) -> str:
    fixed, sliding = _FIXED.fullmatch(_window(case)), _SLIDING.fullmatch(_window(case))
    found = fixed or sliding
    assert found is not None  # else it is refused
    size = int(found[1])
    panes = f"DURATION INTERVAL '{size}' SECOND"
    if sliding:
        panes += f", PERIOD INTERVAL '{sliding[2]}' SECOND"
    age = int(case.get("allowed_lateness", 0))
    panes += f", DISCARD AGE INTERVAL '{age}' SECOND" if age else ""
    return f"""CREATE STREAM s (at TIMESTAMP) EVENT TIME (at, MODE MANUAL);
SELECT STREAM PANE_START AS start, PANE_END AS until, PANE_TIMING AS timing, PANE_INDEX AS number,
  COLLECT_LIST(at) AS times, MIN(at) AS earliest, MAX(at) AS latest FROM s GROUP BY PANES(at, {panes})"""


def _fire(row: Mapping[str, Any]) -> Fire:
    values = sorted(_seconds(value) for value in row["times"])
    return {
        "start": _seconds(row["start"]), "end": _seconds(row["until"]), "timing": row["timing"],
        "index": row["number"], "values": values, "earliest": _seconds(row["earliest"]),
        "latest": _seconds(row["latest"]),
    }  # fmt: skip


def _seconds(value: Any) -> int:
    return to_micros(value) // SECOND


def _refused(outcome: Outcome) -> list[int]:
    return sorted(_seconds(row["at"]) for row in outcome.refused)


def _matched(expected: Sequence[Fire], found: Sequence[Fire]) -> bool:
    """Return True if each fire is the one that is expected, in any order."""
    left = list(found)
    for one in expected:
        match = next((fire for fire in left if _alike(one, fire)), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def _alike(expected: Fire, fire: Fire) -> bool:
    first, last = expected["window"]
    return (
        (fire["start"], fire["end"]) == (first, last + 1)
        and sorted(expected.get("values", fire["values"])) == fire["values"]
        and expected.get("index", fire["index"]) == fire["index"]
        and all(expected[name] == (fire["timing"] == name.upper()) for name in ("early", "late") if name in expected)
    )
