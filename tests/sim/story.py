"""A simulation as text: who takes part, and which fault comes when. One line each.

    seed 17
    nodes a
    messages 60
    client one_at_a_time plain
    client acknowledging plain
    at 0.8 kill a 0.5
    at 2 partition a client-2 1.5

`at MOMENT FAULT TARGET… SECONDS`: seconds since the clients began, and until it is mended. Clients
are called client-1, client-2 … in the order of their lines; `client STYLE PLACE NODE` names a node
other than the first. What follows a `#` is a remark. The same text is the same simulation.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 4.0
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
        checks: names of what is expected besides, see checker.py.
    """

    seed: int
    nodes: tuple[str, ...] = ("a",)
    messages: int = MESSAGES
    seconds: float = SECONDS
    clients: tuple[Client, ...] = ()
    events: tuple[Event, ...] = ()

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", f"nodes {' '.join(self.nodes)}"]
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
        raise ValueError("a line begins with seed, nodes, messages, seconds, client or at")


# --- stories by seed -------------------------------------------------------------------------

# Faults of a story, with how often each is chosen beside the others.
RATES: dict[str, dict[str, float]] = {
    "calm": {},
    "crashes": {"kill": 3, "power": 3, "stop": 1},
    "reconnects": {"reset": 4, "partition": 2, "one_way": 2, "pause": 1, "pause_client": 1},
    # Clients are cut off, and brokers end meanwhile.
    "partition": {"partition": 4, "one_way": 3, "reset": 1, "kill": 1, "pause_then_kill": 1},
    "disks": {"slow_disk": 2, "full_disk": 2, "fail_disk": 2, "power": 1},
    "pauses": {"pause": 3, "pause_client": 2, "clock": 2, "pause_then_kill": 2},
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
        "clock": 1,
        "delete_queue": 0,
    },
}


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
        node_count: brokers.
        messages: sent in all, about.
        fault_count: None is by the seed.
    """
    seeded = random.Random(f"{name} {seed}")
    nodes = tuple("abcdefghijklmnopqrstuvwxyz"[i] if i < 26 else f"n{i}" for i in range(node_count))
    clients = tuple(client for node in nodes for client in styles(seeded, node))
    rates = RATES[name]
    count = seeded.randrange(1, 6) if fault_count is None else fault_count
    events = []
    for _ in range(count if rates else 0):
        fault = seeded.choices(list(rates), list(rates.values()))[0]
        at = round(SECONDS * seeded.uniform(_FIRST_SHARE, _LAST_SHARE), 3)
        node = seeded.choice(nodes)
        mine = [f"client-{i}" for i, one in enumerate(clients, 1) if one.node == node]
        client = seeded.choice(mine) if mine else node
        targets = {
            "reset": (client,),
            "pause_client": (client,),
            "partition": (node, client),
            "one_way": (node, client) if seeded.random() < 0.5 else (client, node),
        }.get(fault, (node,))
        events.append(Event(at, fault, targets, round(seeded.uniform(0.05, 1.5), 3)))
    events.sort(key=lambda one: one.at_s)
    return Story(seed, nodes, messages, SECONDS, clients, tuple(events))
