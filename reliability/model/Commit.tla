-------------------------------- MODULE Commit --------------------------------
(* How rowtime commits a tick, starts again after a death, and hands rows over to a sink; docs/model.md explains it.

   A row is <<n, a>>: its number in the output, and the attempt at a tick that has computed it. Two attempts may cut
   the input in another way and compute other rows, so the same n with another a is another row.

   Each action is what the code does between two moments at which a process may die or another one may come in
   between. The module of the code is named beside it. `Off` are the guards that are taken out.                     *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Kind,      \* of the sink: "directory", "log", "database" or "lake"
    Place,     \* of the checkpoint: "disk" has locks, "store" has none. Logs and lake tables are in the same place.
    Drivers,   \* processes that may run the pipeline
    Off,       \* guards that are taken out
    Env,       \* what else may happen: "lost", "gather", "upgrade", "others", "take over", "older copy", "older table"
    Sizes,     \* how many rows a tick may take
    Rows, Attempts, Epochs   \* bounds of the model: rows of the input, attempts at ticks, starts on a store

VARIABLES
    journal,   \* the entries that are there
    pending,   \* requests to create an entry that may still be carried out
    lock,      \* who holds the lock of the checkpoint
    tlock,     \* who holds the lock of the pump's place in the target
    staged,    \* rows in staged files
    out,       \* rows that a reader of the target sees, in the order of the commits
    ver,       \* version of the lake table; items of the writer in the log
    mark,      \* what the lake table notes of the pump: last tick and number of rows
    book,      \* the number of the next row, as noted in the database
    stage,     \* the table beside the target, if drivers share it
    owner,     \* the checkpoint that is recorded in the target: "ours" or "other"
    bound,     \* the log promises that no row up to this number follows
    published, \* the last tick that has been handed over, as far as is noted
    attempts,
    did,       \* what of Env has happened
    done,      \* every commit that has ever counted: its tick, and all rows up to it
    taken,     \* how many rows the target had when another checkpoint took over
    d          \* what each driver does

vars == <<journal, pending, lock, tlock, staged, out, ver, mark, book, stage, owner, bound, published, attempts, did,
          done, taken, d>>

On(guard) == guard \notin Off
May(event) == event \in Env \ did

Keep == 2   \* entries that pruning leaves; 64 in the code
Never == 99

Newest == CHOOSE e \in journal : \A f \in journal : f.num <= e.num
Row(hist, n) == <<n, hist[n]>>
RowsOf(hist, after) == {Row(hist, n) : n \in after + 1 .. Len(hist)}
Named(e) == RowsOf(e.hist, e.out)
InOrder(hist, after) == [i \in 1 .. Len(hist) - after |-> Row(hist, after + i)]
Set(s) == {s[i] : i \in 1 .. Len(s)}
Max(a, b) == IF a > b THEN a ELSE b

First == [num |-> 0, tick |-> 0, epoch |-> 0, by |-> "", hist |-> <<>>, out |-> 0]
Down == [pc |-> "down", tick |-> 0, hist |-> <<>>, out |-> 0, epoch |-> 0, next |-> <<>>, from |-> 0, plan |-> FALSE,
         unsure |-> FALSE, todo |-> {}, saw |-> 0, sawver |-> 0, rows |-> <<>>, then |-> ""]

Init ==
    /\ journal = {First} /\ pending = {} /\ lock = "" /\ tlock = "" /\ staged = {} /\ out = <<>> /\ ver = 0
    /\ mark = [tick |-> 0, rows |-> 0] /\ book = 0 /\ stage = <<>> /\ owner = "ours" /\ bound = 0 /\ published = 0
    /\ attempts = 0 /\ did = {} /\ done = {[tick |-> 0, hist |-> <<>>]} /\ taken = Never
    /\ d = [p \in Drivers |-> Down]

target == <<out, ver, mark, book, stage, owner, bound, taken>>
entries == <<journal, pending, done>>
locks == <<lock, tlock>>
world == <<attempts, did>>

Forget(p, pc) ==   \* go on, and remember only what is needed
    [Down EXCEPT !.pc = pc, !.tick = d[p].tick, !.hist = d[p].hist, !.out = d[p].out, !.epoch = d[p].epoch]
Go(p, pc) == d' = [d EXCEPT ![p].pc = pc]
Ends(p) ==   \* it dies, or stops with an error; its locks are free
    /\ d' = [d EXCEPT ![p] = Down]
    /\ lock' = IF lock = p THEN "" ELSE lock
    /\ tlock' = IF tlock = p THEN "" ELSE tlock

-------------------------------------------------------------------------------
(* The start: runtime/engine.py, start and _recover. *)

Raised(p) == [Newest EXCEPT !.num = Newest.num + 1, !.epoch = Newest.epoch + 1, !.by = p]

Acquire(p) ==   \* state/checkpoint.py, acquire; state/journal.py, raise_epoch
    /\ d[p].pc = "down"
    /\ IF Place = "disk"
       THEN /\ On("lock") => lock = ""
            /\ lock' = p /\ journal' = journal /\ d' = [d EXCEPT ![p].pc = "claim"]
       ELSE /\ Newest.epoch < Epochs
            /\ journal' = IF On("epoch") THEN journal \cup {Raised(p)} ELSE journal
            /\ d' = [d EXCEPT ![p].pc = "claim", ![p].epoch = Newest.epoch + IF On("epoch") THEN 1 ELSE 0]
            /\ lock' = lock
    /\ UNCHANGED <<pending, done, tlock, staged, target, published, world>>

HasLock == Kind = "directory" \/ (Place = "disk" /\ Kind \in {"log", "lake"})
Beyond == published > Newest.tick \/ Len(out) > Len(Newest.hist)

Claim(p) ==   \* runtime/claims.py; Checkpoint.check
    /\ d[p].pc = "claim"
    /\ \/ /\ \/ On("journal is whole") /\ Beyond   \* R420
             \/ owner # "ours"                     \* R441
             \/ HasLock /\ On("lock of the target") /\ tlock # ""   \* R442
          /\ Ends(p) /\ UNCHANGED <<entries, staged, target, published, world>>
       \/ /\ On("journal is whole") => ~Beyond
          /\ owner = "ours"
          /\ HasLock /\ On("lock of the target") => tlock = ""
          /\ tlock' = IF HasLock THEN p ELSE tlock
          /\ Go(p, "list") /\ UNCHANGED <<entries, lock, staged, target, published, world>>

Beside == Kind \in {"directory", "lake"}   \* where rows are staged: beside the target, or in the checkpoint
Left(hist, after) == IF Place = "store" /\ Kind = "lake" THEN {} ELSE staged \ RowsOf(hist, after)   \* VACUUM does it
Overtaken(p) == Place = "store" /\ On("epoch") /\ On("sweeper drives") /\ Newest.by # p

List(p) ==   \* what no entry names will be removed
    /\ d[p].pc = "list"
    /\ IF Beside /\ Overtaken(p) THEN Ends(p)
       ELSE LET e == Newest IN
            /\ d' = [d EXCEPT ![p] = [@ EXCEPT !.pc = "sweep", !.tick = e.tick, !.hist = e.hist, !.out = e.out,
                  !.todo = Left(e.hist, e.out)]]
            /\ UNCHANGED locks
    /\ UNCHANGED <<entries, staged, target, published, world>>

Sweep(p) ==   \* in a store it is listed first, and then asked who drives: state/files.py, clear; handing_over.py, finish
    /\ d[p].pc = "sweep"
    /\ IF ~Beside /\ Overtaken(p) THEN Ends(p) /\ UNCHANGED staged
       ELSE /\ staged' = staged \ IF Beside THEN Left(d[p].hist, d[p].out) ELSE d[p].todo
            /\ d' = [d EXCEPT ![p].pc = "finish", ![p].todo = {}] /\ UNCHANGED locks
    /\ UNCHANGED <<entries, target, published, world>>

Finish(p) ==   \* runtime/handing_over.py, finish: the last entry is handed over again
    /\ d[p].pc = "finish"
    /\ IF On("finish at start") /\ published < d[p].tick /\ d[p].out < Len(d[p].hist)
       THEN d' = [d EXCEPT ![p].pc = "publish", ![p].then = "start"]
       ELSE d' = [d EXCEPT ![p].pc = "note", ![p].out = Len(d[p].hist)]
    /\ UNCHANGED <<entries, locks, staged, target, published, world>>

Note(p) ==
    /\ d[p].pc = "note"
    /\ published' = d[p].tick
    /\ d' = [d EXCEPT ![p] = [Forget(p, "idle") EXCEPT !.out = Len(d[p].hist)]]
    /\ UNCHANGED <<entries, locks, staged, target, world>>

Change(p) ==   \* runtime/upgrades.py: an entry of its own, which has nothing for the sinks
    /\ May("upgrade")
    /\ \/ d[p].pc = "idle" /\ d[p].out = Len(d[p].hist)
       \/ d[p].pc = "finish" /\ ~On("finish before a change")
    /\ did' = did \cup {"upgrade"}
    /\ d' = [d EXCEPT ![p] = [@ EXCEPT !.pc = "create", !.next = d[p].hist, !.from = Len(d[p].hist), !.plan = TRUE]]
    /\ UNCHANGED <<entries, locks, staged, target, published, attempts>>

DropSink(p) ==   \* runtime/upgrades.py, bound: R408; the new script lacks the sink, so nothing of it is finished
    /\ May("drop")
    /\ d[p].pc = "list"
    /\ On("all handed over") => (published >= Newest.tick \/ Newest.out = Len(Newest.hist))
    /\ did' = did \cup {"drop"}
    /\ LET e == Newest IN
       d' = [d EXCEPT ![p] = [@ EXCEPT !.pc = "create", !.tick = e.tick, !.hist = e.hist, !.next = e.hist,
             !.out = Len(e.hist), !.from = Len(e.hist), !.plan = TRUE]]
    /\ UNCHANGED <<entries, locks, staged, target, published, attempts>>

-------------------------------------------------------------------------------
(* One tick: runtime/engine.py, _ticked. *)

Tick(p) ==   \* sinks/staging.py: the rows are staged; of gathered ticks the new entry names the rows again
    /\ d[p].pc = "idle" /\ attempts < Attempts /\ "drop" \notin did
    /\ \E k \in Sizes :
         /\ Len(d[p].hist) + k <= Rows
         /\ LET a == attempts + 1
                next == d[p].hist \o [i \in 1 .. k |-> a]
            IN /\ staged' = staged \cup RowsOf(next, Len(d[p].hist))
               /\ d' = [d EXCEPT ![p] = [@ EXCEPT !.next = next, !.plan = FALSE,
                     !.pc = IF On("journal first") THEN "create" ELSE "early",
                     !.from = IF On("gathered rows stay named") THEN d[p].out ELSE Len(d[p].hist)]]
    /\ attempts' = attempts + 1
    /\ UNCHANGED <<entries, locks, target, published, did>>

Early(p) ==   \* the fault of handing over what is not committed
    /\ d[p].pc = "early"
    /\ out' = out \o InOrder(d[p].next, d[p].from)
    /\ Go(p, "create")
    /\ UNCHANGED <<entries, locks, staged, ver, mark, book, stage, owner, bound, taken, published, world>>

Number(p) == d[p].tick + 1 + d[p].epoch
Entry(p) == [num |-> Number(p), tick |-> d[p].tick + 1, epoch |-> d[p].epoch, by |-> IF Place = "disk" THEN "" ELSE p,
             hist |-> d[p].next, out |-> d[p].from]
Taken(n) == \E f \in journal : f.num = n
Created(e) ==   \* it counts if no later entry is there
    /\ journal' = {f \in journal : f.num # e.num} \cup {e}
    /\ done' = IF e.num >= Newest.num THEN done \cup {[tick |-> e.tick, hist |-> e.hist]} ELSE done

Create(p) ==   \* state/journal.py, _create: on a disk a link, on a store a conditional request
    /\ d[p].pc = "create"
    /\ IF Taken(Number(p)) /\ On("entry is new")
       THEN Ends(p) /\ UNCHANGED entries   \* R403
       ELSE Created(Entry(p)) /\ Go(p, "check") /\ UNCHANGED <<pending, locks>>
    /\ UNCHANGED <<staged, target, published, world>>

Lost(p) ==   \* no answer comes: it has been carried out, or it will be, or never
    /\ d[p].pc = "create" /\ Place = "store" /\ May("lost")
    /\ did' = did \cup {"lost"}
    /\ d' = [d EXCEPT ![p] = [Down EXCEPT !.pc = "failed", !.unsure = TRUE, !.epoch = d[p].epoch]]
    /\ \/ ~Taken(Number(p)) /\ Created(Entry(p)) /\ UNCHANGED pending
       \/ pending' = pending \cup {Entry(p)} /\ UNCHANGED <<journal, done>>
    /\ UNCHANGED <<locks, staged, target, published, attempts>>

Late ==   \* a request is carried out long after
    \E e \in pending :
       /\ pending' = pending \ {e}
       /\ IF Taken(e.num) THEN UNCHANGED <<journal, done>> ELSE Created(e)
       /\ UNCHANGED <<locks, staged, target, published, world, d>>

Check(p) ==   \* an entry that was pruned can be created again: then a later one is there
    /\ d[p].pc = "check"
    /\ LET n == Number(p) IN
       IF Newest.num > n /\ On("no later entry")
       THEN /\ journal' = IF n <= Newest.num - Keep THEN {f \in journal : f.num # n} ELSE journal
            /\ Ends(p) /\ UNCHANGED <<done, published>>
       ELSE /\ journal' = {f \in journal : f.num > n - Keep}
            /\ done' = done \cup {[tick |-> d[p].tick + 1, hist |-> d[p].next]}
            /\ d' = [d EXCEPT ![p] = [Forget(p, "publish") EXCEPT !.tick = @ + 1, !.hist = d[p].next, !.out = d[p].from,
                     !.pc = IF d[p].plan THEN "note" ELSE "publish", !.then = "tick"]]
            /\ published' = IF On("noted last") \/ d[p].plan THEN published ELSE d[p].tick + 1
            /\ UNCHANGED locks
    /\ UNCHANGED <<pending, staged, target, world>>

Fails(p) ==   \* the sink does not take the rows
    /\ d[p].pc \in {"publish", "append", "move", "commit"}
    /\ d' = [d EXCEPT ![p] = Forget(p, "failed")]
    /\ UNCHANGED <<entries, locks, staged, target, published, world>>

Again(p) ==   \* engine.py, _tried: the same driver recovers before it goes on; journal.py, settle
    /\ d[p].pc = "failed"
    /\ IF ~On("recover after a failure") /\ ~d[p].unsure
       THEN d' = [d EXCEPT ![p].pc = "idle", ![p].out = Len(d[p].hist)] /\ UNCHANGED <<journal, locks>>
       ELSE IF Place = "store" /\ Newest.by # p /\ On("epoch")
       THEN Ends(p) /\ UNCHANGED journal   \* R403
       ELSE IF d[p].unsure /\ On("settle") /\ On("epoch")
       THEN /\ Newest.epoch < Epochs
            /\ journal' = journal \cup {Raised(p)}
            /\ d' = [d EXCEPT ![p].pc = "list", ![p].unsure = FALSE, ![p].epoch = Newest.epoch + 1]
            /\ UNCHANGED locks
       ELSE d' = [d EXCEPT ![p].pc = "list", ![p].unsure = FALSE] /\ UNCHANGED <<journal, locks>>
    /\ UNCHANGED <<pending, done, staged, target, published, world>>

Gather(p) ==   \* sinks/lake.py, waits: a version may have several ticks; not the first of a start
    /\ Kind = "lake" /\ "gather" \in Env
    /\ d[p].pc = "publish" /\ d[p].then = "tick"
    /\ Go(p, "idle") /\ UNCHANGED <<entries, locks, staged, target, published, world>>

Settle(p) ==
    /\ d[p].pc = "idle" /\ d[p].out < Len(d[p].hist)
    /\ d' = [d EXCEPT ![p].pc = "publish", ![p].then = "settle"]
    /\ UNCHANGED <<entries, locks, staged, target, published, world>>

After(p, pc) == d' = [d EXCEPT ![p] = [Forget(p, pc) EXCEPT !.out = Len(d[p].hist)]]
Mine(p) == RowsOf(d[p].hist, d[p].out)
Has(p, after) ==   \* the driver that has computed them may still have them in memory
    RowsOf(d[p].hist, after) \subseteq staged \/ (d[p].then = "tick" /\ ~Beside)

-------------------------------------------------------------------------------
(* A directory: sinks/directory.py. A file that is not staged has been moved already. *)

Rename(p) ==
    /\ Kind = "directory" /\ d[p].pc = "publish"
    /\ IF ~On("renamed, not copied")
       THEN out' = out \o InOrder(d[p].hist, d[p].out) /\ After(p, "note") /\ UNCHANGED staged
       ELSE LET left == Mine(p) \cap staged IN
            IF left = {} THEN After(p, "note") /\ UNCHANGED <<out, staged>>
            ELSE LET r == CHOOSE x \in left : \A y \in left : x[1] <= y[1] IN
                 out' = Append(out, r) /\ staged' = staged \ {r} /\ UNCHANGED d
    /\ UNCHANGED <<entries, locks, ver, mark, book, stage, owner, bound, taken, published, world>>

-------------------------------------------------------------------------------
(* A stream log: sinks/stream_log.py, client/writer.py. *)

Open(p) ==   \* what is there is counted
    /\ Kind = "log" /\ d[p].pc = "publish"
    /\ IF owner # "ours" THEN Ends(p)
       ELSE /\ d' = [d EXCEPT ![p] = [@ EXCEPT !.sawver = ver,
                 !.saw = IF On("numbers in the log") THEN Len(out) ELSE d[p].out,
                 !.pc = IF Len(out) >= Len(d[p].hist) /\ On("numbers in the log") THEN "bound" ELSE "append"]]
            /\ UNCHANGED locks
    /\ bound' = IF On("bound after rows") \/ owner # "ours" THEN bound ELSE Max(bound, Len(d[p].hist))
    /\ UNCHANGED <<entries, staged, out, ver, mark, book, stage, owner, taken, published, world>>

AppendRows(p) ==   \* one item, created at the position behind what was counted
    /\ Kind = "log" /\ d[p].pc = "append"
    /\ IF ver # d[p].sawver /\ On("position is new") THEN Go(p, "publish") /\ UNCHANGED <<out, ver>>
       ELSE IF ~Has(p, d[p].saw) THEN Go(p, "failed") /\ UNCHANGED <<out, ver>>
       ELSE out' = out \o InOrder(d[p].hist, d[p].saw) /\ ver' = ver + 1 /\ Go(p, "bound")
    /\ UNCHANGED <<entries, locks, staged, mark, book, stage, owner, bound, taken, published, world>>

WriteBound(p) ==
    /\ Kind = "log" /\ d[p].pc = "bound"
    /\ bound' = Max(bound, Len(d[p].hist))
    /\ staged' = staged \ Mine(p)
    /\ After(p, "note")
    /\ UNCHANGED <<entries, locks, out, ver, mark, book, stage, owner, taken, published, world>>

-------------------------------------------------------------------------------
(* A table of a database: sinks/database.py, sinks/table_book.py. *)

ReadBook(p) ==
    /\ Kind = "database" /\ d[p].pc = "publish"
    /\ IF owner # "ours" THEN Ends(p)
       ELSE d' = [d EXCEPT ![p] = [@ EXCEPT !.saw = book, !.pc = IF book >= Len(d[p].hist) THEN "unlink" ELSE "stage"]]
            /\ UNCHANGED locks
    /\ UNCHANGED <<entries, staged, target, published, world>>

WriteStage(p) ==
    /\ Kind = "database" /\ d[p].pc = "stage"
    /\ LET from == Max(d[p].saw, d[p].out) IN
       IF ~Has(p, from) THEN Go(p, "failed") /\ UNCHANGED stage
       ELSE LET rows == InOrder(d[p].hist, from) IN
            /\ stage' = IF On("stage of its own") THEN stage ELSE rows
            /\ d' = [d EXCEPT ![p].pc = "move", ![p].rows = rows]
    /\ UNCHANGED <<entries, locks, staged, out, ver, mark, book, owner, bound, taken, published, world>>

Move(p) ==   \* one transaction
    /\ Kind = "database" /\ d[p].pc = "move"
    /\ IF On("owner in the transaction") /\ owner # "ours" THEN Ends(p) /\ UNCHANGED <<out, book>>
       ELSE /\ UNCHANGED locks
            /\ IF On("number is unchanged") /\ book # d[p].saw THEN Go(p, "publish") /\ UNCHANGED <<out, book>>
               ELSE /\ out' = out \o IF On("stage of its own") THEN d[p].rows ELSE stage
                    /\ IF On("number in the transaction") THEN book' = Len(d[p].hist) /\ Go(p, "unlink")
                       ELSE book' = book /\ Go(p, "number")
    /\ UNCHANGED <<entries, staged, ver, mark, stage, owner, bound, taken, published, world>>

NoteNumber(p) ==   \* the fault of a second transaction
    /\ Kind = "database" /\ d[p].pc = "number"
    /\ book' = Len(d[p].hist) /\ Go(p, "unlink")
    /\ UNCHANGED <<entries, locks, staged, out, ver, mark, stage, owner, bound, taken, published, world>>

Unlink(p) ==
    /\ Kind = "database" /\ d[p].pc = "unlink"
    /\ staged' = staged \ Mine(p) /\ After(p, "note")
    /\ UNCHANGED <<entries, locks, target, published, world>>

-------------------------------------------------------------------------------
(* A lake table: sinks/lake.py. Files stay in their places, so a later start finds them there. *)

Look(p) ==
    /\ Kind = "lake" /\ d[p].pc = "publish"
    /\ LET look == [d EXCEPT ![p].pc = "commit", ![p].sawver = ver] IN
       IF ~On("mark") THEN d' = look /\ UNCHANGED locks
       ELSE IF mark.tick >= d[p].tick THEN After(p, "note") /\ UNCHANGED locks
       ELSE IF mark.rows # d[p].out /\ On("rows of the mark") THEN Ends(p)   \* R564
       ELSE d' = look /\ UNCHANGED locks
    /\ UNCHANGED <<entries, staged, target, published, world>>

CommitVersion(p) ==   \* one version with the rows and the mark, if it is the next one
    /\ Kind = "lake" /\ d[p].pc = "commit"
    /\ IF On("version is new") /\ ver # d[p].sawver THEN Go(p, "publish") /\ UNCHANGED <<out, ver, mark>>
       ELSE IF ~Has(p, d[p].out) THEN Go(p, "failed") /\ UNCHANGED <<out, ver, mark>>   \* R568
       ELSE /\ out' = out \o InOrder(d[p].hist, d[p].out)
            /\ ver' = ver + 1
            /\ IF On("mark in the version") THEN mark' = [tick |-> d[p].tick, rows |-> Len(d[p].hist)] /\ After(p, "note")
               ELSE mark' = mark /\ Go(p, "mark")
    /\ UNCHANGED <<entries, locks, staged, book, stage, owner, bound, taken, published, world>>

WriteMark(p) ==   \* the fault of a second version
    /\ Kind = "lake" /\ d[p].pc = "mark"
    /\ mark' = [tick |-> d[p].tick, rows |-> Len(d[p].hist)] /\ After(p, "note")
    /\ UNCHANGED <<entries, locks, staged, out, ver, book, stage, owner, bound, taken, published, world>>

-------------------------------------------------------------------------------
(* What else happens. *)

Crash(p) == d[p].pc # "down" /\ Ends(p) /\ UNCHANGED <<entries, staged, target, published, world>>

OthersCommit ==   \* another program, to the same lake table
    /\ May("others") /\ did' = did \cup {"others"} /\ ver' = ver + 1
    /\ UNCHANGED <<entries, locks, staged, out, mark, book, stage, owner, bound, taken, published, attempts, d>>

TakeOver ==   \* another checkpoint takes the target over (sinks/ownership.py); in a log on a store it writes an item
    /\ May("take over") /\ did' = did \cup {"take over"}
    /\ HasLock => tlock = ""
    /\ owner' = "other" /\ taken' = Len(out)
    /\ ver' = IF Kind = "log" /\ On("item at take-over") THEN ver + 1 ELSE ver
    /\ UNCHANGED <<entries, locks, staged, out, mark, book, stage, bound, published, attempts, d>>

OlderCopy ==   \* somebody restores an older copy of the checkpoint
    /\ May("older copy") /\ did' = did \cup {"older copy"}
    /\ \A p \in Drivers : d[p].pc = "down"
    /\ \E e \in journal : \E noted \in {published, e.tick} :
         /\ noted > e.tick \/ Len(out) > Len(e.hist)   \* else nobody outside knows of what is gone
         /\ journal' = {e} /\ published' = noted
    /\ UNCHANGED <<pending, done, locks, staged, target, attempts, d>>

OlderTable ==   \* somebody restores an older version of the lake table
    /\ May("older table") /\ did' = did \cup {"older table"}
    /\ \E x \in done : Len(x.hist) < Len(out)
         /\ out' = SubSeq(out, 1, Len(x.hist)) /\ mark' = [tick |-> x.tick, rows |-> Len(x.hist)]
    /\ ver' = ver + 1
    /\ UNCHANGED <<entries, locks, staged, book, stage, owner, bound, taken, published, attempts, d>>

Step(p) ==
    \/ Acquire(p) \/ Claim(p) \/ List(p) \/ Sweep(p) \/ Finish(p) \/ Note(p) \/ Change(p) \/ DropSink(p)
    \/ Tick(p) \/ Early(p) \/ Create(p) \/ Lost(p) \/ Check(p) \/ Fails(p) \/ Again(p) \/ Gather(p) \/ Settle(p)
    \/ Rename(p) \/ Open(p) \/ AppendRows(p) \/ WriteBound(p)
    \/ ReadBook(p) \/ WriteStage(p) \/ Move(p) \/ NoteNumber(p) \/ Unlink(p)
    \/ Look(p) \/ CommitVersion(p) \/ WriteMark(p) \/ Crash(p)

Symmetry == Permutations(Drivers)

Next == (\E p \in Drivers : Step(p)) \/ Late \/ OthersCommit \/ TakeOver \/ OlderCopy \/ OlderTable
Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------
(* What holds at every moment. *)

Begins(a, b) == Len(a) <= Len(b) /\ a = SubSeq(b, 1, Len(a))

OneCommitter ==   \* a tick is committed once, and each commit goes on from the one before it
    \A x, y \in done : /\ x.tick = y.tick => x = y
                       /\ x.tick < y.tick => Begins(x.hist, y.hist)

ExactlyOnce ==   \* no number is there twice
    \A i, j \in 1 .. Len(out) : i # j => out[i][1] # out[j][1]

OnlyCommitted ==   \* each row that is seen is that of a commit
    \A i \in 1 .. Len(out) : \E x \in done : out[i][1] <= Len(x.hist) /\ x.hist[out[i][1]] = out[i][2]

NoLoss ==   \* each committed row is there, or the next start hands it over: the newest entry names it, it is staged
    \A x \in done : \A n \in 1 .. Len(x.hist) :
       LET r == Row(x.hist, n) IN
       r \in Set(out) \/ (r \in Named(Newest) /\ r \in staged /\ published < Newest.tick)

NoGap ==   \* the rows are the first ones, in their order
    \A i \in 1 .. Len(out) : out[i][1] = i

BoundHolds ==   \* no row follows that the log has promised not to have
    bound <= Len(out)

Fenced ==   \* no row follows after another checkpoint has taken over
    taken # Never => Len(out) = taken
===============================================================================
