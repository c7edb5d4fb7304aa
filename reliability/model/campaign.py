"""Checks the model in every setting, and without each guard; one line each."""

from __future__ import annotations

import argparse
import time

from reliability.model.checker import Checked, checked
from reliability.model.guards import GUARDS, SETTINGS


def main() -> int:
    """Return 0 if every invariant holds, and each guard is needed for the invariant named beside it; 1 otherwise."""
    asked = _arguments()
    began, wrong, states = time.monotonic(), 0, 0
    for setting in SETTINGS[:: 4 if asked.short else 1]:
        found = checked(setting)
        states += found.states
        wrong += _told(f"{setting}: {found.states:,} states", found, "")
    for guard in GUARDS[:: 5 if asked.short else 1]:
        found = checked(guard.setting, [guard.name])
        wrong += _told(f"without “{guard.name}” ({guard.where}; {guard.setting})", found, guard.breaks)
    took = time.monotonic() - began
    print(f"{states:,} states, {wrong} wrong; {took:.0f} s")
    return int(wrong > 0)


def _told(what: str, found: Checked, wanted: str) -> int:
    """Print a line. Return 1 if TLC has found something else than ``wanted``."""
    right = found.broken == wanted
    said = f"{found.broken} is broken by {', '.join(found.steps[1:])}" if found.broken else "every invariant holds"
    if right and wanted:
        said = f"{wanted} is broken in {len(found.steps) - 1} steps"
    elif not right:
        said = f"WRONG: {said}, and {wanted or 'nothing'} should be broken"
    print(f"{what}: {said}", flush=True)
    return int(not right)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reliability.model")
    parser.add_argument("--short", action="store_true", help="a quarter of the settings, a fifth of the guards")
    return parser.parse_args()
