"""A simulation as text: who takes part, and which fault comes when. One line each.

    seed 17
    nodes a
    messages 60
    client one_at_a_time plain
    client acknowledging plain
    at 0.8 kill a 0.5
    at 2 partition a client-2 1.5

    nodes a b c
    pair a b lease                a, and its backup b, on a database with a lease; or `lock`: on a
                                  shared folder with a file lock. The store's machine is a-store.
                                  `pair a b c lease` has a second backup, which waits behind b
    later c                       c is started by `add`

`at MOMENT FAULT TARGET… SECONDS`: seconds since the clients began, and until it is mended. Clients
are called client-1, client-2 … in the order of their lines; `client STYLE PLACE NODE` names a node
other than the first. What follows a `#` is a remark. The same text is the same simulation.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 4.0
# Of stories with pairs, where a lease has to expire.
PAIR_SECONDS = 8.0
STORES = ("lease", "lock")
MESSAGES = 200
# Nothing is older than this share of the whole time when a fault comes.
_FIRST_SHARE, _LAST_SHARE = 0.02, 0.9


@dataclass(frozen=True)
class Event:
    """A fault, and when; see FAULTS in faults.py.

    Attributes:
        at_s: seconds since the clients began.
        seconds: until it is mended.
        targets: names of nodes and clients.
    """

    at_s: float
    fault: str
    targets: tuple[str, ...]
    seconds: float

    def __str__(self) -> str:
        return f"at {self.at_s:g} {self.fault} {' '.join(self.targets)} {self.seconds:g}"


@dataclass(frozen=True)
class Client:
    """Who sends or receives, where, and in which way."""

    style: str
    place: str
    node: str

    def __str__(self) -> str:
        return f"client {self.style} {self.place} {self.node}"


@dataclass(frozen=True)
class Story:
    """See the module's text.

    Attributes:
        messages: the clients go home after so many sends.
        seconds: or after so long.
        pairs: primary, backups and kind of store of each.
        later: nodes that are not there at the beginning.
    """

    seed: int
    nodes: tuple[str, ...] = ("a",)
    pairs: tuple[tuple[str, ...], ...] = ()
    later: tuple[str, ...] = ()
    messages: int = MESSAGES
    seconds: float = SECONDS
    clients: tuple[Client, ...] = ()
    events: tuple[Event, ...] = ()

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", f"nodes {' '.join(self.nodes)}"]
        lines += [f"pair {' '.join(one)}" for one in self.pairs]
        if self.later:
            lines.append(f"later {' '.join(self.later)}")
        if self.messages != MESSAGES:
            lines.append(f"messages {self.messages}")
        if self.seconds != SECONDS:
            lines.append(f"seconds {self.seconds:g}")
        lines += map(str, self.clients)
        lines += map(str, self.events)
        return "\n".join(lines)

    @classmethod
    def parse(cls, text: str) -> Story:
        """Read one.

        Raises:
            ValueError: a line says nothing that is known.
        """
        story = cls(seed=1)
        for line in text.splitlines():
            words = line.partition("#")[0].split()
            if not words:
                continue
            try:
                story = story._with(words[0], words[1:])
            except (IndexError, ValueError, KeyError) as error:
                raise ValueError(f"{line.strip()!r}: {error}") from error
        return story

    def _with(self, kind: str, words: list[str]) -> Story:
        if kind == "seed":
            return replace(self, seed=int(words[0]))
        if kind == "nodes":
            return replace(self, nodes=tuple(words))
        if kind == "pair":
            *names, store = words
            if store not in STORES or len(names) < 2 or not set(names) <= set(self.nodes):
                raise ValueError(f"two or more of the nodes, and {' or '.join(STORES)}")
            return replace(self, pairs=(*self.pairs, tuple(words)))
        if kind == "later":
            return replace(self, later=tuple(words))
        if kind == "messages":
            return replace(self, messages=int(words[0]))
        if kind == "seconds":
            return replace(self, seconds=float(words[0]))
        if kind == "client":
            node = words[2] if len(words) > 2 else self.nodes[0]
            return replace(self, clients=(*self.clients, Client(words[0], words[1], node)))
        if kind == "at":
            event = Event(float(words[0]), words[1], tuple(words[2:-1]), float(words[-1]))
            return replace(self, events=(*self.events, event))
        known = "seed, nodes, pair, later, messages, seconds, client or at"
        raise ValueError(f"a line begins with {known}")


def store_of(primary: str) -> str:
    """The machine of the store of a pair."""
    return f"{primary}-store"


# --- stories by seed -------------------------------------------------------------------------

# Faults of a story, with how often each is chosen beside the others.
RATES: dict[str, dict[str, float]] = {
    "calm": {},
    "crashes": {"kill": 3, "power": 3, "stop": 1},
    "reconnects": {"reset": 4, "partition": 2, "one_way": 2, "pause": 1, "pause_client": 1},
    # Clients are cut off, and brokers end meanwhile.
    "partition": {"partition": 4, "one_way": 3, "reset": 1, "kill": 1, "pause_then_kill": 1},
    "links": {"slow_link": 2, "narrow_link": 2, "one_way": 1, "no_name": 2, "stall": 2},
    "disks": {"slow_disk": 2, "full_disk": 2, "fail_disk": 2, "fail_sync": 2, "power": 1},
    "pauses": {"pause": 3, "pause_client": 2, "clock": 2, "pause_then_kill": 2, "stall": 1},
    "members": {"member_in_partition": 3, "add": 1, "remove": 1, "partition": 1, "kill": 1},
    "pairs": {
        "kill": 3,
        "power": 2,
        "stop": 1,
        "pause": 4,
        "pause_then_kill": 2,
        "cut_off": 3,
        "partition": 1,
        "one_way": 1,
        "clock": 2,
        "kill_store": 1,
        "power_store": 1,
        "stall": 1,
        "slow_link": 1,
        "slow_disk": 2,
        "forget_locks": 2,
    },
    "everything": {
        "kill": 3,
        "power": 3,
        "stop": 1,
        "reset": 3,
        "partition": 2,
        "one_way": 2,
        "pause": 2,
        "pause_client": 1,
        "pause_then_kill": 1,
        "slow_disk": 1,
        "full_disk": 1,
        "fail_disk": 1,
        "fail_sync": 1,
        "clock": 1,
        "slow_link": 1,
        "narrow_link": 1,
        "no_name": 1,
        "stall": 1,
    },
}
# One is cut off from another, and a third one comes or goes.
_MEMBERS_MIN = 3
# Of a pair in so many a second backup waits behind the first.
_TRIPLE_SHARE = 0.25
# A fault lasts so long at most; with pairs, where a lease has to expire meanwhile.
_FAULT_S, _PAIR_FAULT_S = 1.5, 4.0


def story_of(
    name: str,
    seed: int,
    *,
    styles: Callable[[random.Random, str], list[Client]],
    node_count: int = 1,
    messages: int = MESSAGES,
    fault_count: int | None = None,
) -> Story:
    """Make the story of a seed.

    Args:
        name: of RATES.
        seed: decides everything.
        styles: gives the clients of a node.
        node_count: brokers; of "pairs", pairs of them; of "members" at least 3.
        messages: sent in all, about.
        fault_count: None is by the seed.
    """
    seeded = random.Random(f"{name} {seed}")
    if name == "members":
        node_count = max(node_count, _MEMBERS_MIN)
    nodes = tuple(map(_name, range(node_count)))
    clients = tuple(client for node in nodes for client in styles(seeded, node))
    story = Story(seed, nodes, messages=messages, clients=clients)
    longest_s = _FAULT_S
    if name == "pairs":
        longest_s = _PAIR_FAULT_S
        names = map(_name, itertools.count(node_count))
        pairs = tuple(_pair(seeded, one, names) for one in nodes)
        backups = itertools.chain.from_iterable(one[1:-1] for one in pairs)
        story = replace(story, nodes=(*nodes, *backups), pairs=pairs, seconds=PAIR_SECONDS)
    if name == "members":
        story = replace(story, later=nodes[-1:])
    rates = RATES[name]
    count = seeded.randrange(1, 6) if fault_count is None else fault_count
    events: list[Event] = []
    for _ in range(count if rates else 0):
        fault = seeded.choices(list(rates), list(rates.values()))[0]
        at = round(story.seconds * seeded.uniform(_FIRST_SHARE, _LAST_SHARE), 3)
        seconds = round(seeded.uniform(0.05, longest_s), 3)
        if fault == "member_in_partition":
            events += _member_in_partition(seeded, story, at, seconds)
        else:
            events.append(Event(at, *_fault(seeded, story, fault), seconds))
    events.sort(key=lambda one: one.at_s)
    return replace(story, events=tuple(events))


def _pair(seeded: random.Random, primary: str, names: Iterator[str]) -> tuple[str, ...]:
    """A primary with one backup, or two, and the kind of their store."""
    count = 2 if seeded.random() < _TRIPLE_SHARE else 1
    return (primary, *itertools.islice(names, count), seeded.choice(STORES))


def _name(number: int) -> str:
    return "abcdefghijklmnopqrstuvwxyz"[number] if number < 26 else f"n{number}"


def _fault(seeded: random.Random, story: Story, fault: str) -> tuple[str, tuple[str, ...]]:
    """The fault by its name, and whom it hits."""
    node = seeded.choice(story.nodes)
    pair = next((one for one in story.pairs if node in one[:-1]), None)
    owner = node if pair is None else pair[0]
    mine = [f"client-{i}" for i, one in enumerate(story.clients, 1) if one.node == owner]
    client = seeded.choice(mine) if mine else node
    if fault in ("reset", "pause_client"):
        return fault, (client,)
    if fault in ("partition", "slow_link", "narrow_link"):
        return fault, (node, client)
    if fault == "one_way":
        return fault, (node, client) if seeded.random() < 0.5 else (client, node)
    if fault == "add":
        return fault, story.later
    if pair is not None:
        store = store_of(owner)
        if fault == "cut_off":
            one_way = (node, store) if seeded.random() < 0.5 else (store, node)
            return ("partition", (node, store)) if seeded.random() < 0.6 else ("one_way", one_way)
        if fault == "forget_locks" and pair[-1] == "lease":
            fault = "kill_store"
        if fault in ("kill_store", "power_store", "forget_locks", "slow_disk"):
            return fault, (store,)
        if fault == "clock" and seeded.random() < 0.4:
            return fault, (store,)
    return fault, (node,)


def _member_in_partition(
    seeded: random.Random, story: Story, at: float, seconds: float
) -> list[Event]:
    """While one node is cut off from another, and from a client, a third one comes or goes."""
    first, second = seeded.sample([one for one in story.nodes if one not in story.later], 2)
    mine = [f"client-{i}" for i, one in enumerate(story.clients, 1) if one.node == first]
    meanwhile = round(at + seconds * seeded.random(), 3)
    changed = seeded.choice((*story.later, second))
    change = "add" if changed in story.later else "remove"
    events = [Event(at, "partition", (first, second), seconds)]
    if mine:
        events.append(Event(at, "partition", (first, seeded.choice(mine)), seconds))
    return [*events, Event(meanwhile, change, (changed,), seconds)]
