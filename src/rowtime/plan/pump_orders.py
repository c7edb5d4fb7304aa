"""Orders to pumps: the START and STOP of later scripts, which hold for the pumps of one checkpoint.

An order wins over what the script says of its pumps, until another order. The stored script of a plan ends with the
orders in force, so that it means the same wherever it is compiled.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from rowtime.core.errors import refuse
from rowtime.sql.statements import CreatePump, Name

OWN_SCRIPT = "A pump runs in the script that defines it: write this after its CREATE PUMP."
_NO_SCHEMA = "\n;SET SCHEMA 'rowtime_orders';SET PATH 'rowtime_orders'"
BY_CHECKPOINT = "To start or stop pumps of another script: rowtime alter FILE --checkpoint DIR."


@dataclass(frozen=True)
class Order:
    """One order: which pumps shall run or not, the ``text`` of its statements, when it was given (µs UTC), its file."""

    pumps: Mapping[str, bool]
    text: str
    at: int
    file: str = ""


@dataclass(frozen=True)
class Orders:
    """The orders in force: by pump ``start``, ``text`` and ``at`` of the last one.

    ``taken``: the names of the files that they were in.
    """

    pumps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    taken: tuple[str, ...] = ()

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """Return the orders from their JSON object."""
        return cls(stored.get("pumps", {}), tuple(stored.get("taken", ())))

    def as_json(self) -> dict[str, Any]:
        """Return the orders as a JSON object; empty if there are none."""
        return {"pumps": dict(self.pumps), "taken": [*self.taken]} if self.pumps or self.taken else {}

    def after(self, order: Order) -> Orders:
        """Return the orders in force once another order is taken up."""
        new = {pump: {"start": start, "text": order.text, "at": order.at} for pump, start in order.pumps.items()}
        return Orders({**self.pumps, **new}, (*self.taken, *([order.file] if order.file else [])))

    def with_all(self, pumps: Collection[str]) -> Orders:
        """Return the orders that also start all of these pumps."""
        return self.after(Order(dict.fromkeys(pumps, True), "", 0))

    def settled(self) -> Orders:
        """Return the same orders once the files are removed."""
        return replace(self, taken=())

    def obeyed(self, pumps: dict[str, CreatePump]) -> Self:
        """Start and stop the pumps of a script; orders to pumps that it does not have wait for them."""
        for name, order in self.pumps.items():
            if name in pumps:
                pumps[name] = replace(pumps[name], started=order["start"])
        return self

    def script(self, pumps: Collection[str]) -> str:
        """Return the orders to pumps of a script, as statements to append to it."""
        orders = {name: "START" if order["start"] else "STOP" for name, order in self.pumps.items() if name in pumps}
        qualified = any(
            pump.endswith(f".{name}") for name in orders for pump in pumps
        )  # in the schema of the script's end
        return (_NO_SCHEMA if qualified else "") + "".join(
            f"\n;ALTER PUMP {_quoted(name)} {orders[name]}" for name in orders
        )


def _quoted(name: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def named(given: Name, pumps: Collection[str], hint: str) -> list[str]:
    """Return the pumps that a name means, which may end with ``*``. Raises ``Refused`` (R103) if there is none."""
    name = given.text.lower()
    name = "*" if name == "*.*" else name
    matches = [pump for pump in pumps if pump == name or (name.endswith("*") and pump.startswith(name[:-1]))]
    if matches:
        return matches
    what = f"there is no pump whose name begins with {name[:-1]}" if name.endswith(".*") else f"there is no pump {name}"
    advice = f"There are: {', '.join(sorted(pumps))}. {hint}".rstrip()
    raise refuse("R103", what, advice if pumps else hint, given.place)
