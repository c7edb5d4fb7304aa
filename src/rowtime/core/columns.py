"""The hidden columns: what rows carry beside the user's columns, each defined once.

The name of a hidden column begins with ``__``, which no column of a user may (R201). A constant has one meaning; its
comment gives the type and the unit (µs are µs UTC). Files of a checkpoint and stored plans hold the names, so a name
never changes. Short names stand for several columns, but never for two in the rows of one operator.
"""

from __future__ import annotations

# Of every row (SPEC 2.1). Of a source, before its gate, the rowtime is the one that the writer gave, or null.
ROWTIME = "__t"  # TIMESTAMP
WRITER = "__w"  # STRING: the writer; the order between writers is the order of names
POSITION = "__p"  # BIGINT: the position in the writer
ARRIVAL = "__a"  # TIMESTAMP: the recorded arrival time, on edges that still have it
BOUND = "__b"  # TIMESTAMP: null for a row; for an item that is a bound, its (plain) time
MALFORMED = "__m"  # STRING: the raw record where it does not decode, or what it breaks; else null
BROKEN = "__broken"  # STRING: what a refused row breaks or what of it cannot be computed, NULL for a row that fits
ROWTIME_NAME = "ROWTIME"  # what users call the first of them

# Of rows that are written: where they go, and when they are looked at again.
ROUTE = "__route"  # INT: the number of the route (`Route`)
DUE = "__n"  # BIGINT µs: the clock at which a kept row is due, or forgotten
HELD_TIME = "__time"  # BIGINT µs: the rowtime of a row that a merge keeps
SEQUENCE = "__seq"  # BIGINT: the number of a row in a Kafka topic

# Numbered ones: the name and a number.
KEY = "__k"  # keys of groups, of orders and of joins
AGGREGATE = "__a"  # aggregates of groups
TRIED = "__try"  # what is computed so that a failure is a NULL
HOP_END = "__h"  # TIMESTAMP: the ends of overlapping windows
WINDOW_VALUE = "__v"  # functions over windows (OVER)

# What an edge with a clock of its own says.
GIVEN = "__v"  # BIGINT µs: the bound of the event time; null for a row
SAID = "__c"  # STRING: the text of a bound; null for a row
SINCE = "__n"  # TIMESTAMP: the rowtime of a bound, where no row is before it
SHOWN = "__shown"  # TIMESTAMP: what the clock of the row's writer has reached
REFUSED = "__refused"  # BOOLEAN: true where the guard has refused the row
CANDIDATE = "__g"  # TIMESTAMP: the time that the gate judges
REGION = "__g"  # INT: which of the regions that meet a row or bound is of
ROW_NUMBER = "__i"  # BIGINT: the number of a row of the table

# Which rows a trace asks for (`Link`).
ASKED_FROM, ASKED_UPTO = "__from", "__upto"  # BIGINT µs: the time in question
ASKED_AT, ASKED_VERSION = "__at", "__version"  # BIGINT: the rowtime in µs, and which change it is
TRACE_TICK, TRACE_ROW, TRACE_NUMBER = "__tick", "__row", "__number"  # BIGINT

# Order.
ORIGIN = ("__ow", "__op")  # STRING, BIGINT: writer and position that a numbered row had before the merge
ORDERED_VALUE = "__o"  # BIGINT: the value, in an order that ascends
PROMOTED = "__u"  # TIMESTAMP: what the inputs of a set promote
PROMOTED_TIME = "__g"  # TIMESTAMP: the time that a T-sort promotes, a hidden item of the select list below
JUDGED = "__j"  # TIMESTAMP: the last instant of the time's group, where a group decides who is late
PASSED_ROWTIME = "__before"  # TIMESTAMP: the rowtime below a T-sort, where somebody above asks for it
BEFORE = "__r"  # TIMESTAMP: the rowtime that the row had
PERMIT = "__at"  # BIGINT µs: the rowtime of the permit
PERMITS = "__c"  # BIGINT: how many permits there are up to and with this row of the permit stream
SORT_VALUE = "__m"  # the value that a sort goes by, of its own type
STAMP = "__l"  # TIMESTAMP: the rowtime that a sorted row gets

# Groups and windows of rows.
SEEN = "__x"  # TIMESTAMP: some rowtime of the group, where bisection needs one
FIRST, LAST = "__e", "__l"  # BIGINT µs: the first and the last rowtime of a group, or of a piece of a session
DONE = "__done"  # BOOLEAN: the group is complete
SESSION = "__s"  # BIGINT: the number of the session among those of its key
IS_DUE = "__d"  # BOOLEAN: the piece is looked at now; others only say that a session goes on
SESSION_START, SESSION_END = "__kstart", "__kend"  # TIMESTAMP: the edges of the session, for items and HAVING
STAGGERED = "__h"  # TIMESTAMP: the end of a STAGGER window, which no name of a query means
OPENED = "__s"  # BIGINT µs: when a STAGGER window opened; it ends when it is due
HOP_TIME = "__g"  # TIMESTAMP: the time of a row, where rows without one are refused
HOP_MICROS = ("__u", "__s", "__e")  # BIGINT µs: the time of a row, and the edges of the window that ends first
COPY = "__c"  # BIGINT: how many windows of the row end before this one
RANGE_VALUE = "__o"  # BIGINT: the value that RANGE measures, µs for times
KEY_HASH = "__h"  # BIGINT: the hash of the key; equal keys have equal ones
AT = "__at"  # BIGINT µs: the rowtime of a row of an OVER

# Joins of rows.
PLACES = (("__lt", "__lw", "__lp"), ("__rt", "__rw", "__rp"))  # ROWTIME, WRITER and POSITION of each side's row
ARRIVED = ("__lk", "__rk")  # BIGINT: the tick in which each side's row came
IS_LEFT, AS_OF_ROW, LATEST = "__is_left", "__row", "__latest"  # of an AS OF join that is carried out as an OVER
PERIODS = (("__l_start", "__l_end"), ("__r_start", "__r_end"))  # TIMESTAMP: the periods of the sides

# Events (SPEC 9): the start is the rowtime.
STOP = "__e"  # BIGINT µs: the end of the lifetime; END while it is not known
WEIGHT = "__d"  # BIGINT: 1 gives the event, -1 takes it back
CHANGED_BY = "__q"  # BIGINT: the position of the row that changed the event last
MET = "__c"  # BIGINT µs: the bound that that row met at the gate
START = "__s"  # BIGINT µs: the start
EDGE_KIND = "__k"  # INT: what a row of edges is
AS_GIVEN = "__f"  # BIGINT µs: the start before adjustment
EMITTED_END, IS_START, TIE = "__u", "__k", "__x"  # BIGINT µs; 1 for a start edge; what orders equal rowtimes
LEFT_EVENT = ("__ls", "__le", "__ld", "__lq", "__lc")  # start, STOP, WEIGHT, CHANGED_BY and MET of the left side's
RIGHT_EVENT = ("__rs", "__re", "__rd", "__rq", "__rc")  # and of the right side's
FRESH = ("__ln", "__rn")  # BOOLEAN: the row of that side is new
CHANGED = ("__change", "__start", "__stop", "__new_stop")  # what `EmitChanges` shows, out of the payload's way
OF_INPUT = "__of"  # INT: which of several inputs a change is of
VERSION = ("__v", "__vc", "__nv", "__nc")  # a change and the bound that it met; those of the next one of its group
WINDOW_END = "__z"  # BIGINT µs: the end of a window of events
LOWEST, HIGHEST = "__lo", "__hi"  # BIGINT: the first and the last window that an event is in
LIFETIME_START, LIFETIME_END = "__lifetime_start", "__lifetime_end"  # TIMESTAMP: what the functions of these names read
PIECE_END = "__y"  # BIGINT µs: the end of a part of an event, or of some that were put together
LAST_START = "__z"  # BIGINT µs: the last start of a count window
RANK, MOST, FIRST_RANK = "__r", "__m", "__f"  # the number of a start; the greatest; that a window begins with
SNAPSHOT_AT, NEXT_SNAPSHOT = "__t0", "__t1"  # BIGINT µs: when a snapshot begins, and the next one
STARTING, ENDING = "__starts", "__ends"  # BIGINT: how many events start and end there
OLD = "__old"  # INT: 1 for kept sums
BAD = "__bad"  # INT: the number of the aggregate of a snapshot that is beyond its type

# Panes that fire again (SPEC 8.2).
PANE = "__n"  # BIGINT µs: the end of the pane
FIRE = "__u"  # BIGINT µs: the bound that lets the row out; beyond END while none has come
FIRE_CHANGE = "__c"  # INT: 0 takes the result of the fire before it back, 1 gives the new one
LAST_FIRE = "__l"  # BIGINT µs: the bound of the fire that a row shows; of one that is taken back, of the fire before
FIRE_INDEX = "__i"  # BIGINT: how often the group has fired before
NEXT_FIRE = "__x"  # BIGINT µs: the bound of the group's next fire; null if it has not come

# Of equal texts under a collation.
COLLATED_KEY, COLLATED_VALUE = "__key", "__value"
