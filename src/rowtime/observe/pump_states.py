"""What ``rowtime status`` and the console say of pumps: which are stopped, by whom, and which orders wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rowtime.core.stores import Place
from rowtime.core.time import to_text
from rowtime.plan.stored import StoredPlan
from rowtime.state.pump_orders import refused, waiting


def pumps_of(place: Place, plan: StoredPlan) -> dict[str, Any]:
    """Return the pumps that are stopped or were ordered to run, the orders that wait, and the last one refused.

    ``by``: the order, or ``None`` for the script.
    """
    orders = plan.orders.pumps
    named = sorted({*plan.stopped, *(name for name, order in orders.items() if order["start"])})
    aside = refused(place)
    return {
        "pumps": [{"pump": name, "runs": name not in plan.stopped, "by": _order(orders.get(name))} for name in named],
        "orders": {
            "waiting": [_order({"text": one.text, "at": one.at}) for one in waiting(place, plan.orders)],
            "refused": None if aside is None else {**(_order(aside) or {}), "problems": aside["problems"]},
        },
    }


def _order(order: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if order is None else {"text": order["text"], "at": to_text(order["at"])}


def pump_lines(status: Mapping[str, Any]) -> Iterator[str]:
    """Return the same as lines of text."""
    for item in status["pumps"]:
        by = "in the script" if item["by"] is None else f"by {_order_text(item['by'])}"
        yield f"{item['pump']}: {'started' if item['runs'] else 'stopped'} {by}"
    when = "between two ticks" if status["state"] in ("running", "retrying") else "at the next start"
    for item in status["orders"]["waiting"]:
        yield f"waits: {_order_text(item)}; it is carried out {when}"
    if (aside := status["orders"]["refused"]) is not None:
        yield from (f"refused: {_order_text(aside)}: {item['code']} {item['message']}" for item in aside["problems"])


def _order_text(order: Mapping[str, Any]) -> str:
    return f"{order['text']} of {order['at']} UTC"
