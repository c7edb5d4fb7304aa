"""How the rows of a tick may be distributed over its tasks.

An operator says it of its inputs, as it says which order it requires; only `plan.levels` compares operators. What is
unknown is one task.
"""

from __future__ import annotations

from enum import Enum


class Distribution(Enum):
    """How the rows of an operator's inputs may be distributed."""

    ANY = "any task"
    """Each task has a part of the rows of each stream, in the order of their positions.

    The operator maps or drops each row by itself, or judges it at a gate by marks: the task that has all folds the
    gate's items (`runtime.executors.folding`).
    """
    SINGLE = "one task"
