"""How the rows of a tick may be distributed over its tasks.

An operator says it of its inputs, as it says which order it requires; only `plan.levels` compares operators. What is
unknown is one task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.operators.contract.state import Control


class Distribution(Enum):
    """How the rows of an operator's inputs may be distributed."""

    ANY = "any task"
    """Each task has a part of the rows of each stream, in the order of their positions.

    The operator maps or drops each row by itself, or judges it at a gate by marks: the task that has all folds the
    gate's items (`runtime.executors.folding`).
    """
    WHOLE = "each task"
    """Each task has all rows of a table, which are the same in every tick: they are not exchanged."""
    IN_ORDER = "any task, in stream order"
    """As before, and the rows of a task come before those of the next one in stream order.

    So it is not in the tasks of keys, whose rows are mixed.
    """
    SINGLE = "one task"


@dataclass(frozen=True)
class ByKeys:
    """Rows with equal keys are in one task; each task has the keys of some shards (`state.shards`).

    The operator gives no row that depends on rows of different keys, and its scalars follow from clocks and types: they
    are equal in all tasks. `Operator.gathered` has what is left to the task that has all keys.

    ``given``: for each input the keys, as columns of what `Operator.combined` returns. ``kept``: by the name of kept
    rows, their columns with the same values; without any, rows of other keys among them are harmless.
    """

    given: Sequence[Sequence[str]]
    kept: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Gathered:
    """What an operator has after its step in a task of some keys.

    ``control``: its scalars; ``left``: rows that only the task of all keys can release (`Tick.leave`).
    """

    control: Control
    left: Frame | None = None


def agreed(name: str, parts: Sequence[Gathered]) -> Control:
    """Return the scalars of an operator, which are equal in all tasks; raises ``DiffersError``."""
    first, *others = (part.control for part in parts)
    if any(other != first for other in others):
        raise DiffersError(f"the scalars of {name}")
    return first


class DiffersError(Exception):
    """Tasks of different keys do not agree about something that does not depend on keys."""
