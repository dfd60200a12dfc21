"""Requests to a broker's management address, and its answers: JSON in text messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from broker.client.content import make_message
from broker.client.errors import BrokerRefused
from broker.errors import ErrorCode
from broker.model.properties import PropertyType

if TYPE_CHECKING:
    from broker.model.message import Message

__all__ = ["MANAGEMENT_ADDRESS", "attribute_request", "operation_request", "result_of"]

MANAGEMENT_ADDRESS: Final = "activemq.management"
RESOURCE_NAME: Final = "_AMQ_ResourceName"
OPERATION_NAME: Final = "_AMQ_OperationName"
ATTRIBUTE: Final = "_AMQ_Attribute"
SUCCEEDED: Final = "_AMQ_OperationSucceeded"


def operation_request(
    resource: str, operation: str, arguments: tuple[object, ...], now_ms: int | None = None
) -> Message:
    """Give the message that asks for an operation; `now_ms` as for `make_message`."""
    return _request(resource, OPERATION_NAME, operation, json.dumps(arguments), now_ms)


def attribute_request(resource: str, attribute: str, now_ms: int | None = None) -> Message:
    """Give the message that asks for an attribute; `now_ms` as for `make_message`."""
    return _request(resource, ATTRIBUTE, attribute, "", now_ms)


def _request(resource: str, kind: str, name: str, text: str, now_ms: int | None) -> Message:
    message = make_message(text, durable=False, now_ms=now_ms)
    message.set(RESOURCE_NAME, PropertyType.STRING, resource)
    message.set(kind, PropertyType.STRING, name)
    return message


def result_of(answer: Message, content: object) -> Any:  # noqa: ANN401 - what the operation gives
    """Give the result in an answer, as JSON has it.

    Raises:
        BrokerRefused: the answer says that it failed, and why.
    """
    result = json.loads(content)[0] if isinstance(content, str) else None
    if not answer.get(SUCCEEDED):
        raise BrokerRefused(ErrorCode.GENERIC_EXCEPTION, str(result))
    return result
