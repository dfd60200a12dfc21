"""A queue, managed: `queue.NAME` (QueueControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.management.contents import by_id, change_priority, each, in_parts, remove_all, retry
from broker.management.errors import ManagementError
from broker.management.invocation import BOOLEAN, INT, LONG, MAP, NAME, TEXT, operation
from broker.management.queue_queries import QueueQueries
from broker.management.queue_reasons import QueueReasons
from broker.management.sending import send_message

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from broker.queues.queue import Queue
    from broker.queues.reference import Reference
    from broker.routing.message_mover import Moving

__all__ = ["QueueControl"]


class QueueControl(QueueQueries, QueueReasons):
    """What changes a queue; what only looks is in queue_queries.py and queue_reasons.py."""

    # --- changing -----------------------------------------------------------------------------

    def _remove(self, reference: Reference) -> bool:
        self.queue.remove(reference)
        return True

    def _one(
        self, message_id: int, act: Callable[[Reference], bool | Moving]
    ) -> Generator[float | None, None, bool]:
        count = yield from each(self.queue, by_id(message_id), act, count_max=1)
        return count > 0

    @operation("removeMessage", LONG)
    def remove_message(self, message_id: int) -> Generator[float | None, None, bool]:
        """Remove one; whether it was there."""
        return self._one(message_id, self._remove)

    @operation("removeAllMessages")
    @operation("removeMessages", TEXT)
    def remove_messages(self, text: str | None = None) -> Generator[float | None, None, int]:
        """Remove what waits or is not due yet; how many."""
        if text:
            return (yield from each(self.queue, self._wanted(text), self._remove))
        return (yield from remove_all(self.queue))

    @operation("removeMessages", INT, TEXT)
    def remove_messages_in_parts(
        self, _flush_limit: int, text: str | None
    ) -> Generator[float | None, None, int]:
        """The same: it is always done in parts."""
        return self.remove_messages(text)

    def _expire(self, reference: Reference) -> bool:
        self._broker.parts.dead_letters.expire(reference)
        return True

    @operation("expireMessage", LONG)
    def expire_message(self, message_id: int) -> Generator[float | None, None, bool]:
        """Let one expire now; whether it was there."""
        return self._one(message_id, self._expire)

    @operation("expireMessages", TEXT)
    def expire_messages(self, text: str | None) -> Generator[float | None, None, int]:
        """Let messages expire now; how many."""
        return each(self.queue, self._wanted(text), self._expire)

    def _kill(self, reference: Reference) -> bool:
        self._broker.parts.dead_letters.kill(reference)
        return True

    @operation("sendMessageToDeadLetterAddress", LONG)
    def kill_message(self, message_id: int) -> Generator[float | None, None, bool]:
        """Send one to the dead letter address; whether it was there."""
        return self._one(message_id, self._kill)

    @operation("sendMessagesToDeadLetterAddress", TEXT)
    def kill_messages(self, text: str | None) -> Generator[float | None, None, int]:
        """Send messages to the dead letter address; how many."""
        return each(self.queue, self._wanted(text), self._kill)

    @operation("retryMessage", LONG)
    def retry_message(self, message_id: int) -> Generator[float | None, None, bool]:
        """Send one back to where it came from; whether it could be."""
        count = yield from retry(self._broker, self.queue, by_id(message_id), count_max=1)
        return count > 0

    @operation("retryMessages")
    @operation("retryMessages", TEXT)
    def retry_messages(self, text: str | None = None) -> Generator[float | None, None, int]:
        """Send messages back to where they came from; how many."""
        return retry(self._broker, self.queue, self._wanted(text))

    def _target(self, name: str | None) -> Queue:
        target = self._addresses.queues.get(name or "")
        if target is None:
            raise ManagementError(f"AMQ229049: No queue found for {name}")
        return target

    def _other(self, name: str | None) -> Queue:
        target = self._target(name)
        if target is self.queue:
            raise ManagementError("Cannot move messages onto itself")
        return target

    @operation("moveMessage", LONG, NAME)
    @operation("moveMessage", LONG, NAME, BOOLEAN)
    def move_message(
        self, message_id: int, name: str, rejects_duplicates: bool = False
    ) -> Generator[float | None, None, bool]:
        """Move one to another queue; whether it was."""
        return self._one(message_id, self._mover(self._other(name), rejects_duplicates))

    def _mover(self, target: Queue, rejects_duplicates: bool) -> Callable[[Reference], Moving]:
        move = self._broker.parts.dead_letters.move_to_queue

        def act(reference: Reference) -> Moving:
            self._check_there(target)
            return move(reference, target, rejects_duplicates=bool(rejects_duplicates))

        return act

    @staticmethod
    def _check_there(target: Queue) -> None:
        # It may go between two parts of the work.
        if target.is_deleted:
            raise ManagementError(f"AMQ229049: No queue found for {target.name}")

    @operation("moveMessages", TEXT, NAME)
    @operation("moveMessages", TEXT, NAME, BOOLEAN)
    def move_messages(
        self, text: str | None, name: str, rejects_duplicates: bool = False, count: int = -1
    ) -> Generator[float | None, None, int]:
        """Move messages to another queue; how many."""
        mover = self._mover(self._other(name), rejects_duplicates)
        return each(self.queue, self._wanted(text), mover, count_max=count)

    @operation("moveMessages", INT, TEXT, NAME, BOOLEAN)
    @operation("moveMessages", INT, TEXT, NAME, BOOLEAN, INT)
    def move_messages_in_parts(
        self,
        _flush_limit: int,
        text: str | None,
        name: str,
        rejects_duplicates: bool,
        count: int = -1,
    ) -> Generator[float | None, None, int]:
        """The same, `count` at most."""
        return self.move_messages(text, name, rejects_duplicates, count)

    @operation("copyMessage", LONG, NAME)
    def copy_message(self, message_id: int, name: str) -> Generator[float | None, None, bool]:
        """Send a copy of one to another queue; whether it was there."""
        target = self._target(name)

        def copy(reference: Reference) -> Moving:
            self._check_there(target)
            return self._broker.parts.dead_letters.copy_to_queue(reference, target)

        return self._one(message_id, copy)

    @operation("changeMessagePriority", LONG, INT)
    def change_priority_of_one(self, message_id: int, priority: int) -> Generator[None, None, bool]:
        """Give one another priority; whether it was there."""
        count = yield from change_priority(self.queue, by_id(message_id), priority)
        return count > 0

    @operation("changeMessagesPriority", TEXT, INT)
    def change_priorities(self, text: str | None, priority: int) -> Generator[None, None, int]:
        """Give messages another priority; how many."""
        return change_priority(self.queue, self._wanted(text), priority)

    @operation("deliverScheduledMessages", TEXT)
    def deliver_scheduled(self, text: str | None) -> Generator[None, None, None]:
        """Let messages be due now."""
        return self._deliver_now(self._wanted(text))

    def _deliver_now(self, wanted: Callable[[Reference], bool]) -> Generator[None, None, None]:
        found = []
        for reference in in_parts(self.queue.scheduled()):
            if reference is None:
                yield
            elif wanted(reference):
                found.append(reference)
        # Together, or they would not come in the order of their times.
        self.queue.deliver_now(found)

    @operation("deliverScheduledMessage", LONG)
    def deliver_scheduled_message(self, message_id: int) -> Generator[None, None, None]:
        """Let one be due now."""
        return self._deliver_now(by_id(message_id))

    @operation("sendMessage", MAP, INT, TEXT, BOOLEAN, TEXT, TEXT)
    @operation("sendMessage", MAP, INT, TEXT, BOOLEAN, TEXT, TEXT, BOOLEAN)
    def send(
        self,
        headers: dict[str, object] | None,
        type: int,
        body: str | None,
        durable: bool,
        user: str | None,
        password: str | None,
        has_user_id: bool = False,
    ) -> str:
        """Send a message to this queue, as a user; its id."""
        return send_message(
            self._broker,
            f"{self.queue.binding.address}::{self.queue.name}",
            headers or {},
            type,
            body,
            durable=bool(durable),
            user=user,
            password=password,
            has_user_id=bool(has_user_id),
        )

    # --- its state ----------------------------------------------------------------------------

    @operation("pause")
    @operation("pause", BOOLEAN)
    def pause(self, is_kept: bool = False) -> None:
        """Deliver nothing; `is_kept` after a restart too."""
        self._addresses.pause_queue(self.queue, is_paused=True, is_kept=bool(is_kept))

    @operation("resume")
    def resume(self) -> None:
        """Deliver again."""
        self._addresses.pause_queue(self.queue, is_paused=False)

    @operation("enable")
    def enable(self) -> None:
        """Let messages be routed to it."""
        self._addresses.update_queue(self.queue.name, enabled=True)

    @operation("disable")
    def disable(self) -> None:
        """Let no messages be routed to it."""
        self._addresses.update_queue(self.queue.name, enabled=False)

    @operation("resetMessagesAdded")
    def reset_added(self) -> None:
        """Count from 0."""
        self.queue.added_count = 0

    @operation("resetMessagesAcknowledged")
    def reset_acknowledged(self) -> None:
        """Count from 0."""
        self.queue.acknowledged_count = 0

    @operation("resetMessagesExpired")
    def reset_expired(self) -> None:
        """Count from 0."""
        self.queue.expired_count = 0

    @operation("resetMessagesKilled")
    def reset_killed(self) -> None:
        """Count from 0."""
        self.queue.killed_count = 0

    @operation("resetAllGroups")
    def reset_groups(self) -> None:
        """No group has a consumer any more."""
        self.queue.reset_groups()

    @operation("resetGroup", NAME)
    def reset_group(self, group: str) -> None:
        """This group has no consumer any more."""
        self.queue.reset_groups(group)

    @operation("flushExecutor")
    def flush(self) -> None:
        """Deliver what can be, without waiting for the next turn."""
        self.queue.deliver()
