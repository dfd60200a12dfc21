"""Message groups in a mesh of three brokers under faults: one owner for each, in order.

A client sends the messages of a few groups to all three brokers, each broker's share in order, and
one consumer at each broker acknowledges what it gets. Nothing that was confirmed may be lost. What
of a group entered by one broker has to come in order, as long as one broker delivers the group.
Each change of the owner may bring one more sequence, in order by itself. Owners change by faults
alone.
"""

import asyncio
import contextlib
import random
from collections import defaultdict
from functools import partial
from itertools import groupby, pairwise
from unittest import mock

import pytest

from broker.client.aio import AsyncClient
from broker.client.errors import ClientError
from broker.cluster.group_owners import GroupOwners, bucket_of
from broker.cluster.groups import ClusterGroups
from tests.sim.bridge_cases import CHAIN, Case
from tests.sim.bridge_run import OPTIONS
from tests.sim.node import PORT, environment_of
from tests.sim.test_mesh import DRAINS_S, QUEUE, MeshRun

SEEDS = 4
SOAK_SEEDS = 2_000
PLANTED_SEEDS = 3
GROUPS = 4
MESSAGES = 40
# Owners that brokers choose before they know of each other, and of their consumers.
STARTS = 1
# An owner is lost, and comes back.
PER_FAULT = 2


def falling_length(numbers):
    """The length of the longest falling subsequence: of so many rising ones it is made."""
    best = []
    for position, number in enumerate(numbers):
        before = [length for length, other in zip(best, numbers, strict=False) if other > number]
        best.append(1 + max(before[:position], default=0))
    return max(best, default=0)


def changes(places):
    """How often the place changes in a sequence of places."""
    return sum(one != other for one, other in pairwise(places))


class GroupRun(MeshRun):
    """One story; see the module's text."""

    def __init__(self, case):
        super().__init__(case)
        self._came = []
        self._owners = defaultdict(set)
        self._is_over = False
        self._fault_count = 0

    def _events(self):
        events = super()._events()
        self._fault_count = len(events)
        return events

    def run(self):
        learn, owners = GroupOwners.learn, self._owners

        def learned(self, key, owner):
            is_new = learn(self, key, owner)
            if is_new:
                owners[key.bucket].add(owner)
            return is_new

        with mock.patch.object(GroupOwners, "learn", learned):
            return super().run()

    async def _send(self):
        self._consuming = [asyncio.ensure_future(self._consume(place)) for place in CHAIN]
        await asyncio.gather(*(self._send_to(place) for place in CHAIN))

    async def _send_to(self, place):
        """Send each message once, one after the other."""
        seeded = random.Random(f"groups {self.case.seed} {place}")
        environment = environment_of(self._client, seeded)
        numbers = iter(range(MESSAGES))
        is_done = False
        while not is_done:
            try:
                async with AsyncClient(
                    f"tcp://{place}:{PORT}", environment=environment, **OPTIONS
                ) as client:
                    producer = (await client.session()).producer(QUEUE)
                    for number in numbers:
                        key = f"{place}{number:03d}"
                        group = f"g{number % GROUPS}"
                        self._unknown.add(key)
                        await producer.send(
                            key.encode(), durable=True, properties={"_AMQ_GROUP_ID": group}
                        )
                        self._unknown.discard(key)
                        self._confirmed.append(key)
                        await asyncio.sleep(seeded.uniform(0, 0.1))
                    is_done = True
            except (ClientError, OSError):
                await asyncio.sleep(0.1)

    async def _consume(self, place):
        environment = environment_of(self._client, random.Random(f"{self.case.seed} {place}"))
        while not self._is_over:
            try:
                async with AsyncClient(
                    f"tcp://{place}:{PORT}", environment=environment, **OPTIONS
                ) as client:
                    session = await client.session()
                    async with await session.consumer(QUEUE) as consumer:
                        while not self._is_over:
                            received = await consumer.receive(0.5)
                            if received is not None:
                                self._came.append((place, (await received.read()).decode()))
            except (ClientError, OSError):
                await asyncio.sleep(0.1)

    async def _look(self):
        deadline = self.loop.time() + DRAINS_S
        while self._left() and self.loop.time() < deadline:  # noqa: ASYNC110 - of other nodes.
            await asyncio.sleep(0.2)
        self._is_over = True
        await asyncio.gather(*self._consuming)
        for place, count in self._left().items():
            self.problem(f"stranded: {count} in {place}")
        # What was not acknowledged in time comes again.
        first = dict.fromkeys(key for _, key in self._came)
        for key in self._confirmed:
            if key not in first:
                self.problem(f"lost: {key}")
        for group in range(GROUPS):
            self._look_at(group, first)

    def _look_at(self, group, first):
        mine = [(place, key) for place, key in self._came if int(key[1:]) % GROUPS == group]
        changed = changes([place for place, _ in mine])
        if changed > STARTS + PER_FAULT * self._fault_count:
            places = "".join(place for place, _ in groupby(place for place, _ in mine))
            self.problem(f"double owner: group {group} was delivered by {places}")
        # One that did not deliver anything was an owner all the same.
        changed = max(changed, len(self._owners[bucket_of(f"g{group}")]) - 1)
        if self._refuses:
            # A disk may refuse one message and take the next, which overtakes it.
            return
        for source in CHAIN:
            numbers = [
                int(key[1:])
                for key in first
                if key[0] == source and int(key[1:]) % GROUPS == group and key not in self._unknown
            ]
            if falling_length(numbers) > 1 + changed:
                self.problem(f"reordered: group {group} of {source}: {numbers}")


def wrong(cases, *patches):
    """What is wrong with the first story that goes wrong."""
    for case in cases:
        with contextlib.ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch())
            result = GroupRun(case).run()
        if result.problems:
            return [f"{case}: {one}" for one in result.problems]
    return []


def calm(count):
    return [Case(seed, fault="calm") for seed in range(1, count + 1)]


def test_falling_sequences_are_counted():
    assert falling_length([]) == 0
    assert falling_length([1, 2, 3]) == 1
    assert falling_length([1, 5, 2, 6, 3]) == 2
    assert falling_length([3, 2, 1]) == 3


def test_without_faults_each_group_has_one_owner():
    assert wrong(calm(1)) == []


@pytest.mark.slow
def test_seeds_find_nothing_wrong():
    assert wrong([Case(seed) for seed in range(1, SEEDS + 1)]) == []


@pytest.mark.soak
def test_many_seeds_find_nothing_wrong(effort):
    assert wrong([Case(seed) for seed in range(1, effort(SOAK_SEEDS) + 1)]) == []


@pytest.mark.slow
def test_a_double_owner_of_a_group_is_found():
    """Each broker keeps the owner that it has chosen, and delivers whatever comes."""
    patches = [
        partial(mock.patch.object, ClusterGroups, "told", lambda self, told: None),
        partial(mock.patch.object, ClusterGroups, "may_deliver", lambda *given: True),
        partial(mock.patch.object, ClusterGroups, "_elsewhere", lambda *given: None),
        partial(mock.patch.object, GroupOwners, "learn", lambda *given: False),
    ]

    found = wrong(calm(PLANTED_SEEDS), *patches)

    assert any("double owner" in one for one in found), found
