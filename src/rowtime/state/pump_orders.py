"""Orders to the pumps of a pipeline, on their way into its plan, as those who give them leave them in the checkpoint.

The driver takes them up one after the other, between two ticks. A plan names the files of the orders that it was made
with: they are done with, whether they are still there or not. The last order that was refused stays for `rowtime
status`, until another one is taken up.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rowtime.core.errors import Problem
from rowtime.core.stores import Place, listed
from rowtime.plan.pump_orders import Order, Orders
from rowtime.state.files import make_folder, remove, write_new, write_over
from rowtime.state.sealed import sealed, unsealed

FOLDER: Final = "orders"
_REFUSED: Final = "refused"


def put(checkpoint: Place, order: Order) -> None:
    """Leave an order, behind all that wait, whatever the clocks say."""
    folder = checkpoint / FOLDER
    make_folder(folder)
    last = max((int(path.name.partition("-")[0]) for path in folder.glob("*.json")), default=0)
    name = f"{max(time.time_ns(), last + 1):020d}-{uuid.uuid4().hex[:6]}.json"
    write_new(folder / name, sealed({"pumps": dict(order.pumps), "text": order.text, "at": order.at}))


def waiting(checkpoint: Place, orders: Orders) -> list[Order]:
    """Return the orders that are not in force yet, in the order in which they were left."""
    paths = sorted(path for path in listed(checkpoint / FOLDER, "*.json") if path.name not in orders.taken)
    contents = [(path.name, unsealed(path)) for path in paths]
    return [Order(order["pumps"], order["text"], order["at"], name) for name, order in contents]


def done(checkpoint: Place, taken: Iterable[str]) -> None:
    """Remove the files of orders that are in force."""
    for name in taken:
        remove(checkpoint / FOLDER / name)


def refuse(checkpoint: Place, order: Order, problems: Sequence[Problem]) -> None:
    """Put an order aside that cannot be carried out."""
    refusal = {"text": order.text, "at": order.at, "problems": [problem.as_json() for problem in problems]}
    write_over(checkpoint / FOLDER / _REFUSED, sealed(refusal))
    done(checkpoint, [order.file])


def refused(checkpoint: Place) -> dict[str, Any] | None:
    """Return the last refused order (``text``, ``at``, ``problems``), unless another one was taken up since."""
    path = checkpoint / FOLDER / _REFUSED
    return unsealed(path) if path.exists() else None


def forget_refused(checkpoint: Place) -> None:
    """Forget the refused order: another one is in force."""
    remove(checkpoint / FOLDER / _REFUSED)
