"""A simulation of bridges as text: which bridges, and which fault where.

    seed 7
    seed 7 by two-phase core cut ab-b 31
    seed 7 by duplicate-ids duplicate-ids kill ab 3 early of a messages 6

`by` names the bridge a → b and the one b → c: `core`, or a JMS bridge with a quality of service;
without it both are `core`. A JMS bridge runs on a host of its own, `ab` or `bc`.

`seed N` alone has faults by that seed, `calm` has none. All others have one fault at one place:

    cut a-b N         the connection between two hosts is cut behind the N-th frame that went over
                      it, whichever way; 0 before the first
    late a-b N S      from the N-th frame on, what its connection carries that way is S s late
    repeat a-b N      the N-th frame comes twice, if it answers a request by its number, and the
                      host that sent it loses its power
    kill a N          the process on a host ends at the N-th synced point of its store
    power a N         the host loses its power
    kill a N of b     the same at a synced point of another host

`early` comes behind the number: before the sync. `cache N` is the id-cache-size of every broker,
`messages N` how many are sent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

CHAIN = ("a", "b", "c")
QUEUES = {"a": "start", "b": "middle", "c": "end"}
MESSAGES = 20
CACHE = 20_000
CORE = "core"
AT_MOST_ONCE = "at-most-once"
DUPLICATES_OK = "duplicates-ok"
DUPLICATE_IDS = "duplicate-ids"
TWO_PHASE = "two-phase"
JMS = (AT_MOST_ONCE, DUPLICATES_OK, DUPLICATE_IDS, TWO_PHASE)
ENDS = ("kill", "power")
AT_FRAMES = ("cut", "late", "repeat")


class Link(NamedTuple):
    """A bridge between two brokers.

    Attributes:
        kind: `core`, or one of JMS.
        source, target: names of the brokers.
    """

    kind: str
    source: str
    target: str

    @property
    def host(self) -> str | None:
        """Where a JMS bridge runs; a core bridge is part of its source."""
        return None if self.kind == CORE else self.source + self.target

    @property
    def hosts(self) -> tuple[str, ...]:
        """All that take part, in the order in which a message comes by."""
        return tuple(one for one in (self.source, self.host, self.target) if one is not None)

    @property
    def pairs(self) -> list[str]:
        """Those that are connected, as cases name them."""
        return [f"{one}-{other}" for one, other in zip(self.hosts, self.hosts[1:], strict=False)]


@dataclass(frozen=True)
class Case:
    """See the module's text.

    Attributes:
        kinds: of both bridges.
        fault: calm, one of AT_FRAMES or ENDS, or "" for those of the seed.
        where: a host, or two with `-` between.
        number: of the frame or the sync.
        seconds: of `late`.
        is_early: before the sync.
        of: whose sync; "" is that of `where`.
    """

    seed: int = 1
    kinds: tuple[str, str] = (CORE, CORE)
    fault: str = ""
    where: str = ""
    number: int = 0
    seconds: float = 0.0
    is_early: bool = False
    of: str = ""
    messages: int = MESSAGES
    cache: int = CACHE

    def __str__(self) -> str:
        words = [f"seed {self.seed}"]
        if self.kinds != (CORE, CORE):
            words.append(f"by {' '.join(self.kinds)}")
        if self.fault:
            words.append(self.fault)
        if self.where:
            words.append(f"{self.where} {self.number}")
        if self.seconds:
            words.append(f"{self.seconds:g}")
        if self.is_early:
            words.append("early")
        if self.of:
            words.append(f"of {self.of}")
        if self.messages != MESSAGES:
            words.append(f"messages {self.messages}")
        if self.cache != CACHE:
            words.append(f"cache {self.cache}")
        return " ".join(words)

    @classmethod
    def parse(cls, text: str) -> Case:
        """Read one.

        Raises:
            ValueError: it says something that is not known.
        """
        case, words = cls(), iter(text.split())
        for word in words:
            if word in ("seed", "messages", "cache"):
                case = replace(case, **{word: int(next(words))})
            elif word == "by":
                case = replace(case, kinds=(_kind(next(words)), _kind(next(words))))
            elif word == "calm":
                case = replace(case, fault=word)
            elif word == "early":
                case = replace(case, is_early=True)
            elif word == "of":
                case = replace(case, of=next(words))
            elif word in (*AT_FRAMES, *ENDS):
                case = replace(case, fault=word, where=next(words), number=int(next(words)))
                if word == "late":
                    case = replace(case, seconds=float(next(words)))
            else:
                raise ValueError(f"a case has no {word!r}")
        return case

    def near(self, count: int) -> Iterator[Case]:
        """Give it, and others like it: with the next seeds, or numbers of the fault's place."""
        for step in range(count):
            if self.fault:
                yield replace(self, number=self.number + step)
            else:
                yield replace(self, seed=self.seed + step)

    @property
    def links(self) -> tuple[Link, ...]:
        """Both bridges."""
        return tuple(map(Link, self.kinds, CHAIN, CHAIN[1:]))

    @property
    def hosts(self) -> tuple[str, ...]:
        """All that a message comes by, in order."""
        return tuple(dict.fromkeys(host for link in self.links for host in link.hosts))

    @property
    def may_lose(self) -> bool:
        """Whether a message may be lost by what is asked of the bridges."""
        return self.fault != "calm" and AT_MOST_ONCE in self.kinds

    @property
    def may_double(self) -> bool:
        """Whether one may come twice."""
        return self.fault != "calm" and DUPLICATES_OK in self.kinds

    @property
    def keeps_order(self) -> bool:
        """Whether messages come in their order.

        A JMS bridge that has lost its connection may get what follows before the source gives back
        what the old connection has.
        """
        return self.fault == "calm" or self.kinds == (CORE, CORE)


def _kind(word: str) -> str:
    if word != CORE and word not in JMS:
        raise ValueError(f"no bridge is {word!r}; there are {CORE}, {', '.join(JMS)}")
    return word


@dataclass
class Result:
    """What came of a case.

    Attributes:
        problems: none is how it should be.
        frames: that went between two hosts, by both names.
        answers: those of them that answer a request by its number.
        syncs: of each host.
        counts: of what was sent, what had no answer, what was lost or doubled, and so on.
    """

    case: Case
    problems: list[str] = field(default_factory=list)
    frames: Counter[str] = field(default_factory=Counter)
    answers: dict[str, list[int]] = field(default_factory=dict)
    syncs: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    trace_hash: str = ""
