-------------------------------- MODULE Replay --------------------------------
(* What a pipeline really did, as a behaviour of `Commit`: its journal and the commits of its sink, in their orders.
   `Behaviours` is made by reliability/model/replay.py. TLC follows only states that fit; a behaviour that it reaches
   to the end is one of the model.                                                                                  *)
EXTENDS Commit, Behaviours

VARIABLES
    which,   \* of Traces
    seen,    \* the entries that were created so far
    handed   \* how many rows the target had after each of its commits

Told(e) == [num |-> e.num, tick |-> e.tick, epoch |-> e.epoch, rows |-> Len(e.hist), from |-> e.out]

ReplayInit == /\ Init /\ which \in 1 .. Len(Traces) /\ seen = <<>> /\ handed = <<>>
              /\ TLCSet(which, 0)

ReplayNext ==
    /\ \E p \in Drivers : Step(p)
    /\ which' = which
    /\ seen' = IF \E e \in journal' : e.num > Newest.num THEN Append(seen, Told(Newest')) ELSE seen
    /\ handed' = IF Len(out') > Len(out) THEN Append(handed, Len(out')) ELSE handed

ReplaySpec == ReplayInit /\ [][ReplayNext]_<<vars, which, seen, handed>>

Wanted == Traces[which]
Length == Len(seen) + Len(handed)
Fits ==
    /\ Begins(seen, Wanted.journal) /\ Begins(handed, Wanted.sink)
    /\ Length > TLCGet(which) => TLCSet(which, Length) /\ PrintT(<<"reached", which, Len(seen), Len(handed)>>)
    /\ (seen = Wanted.journal /\ handed = Wanted.sink /\ published = Wanted.published) => PrintT(<<"accepted", which>>)
===============================================================================
