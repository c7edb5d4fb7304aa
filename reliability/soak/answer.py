"""The expected answer of the query, computed in plain loops over what was sent, without rowtime."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from reliability.soak.feed import ORDERS, SECOND, Order, Payment, bound, orders, payments

WITHIN = 2 * SECOND
GROUP = 10 * SECOND
WINDOW = 5 * SECOND


@dataclass
class Found:
    """Rows of each output with how often they are there, and of each gate how many were accepted and refused."""

    groups: Counter[tuple[int, str, int, int]] = field(default_factory=Counter)  # end, item, count, sum
    pairs: Counter[tuple[int, str, int]] = field(default_factory=Counter)  # number, item, paid
    late: Counter[tuple[int, int]] = field(default_factory=Counter)  # number, at
    gates: dict[str, dict[str, int]] = field(default_factory=dict)


def answer(batches: int) -> Found:
    """Return the answer over a number of batches of each writer."""
    found = Found()
    accepted = [order for writer in ORDERS for order in _sorted_orders(writer, batches, found)]
    paid = _paid(batches, found)
    sent = batches * len(orders(ORDERS[0], 0)) * len(ORDERS)
    found.gates["orders"] = {"in": sent, "accepted": sent}
    found.gates["sorted_orders"] = {"in": sent, "accepted": len(accepted), "LATE": sum(found.late.values())}
    _group(accepted, found)
    _join(accepted, paid, found)
    return found


def _sorted_orders(writer: str, batches: int, found: Found) -> list[Order]:
    mark, accepted = None, []
    for batch in range(batches):
        for order in orders(writer, batch):
            if mark is not None and order.at + WITHIN < mark:
                found.late[order.number, order.at] += 1
                continue
            accepted.append(order)
            mark = order.at if mark is None else max(mark, order.at)
    return accepted


def _paid(batches: int, found: Found) -> list[Payment]:
    clock, accepted, sent = None, [], 0
    for batch in range(batches):
        for payment in payments(batch):
            sent += 1
            if clock is None or payment.at >= clock:
                accepted.append(payment)
                clock = payment.at
        clock = max(clock or 0, bound(batch))
    found.gates["payments"] = {"in": sent, "accepted": len(accepted), "OUT_OF_ORDER": sent - len(accepted)}
    return accepted


def _group(accepted: list[Order], found: Found) -> None:
    sums: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
    for order in accepted:
        group = sums[order.at // GROUP * GROUP + GROUP, order.item]
        group[0] += 1
        group[1] += order.amount
    found.groups.update((*key, count, total) for key, (count, total) in sums.items())


def _join(accepted: list[Order], paid: list[Payment], found: Found) -> None:
    by_number = {order.number: order for order in accepted}
    for payment in paid:
        order = by_number.get(payment.number)
        if order is not None and abs(order.at - payment.at) <= WINDOW:
            found.pairs[order.number, order.item, payment.paid] += 1
