"""Actions: executes a statement that the page Waiting offers, with the command that a user would type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rowtime.core.errors import refuse
from rowtime.core.time import to_micros, to_text
from rowtime.plan.remedies import CHECKPOINT, TIME, Way
from rowtime.web.commands import run_rowtime
from rowtime.web.watched import Pipeline, Watched

PATIENCE: Final = 60  # seconds


def command(way: Way, pipeline: Pipeline, watched: Watched, time: str) -> list[str]:
    """Return the arguments of ``rowtime`` for a remedy.

    Raises ``Refused``: R705 if there is no command for it, R301 if ``time`` is needed and is not an instant.
    """
    if not way.command:
        raise refuse("R705", "this is not a command of rowtime", "Follow the instructions on the page.")
    replacements = {CHECKPOINT: str(pipeline.place)}
    if TIME in way.command:
        replacements[TIME] = to_text(to_micros(time))
    at_home = () if CHECKPOINT in way.command else ("--home", str(watched.home.path))
    return [*(replacements.get(word, word) for word in way.command), *at_home]


def carry_out(arguments: Sequence[str]) -> tuple[bool, str]:
    """Run ``rowtime`` with these arguments; return whether it succeeded, and its output."""
    ran = run_rowtime(arguments, PATIENCE)
    return ran.returncode == 0, (ran.stdout + ran.stderr).strip()
