"""The end of a stream over files, which has to be requested (semantics 2.6).

Reading all present files ends nothing: a file may come tomorrow. A stream ends if its definition, the options of the
run, or a statement say so, once every present file has been read. The end follows the last of these files, and its
position is journaled: a file that comes later follows the end, and its rows are refused, in a live run as in a replay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rowtime.core.clock import least
from rowtime.core.time import END
from rowtime.operators.streams.stream import Stream
from rowtime.plan.finite import declared_to_end, is_finite
from rowtime.runtime.sources.contract import BoundItem, Slice, Source
from rowtime.runtime.sources.partition_values import ROWS_BITS

Notes = Mapping[str, Any]
Settings = Sequence[Mapping[str, Any]]


def split_ends(settings: Settings, streams: Collection[Stream]) -> tuple[set[str], list[Mapping[str, Any]]]:
    """Return the streams to end, out of the bounds that were set manually; and the other bounds."""
    finite = {node.name for node in streams if is_finite(node.source[0])}
    ends = {setting["operator"] for setting in settings if setting["operator"] in finite}
    return ends, [setting for setting in settings if setting["operator"] not in ends]


def with_end(  # noqa: PLR0913 - facts about the stream
    node: Stream, source: Source, part: Slice, before: Notes, clocks: Mapping[str, int], *, wanted: bool
) -> tuple[Slice, dict[str, Any]]:
    """Return a range, with the end after it if the stream ends here; and the notes for the journal.

    ``before``: the notes of the stream; ``wanted``: this run, or a statement, ends streams over files.
    """
    if not is_finite(node.source[0]):
        return part, {}
    if "ended" in before or least(clocks.values()) >= END:
        return part, {"ended": before["ended"]} if "ended" in before else {}
    if not (wanted or before.get("ending") or declared_to_end(node.source[1])):
        return part, {}
    if not source.finished(part.end):
        return part, {"ending": True} if wanted or before.get("ending") else {}
    return recorded_end(part, part.end), {"ended": dict(part.end)}


def recorded_end(part: Slice, ended: Mapping[str, int]) -> Slice:
    """Return a range with the end before the files numbered ``ended``, perhaps among its rows."""
    # Before the first row of the following file.
    bounds = tuple(BoundItem(writer, (number << ROWS_BITS) - 1, END) for writer, number in ended.items())
    inside = any(part.end.get(writer, 0) > number for writer, number in ended.items())
    return replace(
        part, bounds=(*part.bounds, *bounds), detail={**part.detail, "end inside": True} if inside else part.detail
    )
