"""Gives orders to the pumps of a pipeline, running or not: the ALTER PUMP of a script that is given its checkpoint.

What can be known at once is refused at once: the script of the checkpoint is bound as the order wants it, and compared
with the plan. A pipeline that needs something from Python (functions, streams) is bound only where that is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from rowtime.client.home import Home
from rowtime.core.errors import Problem, Refused, refuse
from rowtime.core.stores import Place, place_of
from rowtime.core.time import wall_clock
from rowtime.plan.bind.catalog import Without
from rowtime.plan.bind.lifetime_functions import READS
from rowtime.plan.bind.python_code import PythonCode
from rowtime.plan.difference import statements_of
from rowtime.plan.program import Program, compile_script
from rowtime.plan.pump_orders import Order, Orders, named
from rowtime.plan.stored import StoredPlan
from rowtime.plan.upgrade import Upgrade, upgrade_of
from rowtime.runtime.upgrades import holding
from rowtime.sql.filled import FilledText
from rowtime.sql.schemas import looked_up
from rowtime.sql.script import parse_script
from rowtime.sql.statements import AlterPump, SetPath, SetSchema, Statement
from rowtime.state import pump_orders
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.liveness import RETRYING, RUNNING, UNKNOWN, liveness

_ONLY: Final = (
    "Give only ALTER PUMP … START and ALTER PUMP … STOP; the script of the pipeline has the other statements."
)
_TAKE_OVER: Final = "Start the pipeline with --take-over, or write the statement into its script."


@dataclass(frozen=True)
class Ordered:
    """What was ordered: by pump whether it shall run; ``unchanged``: those that do so already.

    ``changes``: what becomes of the plan, in words; ``None`` if only the pipeline can tell. ``final``: why what is
    stopped could not start again by the opposite order, or empty. ``running``: the pipeline takes the order up between
    two ticks, otherwise at its next start; ``None`` if that is not known.
    """

    pumps: Mapping[str, bool]
    unchanged: tuple[str, ...]
    changes: tuple[str, ...] | None
    final: str
    running: bool | None

    def as_json(self) -> dict[str, Any]:
        """Return all of this as plain values."""
        return asdict(self)


def give_order(
    checkpoint: str | Path | Place,
    text: str,
    variables: Mapping[str, str] | None = None,
    home: Home | None = None,
    compiled: Callable[[Orders], Program] | None = None,
) -> Ordered:
    """Leave the ALTER PUMP statements of a text in a checkpoint, as one order.

    ``compiled``: compiles the script of the pipeline with what it needs from Python. Raises ``Refused``: R101, R103 and
    R149 for the text, R405 for a folder that is no checkpoint, R401 and others if the pipeline cannot go on so.
    """
    place = Checkpoint(place_of(checkpoint))
    plan, last = place.plan, place.journal.last()
    if plan is None:
        raise refuse("R405", f"{checkpoint} is not a checkpoint", "Give the checkpoint folder of the pipeline.")
    make = compiled or (lambda orders: _compiled(plan, home or Home(), variables or {}, orders))
    orders = plan.orders
    for one in pump_orders.waiting(place.folder, plan.orders):
        orders = orders.after(one)
    before = make(orders)
    order = _order(text, variables or {}, before)
    after = make(orders.after(order))
    changes, final = None, ""
    unknown = [*before.problems, *before.not_checked, *after.not_checked]
    if not unknown and (orders != plan.orders or plan.is_of(before.operators)):
        if after.problems:
            raise Refused(*after.problems)
        upgrade = None if last is None else upgrade_of(plan, after, holding(last))
        changes = () if upgrade is None else upgrade.lines
        final = "" if upgrade is None else _final(before, after, upgrade)
    pump_orders.put(place.folder, order)
    same = tuple(name for name, start in order.pumps.items() if before.catalog.pumps[name].started == start)
    state = liveness(place.folder).state
    return Ordered(order.pumps, same, changes, final, None if state == UNKNOWN else state in (RUNNING, RETRYING))


def _compiled(plan: StoredPlan, home: Home, variables: Mapping[str, str], orders: Orders) -> Program:
    """Compile the script of a checkpoint; secrets that are not given get any value, which does not matter here."""
    values = {**plan.values, **variables}
    secrets = {name: name for name, *_ in FilledText.of(plan.sql, values).missing()}
    hidden = Without(home, frozenset(statements_of(plan.sql)))
    return compile_script(plan.sql, hidden, {**secrets, **values}, orders=orders, code=PythonCode.of_plan(plan))


def _final(before: Program, after: Program, upgrade: Upgrade) -> str:
    """Say why the program before an order could not continue after it, if it stops pumps that need past rows."""
    try:
        upgrade_of(replace(after.described(), paused=upgrade.paused), before, ())
    except Refused as refused:
        return refused.problems[0].message
    return ""


def _order(text: str, variables: Mapping[str, str], program: Program) -> Order:
    """Return the order that a text gives to the pumps of a program. Raises ``Refused``."""
    script, pumps = parse_script(FilledText.of(text, variables)), program.catalog.pumps
    wrong = [
        *script.problems,
        *(_foreign(statement) for statement in script.statements if not isinstance(statement, _KNOWN)),
    ]
    if wrong:
        raise Refused(*wrong)
    given: dict[str, bool] = {}
    orders = [looked_up(statement, lambda name, pump: pump and name in pumps, READS) for statement in script.statements]
    for statement in orders:
        if isinstance(statement, AlterPump):
            given |= {name: statement.start for pump in statement.pumps for name in named(pump, pumps, "")}
    if not given:
        raise refuse("R149", "the text has no ALTER PUMP", _ONLY)
    words = [" ".join(statement.text.split()) for statement in script.statements if isinstance(statement, AlterPump)]
    return Order(given, "; ".join(words), wall_clock())


_KNOWN: Final = (AlterPump, SetSchema, SetPath)


def _foreign(statement: Statement) -> Problem:
    words = " ".join(statement.text.split()[:2]).upper()
    takes_over = type(statement).__name__ == "TakeOver"
    what = "ALTER PUMP … TAKE OVER" if takes_over else words
    return Problem("R149", f"{what} is not an order to pumps", statement.place, _TAKE_OVER if takes_over else _ONLY)
