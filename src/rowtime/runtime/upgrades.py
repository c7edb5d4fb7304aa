"""Upgrades of a checkpoint: its state is transferred to another plan, in a tick of its own that reads nothing.

The entry of that tick has the state of the one before it under the names of the new plan. Files keep their names; files
that two operators continue from get a second name. Leftovers of a crash before the entry are removed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from rowtime.core.errors import refuse
from rowtime.core.stores import Place
from rowtime.plan.program import Program
from rowtime.plan.stored import StoredPlan
from rowtime.plan.upgrade import Upgrade, is_same, retired, upgrade_of
from rowtime.state import cuts, settings
from rowtime.state.checkpoint import FOREVER, Checkpoint, folder_of, spans_of
from rowtime.state.costs import KEY
from rowtime.state.files import link
from rowtime.state.journal import PAUSED, Entry

_BY_NAME = ("control", "clocks", "since", "totals")
_BY_KEY = ("segments", "schemas", "held")  # of ``operator/what``


def bound(checkpoint: Checkpoint, program: Program) -> Upgrade | None:
    """Give a checkpoint without a tick its plan; for another, return the changes before the program can run on it.

    Raises ``Refused``: R401 if its state does not fit, R408 if a sink that was removed or renamed has not got all its
    rows.
    """
    last, old = checkpoint.journal.last(), checkpoint.plan
    if last is None:  # it has no state, so any plan fits
        if old is None or not is_same(old, program):
            checkpoint.bind(program.described())
        return None
    upgrade = None if old is None else upgrade_of(old, program, holding(last))
    if upgrade is None:
        return None
    check_delivered(checkpoint, last, upgrade)
    return upgrade


def check_delivered(checkpoint: Checkpoint, last: Entry, upgrade: Upgrade) -> None:
    """Raise ``Refused`` (R408) if a sink that is gone, or called otherwise, has not got all its rows."""
    unsent = [name for name in last["outputs"] if upgrade.continues.get(name) != name]
    if unsent and checkpoint.published < last["tick"]:
        what = f"the last rows of {unsent[0]}, which the script no longer has, have not all been delivered"
        raise refuse("R408", what, "Start the old script once; that finishes the tick.")


def holding(entry: Entry) -> set[str]:
    """Return the operators that hold rows after an entry."""
    return {key.rsplit("/", 1)[0] for key, rows in entry["held"].items() if rows}


def change(checkpoint: Checkpoint, program: Program, upgrade: Upgrade, entry: Entry, at: int) -> Entry:
    """Switch to the plan of a program after ``entry``; return the entry for it, committed ``at`` (µs UTC)."""
    old, tick = checkpoint.plan, entry["tick"] + 1
    assert old is not None  # it has an entry
    entry = _whole(entry)
    carried, sinks_before = _carried(entry, upgrade), retired(old, upgrade)
    # A sink that comes back continues its row numbers.
    carried["control"] |= {name: entry["control"][name] for name in sinks_before if name in entry["control"]}
    copied = _link_copies(checkpoint.folder, carried["segments"], upgrade, tick)
    sums = entry.get("sums", {})
    _keep_promises(carried, program, upgrade)
    waiting = settings.waiting(checkpoint.folder, entry)
    moved = _set_by_hand(carried["control"], waiting, upgrade)
    plan = program.described()
    journaled = {
        **entry,
        **carried,
        "tick": tick,
        "sums": {**sums, **{copy: sums[of] for copy, of in copied.items() if of in sums}},
        "at": at,
        "sources": {name: notes for name, notes in entry["sources"].items() if name in plan.formats},
        "outputs": {},
        "ledger": {},
        KEY: {},
        "bounded": False,
        "settings": waiting,
        "cuts": cuts.note(checkpoint.folder, entry, moved),
        PAUSED: _set_aside(entry, upgrade.paused),
    }
    left = {name: target for name, target in sinks_before.items() if name not in plan.operators}
    plan = replace(plan, retired=left, spans=_spans(old, upgrade, tick), anew=old.anew, paused=upgrade.paused)
    return checkpoint.change(plan, journaled)


def _whole(entry: Entry) -> dict[str, Any]:
    """Return an entry with its paused operators among the others."""
    aside = entry.get(PAUSED, {})
    return {**entry, **{part: {**kept, **entry.get(part, {})} for part, kept in aside.items()}}


def _set_aside(entry: Entry, names: Collection[str]) -> dict[str, Any]:
    """Return the parts of an entry that belong to operators that are to be paused."""
    parts = {part: {n: v for n, v in entry.get(part, {}).items() if n in names} for part in (*_BY_NAME, "sources")}
    for part in _BY_KEY:
        parts[part] = {key: v for key, v in entry.get(part, {}).items() if key.rsplit("/", 1)[0] in names}
    files = {path for rows in parts["segments"].values() for path, *_ in rows}
    parts["sums"] = {path: checksum for path, checksum in entry.get("sums", {}).items() if path in files}
    return {part: kept for part, kept in parts.items() if kept}


def _carried(entry: Entry, upgrade: Upgrade) -> dict[str, dict[str, Any]]:
    """Return the journal's data by operator name, under the present names."""
    sources = {**upgrade.continues, **upgrade.copies}
    parts: dict[str, dict[str, Any]] = {part: {} for part in (*_BY_NAME, *_BY_KEY)}
    for now, was in sources.items():
        # A copy judges rows from here on: the counts stay with the other operator.
        for part in _BY_NAME if now not in upgrade.copies else ("control", "clocks", "since"):
            if was in entry.get(part, {}):
                parts[part][now] = deepcopy(entry[part][was])
        for part in _BY_KEY:
            for key, value in entry.get(part, {}).items():
                name, what = key.rsplit("/", 1)
                if name == was:
                    parts[part][f"{now}/{what}"] = value
    parts["control"] |= {now: entry["control"][was] for now, was in upgrade.marks.items() if was in entry["control"]}
    return parts


def _link_copies(folder: Place, segments: dict[str, Any], upgrade: Upgrade, tick: int) -> dict[str, str]:
    """Give the files of a copy new names, so that each of the two operators can drop its own.

    Returns by new name the original file.
    """
    copied: dict[str, str] = {}
    for key, rows in segments.items():
        name = key.rsplit("/", 1)[0]
        if name in upgrade.copies:
            names = [f"state/{folder_of(name)}/{tick:012d}-{Path(path).name}" for path, *_ in rows]
            for (path, *_), copy in zip(rows, names, strict=True):
                link(folder / path, folder / copy)
                copied[copy] = path
            segments[key] = [[copy, *rest] for (_, *rest), copy in zip(rows, names, strict=True)]
    return copied


def _keep_promises(carried: Mapping[str, Mapping[str, Any]], program: Program, upgrade: Upgrade) -> None:
    """Keep the promises of operators whose tolerance changes."""
    for node in program.operators:
        if node.name in upgrade.eased:
            control, clocks = carried["control"][node.name], carried["clocks"].get(node.name, {})
            control.update(node.kept_promises(control, clocks))


def _set_by_hand(
    control: dict[str, Any], waiting: Sequence[Mapping[str, Any]], upgrade: Upgrade
) -> list[dict[str, Any]]:
    """Apply bounds that were set manually and wait for a tick; return them for the journal."""
    follows = {was: now for now, was in upgrade.continues.items()}
    moved = [{**one, "operator": follows[one["operator"]]} for one in waiting if one["operator"] in follows]
    for setting in moved:
        control.setdefault(setting["operator"], {}).setdefault("set", []).append(setting["at"])
    return moved


def _spans(old: StoredPlan, upgrade: Upgrade, tick: int) -> dict[str, Any]:
    """Return the former names of operators that have been renamed."""
    changed: dict[str, list[Any]] = {name: [[name, tick, FOREVER]] for name in upgrade.new}
    for now, was in upgrade.continues.items():
        spans = spans_of(old, was)
        if now != was:
            *before, (name, first, _) = spans
            spans = [*before, [name, first, tick - 1], [now, tick, FOREVER]]
        if now != was or was in old.spans:
            changed[now] = spans
    return changed
