"""Lists for consoles and command lines: filtered, sorted, page by page, as JSON text.

    options   {"field":…, "operation":…, "value":…, "sortField":…, "sortOrder": "asc"|"desc"}
    answer    {"data": [{…} …], "count": how many pass the filter}

All values but some counts are texts, as in Artemis's ActiveMQAbstractView and those that
inherit from it; fields have its names.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from broker.management.errors import ManagementError
from broker.management.json_texts import json_text, read_object
from broker.management.transactions import uncommitted_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from broker.queues.consumer import Consumer
    from broker.sessions.session import Session

__all__ = ["View", "consumer_row", "java_date"]

T = TypeVar("T")
ALL: Final = -1


def java_date(at_ms: int) -> str:
    """Give a time as java.util.Date prints it, in UTC.

    >>> java_date(0)
    'Thu Jan 01 00:00:00 UTC 1970'
    """
    return time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(at_ms / 1000))


def _text(value: object) -> str:
    """Give what Java's toString gives.

    >>> _text(None), _text(True), _text(7)
    ('', 'true', '7')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@dataclass(frozen=True, kw_only=True)
class View(Generic[T]):
    """One kind of list.

    Attributes:
        fields: names in the order shown, with what gives a row's value.
        sort_field: by default.
        numbers: fields shown as numbers instead of texts.
        aliases: other names of fields in options, in lower case.
        hidden: fields that options may name and rows do not show.
    """

    fields: Mapping[str, Callable[[T], object]]
    sort_field: str
    numbers: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = field(default_factory=dict)
    hidden: Mapping[str, Callable[[T], object]] = field(default_factory=dict)

    def answer(self, rows: Iterable[T], options: str | None, page: int, page_size: int) -> str:
        """Give one page.

        Args:
            rows: all there are.
            options: JSON as in the module's text; blank is everything.
            page: from 1; -1 is all.
            page_size: rows a page; -1 is all.

        Raises:
            ManagementError: the options are not of that form.
        """
        wanted = read_object(options) if options and options.strip() else {}
        found = [row for row in rows if self._passes(row, wanted)]
        order = self._getter(
            _string(wanted, "sortColumn") or _string(wanted, "sortField") or self.sort_field
        )
        if order is not None:
            is_reverse = _string(wanted, "sortOrder").lower() == "desc"
            found.sort(key=lambda row: _sort_key(order(row)), reverse=is_reverse)
        first, last = 0, len(found)
        if ALL not in (page, page_size):
            first, last = max(0, (page - 1) * page_size), page * page_size
        data = [self._shown(row) for row in found[first:last]]
        return json_text({"data": data, "count": len(found)})

    def _shown(self, row: T) -> dict[str, object]:
        return {
            name: get(row) if name in self.numbers else _text(get(row))
            for name, get in self.fields.items()
        }

    def _getter(self, name: str) -> Callable[[T], object] | None:
        lower = name.lower()
        lower = self.aliases.get(lower, lower)
        for known in (self.fields, self.hidden):
            for candidate, get in known.items():
                # MESSAGE_COUNT, as older clients say, is messageCount.
                if candidate.lower() in (lower, lower.replace("_", "")):
                    return get
        return None

    def _passes(self, row: T, wanted: Mapping[str, object]) -> bool:
        name, how = _string(wanted, "field"), _string(wanted, "operation")
        get = self._getter(name) if name else None
        if get is None or not how.strip():
            return True
        return _matches(get(row), how, _string(wanted, "value"))


def _string(wanted: Mapping[str, object], name: str) -> str:
    found = wanted.get(name, "")
    return found if isinstance(found, str) else _text(found)


def _sort_key(value: object) -> tuple[int, Any]:
    """Let values of several types stand in one order: none, numbers, texts."""
    if value is None:
        return (0, 0)
    if isinstance(value, int | float):
        return (1, value)
    return (2, str(value))


def _matches(value: object, how: str, wanted: str) -> bool:
    """Whether a value passes; numbers are compared as numbers, and contain nothing.

    >>> (
    ...     _matches(7, "GREATER_THAN", "5"),
    ...     _matches("abc", "CONTAINS", "b"),
    ...     _matches(7, "EQUALS", "x"),
    ... )
    (True, True, False)
    """
    if isinstance(value, list | tuple):
        return any(_matches(one, how, wanted) for one in value)
    is_negative = how.startswith("NOT_")
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(wanted)
        except ValueError:
            return is_negative
        results = {
            "EQUALS": value == number,
            "NOT_EQUALS": value != number,
            "CONTAINS": False,
            "NOT_CONTAINS": True,
            "GREATER_THAN": value > number,
            "LESS_THAN": value < number,
        }
    else:
        text = _text(value)
        results = {
            "EQUALS": text == wanted,
            "NOT_EQUALS": text != wanted,
            "CONTAINS": wanted in text,
            "NOT_CONTAINS": wanted not in text,
            "GREATER_THAN": False,
            "LESS_THAN": False,
        }
    if how not in results:
        raise ManagementError(f"no operation {how} of a filter: {', '.join(results)}")
    return results[how]


def consumer_row(consumer: Consumer, session: Session) -> dict[str, object]:
    """Give what the lists as JSON, which have no pages, say of a consumer."""
    in_transit = len(consumer.delivering)
    row: dict[str, object] = {
        "consumerID": consumer.consumer_id,
        "sequentialId": consumer.number,
        "connectionID": session.origin.connection_id,
        "sessionID": session.name,
        "queueName": consumer.queue.name,
        "browseOnly": consumer.is_browser,
        "creationTime": consumer.created_ms,
        "deliveringCount": in_transit,
        "messagesInTransit": in_transit,
        "messagesInTransitSize": sum(one.message.encoded_size for one in consumer.delivering),
        "messagesDelivered": consumer.delivered_count,
        "messagesDeliveredSize": consumer.delivered_bytes,
        "messagesAcknowledged": consumer.acknowledged_count,
        "messagesAcknowledgedAwaitingCommit": uncommitted_count(consumer, session),
        "lastDeliveredTime": int(consumer.last_delivered_s * 1000),
        "lastAcknowledgedTime": int(consumer.last_acknowledged_s * 1000),
        "status": "OK",
    }
    if consumer.filter is not None:
        row["filter"] = consumer.filter.text
    return row
