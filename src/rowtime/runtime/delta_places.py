"""The places of Delta tables that the package deltalake can open."""

from __future__ import annotations

from rowtime.core.errors import refuse
from rowtime.core.shared_paths import local
from rowtime.core.stores import Place, on_store, place_of
from rowtime.plan.formats.lake import path_of_delta


def delta_place(path: str) -> Place:
    """Return the place of a table.

    Raises what `place_of` does, and R541 for a folder whose path deltalake would misread.
    """
    what = "the path of the Delta table"
    place = place_of(path, what) if on_store(path) and not path.startswith("memory:") else local(path, what)
    if wanted := path_of_delta(str(place)):
        raise refuse("R541", f"{what} is {place}, and it takes {wanted}", "Rename the folder, or use another one.")
    return place
