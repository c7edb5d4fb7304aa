"""The automaton of a row pattern: a state for each place of a variable, with its followers in order of preference.

Quantifiers are expanded, so states do not count. The followers of a state stop where the pattern may end: followers
less preferred than an end are never tried. An optional repetition must take a row (`_Follower`), otherwise it could
continue forever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from rowtime.kernels.frames import Flags, Ints
from rowtime.kernels.matching.pattern import (
    Anchor,
    Choice,
    InTurn,
    LeftOut,
    Part,
    Permuted,
    Repeated,
    Variable,
    variables,
)

MOST_STATES: Final = 2_000
"""Of one pattern, with its quantifiers expanded."""


class TooLarge(Exception):
    """A pattern with too many states for an automaton."""


@dataclass(frozen=True)
class Follows:
    """The followers: states, the preferred first, as long as they are preferred to an end here (``ends``)."""

    states: tuple[int, ...]
    ends: bool


@dataclass(frozen=True)
class Automaton:
    """``variable`` and ``left_out`` of each state; its followers, and whether the match may end there at the end.

    ``first`` and ``other``: how a match begins at the first row of a partition, and at another one.
    """

    variables: tuple[str, ...]
    variable: Ints
    left_out: Flags
    follows: tuple[Follows, ...]
    ends_last: Flags
    first: Follows
    other: Follows

    @cached_property
    def edges(self) -> tuple[Ints, Ints]:
        """Return the followers of all states in one array, and where each begins; then ``other`` and ``first``."""
        lists = [follows.states for follows in (*self.follows, self.other, self.first)]
        begins = np.concatenate(([0], np.cumsum([len(follows) for follows in lists])))
        return np.array([state for follows in lists for state in follows], np.int64), begins.astype(np.int64)

    @cached_property
    def ends(self) -> Flags:
        """Return whether the pattern may end after each state."""
        return np.array([follows.ends for follows in self.follows], np.bool_)

    @property
    def starts(self) -> tuple[int, ...]:
        """Return the states with which a match may begin."""
        return tuple(dict.fromkeys((*self.other.states, *self.first.states)))

    # -- facts about all matches --------------------------------------------------------------

    def endless(self) -> str | None:
        """Return a variable that may take rows forever before a match is certain; ``None`` for none."""
        done: set[int] = set()
        for root in self.starts:
            on, path = [(root, iter(self.follows[root].states))], {root}
            while on:
                state, rest = on[-1]
                following = next(rest, None)
                if following is None:
                    on.pop()
                    path.discard(state)
                    done.add(state)
                elif following in path:
                    return self.variables[int(self.variable[following])]
                elif following not in done:
                    on.append((following, iter(self.follows[following].states)))
                    path.add(following)
        return None

    def longest(self) -> int:
        """Return the greatest number of rows that a match reads, if none is `endless`."""
        length: dict[int, int] = {}

        def of(state: int) -> int:
            if state not in length:
                length[state] = 1 + max(map(of, self.follows[state].states), default=0)
            return length[state]

        for state in range(len(self.follows)):  # followers were made before, so the recursion stays shallow
            of(state)
        return max(map(of, self.starts), default=0)

    def second(self) -> str | None:
        """Return a variable that may be awaited after the first row; ``None`` if no match reads a second row."""
        for state in self.starts:
            for following in self.follows[state].states:
                return self.variables[int(self.variable[following])]
        return None

    def lacks(self, wanted: frozenset[int]) -> bool:
        """Return True if a match with rows may have none of some variables."""
        without = {state for state in range(len(self.follows)) if int(self.variable[state]) not in wanted}
        return any(self._may_end(state) for state in self._reached(self.starts, without))

    def leads(self, wanted: frozenset[int], *, last: bool) -> bool:
        """Return True if the first row of a match may be the first (``last``: the last) one of some variables."""
        mine = [state for state in self.starts if int(self.variable[state]) in wanted]
        if not last:
            return bool(mine)
        without = {state for state in range(len(self.follows)) if int(self.variable[state]) not in wanted}
        return any(
            self._may_end(state) or any(map(self._may_end, self._reached(self.follows[state].states, without)))
            for state in mine
        )

    def ends_with(self, wanted: frozenset[int]) -> bool:
        """Return True if each match has rows, and its last row is one of some variables."""
        ends = {int(self.variable[state]) for state in range(len(self.follows)) if self._may_end(state)}
        return ends <= wanted and not (self.first.ends or self.other.ends)

    def _may_end(self, state: int) -> bool:
        return bool(self.ends[state] or self.ends_last[state])

    def _reached(self, begin: tuple[int, ...], among: set[int]) -> set[int]:
        reached, todo = set[int](), [state for state in begin if state in among]
        while todo:
            state = todo.pop()
            if state not in reached:
                reached.add(state)
                todo += [following for following in self.follows[state].states if following in among]
        return reached


def automaton(pattern: Part) -> Automaton:
    """Return the automaton of a pattern; raises ``TooLarge``."""
    graph = _Graph(variables(pattern))
    begin = graph.of(pattern, _END, out=False)
    names, states = graph.names, graph.states
    follow = _Follower(graph.nodes)
    return Automaton(
        tuple(names.values()),
        np.array([state.variable for state in states], np.int64),
        np.array([state.out for state in states], np.bool_),
        tuple(follow.of(state.next) for state in states),
        np.array([follow.of(state.next, last=True).ends for state in states], np.bool_),
        follow.of(begin, first=True),
        follow.of(begin),
    )


@dataclass
class _State:
    variable: int
    out: bool
    next: int


@dataclass
class _Split:
    next: list[int]


@dataclass
class _Mark:
    """An optional repetition begins, or has ended (``enters`` is false)."""

    number: int
    enters: bool
    next: int


@dataclass
class _Place:
    first: bool
    next: int


_Node = _State | _Split | _Mark | _Place
_END = -1


class _Graph:
    """The nodes of a pattern, built from its end."""

    def __init__(self, names: dict[str, str]) -> None:
        self.nodes: list[_Node] = []
        self.states: list[_State] = []
        self.names = names
        self.numbers = {name: n for n, name in enumerate(names)}
        self.marks = 0

    def _add(self, node: _Node) -> int:
        self.nodes.append(node)
        if isinstance(node, _State):
            self.states.append(node)
        if len(self.states) > MOST_STATES or len(self.nodes) > 10 * MOST_STATES:
            raise TooLarge
        return len(self.nodes) - 1

    def of(self, part: Part, then: int, *, out: bool) -> int:
        """Return the node where a part begins that ``then`` follows."""
        match part:
            case Variable(name):
                then = self._add(_State(self.numbers[name.upper()], out, then))
            case Anchor(first):
                then = self._add(_Place(first, then))
            case InTurn(of):
                for piece in reversed(of):
                    then = self.of(piece, then, out=out)
            case Choice(of):
                then = self._add(_Split([self.of(piece, then, out=out) for piece in of]))
            case Permuted(of):
                then = self._permuted(of, {(): then}, out=out)
            case LeftOut(inner):
                then = self.of(inner, then, out=True)
            case Repeated():
                then = self._repeated(part, then, out=out)
        return then

    def _permuted(self, of: tuple[Part, ...], built: dict[tuple[Part, ...], int], *, out: bool) -> int:
        """Build one part, then the others in any order; ``built``: the shared nodes of the remaining parts."""
        if of not in built:
            orders = ((piece, of[:number] + of[number + 1 :]) for number, piece in enumerate(of))
            built[of] = self._add(
                _Split([self.of(piece, self._permuted(rest, built, out=out), out=out) for piece, rest in orders])
            )
        return built[of]

    def _repeated(self, part: Repeated, then: int, *, out: bool) -> int:
        if part.most is None:
            loop = _Split([])
            at = self._add(loop)
            loop.next = self._turns(part, self._once(part.part, at, out=out), then)
            then = at
        else:
            end = then
            for _ in range(part.most - part.least):
                then = self._add(_Split(self._turns(part, self._once(part.part, then, out=out), end)))
        for _ in range(part.least):
            then = self.of(part.part, then, out=out)
        return then

    def _once(self, part: Part, then: int, *, out: bool) -> int:
        number, self.marks = self.marks, self.marks + 1
        left = self._add(_Mark(number, enters=False, next=then))
        return self._add(_Mark(number, enters=True, next=self.of(part, left, out=out)))

    @staticmethod
    def _turns(part: Repeated, again: int, then: int) -> list[int]:
        return [again, then] if part.greedy else [then, again]


class _Follower:
    """Finds the followers of a place without a row in between, in the order of preference."""

    def __init__(self, nodes: list[_Node]) -> None:
        self.nodes = nodes
        self.number = {id(node): n for n, node in enumerate(n for n in nodes if isinstance(n, _State))}

    def of(self, begin: int, *, first: bool = False, last: bool = False) -> Follows:
        """Return the followers of a node; ``first``: before the first row; ``last``: after the last one."""
        states: dict[int, None] = {}
        for state in self._states(begin, first=first, last=last):
            if state == _END:
                return Follows(tuple(states), ends=True)
            states.setdefault(state)
        return Follows(tuple(states), ends=False)

    def _states(self, begin: int, *, first: bool, last: bool) -> Iterator[int]:
        seen: set[tuple[int, frozenset[int]]] = set()
        todo: list[tuple[int, frozenset[int]]] = [(begin, frozenset())]
        while todo:
            at, entered = todo.pop()
            if (at, entered) in seen:
                continue
            seen.add((at, entered))
            if at == _END:
                yield _END
                return
            match self.nodes[at]:
                case _State() as state:
                    if not last:
                        yield self.number[id(state)]
                case _Split(following):
                    todo += [(next_state, entered) for next_state in reversed(following)]
                case _Mark(number, enters, following):
                    if enters:
                        todo.append((following, entered | {number}))
                    elif number not in entered:
                        todo.append((following, entered))
                case _Place(of_first, following):
                    if first if of_first else last:
                        todo.append((following, entered))
