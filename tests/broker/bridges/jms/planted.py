"""Faults that are planted into a JMS bridge: tests and simulations have to find each."""

import itertools
from functools import partial

from broker.bridges.jms import coordinator, duplicate_ids
from broker.bridges.jms.transactions import Role
from broker.client.channel import Channel
from broker.protocols.core.packet_connection import NullResponse


async def acknowledge_first(self, messages, done):
    """In place of `PipelinedAcknowledgeLast.move`: acknowledged before the target has confirmed."""
    duplicate_ids.give_ids(messages, self._node_id)
    await self.receiver.acknowledge_until(messages[-1])
    self._sender.send_batch(messages, done)


def new_id_each_time():
    """In place of `duplicate_ids.duplicate_id`: another one at a retry."""
    made = itertools.count()
    return lambda node_id, position: next(made).to_bytes(8, "big")


def commit_the_source_alone(self, batch):
    """In place of `PipelinedTwoPhase._commit`: the target is not told."""
    xid = coordinator.branch(Role.SOURCE, batch.transaction)
    self.receiver.commit_branch(xid, partial(self._ended, batch))


def commit_the_target_alone(self, batch):
    """In place of `PipelinedTwoPhase._commit`: the source is not told."""
    xid = coordinator.branch(Role.TARGET, batch.transaction)
    self._sender.commit_branch(xid, partial(self._ended, batch))


def one_more(wanted, duplicate_ids_max):
    """In place of `batch_size_for`: one more than the target remembers."""
    return min(wanted, duplicate_ids_max + 1)


def add_without_sync(self, *records):
    """In place of `DecisionLog._add`: nothing waits for the disk."""

    async def add():
        for user_type, transaction in records:
            record_id = self._new_id()
            self._store.add(record_id, user_type, transaction, sync=False)
            self._records[user_type][transaction] = record_id

    return add()


class Deaf:
    """A side that is told of a commit, and takes no notice."""

    def __init__(self, resource):
        self._resource = resource

    def __getattr__(self, name):
        return getattr(self._resource, name)

    async def xa_commit(self, xid):
        pass


_recover = coordinator.Coordinator.recover


def recover_the_target_alone(self, resources):
    """In place of `Coordinator.recover`: what was decided counts at the target alone."""
    return _recover(self, {**resources, Role.SOURCE: Deaf(resources[Role.SOURCE])})


_answers = Channel._answers


def take_any_answer(self, packet):
    """In place of `Channel._answers`: one that comes twice is taken for the next one."""
    if isinstance(packet, NullResponse) and self._correlated:
        packet.correlation_id = next(iter(self._correlated))
    return _answers(self, packet)
