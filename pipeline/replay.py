"""Selects the messages of a replay, and their order.

    records ─▶ messages of one address and time that a selector takes ─▶ each once, if it counted
                                                                        ─▶ by node and message id

Messages that were rolled back, or never decided, were not sent. A broker's ids grow with every
message that it receives. So this order is that of sending, and does not depend on which files come
or go. A message that several copies of a node's data have is one message.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.model.encoding import RecordFormatError
from broker.model.message import Message
from broker.model.message_types import Persister
from broker.model.wire import RecordType
from broker.records.persisters import UnsupportedMessage, message_of_record
from broker.selector import parse
from pipeline.history import BODY_PART, MESSAGES, NEEDED, SENT_KINDS, TRANSACTION, counted, once
from pipeline.message_content import message_content

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from broker.selector import Filter

__all__ = ["Found", "Part", "ReplayRequest", "Selection", "decoded", "parts_of", "select"]

_LARGE: Final = int(RecordType.ADD_LARGE_MESSAGE)
_ANY_PROTOCOL: Final = int(RecordType.ADD_MESSAGE_PROTOCOL)
# Records of messages whose body is elsewhere: of Core, and of AMQP by their persister.
_IS_LARGE: Final = (
    f"user_type = {_LARGE} OR (user_type = {_ANY_PROTOCOL}"
    f" AND substring(body, 1, 1) = X'{Persister.AMQP_LARGE:02x}')"
)
_ENDS: Final = ("commit", "rollback")
_DAMAGE: Final = "damage"
_TORN: Final = "torn"
_WANTED: Final = ""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What is to be sent again.

    Attributes:
        address: that it was sent to.
        first_ms: sent since, ms since 1970; None: from the beginning.
        end_ms: sent before; None: to the end.
        selector: in the broker's language, as its filters; None: all.
        now_ms: when what no file of a history has was sent, where it does not say so itself.
    """

    address: str
    first_ms: int | None
    end_ms: int | None
    selector: str | None
    now_ms: int

    def is_in_time(self, timestamp_ms: int | None, copied_ms: int | None) -> bool:
        """Whether a message was sent then; one without a time was, when its file was copied."""
        at_ms = timestamp_ms or copied_ms or self.now_ms
        return (self.first_ms is None or at_ms >= self.first_ms) and (
            self.end_ms is None or at_ms < self.end_ms
        )


class Found(NamedTuple):
    """A message that is to be sent, or that cannot be.

    Attributes:
        node: whose it is.
        message_id: that it had there.
        user_type: of its record.
        body: of its record.
        problem: why it cannot be sent; empty where it can.
    """

    node: str
    message_id: int
    user_type: int
    body: bytes
    problem: str


class Part(NamedTuple):
    """A piece of a large message's body.

    Attributes:
        node: whose it is.
        message_id: of the message.
        data: the bytes.
    """

    node: str
    message_id: int
    data: bytes


class Selection:
    """What was found; it is worked out once.

    Args:
        messages: node, message_id, user_type, body, problem; persisted.
        damages: journal, file, offset, damage of what cannot be read.
    """

    def __init__(self, messages: DataFrame, damages: DataFrame) -> None:
        self._messages = messages
        self._damages = damages

    def damages(self) -> list[str]:
        """Damage that hides messages: `JOURNAL: FILE:OFFSET: reason`."""
        rows = self._damages.orderBy("journal", "file", "offset").collect()
        return [f"{row.journal}: {row.file}:{row.offset}: {row.damage}" for row in rows]

    def count(self) -> int:
        """How many messages there are."""
        return self._messages.count()

    def large_ids(self) -> list[tuple[str, int]]:
        """Node and message id of large messages, whose body is not in the record."""
        rows = self._messages.where(_IS_LARGE).select("node", "message_id").collect()
        return [(row.node, row.message_id) for row in rows]

    def messages(self) -> Iterator[Found]:
        """Give them by node and message id; one partition of them is held at a time."""
        names = ("node", "message_id", "user_type", "body", "problem")
        rows = self._messages.orderBy("node", "message_id").select(*names)
        for row in rows.toLocalIterator(prefetchPartitions=True):
            yield Found(row.node, row.message_id, row.user_type, bytes(row.body), row.problem)


def select(
    records: Sequence[DataFrame], origins: Mapping[str, str], request: ReplayRequest
) -> Selection:
    """Find the messages that a request is for.

    Args:
        records: of the sources `journal` (raw) and `retention`, with `journal` and `copied`.
        origins: what a node is called from now on, by its name: the same for copies of its data.
        request: which.
    """
    from pyspark.sql import functions as f

    kinds = (*SENT_KINDS, *_ENDS, _DAMAGE)
    columns = ("journal", "copied_ms", "verdict", *NEEDED)
    frames = [_with_time(frame).select(*columns) for frame in records]
    every = frames[0]
    for frame in frames[1:]:
        every = every.unionByName(frame)
    is_message = f.col("user_type").isin(*MESSAGES) & f.col("kind").isin(*SENT_KINDS)
    tells = (f.col("user_type") == TRANSACTION) & (f.col("kind") == "event")
    is_needed = is_message | tells | ~f.col("kind").isin(*SENT_KINDS)
    problem_of = f.udf(_ProblemOf(request), "string", useArrow=False)
    # Bodies of unwanted messages go no further than to this filter.
    wanted = (
        every.where(f.col("kind").isin(*kinds) & is_needed)
        .withColumn("problem", problem_of("user_type", "body", "copied_ms"))
        .where(f.col("problem").isNotNull() | ~is_message)
        .withColumn("body", f.when(is_message | tells, f.col("body")))
        .withColumn("node", _renamed(origins))
        .persist()
    )
    copy = f.struct("compact_count", "counts", "own", "user_type", "body", "problem")
    messages = (
        counted(once(wanted.where(f.col("kind") != _DAMAGE)))
        .where(is_message)
        .groupBy("node", f.col("record_id").alias("message_id"))
        .agg(f.min(copy).alias("copy"))
        .select("node", "message_id", "copy.user_type", "copy.body", "copy.problem")
        .persist()
    )
    # A record that a crash tore was never confirmed to a client.
    return Selection(
        messages, wanted.where((f.col("kind") == _DAMAGE) & (f.col("verdict") != _TORN))
    )


def parts_of(
    records: Sequence[DataFrame], origins: Mapping[str, str], ids: Sequence[tuple[str, int]]
) -> Iterator[Part]:
    """Give the pieces of the bodies of large messages, by node, message id and place.

    Args:
        records: of the sources, with the columns NEEDED.
        origins: as for select().
        ids: of the messages: node and message id.
    """
    from pyspark.sql import functions as f

    every = records[0].select(*NEEDED)
    for frame in records[1:]:
        every = every.unionByName(frame.select(*NEEDED))
    wanted = every.sparkSession.createDataFrame(list(ids), "node string, record_id bigint")
    rows = (
        once(
            every.where((f.col("user_type") == BODY_PART) & (f.col("kind") == "event"))
            .withColumn("node", _renamed(origins))
            .join(f.broadcast(wanted), ["node", "record_id"])
        )
        .orderBy("node", "record_id", "own")
        .select("node", "record_id", "body")
    )
    for row in rows.toLocalIterator():
        yield Part(row.node, row.record_id, bytes(row.body))


def decoded(user_type: int, body: bytes) -> Message:
    """Give a message as it was sent, of Core or of AMQP; a large one without its body.

    Raises:
        RecordFormatError: it is of an old version, or damaged.
    """
    if user_type == _LARGE:
        return Message.decode_headers(body)
    if user_type != _ANY_PROTOCOL:
        return Message.from_record(body)
    try:
        return message_of_record(body)
    except UnsupportedMessage as error:
        raise RecordFormatError(str(error)) from error


def _with_time(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    if "copied" not in frame.columns:
        return frame.withColumn("copied_ms", f.lit(None).cast("bigint"))
    # The broker's local time, which is taken for this machine's.
    return frame.withColumn("copied_ms", f.unix_millis(f.col("copied").cast("timestamp")))


def _renamed(origins: Mapping[str, str]) -> Column:
    from pyspark.sql import functions as f

    names = f.create_map(*(f.lit(text) for pair in origins.items() for text in pair))
    return f.coalesce(f.element_at(names, f.col("node")), f.col("node"))


@lru_cache
def _filter_of(selector: str) -> Filter | None:
    return parse(selector)


class _ProblemOf:
    """Tells, in a task, whether a message is wanted: empty; why it cannot be sent; or None."""

    def __init__(self, request: ReplayRequest) -> None:
        self._asked = request

    def __call__(
        self, user_type: int | None, body: bytes | None, copied_ms: int | None
    ) -> str | None:
        if user_type not in MESSAGES or body is None:
            return None
        assert user_type is not None
        try:
            message = decoded(user_type, bytes(body))
        except RecordFormatError as error:
            return self._other(user_type, bytes(body), copied_ms, str(error))
        request = self._asked
        if message.address != request.address or not request.is_in_time(
            message.timestamp, copied_ms
        ):
            return None
        accepts = None if request.selector is None else _filter_of(request.selector)
        return _WANTED if accepts is None or accepts.matches(message) else None

    def _other(
        self, user_type: int, body: bytes, copied_ms: int | None, problem: str
    ) -> str | None:
        """No selector takes what cannot be read: it may have been wanted."""
        try:
            content = message_content(user_type, body)
        except RecordFormatError:
            # The address that it was sent to is unknown.
            return problem
        request = self._asked
        is_there = content.get("address") == request.address
        return (
            problem if is_there and request.is_in_time(content["timestamp_ms"], copied_ms) else None
        )
