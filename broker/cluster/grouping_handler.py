"""Message groups with one owner for the whole cluster, by a grouping-handler as Artemis has it.

    LOCAL    one broker decides: the first proposal holds, is recorded, and told to all
    REMOTE   all others ask it:  PROPOSAL ─▶ … ─▶ PROPOSAL_RESPONSE, and remember the answer

A group is known as `<group id>.<routing name>`, and an owner by the name by which the cluster knows
its queue. A group is free again if its queue is removed, or if it was not used for
group-timeout: UNPROPOSAL tells of that.

Nothing waits here: who proposes hears of the answer later, by `on_decided`. A REMOTE asks 10 times,
timeout apart, and then gives up: the messages that wait for the answer are delivered where they
are.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from broker.notifications import NotificationType
from broker.records.binding_records import GroupBinding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.config.cluster import GroupingHandler as GroupingConfig
    from broker.model.wire import WireRecord
    from broker.notifications import Notifications
    from broker.storage.manager import StorageManager

__all__ = ["GroupingHandler", "LocalGroupingHandler", "RemoteGroupingHandler"]

log = logging.getLogger("broker.cluster")

TRIES_MAX: Final = 10
"""How often a REMOTE asks (BindingsImpl.MAX_GROUP_RETRY)."""


class GroupingHandler(Protocol):
    """Who knows which queue has a group.

    Attributes:
        on_decided: called with a group whose owner is known now, or whose owner will not be known.
        on_free: called with a group that has no owner any more.
    """

    on_decided: Callable[[str], object]
    on_free: Callable[[str], object]

    def owner(self, group: str) -> str | None:
        """Give the owner of a group, which is used now; None where it is not known."""

    def known_owner(self, group: str) -> str | None:
        """Give the owner of a group as owner() does; it does not count as a use."""

    def propose(self, group: str, cluster_name: str) -> str | None:
        """Propose an owner. Give the one that holds; None where another broker is asked."""

    def is_asked(self, group: str) -> bool:
        """Whether another broker is asked for the owner."""

    def force_remove(self, group: str, cluster_name: str) -> None:
        """Free a group whose queue is not there, and tell."""

    def binding_removed(self, cluster_name: str) -> None:
        """A queue is gone, here or in another broker: its groups are free."""

    def proposed(self, group: str, cluster_name: str, distance: int) -> None:
        """Another broker proposes an owner."""

    def answered(self, group: str, cluster_name: str) -> None:
        """Another broker has decided."""

    def unproposed(self, group: str, cluster_name: str, distance: int) -> None:
        """Another broker has freed a group."""

    def resend_pending(self) -> None:
        """A peer hears from now on: what was asked before it may have missed."""

    def stop(self) -> None:
        """Do nothing any more. Idempotent."""


class _Groups:
    """What both types have: owners, by group and by queue."""

    def __init__(self, config: GroupingConfig, notifications: Notifications) -> None:
        self.config = config
        self.on_decided: Callable[[str], object] = lambda group: None
        self.on_free: Callable[[str], object] = lambda group: None
        self._notifications = notifications
        self._owners: dict[str, str] = {}
        self._used_s: dict[str, float] = {}

    @property
    def owners(self) -> dict[str, str]:
        """Give the owner of each group."""
        return dict(self._owners)

    def known_owner(self, group: str) -> str | None:
        """Give the owner of a group as owner() does; it does not count as a use."""
        return self._owners.get(group)

    @property
    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def _tell(
        self,
        kind: NotificationType,
        group: str,
        value: str,
        alternative: str | None = None,
        distance: int = 0,
    ) -> None:
        self._notifications.proposal(
            kind, group, value, alternative, address=self.config.address, distance=distance
        )

    def _forget(self, group: str) -> str | None:
        self._used_s.pop(group, None)
        return self._owners.pop(group, None)

    def _groups_of(self, cluster_name: str) -> list[str]:
        return [group for group, owner in self._owners.items() if owner == cluster_name]


class LocalGroupingHandler(_Groups):
    """The broker that decides. Implements `GroupingHandler`.

    Args:
        config: of it.
        notifications: who tells.
        storage: where owners are recorded, as Artemis records them.
        recorded: what the start found.
    """

    def __init__(
        self,
        config: GroupingConfig,
        notifications: Notifications,
        storage: StorageManager,
        recorded: Iterable[tuple[int, WireRecord]],
    ) -> None:
        super().__init__(config, notifications)
        self._storage = storage
        self._record_ids: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        for record_id, record in recorded:
            if isinstance(record, GroupBinding):
                self._owners[record.group_id] = record.cluster_name
                self._used_s[record.group_id] = self._now_s
                self._record_ids[record.group_id] = record_id
        self._reap_later()

    def _reap_later(self) -> None:
        if self.config.group_timeout_ms > 0:
            delay_s = self.config.reaper_period_ms / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._reap)

    def _reap(self) -> None:
        until_s = self._now_s - self.config.group_timeout_ms / 1000
        for group in [one for one, used_s in self._used_s.items() if used_s < until_s]:
            self.force_remove(group, self._owners[group])
        self._reap_later()

    def owner(self, group: str) -> str | None:
        """Give the owner of a group, which is used now; None where it has none."""
        found = self._owners.get(group)
        if found is not None:
            self._used_s[group] = self._now_s
        return found

    def propose(self, group: str, cluster_name: str) -> str:
        """Give the owner that holds: the one that was proposed first, which is recorded.

        Raises:
            BrokerError: the disk is full; the group has no owner.
        """
        known = self.owner(group)
        if known is not None:
            return known
        self._record_ids[group] = self._storage.add_setting(GroupBinding(group, cluster_name))
        self._owners[group] = cluster_name
        self._used_s[group] = self._now_s
        return cluster_name

    def is_asked(self, group: str) -> bool:
        """Never: this broker decides."""
        return False

    def force_remove(self, group: str, cluster_name: str) -> None:
        """Free a group, and tell."""
        self._remove(group)
        self._tell(NotificationType.UNPROPOSAL, group, cluster_name)

    def _remove(self, group: str) -> None:
        if self._forget(group) is not None:
            self._storage.delete_setting(self._record_ids.pop(group))
            self.on_free(group)

    def binding_removed(self, cluster_name: str) -> None:
        """A queue is gone: its groups are free, and others are told."""
        for group in self._groups_of(cluster_name):
            self.force_remove(group, cluster_name)

    def proposed(self, group: str, cluster_name: str, distance: int) -> None:
        """Answer, once what the answer says is durable."""
        owner = self.propose(group, cluster_name)
        self._storage.after(self._answer, group, cluster_name, owner)

    def _answer(self, error: Exception | None, group: str, proposed: str, owner: str) -> None:
        # A storage that has failed ends the broker.
        if error is None:
            alternative = None if owner == proposed else owner
            self._tell(NotificationType.PROPOSAL_RESPONSE, group, proposed, alternative)

    def answered(self, group: str, cluster_name: str) -> None:
        """Another LOCAL has decided: that is a fault of the configuration."""
        log.warning(
            "grouping-handler %s: another broker decides too, of group %s: one of the cluster has "
            "to be LOCAL, and all others REMOTE",
            *(self.config.name, group),
        )

    def unproposed(self, group: str, cluster_name: str, distance: int) -> None:
        """Another broker has freed a group."""
        self._remove(group)

    def resend_pending(self) -> None:
        """Nothing is asked here."""

    def stop(self) -> None:
        """Look for unused groups no more. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Asked:
    """A group whose owner another broker is asked for."""

    __slots__ = ("cluster_name", "timer", "tries")

    def __init__(self, cluster_name: str) -> None:
        self.cluster_name = cluster_name
        self.tries = 0
        self.timer: asyncio.TimerHandle | None = None


class RemoteGroupingHandler(_Groups):
    """A broker that asks the one that decides. Implements `GroupingHandler`.

    Args:
        config: of it.
        notifications: who tells.
    """

    def __init__(self, config: GroupingConfig, notifications: Notifications) -> None:
        super().__init__(config, notifications)
        self._asked: dict[str, _Asked] = {}

    def owner(self, group: str) -> str | None:
        """Give the owner of a group; the one who decides is told, now and then, that it is used."""
        found = self._owners.get(group)
        timeout_ms = self.config.group_timeout_ms
        if found is not None and 0 < timeout_ms / 1000 < self._now_s - self._used_s[group]:
            self._used_s[group] = self._now_s
            self._tell(NotificationType.PROPOSAL, group, found)
        return found

    def propose(self, group: str, cluster_name: str) -> str | None:
        """Give the owner if it is known; else ask for it."""
        known = self.owner(group)
        if known is None and group not in self._asked:
            self._asked[group] = _Asked(cluster_name)
            self._ask(group)
        return known

    def _ask(self, group: str) -> None:
        asked = self._asked[group]
        if asked.tries:
            log.warning(
                "AMQ222161: grouping-handler %s: no answer within %d ms for group %s",
                *(self.config.name, self.config.timeout_ms, group),
            )
        if asked.tries == TRIES_MAX:
            log.warning(
                "AMQ222209: no broker with a LOCAL grouping-handler has answered %d times: "
                "messages of group %s are routed without it",
                *(TRIES_MAX, group),
            )
            del self._asked[group]
            self.on_decided(group)
            return
        asked.tries += 1
        self._tell(NotificationType.PROPOSAL, group, asked.cluster_name)
        loop = asyncio.get_running_loop()
        asked.timer = loop.call_later(self.config.timeout_ms / 1000, self._ask, group)

    def is_asked(self, group: str) -> bool:
        """Whether another broker is asked for the owner."""
        return group in self._asked

    def _not_asked(self, group: str) -> None:
        asked = self._asked.pop(group, None)
        if asked is not None and asked.timer is not None:
            asked.timer.cancel()

    def force_remove(self, group: str, cluster_name: str) -> None:
        """Free a group whose queue is not there, and tell."""
        self._remove(group)
        self._tell(NotificationType.UNPROPOSAL, group, cluster_name)

    def _remove(self, group: str) -> None:
        if self._forget(group) is not None:
            self.on_free(group)

    def binding_removed(self, cluster_name: str) -> None:
        """A queue is gone: its groups are asked for anew. The one who decides tells."""
        for group in self._groups_of(cluster_name):
            self._forget(group)

    def proposed(self, group: str, cluster_name: str, distance: int) -> None:
        """Tell the one who decides, if he is behind this broker."""
        self._tell(NotificationType.PROPOSAL, group, cluster_name, distance=distance)

    def answered(self, group: str, cluster_name: str) -> None:
        """The owner is known."""
        self._owners[group] = cluster_name
        self._used_s[group] = self._now_s
        self._not_asked(group)
        self.on_decided(group)

    def unproposed(self, group: str, cluster_name: str, distance: int) -> None:
        """A group was freed."""
        self._remove(group)
        self._tell(NotificationType.UNPROPOSAL, group, cluster_name, distance=distance)

    def resend_pending(self) -> None:
        """A peer hears from now on: what was asked before it may have missed."""
        for group, asked in self._asked.items():
            self._tell(NotificationType.PROPOSAL, group, asked.cluster_name)

    def stop(self) -> None:
        """Ask no more. Idempotent."""
        for group in list(self._asked):
            self._not_asked(group)
