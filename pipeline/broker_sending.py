"""Sends rows to a running broker, each exactly once: repeats are refused by duplicate ids.

Every message carries a duplicate id (`_AMQ_DUPL_ID`), by which its address drops a second copy:

    job : batch : partition : what is in the row : how many such rows came before

Not its place in the partition: behind a shuffle, rows may come in another order when a task is done
again, and another row would then be taken for one that is there. Rows that are equal may be taken
for each other. So a task that is done again sends the same messages if it has the same rows, in
whatever order.

Each message is sent alone, with many on their way; a partition is not one transaction. The broker
refuses a whole transaction if it has seen one of the ids, so a repeated send must be message by
message anyway. It also holds a transaction in memory. The messages of a partition do not share one
id: a bridge behind the broker would drop all but the first.

If the connection is lost, unconfirmed messages are sent again over a new one. The broker drops
those that it has, by their ids.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections import Counter, deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Self

from broker.client.errors import BrokerRefused, ClientError, DuplicateId
from journal.errors import WrongUse
from pipeline.broker_connection import BrokerConnection, is_transient
from pipeline.broker_messages import message_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future
    from types import TracebackType

    from broker.client import Session
    from broker.model.message import Message
    from pipeline.broker_options import BrokerOptions

__all__ = [
    "Sender",
    "checked_id_cache_size",
    "id_cache_size",
    "overloaded_id_caches",
    "refuse_no_address",
]

log: Final = logging.getLogger("pipeline.broker")

# Messages that wait for their confirmation.
WINDOW: Final = 1000
_DIGEST_SIZE: Final = 16


class Sender:
    """Sends the rows of one task, and waits until all are durable.

    Args:
        options: of the write.
        prefix: of its duplicate ids: what is the same when the task is done again, and different
            for any other task.

    Attributes:
        counts: of rows by address.
        sizes: of the addresses' caches of duplicate ids.
    """

    def __init__(self, options: BrokerOptions, prefix: str) -> None:
        self._options = options
        self._prefix = prefix
        self.counts: Counter[str] = Counter()
        self.sizes: dict[str, int] = {}
        self._seen: Counter[bytes] = Counter()
        self._waiting: deque[tuple[Message, Future[None]]] = deque()
        self._connection = BrokerConnection(options)

    def send(self, row: dict[str, Any]) -> None:
        """Send a row.

        Raises:
            WrongUse: it is not a valid message, or its address does not exist or does not keep
                enough duplicate ids.
            ClientError: the broker refused it or one before it, or is away for too long.
        """
        message = message_of(row, self._options, self._id_of(row))
        self._count(message)
        # Made anew only where nothing waits: what waits has its producer.
        producer = self._connection.run(lambda _: self._connection.producer)
        self._waiting.append((message, producer.post(message)))
        self._settle(WINDOW)

    def finish(self) -> None:
        """Wait until all rows are durable.

        Raises:
            ClientError: as for send().
        """
        self._settle(0)

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _id_of(self, row: dict[str, Any]) -> str:
        if row.get("duplicate_id"):
            return ""
        digest = blake2b(
            _canonical(row).encode("utf-8", "surrogatepass"), digest_size=_DIGEST_SIZE
        ).digest()
        self._seen[digest] += 1
        return f"{self._prefix}:{digest.hex()}:{self._seen[digest]}"

    def _settle(self, left: int) -> None:
        """Wait until no more than so many wait for their confirmation."""
        while len(self._waiting) > left:
            _, answer = self._waiting[0]
            try:
                # The broker has it already; Artemis says so in transactions alone.
                with contextlib.suppress(DuplicateId):
                    answer.result()
            except ClientError as error:
                self._send_again(error)
            else:
                self._waiting.popleft()
                self._connection.works()

    def _send_again(self, error: ClientError) -> None:
        """Send what was not confirmed over a new connection, in its order.

        Raises:
            ClientError: the broker refuses, or is away for too long.
        """
        messages = [message for message, _ in self._waiting]
        self._connection.lost(error)
        while True:
            try:
                producer = self._connection.producer
                self._waiting = deque([(message, producer.post(message)) for message in messages])
            except ClientError as again:
                self._connection.lost(again)
            else:
                return

    def _count(self, message: Message) -> None:
        """See that an address would know all of this task's ids when they came again."""
        address = (message.address or "").partition("::")[0]
        self.counts[address] += 1
        if address not in self.sizes:
            # A connection that is lost here would take along what is not confirmed.
            self._settle(0)
            self.sizes[address] = self._connection.run(
                lambda session: checked_id_cache_size(session, address, self._options)
            )
        if self.counts[address] > self.sizes[address]:
            raise WrongUse(
                f"more than {self.sizes[address]} rows for address {address} in one task, which is"
                " all the duplicate ids that the address keeps (id-cache-size): a repeated task"
                " would send some twice; raise it, or write fewer rows at a time"
            )


def overloaded_id_caches(counts: Mapping[str, int], sizes: Mapping[str, int]) -> list[str]:
    """Tell which addresses got more rows in a batch than they keep duplicate ids."""
    return [
        f"{counts[address]} rows were sent to address {address}, which keeps {size} duplicate ids"
        " (id-cache-size): if this is ever done again, some are sent twice; raise it, or write"
        " fewer rows at a time"
        for address, size in sizes.items()
        if counts[address] > size
    ]


def _canonical(row: dict[str, Any]) -> str:
    """Text that is the same for equal rows: the order of a map is none."""
    return repr(
        [
            (name, sorted(value, key=repr) if isinstance(value, list) else value)
            for name, value in sorted(row.items())
        ]
    )


def refuse_no_address(session: Session, address: str) -> None:
    """See that there is an address, or may be one: a broker confirms what it sends nowhere, too.

    Raises:
        WrongUse: there is none, and none is made for what is sent.
        ClientError: the connection is lost.
    """
    found = session.query_address(address)
    if not (found.exists or found.auto_create_addresses):
        raise WrongUse(
            f"address {address} does not exist, and the broker does not create it"
            " (auto-create-addresses): messages sent there would be lost"
        )


def checked_id_cache_size(session: Session, address: str, options: BrokerOptions) -> int:
    """Give id_cache_size() of an address that there is, or may be; see refuse_no_address()."""
    refuse_no_address(session, address)
    return id_cache_size(session, address, options)


def id_cache_size(session: Session, address: str, options: BrokerOptions) -> int:
    """How many duplicate ids an address keeps, over restarts of its broker, too.

    Raises:
        WrongUse: the broker does not keep them when it stops, or does not say how many.
        ClientError: the connection is lost.
    """
    if options.id_cache_size is not None:
        return options.id_cache_size
    try:
        if not session.attribute("broker", "persistIDCache"):
            raise WrongUse(
                "the broker forgets its duplicate ids when it stops (persist-id-cache): what is"
                " sent again behind that would be there twice"
            )
        settings = json.loads(session.manage("broker", "getAddressSettingsAsJSON", address))
        size = settings.get("idCacheSize")
        if size is None or size < 0:
            size = session.attribute("broker", "IDCacheSize")
    except BrokerRefused as error:
        if is_transient(error):
            raise
        raise _cannot_ask(address, error) from error
    return int(size)


def _cannot_ask(address: str, error: ClientError) -> WrongUse:
    return WrongUse(
        f"the broker does not say how many duplicate ids address {address} keeps ({error}); give"
        " its id-cache-size as the option idCacheSize, or the permission `manage`"
    )
