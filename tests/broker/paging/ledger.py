"""What was asked for, and what of it was confirmed: what a crash may take, and what not."""

import copy
from dataclasses import dataclass, field

OPEN, ASKED, DONE, UNDONE = "open", "asked", "done", "undone"


@dataclass
class Unit:
    """What counts together: a transaction, or one send or acknowledgement alone.

    Attributes:
        xid: of one that is prepared; None for any other.
        state: OPEN while nothing was asked for, ASKED a commit, DONE it was confirmed, UNDONE its
            rollback was asked for.
        prepared: the same for its preparation.
        is_recorded: it has done anything that a start would know of.
        is_alone: no transaction. Then queues that have one message get it one after the other.
    """

    xid: object = None
    state: str = OPEN
    prepared: str = OPEN
    is_recorded: bool = False
    is_alone: bool = False


@dataclass
class Sent:
    unit: Unit
    is_durable: bool
    # Incarnations of queues, by name.
    queues: dict


@dataclass
class Ledger:
    """All that happened.

    Attributes:
        sent: by number.
        acknowledged: by queue and number.
        made: incarnations of queues whose making was confirmed.
        deleted: those whose deletion was asked for, and whether it was confirmed.
        prepared: units by xid.
    """

    sent: dict = field(default_factory=dict)
    acknowledged: dict = field(default_factory=dict)
    made: set = field(default_factory=set)
    deleted: dict = field(default_factory=dict)
    prepared: dict = field(default_factory=dict)

    def copy(self):
        return copy.deepcopy(self)

    def acknowledge(self, queue, number, unit):
        self.acknowledged.setdefault((queue, number), []).append(unit)

    def check(self, queue, incarnation, found):
        """See that what a queue holds after a crash, decided transactions included, may be.

        Args:
            queue: its name.
            incarnation: how often one of that name was made, at the crash.
            found: numbers, in the order in which they came.
        """
        assert len(found) == len(set(found)), f"doubled in {queue}"
        here = set(found)
        for number in here - self.sent.keys():
            raise AssertionError(f"{number} was never sent")
        for number, sent in self.sent.items():
            made = sent.queues.get(queue)
            what = f"{number} in {queue}"
            if made is None:
                assert number not in here, f"{what}: it was never sent there"
                continue
            units = self.acknowledged.get((queue, number), ())
            is_gone = any(unit.state == DONE for unit in units) or self.deleted.get((queue, made))
            may_be_gone = (
                any(unit.state == ASKED for unit in units)
                or (queue, made) in self.deleted
                or not sent.is_durable
            )
            if number in here:
                assert sent.unit.state in (ASKED, DONE), f"{what}: invented, {sent.unit}"
                assert not is_gone, f"{what}: it was acknowledged"
            elif sent.unit.state == DONE:
                assert is_gone or may_be_gone, f"{what}: lost"

    def check_whole(self, found):
        """See that of a transaction whose commit was asked for all or nothing counts.

        Args:
            found: numbers of each queue.
        """
        outcomes = {}
        for number, sent in self.sent.items():
            for queue, made in sent.queues.items():
                one = (queue, made)
                if not sent.is_durable or one in self.deleted or one not in self.made:
                    continue
                units = self.acknowledged.get((queue, number), ())
                if sent.unit.state == ASKED and not sent.unit.is_alone and not units:
                    outcomes.setdefault(id(sent.unit), {})[f"sent {number} {queue}"] = (
                        number in found[queue]
                    )
                if sent.unit.state == DONE and [one.state for one in units] == [ASKED]:
                    outcomes.setdefault(id(units[0]), {})[f"took {number} {queue}"] = (
                        number not in found[queue]
                    )
        for one in outcomes.values():
            assert len(set(one.values())) == 1, f"half of a transaction: {one}"
