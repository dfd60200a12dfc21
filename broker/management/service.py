"""Requests to the management address: a message asks, a message answers.

    _AMQ_ResourceName     broker, queue.X, address.X, divert.X, acceptor.X
    _AMQ_OperationName    with arguments in the body, or
    _AMQ_Attribute        without
    JMSReplyTo            where the answer goes, with _AMQ_OperationSucceeded

What a request appended is durable before its answer is in a queue. Work that takes long is done in
parts, one in each turn of the event loop, or a while later: other clients are served meanwhile.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import logging
import re
import uuid
from types import GeneratorType
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError
from broker.management.errors import ManagementError
from broker.management.json_texts import arguments_of, result_body
from broker.model.address import split_fqqn
from broker.model.message import Message
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from broker.management.invocation import Control
    from broker.options import ManagementOptions
    from broker.ports import Security, Timers
    from broker.routing.postoffice import PostOffice
    from broker.storage.manager import StorageManager

__all__ = ["Management"]

log = logging.getLogger("broker")

RESOURCE_NAME: Final = "_AMQ_ResourceName"
OPERATION_NAME: Final = "_AMQ_OperationName"
ATTRIBUTE: Final = "_AMQ_Attribute"
SUCCEEDED: Final = "_AMQ_OperationSucceeded"
REPLY_TO: Final = "JMSReplyTo"
CORRELATION_ID: Final = "JMSCorrelationID"
NATIVE_MESSAGE_ID: Final = "NATIVE_MESSAGE_ID"
# Bytes of a request: a message for sendMessage is the largest argument that there is.
_BODY_SIZE_MAX: Final = 8 * 1024 * 1024
_DESTINATION_PREFIXES: Final = ("queue://", "topic://", "temp-queue://", "temp-topic://")


class Management:
    """Implements `broker.ports.Management`.

    Args:
        postoffice: where answers go.
        security: who may do what.
        storage: where records go.
        timers: of the event loop.
        options: how it is managed.
        resource: gives what a name stands for, None for nothing.
    """

    def __init__(
        self,
        *,
        postoffice: PostOffice,
        security: Security,
        storage: StorageManager,
        timers: Timers,
        options: ManagementOptions,
        resource: Callable[[str], Control | None],
    ) -> None:
        self.address = options.address
        self._postoffice = postoffice
        self._security = security
        self._storage = storage
        self._timers = timers
        self._options = options
        self._resource = resource
        self._is_view = re.compile(options.view_pattern)
        self._context = storage.new_context()

    def handle(self, user: str | None, message: Message) -> None:
        """Do what a user's message asks for, and send an answer where it wants one.

        Raises:
            BrokerError: the user may not send to where the answer is to go; nothing was done.
        """
        reply_to = _reply_to(message)
        if reply_to is not None:
            self._security.check(user, "send", *split_fqqn(reply_to))
        if message.get(OPERATION_NAME) is None and message.get(ATTRIBUTE) is None:
            # As in Artemis: nothing was asked, and the answer says neither yes nor no.
            self._answer(message, reply_to, None, has_succeeded=None)
            return
        self._go_on(self._work(user, message), message, reply_to)

    # --- the work -----------------------------------------------------------------------------

    def _work(self, user: str | None, message: Message) -> Generator[float | None, None, object]:
        name, operation = message.get(RESOURCE_NAME), message.get(OPERATION_NAME)
        if not isinstance(name, str):
            name = str(name)
        control = self._resource(name)
        if control is None:
            raise ManagementError(f"AMQ229067: Cannot find resource with name {name}")
        arguments: list[object] = []
        if operation is None:
            method = control.method_of_attribute(str(message.get(ATTRIBUTE)))
        else:
            method = str(operation)
            arguments = arguments_of(_body(message))
        self._check(user, f"{name}.{method}", method)
        result = control.invoke(method, arguments)
        if isinstance(result, GeneratorType):
            result = yield from result
        return result

    def _check(self, user: str | None, name: str, method: str) -> None:
        if self._options.rbac_prefix is not None:
            permission = "view" if self._is_view.fullmatch(method) else "edit"
            self._security.check(user, permission, f"{self._options.rbac_prefix}.{name}", None)

    def _go_on(
        self, work: Generator[float | None, None, object], message: Message, reply_to: str | None
    ) -> None:
        """Do the next part; the answer behind the last one."""
        try:
            delay_s = next(work)
        except StopIteration as end:
            self._answer(message, reply_to, end.value, has_succeeded=True)
        except (ManagementError, BrokerError, JournalError) as error:
            self._refuse(message, reply_to, error)
        except Exception as error:
            # A fault of ours, in what only looks, or before anything was changed: told, and logged.
            log.exception("AMQ222111: a fault in a management operation")
            self._refuse(message, reply_to, error)
        else:
            if delay_s is None:
                self._timers.call_soon(self._go_on, work, message, reply_to)
            else:
                self._timers.call_later(delay_s, self._go_on, work, message, reply_to)

    def _refuse(self, message: Message, reply_to: str | None, error: Exception) -> None:
        what = message.get(OPERATION_NAME) or message.get(ATTRIBUTE)
        log.debug("AMQ222111: %s on %s: %s", what, message.get(RESOURCE_NAME), error)
        self._answer(message, reply_to, str(error), has_succeeded=False)

    # --- the answer ---------------------------------------------------------------------------

    def _answer(
        self,
        request: Message,
        reply_to: str | None,
        result: object,
        *,
        has_succeeded: bool | None,
    ) -> None:
        if reply_to is None:
            return
        properties = [Property(REPLY_TO, PropertyType.STRING, request.get(REPLY_TO))]
        if has_succeeded is not None:
            properties.append(Property(SUCCEEDED, PropertyType.BOOLEAN, has_succeeded))
        correlation = _correlation(request)
        if correlation is not None:
            properties.append(correlation)
        answer = Message(
            reply_to,
            result_body(result),
            type=MessageType.TEXT,
            message_id=self._storage.new_id(),
            properties=properties,
        )
        self._context.note()
        self._postoffice.route(answer, self._context, rejects_duplicates=False)


def _body(message: Message) -> memoryview:
    """Give the body of a request, which a client may have sent in parts.

    Raises:
        ManagementError: it is larger than anybody's arguments are.
    """
    body = message.large
    if body is None:
        return message.body
    if body.size > _BODY_SIZE_MAX:
        raise ManagementError(f"a request of {body.size} bytes: {_BODY_SIZE_MAX} at most")
    body.hold()
    try:
        return memoryview(body.read(0, body.size))
    finally:
        # It is deleted behind this request: no other code would close it.
        body.release()


def _reply_to(message: Message) -> str | None:
    """Give the address of the answer: JMS clients write their kind of destination before it."""
    found = message.get(REPLY_TO)
    if not isinstance(found, str) or not found:
        return None
    for prefix in _DESTINATION_PREFIXES:
        if found.startswith(prefix):
            return found.removeprefix(prefix)
    return found


def _correlation(request: Message) -> Property | None:
    """Give what tells whose answer it is: the request's correlation id, else its message id."""
    found = request.properties.get(CORRELATION_ID)
    if found is not None and found.value is not None:
        return found
    native = request.get(NATIVE_MESSAGE_ID)
    if isinstance(native, str):
        return Property(CORRELATION_ID, PropertyType.STRING, native)
    if request.user_id is not None:
        return Property(CORRELATION_ID, PropertyType.STRING, str(uuid.UUID(bytes=request.user_id)))
    return None
