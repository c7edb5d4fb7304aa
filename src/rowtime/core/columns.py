"""The hidden columns: what rows carry beside the user's columns, each defined once.

The name of a hidden column begins with ``__``, which no column of a user may (R201). A constant has one meaning, and
mostly a type; its comment gives the unit (µs are µs UTC). Files of a checkpoint and stored plans hold the names, so a
name never changes. Short names stand for several columns, but never for two in the rows of one operator.
"""

from __future__ import annotations

TIMESTAMP, BIGINT, INT, STRING, BOOLEAN = "TIMESTAMP", "BIGINT", "INT", "STRING", "BOOLEAN"


class Hidden(str):
    """The name of a hidden column that has one ``type``, in Spark SQL."""

    __slots__ = ("type",)
    type: str


def hidden(kind: str, *names: str) -> tuple[str, ...]:
    """Several columns of a type."""
    made = tuple(map(Hidden, names))
    for name in made:
        name.type = kind
    return made


def _of(kind: str, name: str) -> str:
    return hidden(kind, name)[0]


# Of every row (semantics 2.1). Of a source, before its gate, the rowtime is the one that the writer gave, or null.
ROWTIME = _of(TIMESTAMP, "__t")
WRITER = _of(STRING, "__w")  # the writer; the order between writers is the order of names
POSITION = _of(BIGINT, "__p")  # the position in the writer
ARRIVAL = _of(TIMESTAMP, "__a")  # the recorded arrival time, on edges that still have it
BOUND = _of(TIMESTAMP, "__b")  # null for a row; for an item that is a bound, its (plain) time
MALFORMED = _of(STRING, "__m")  # the raw record where it does not decode, or what it breaks; else null
BROKEN = _of(STRING, "__broken")  # what a refused row breaks or what of it cannot be computed, NULL for a row that fits
ROWTIME_NAME = "ROWTIME"  # what users call the first of them

# Of rows that are written: where they go, and when they are looked at again.
ROUTE = _of(INT, "__route")  # the number of the route (`Route`)
DUE = _of(BIGINT, "__n")  # µs: the clock at which a kept row is due, or forgotten
HELD_TIME = _of(BIGINT, "__time")  # µs: the rowtime of a row that a merge keeps
LINE = _of(STRING, "__line")  # a row as a line of a text file
SEQUENCE = _of(BIGINT, "__seq")  # the number of a row in a Kafka topic
SCHEMA_ID = _of(BIGINT, "__id")  # the id of the schema of a record of a topic
UNDECODED = _of(BOOLEAN, "__undecoded")  # true for a record whose text is not one object

# Numbered ones: the name and a number.
KEY = "__k"  # keys of groups, of orders and of joins
AGGREGATE = "__a"  # aggregates of groups
CUTTING = "__w"  # columns of what cuts events
TRIED = "__try"  # what is computed so that a failure is a NULL
ARGUMENTS = "__arguments"  # those of a call, computed so that a failure is a NULL
CALLED, UNCALLED = "__called", "__uncalled"  # what the call gave; BOOLEAN: it was not made, as an argument fails
HOP_END = _of(TIMESTAMP, "__h")  # the ends of overlapping windows
WINDOW_VALUE = "__v"  # functions over windows (OVER)

# What an edge with a clock of its own says.
GIVEN = _of(BIGINT, "__v")  # µs: the bound of the event time; null for a row
SAID = _of(STRING, "__c")  # the text of a bound; null for a row
SINCE = _of(TIMESTAMP, "__n")  # the rowtime of a bound, where no row is before it
SHOWN = _of(TIMESTAMP, "__shown")  # what the clock of the row's writer has reached
REFUSED = _of(BOOLEAN, "__refused")  # true where the guard has refused the row
BOUND_BEFORE = _of(TIMESTAMP, "__bound")  # the bound of the event time before the row, for CURRENT_BOUND()
CANDIDATE = _of(TIMESTAMP, "__g")  # the time that the gate judges
REGION = _of(INT, "__g")  # which of the regions that meet a row or bound is of
ROW_NUMBER = _of(BIGINT, "__i")  # the number of a row of the table
VALID_FROM, VALID_UNTIL = hidden(BIGINT, "__valid_from", "__valid_until")  # µs: the rowtimes that meet this version

# Which rows a trace asks for (`Link`).
ASKED_FROM, ASKED_UPTO = hidden(BIGINT, "__from", "__upto")  # µs: the time in question
ASKED_AT, ASKED_VERSION = hidden(BIGINT, "__at", "__version")  # the rowtime in µs, and which change it is
TRACE_TICK, TRACE_ROW, TRACE_NUMBER = hidden(BIGINT, "__tick", "__row", "__number")
ABOVE_TICK, ABOVE_ROW = hidden(BIGINT, "__of_tick", "__of_row")  # the same of the row above that a row had a part in

# Order.
ORIGIN = _of(STRING, "__ow"), _of(BIGINT, "__op")  # writer and position that a numbered row had before the merge
ORDERED_VALUE = _of(BIGINT, "__o")  # the value, in an order that ascends
PROMOTED = _of(TIMESTAMP, "__u")  # what the inputs of a set promote
PROMOTED_TIME = _of(TIMESTAMP, "__g")  # the time that a T-sort promotes, a hidden item of the select list below
JUDGED = _of(TIMESTAMP, "__j")  # the last instant of the time's group, where a group decides who is late
PASSED_ROWTIME = _of(TIMESTAMP, "__before")  # the rowtime below a T-sort, where somebody above asks for it
BEFORE = _of(TIMESTAMP, "__r")  # the rowtime that the row had
PERMIT = _of(BIGINT, "__at")  # µs: the rowtime of the permit
PERMITS = _of(BIGINT, "__c")  # how many permits there are up to and with this row of the permit stream
SORT_VALUE = "__m"  # the value that a sort goes by, of its own type
STAMP = _of(TIMESTAMP, "__l")  # the rowtime that a sorted row gets

# Groups and windows of rows.
SEEN = _of(TIMESTAMP, "__x")  # some rowtime of the group, where bisection needs one
FIRST, LAST = hidden(BIGINT, "__e", "__l")  # µs: the first and the last rowtime of a group, or of a piece of a session
DONE = _of(BOOLEAN, "__done")  # the group is complete
SESSION = _of(BIGINT, "__s")  # the number of the session among those of its key
IS_DUE = _of(BOOLEAN, "__d")  # the piece is looked at now; others only say that a session goes on
SESSION_START, SESSION_END = hidden(TIMESTAMP, "__kstart", "__kend")  # the edges of the session, for items and HAVING
STAGGERED = _of(TIMESTAMP, "__h")  # the end of a STAGGER window, which no name of a query means
OPENED = _of(BIGINT, "__s")  # µs: when a STAGGER window opened; it ends when it is due
HOP_TIME = _of(TIMESTAMP, "__g")  # the time of a row, where rows without one are refused
HOP_MICROS = hidden(BIGINT, "__u", "__s", "__e")  # µs: the time of a row, and the edges of the window that ends first
COPY = _of(BIGINT, "__c")  # how many windows of the row end before this one
RANGE_VALUE = _of(BIGINT, "__o")  # the value that RANGE measures, µs for times
KEY_HASH = _of(BIGINT, "__h")  # the hash of the key; equal keys have equal ones
AT = _of(BIGINT, "__at")  # µs: the rowtime of a row of an OVER

# Row patterns: of a row that goes out, its match and its place in it; of a partition, what is remembered.
MATCH_AT, MATCH_ROW = hidden(BIGINT, "__match", "__in_match")  # the positions of the first row of the match and its own
TESTED = _of(BOOLEAN, "__tested")  # whether a condition is satisfied, and in place of columns that it does not read
SORTED_KEY = "__of"  # and a number: its keys, which order equal rowtimes
PARTITION = (  # positions: of the first row, of the first that is kept, is no start yet, is behind all matches
    *hidden(BIGINT, "__first_row", "__kept_from", "__start_from", "__matched_to"),
    *hidden(BIGINT, "__matches", "__least", "__turn"),  # how many; µs: what may yet go out; which of several is newest
    *hidden(BIGINT, "__opened", "__decided"),  # µs: the first start that is not decided, and the bound that decides it
)

# Joins of rows.
PLACES = tuple(  # ROWTIME, WRITER and POSITION of each side's row
    (_of(TIMESTAMP, f"__{side}t"), _of(STRING, f"__{side}w"), _of(BIGINT, f"__{side}p")) for side in "lr"
)
ARRIVED = hidden(BIGINT, "__lk", "__rk")  # the tick in which each side's row came
IS_LEFT, AS_OF_ROW, LATEST = "__is_left", "__row", "__latest"  # of an AS OF join that is carried out as an OVER
PERIODS = tuple(hidden(BIGINT, f"__{side}_start", f"__{side}_end") for side in "lr")  # µs: the lifetimes of the sides

# Events (semantics 9): the start is the rowtime.
STOP = _of(BIGINT, "__e")  # µs: the end of the lifetime; END while it is not known
WEIGHT = _of(BIGINT, "__d")  # 1 gives the event, -1 takes it back
CHANGED_BY = _of(BIGINT, "__q")  # the position of the row that changed the event last
MET = _of(BIGINT, "__c")  # µs: the bound that that row met at the gate
START = _of(BIGINT, "__s")  # µs: the start
EDGE_KIND = _of(INT, "__k")  # what a row of edges is
NEW_START, NEW_END = hidden(TIMESTAMP, "__since", "__until")  # what an expression makes of the lifetime
AS_GIVEN = _of(BIGINT, "__f")  # µs: the start before adjustment
NEW_EDGE = _of(INT, "__new")  # 1 for an edge of this tick, 0 for an open event of before
STARTED_AT = _of(BIGINT, "__sp")  # the position of its start edge, of an end that finds none its own
EMITTED_END, IS_START, TIE = _of(BIGINT, "__u"), "__k", "__x"  # µs; 1 for a start edge; what orders equal rowtimes
LEFT_EVENT = hidden(BIGINT, "__ls", "__le", "__ld", "__lq", "__lc")  # start, STOP, WEIGHT, … of the left side's
RIGHT_EVENT = hidden(BIGINT, "__rs", "__re", "__rd", "__rq", "__rc")  # and of the right side's
FRESH = hidden(BOOLEAN, "__ln", "__rn")  # the row of that side is new
CHANGED = ("__change", "__start", "__stop", "__new_stop")  # what `EmitChanges` shows, out of the payload's way
OF_INPUT = _of(INT, "__of")  # which of several inputs a change is of
VERSION = ("__v", "__vc", "__nv", "__nc")  # a change and the bound that it met; those of the next one of its group
WINDOW_END = _of(BIGINT, "__z")  # µs: the end of a window of events
LOWEST, HIGHEST = hidden(BIGINT, "__lo", "__hi")  # the first and the last window that an event is in
LIFETIME_START, LIFETIME_END = hidden(TIMESTAMP, "__lifetime_start", "__lifetime_end")  # for functions of these names
BEGUN, OVER_AT = hidden(BIGINT, "__begun", "__over")  # µs: the start and the end of a session of events
CHAIN, PART = hidden(BIGINT, "__chain", "__part")  # the number of such a session; µs: the start of a part of one
PIECE_END = _of(BIGINT, "__y")  # µs: the end of a part of an event, or of some that were put together
LAST_START = _of(BIGINT, "__z")  # µs: the last start of a count window
RANK, MOST, FIRST_RANK = "__r", "__m", "__f"  # the number of a start; the greatest; that a window begins with
SNAPSHOT_AT, NEXT_SNAPSHOT = hidden(BIGINT, "__t0", "__t1")  # µs: when a snapshot begins, and the next one
STARTING, ENDING = hidden(BIGINT, "__starts", "__ends")  # how many events start and end there
OLD = _of(INT, "__old")  # 1 for kept sums
BAD = _of(INT, "__bad")  # the number of the aggregate of a snapshot that is beyond its type

# Panes that fire again (semantics 8.2).
PANE = _of(BIGINT, "__n")  # µs: the end of the pane
FIRE = _of(BIGINT, "__u")  # µs: the bound that lets the row out; beyond END while none has come
FIRE_CHANGE = _of(INT, "__c")  # 0 takes the result of the fire before it back, 1 gives the new one
LAST_FIRE = _of(BIGINT, "__l")  # µs: the bound of the row's fire; of one that is taken back, of the fire before
FIRE_INDEX = _of(BIGINT, "__i")  # how often the group has fired before
NEXT_FIRE = _of(BIGINT, "__x")  # µs: the bound of the group's next fire; null if it has not come

# Of equal texts under a collation.
COLLATED_KEY, COLLATED_VALUE = "__key", "__value"
