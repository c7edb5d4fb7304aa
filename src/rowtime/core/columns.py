"""The hidden columns, which rows carry besides the user's columns; each is defined once here.

The name of a hidden column begins with ``__``, which users may not use (R201). Each constant has one meaning, and
mostly one type; its comment gives the unit (µs are µs UTC). Files of a checkpoint and stored plans hold the names, so a
name never changes. A short name may stand for several columns, but never for two in the rows of one operator.
"""

from __future__ import annotations

TIMESTAMP, BIGINT, INT, STRING, BOOLEAN = "TIMESTAMP", "BIGINT", "INT", "STRING", "BOOLEAN"


class Hidden(str):
    """The name of a hidden column that has one ``type``, in Spark SQL."""

    __slots__ = ("type",)
    type: str


def hidden(kind: str, *names: str) -> tuple[str, ...]:
    """Return several columns of one type."""
    columns = tuple(map(Hidden, names))
    for name in columns:
        name.type = kind
    return columns


def _of(kind: str, name: str) -> str:
    return hidden(kind, name)[0]


# Columns of every row (semantics 2.1). Before a source's gate, the rowtime is the writer's, or null.
ROWTIME = _of(TIMESTAMP, "__t")
WRITER = _of(STRING, "__w")  # the writer; the order between writers is the order of names
POSITION = _of(BIGINT, "__p")  # the position in the writer
ARRIVAL = _of(TIMESTAMP, "__a")  # the recorded arrival time, as long as the plan keeps it
BOUND = _of(TIMESTAMP, "__b")  # null for a row; for an item that is a bound, its (plain) time
MALFORMED = _of(STRING, "__m")  # the raw record if it does not decode, or the rule that it breaks; else null
BROKEN = _of(STRING, "__broken")  # the rule that a refused row breaks, or the value that cannot be computed; else NULL
ROWTIME_NAME = "ROWTIME"  # the users' name for the rowtime

# Columns of rows that are written: where they go, and when they are looked at again.
ROUTE = _of(INT, "__route")  # the number of the route (`Route`)
DUE = _of(BIGINT, "__n")  # µs: the clock at which a kept row is due, or is dropped
HELD_TIME = _of(BIGINT, "__time")  # µs: the rowtime of a row that a merge keeps
LINE = _of(STRING, "__line")  # a row as a line of a text file
SEQUENCE = _of(BIGINT, "__seq")  # the number of a row in a Kafka topic
SCHEMA_ID = _of(BIGINT, "__id")  # the id of the schema of a record of a topic
UNDECODED = _of(BOOLEAN, "__undecoded")  # true for a record whose text is not exactly one object

# Numbered columns: this name and a number.
KEY = "__k"  # keys of groups, of orders and of joins
AGGREGATE = "__a"  # aggregates of groups
CUTTING = "__w"  # columns of the rows that cut events
TRIED = "__try"  # values for which a failure gives NULL
PAIR_ROW = "__pair_row"  # the number of a row whose pairs are tried, and
PAIR_MATCH = "__pair_match"  # of the row that a pair belongs to
ENTRY = "__entry"  # the variable of a function over the entries of a map
ARGUMENTS = "__arguments"  # arguments of a call, for which a failure gives NULL
ASKED_GROUP = "__asked_row"  # the number of a row that Spark is asked for, or of its group
ASKED_ROW = "__asked_made"  # what JSON_TUPLE gives
ASKED_ONCE = "__asked_once"  # the column of what Spark is asked for all rows together
ASKED_PASSED, GROUP_ROWS = "__asked_passed", "__rows"  # the number of a row that is in no group; the rows of a group
GROUP_NUMBER, FAILING_GROUP = "__group", "__bad"  # the number of a row's group; BOOLEAN: an aggregate fails for it
CALLED, UNCALLED = "__called", "__uncalled"  # the result of the call; BOOLEAN: an argument failed, so no call was made
HOP_END = _of(TIMESTAMP, "__h")  # the ends of overlapping windows
WINDOW_VALUE = "__v"  # results of functions over windows (OVER)

# Columns of an edge with a clock of its own.
GIVEN = _of(BIGINT, "__v")  # µs: the bound of the event time; null for a row
COLUMN_BOUND = _of(STRING, "__c")  # the text of a bound; null for a row
SINCE = _of(TIMESTAMP, "__n")  # the rowtime of a bound that follows no row
SHOWN = _of(TIMESTAMP, "__shown")  # the clock of the row's writer
REFUSED = _of(BOOLEAN, "__refused")  # true where the guard has refused the row
BOUND_BEFORE = _of(TIMESTAMP, "__bound")  # the bound of the event time before the row, for CURRENT_BOUND()
CANDIDATE = _of(TIMESTAMP, "__g")  # the time that the gate judges
REGION = _of(INT, "__g")  # the number of the region that a row or bound belongs to
ROW_NUMBER = _of(BIGINT, "__i")  # the number of a row of the table
VALID_FROM, VALID_UNTIL = hidden(BIGINT, "__valid_from", "__valid_until")  # µs: the rowtimes that join this version

# The rows that a trace asks for (`Link`).
ASKED_FROM, ASKED_UPTO = hidden(BIGINT, "__from", "__upto")  # µs: the time in question
ASKED_AT, ASKED_VERSION = hidden(BIGINT, "__at", "__version")  # the rowtime in µs, and the number of the change
TRACE_TICK, TRACE_ROW, TRACE_NUMBER = hidden(BIGINT, "__tick", "__row", "__number")
ABOVE_TICK, ABOVE_ROW = hidden(BIGINT, "__of_tick", "__of_row")  # the same for the row above it contributed to

# Columns for order.
ORIGIN = _of(STRING, "__ow"), _of(BIGINT, "__op")  # writer and position before the merge, of a numbered row
ORDERED_VALUE = _of(BIGINT, "__o")  # the value, mapped so that the order ascends
PROMOTED = _of(TIMESTAMP, "__u")  # the times that the inputs of a set operation promote
PROMOTED_TIME = _of(TIMESTAMP, "__g")  # the time that a T-sort promotes, a hidden item of the select list below it
JUDGED = _of(TIMESTAMP, "__j")  # the last instant of the time's group, if a group decides who is late
PASSED_ROWTIME = _of(TIMESTAMP, "__before")  # the rowtime below a T-sort, if an operator above needs it
BEFORE = _of(TIMESTAMP, "__r")  # the row's rowtime before
PERMIT = _of(BIGINT, "__at")  # µs: the rowtime of the permit
PERMITS = _of(BIGINT, "__c")  # the number of permits up to and including this row of the permit stream
SORT_VALUE = "__m"  # the value that a sort orders by, in its own type
STAMP = _of(TIMESTAMP, "__l")  # the rowtime that a sorted row gets

# Columns of a streaming DataFrame whose source gives the order of its rows.
FRAME_WRITER, FRAME_PLACE = "__origin", "__place"  # the writer of a row, and its place there, in types of the source
SCAN = "__scan"  # the number of the stream whose row Spark has read for a task
READ_NUMBER, PLACE_NUMBER = hidden(BIGINT, "__read", "__nth")  # of a row of a batch: as read, and by place

# Columns of a row that a profile counts: the name of its clock, the hash of its key, and whether it is refused.
CLOCK_NAME, KEY_HASH, IS_BAD = _of(STRING, "__clock"), _of(BIGINT, "__hash"), _of(BOOLEAN, "__refused_before")

# Columns for groups and windows of rows.
SEEN = _of(TIMESTAMP, "__x")  # some rowtime of the group, for bisection
FIRST, LAST = hidden(BIGINT, "__e", "__l")  # µs: the first and the last rowtime of a group, or of a piece of a session
DONE = _of(BOOLEAN, "__done")  # the group is complete
SESSION = _of(BIGINT, "__s")  # the number of the session among those of its key
IS_DUE = _of(BOOLEAN, "__d")  # the piece is processed now; other pieces only show that a session goes on
SESSION_START, SESSION_END = hidden(TIMESTAMP, "__kstart", "__kend")  # the edges of the session, for items and HAVING
STAGGERED = _of(TIMESTAMP, "__h")  # the end of a STAGGER window; queries cannot name it
OPENED = _of(BIGINT, "__s")  # µs: when a STAGGER window opened; it ends when it is due
HOP_TIME = _of(TIMESTAMP, "__g")  # the time of a row, if rows without a time are refused
HOP_MICROS = hidden(BIGINT, "__u", "__s", "__e")  # µs: the time of a row, and the edges of the window that ends first
COPY = _of(BIGINT, "__c")  # how many windows of the row end before this one
RANGE_VALUE = _of(BIGINT, "__o")  # the value that RANGE measures, µs for times
KEY_HASH = _of(BIGINT, "__h")  # the hash of the key
AT = _of(BIGINT, "__at")  # µs: the rowtime of a row of an OVER

# Row patterns: the match of an output row and its place in it; the scalars kept of a partition.
MATCH_AT, MATCH_ROW = hidden(BIGINT, "__match", "__in_match")  # positions of the match's first row and of the row
TESTED = _of(BOOLEAN, "__tested")  # the result of a condition; it replaces columns that the condition does not read
SORTED_KEY = "__of"  # and a number: the keys that order equal rowtimes
PARTITION = (  # positions: of the first row, of the first that is kept, is no start yet, is behind all matches
    *hidden(BIGINT, "__first_row", "__kept_from", "__start_from", "__matched_to"),
    *hidden(BIGINT, "__matches", "__least", "__turn"),  # how many; µs: what may yet go out; which of several is newest
    *hidden(BIGINT, "__opened", "__decided"),  # µs: the first start that is not decided, and the bound that decides it
    *hidden(BIGINT, "__waiting"),  # how many rows from that start on
)

# Columns for joins of rows.
PLACES = tuple(  # ROWTIME, WRITER and POSITION of each side's row
    (_of(TIMESTAMP, f"__{side}t"), _of(STRING, f"__{side}w"), _of(BIGINT, f"__{side}p")) for side in "lr"
)
ARRIVED = hidden(BIGINT, "__lk", "__rk")  # the tick in which each side's row came
IS_LEFT, AS_OF_ROW, LATEST = "__is_left", "__row", "__latest"  # of an AS OF join that runs as an OVER
PERIODS = tuple(hidden(BIGINT, f"__{side}_start", f"__{side}_end") for side in "lr")  # µs: the lifetimes of the sides

# Columns of events (semantics 9): the start is the rowtime.
STOP = _of(BIGINT, "__e")  # µs: the end of the lifetime; END while it is unknown
WEIGHT = _of(BIGINT, "__d")  # 1 adds the event, -1 retracts it
CHANGED_BY = _of(BIGINT, "__q")  # the position of the row that last changed the event
MET = _of(BIGINT, "__c")  # µs: the bound at the gate when that row came
START = _of(BIGINT, "__s")  # µs: the start
EDGE_KIND = _of(INT, "__k")  # what a row of edges is
NEW_START, NEW_END = hidden(TIMESTAMP, "__since", "__until")  # the lifetime that an expression computes
AS_GIVEN = _of(BIGINT, "__f")  # µs: the start before adjustment
NEW_EDGE = _of(INT, "__new")  # 1 for an edge of this tick, 0 for an event that was open before
STARTED_AT = _of(BIGINT, "__sp")  # the position of the matching start edge, for an end without one of its own
EMITTED_END, IS_START, TIE = _of(BIGINT, "__u"), "__k", "__x"  # µs; 1 for a start edge; what orders equal rowtimes
LEFT_EVENT = hidden(BIGINT, "__ls", "__le", "__ld", "__lq", "__lc")  # start, STOP, WEIGHT, … of the left side's event
RIGHT_EVENT = hidden(BIGINT, "__rs", "__re", "__rd", "__rq", "__rc")  # and of the right side's event
FRESH = hidden(BOOLEAN, "__ln", "__rn")  # the row of that side is new
CHOICE = _of(BIGINT, "__choice")  # 0 or 1: which of two rows this one becomes
CHANGED = ("__change", "__start", "__stop", "__new_stop")  # the columns of `EmitChanges`; no payload uses these names
OF_INPUT = _of(INT, "__of")  # the number of the input that a change comes from
VERSION = ("__v", "__vc", "__nv", "__nc")  # a change and the bound when it came; the same of its group's next change
WINDOW_END = _of(BIGINT, "__z")  # µs: the end of a window of events
LOWEST, HIGHEST = hidden(BIGINT, "__lo", "__hi")  # the first and the last window that contain an event
LIFETIME_START, LIFETIME_END = hidden(TIMESTAMP, "__lifetime_start", "__lifetime_end")  # for functions of these names
BEGUN, OVER_AT = hidden(BIGINT, "__begun", "__over")  # µs: the start and the end of a session of events
CHAIN, PART = hidden(BIGINT, "__chain", "__part")  # the number of such a session; µs: the start of a part of one
PIECE_END = _of(BIGINT, "__y")  # µs: the end of a part of an event, or of several parts that were combined
LAST_START = _of(BIGINT, "__z")  # µs: the last start of a count window
RANK, MOST, FIRST_RANK = "__r", "__m", "__f"  # the rank of a start; the greatest rank; the first rank of a window
SNAPSHOT_AT, NEXT_SNAPSHOT = hidden(BIGINT, "__t0", "__t1")  # µs: when a snapshot begins, and the next one
STARTING, ENDING = hidden(BIGINT, "__starts", "__ends")  # how many events start and end there
OLD = _of(INT, "__old")  # 1 for kept sums
BAD = _of(INT, "__bad")  # the number of the aggregate of a snapshot that overflows its type

# Columns of panes that fire again (semantics 8.2).
PANE = _of(BIGINT, "__n")  # µs: the end of the pane
FIRE = _of(BIGINT, "__u")  # µs: the bound that releases the row; beyond END if there is none yet
FIRE_CHANGE = _of(INT, "__c")  # 0 retracts the previous fire's result, 1 gives the new one
LAST_FIRE = _of(BIGINT, "__l")  # µs: the bound of the row's fire; of a retraction, the bound of the previous fire
FIRE_INDEX = _of(BIGINT, "__i")  # how often the group has fired before
NEXT_FIRE = _of(BIGINT, "__x")  # µs: the bound of the group's next fire; null if there is none yet

# For equal texts under a collation.
COLLATED_KEY, COLLATED_VALUE = "__key", "__value"
