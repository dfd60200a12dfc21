"""Java's JMS messages as ours, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.bridges.jms.message import BodyKind, JMSMessage
from broker.model.properties import Property, PropertyType

if TYPE_CHECKING:
    from broker.bridges.jms.message import Body
    from broker.model.properties import PropertyValue

__all__ = ["Conversion"]

DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
# Set by the provider that delivers.
_PROVIDER_S: Final = frozenset(("JMSXDeliveryCount", "JMSXRcvTimestamp", "JMSXState", DUPLICATE_ID))
_TYPES: Final = {
    "java.lang.Boolean": (PropertyType.BOOLEAN, bool),
    "java.lang.Byte": (PropertyType.BYTE, int),
    "java.lang.Short": (PropertyType.SHORT, int),
    "java.lang.Integer": (PropertyType.INT, int),
    "java.lang.Long": (PropertyType.LONG, int),
    "java.lang.Float": (PropertyType.FLOAT, float),
    "java.lang.Double": (PropertyType.DOUBLE, float),
    "java.lang.Character": (PropertyType.CHAR, str),
    "java.lang.String": (PropertyType.STRING, str),
}
_BOXES: Final = {
    PropertyType.BOOLEAN: "Boolean",
    PropertyType.BYTE: "Byte",
    PropertyType.SHORT: "Short",
    PropertyType.INT: "Integer",
    PropertyType.LONG: "Long",
    PropertyType.FLOAT: "Float",
    PropertyType.DOUBLE: "Double",
}
_PERSISTENT: Final = 2


class Conversion:
    """See the module's text.

    Args:
        jpype: the module, its JVM running.
        load: gives a class of the provider's JMS API by its simple name.
    """

    def __init__(self, jpype: Any, load: Any) -> None:
        self._jpype = jpype
        self._kinds = {
            load("TextMessage"): (BodyKind.TEXT, self._text),
            load("BytesMessage"): (BodyKind.BYTES, self._bytes),
            load("MapMessage"): (BodyKind.MAP, self._map),
            load("StreamMessage"): (BodyKind.STREAM, self._stream),
            load("ObjectMessage"): (BodyKind.OBJECT, self._object),
        }
        self._end_of_stream = load("MessageEOFException")
        self._queue, self._topic = load("Queue"), load("Topic")

    # --- from Java ----------------------------------------------------------------------------

    def received(self, message: Any) -> JMSMessage:
        """Give a received message."""
        kind, body = BodyKind.EMPTY, None
        for java, (one, read) in self._kinds.items():
            if isinstance(message, java):
                kind, body = one, read(message)
        return JMSMessage(
            kind=kind,
            body=body,
            message_id=_string(message.getJMSMessageID()),
            correlation_id=_string(message.getJMSCorrelationID()),
            reply_to=self._reply_to(message.getJMSReplyTo()),
            type=_string(message.getJMSType()),
            durable=int(message.getJMSDeliveryMode()) == _PERSISTENT,
            priority=int(message.getJMSPriority()),
            expiration_ms=int(message.getJMSExpiration()),
            timestamp_ms=int(message.getJMSTimestamp()),
            properties=self._properties(message),
        )

    def _reply_to(self, destination: Any) -> str | None:
        if isinstance(destination, self._queue):
            return f"queue://{destination.getQueueName()}"
        if isinstance(destination, self._topic):
            return f"topic://{destination.getTopicName()}"
        return _string(destination)

    def _properties(self, message: Any) -> dict[str, Property]:
        found = {}
        names = message.getPropertyNames()
        while names.hasMoreElements():
            name = str(names.nextElement())
            if name not in _PROVIDER_S:
                kind, value = self._value(message.getObjectProperty(name))
                found[name] = Property(name, kind, value)
        return found

    def _value(self, value: Any) -> tuple[PropertyType, PropertyValue]:
        if value is None:
            return PropertyType.NULL, None
        name = str(value.getClass().getName())
        if name == "[B":
            return PropertyType.BYTES, bytes(value)
        kind, convert = _TYPES.get(name, (PropertyType.STRING, str))
        return kind, convert(value)

    def _text(self, message: Any) -> Body:
        return _string(message.getText())

    def _bytes(self, message: Any) -> Body:
        data = self._jpype.JArray(self._jpype.JByte)(int(message.getBodyLength()))
        message.readBytes(data)
        return bytes(data)

    def _map(self, message: Any) -> Body:
        found: dict[str, PropertyValue] = {}
        names = message.getMapNames()
        while names.hasMoreElements():
            name = str(names.nextElement())
            found[name] = self._value(message.getObject(name))[1]
        return found

    def _stream(self, message: Any) -> Body:
        found: list[PropertyValue] = []
        while True:
            try:
                found.append(self._value(message.readObject())[1])
            except self._end_of_stream:
                return found

    def _object(self, message: Any) -> Body:
        data = self._jpype.JClass("java.io.ByteArrayOutputStream")()
        stream = self._jpype.JClass("java.io.ObjectOutputStream")(data)
        stream.writeObject(message.getObject())
        stream.flush()
        return bytes(data.toByteArray())

    # --- to Java ------------------------------------------------------------------------------

    def sent(self, message: JMSMessage, session: Any) -> Any:
        """Give the message to send.

        Args:
            message: of any provider.
            session: of Java, which makes it.
        """
        java = self._made(message, session)
        if message.correlation_id is not None:
            java.setJMSCorrelationID(_plain(message.correlation_id))
        if message.type is not None:
            java.setJMSType(message.type)
        if message.reply_to is not None:
            java.setJMSReplyTo(_destination(message.reply_to, session))
        for name, one in message.properties.items():
            if one.value is not None:
                java.setObjectProperty(name, self._boxed(one))
        if message.duplicate_id is not None:
            java.setStringProperty(DUPLICATE_ID, message.duplicate_id.hex())
        return java

    def _made(self, message: JMSMessage, session: Any) -> Any:
        content = message.content()
        if message.kind is BodyKind.TEXT:
            return session.createTextMessage(content)
        if message.kind is BodyKind.BYTES:
            java = session.createBytesMessage()
            java.writeBytes(self._java_bytes(content or b""))
            return java
        if message.kind is BodyKind.MAP:
            java = session.createMapMessage()
            for name, value in dict(content or {}).items():  # type: ignore[arg-type] # of a MAP
                java.setObject(name, self._plain_value(value))
            return java
        if message.kind is BodyKind.STREAM:
            java = session.createStreamMessage()
            for value in list(content or []):
                java.writeObject(self._plain_value(value))
            return java
        if message.kind is BodyKind.OBJECT:
            data = self._jpype.JClass("java.io.ByteArrayInputStream")(
                self._java_bytes(content or b"")
            )
            stream = self._jpype.JClass("java.io.ObjectInputStream")(data)
            return session.createObjectMessage(stream.readObject())
        return session.createMessage()

    def _java_bytes(self, data: Any) -> Any:
        return self._jpype.JArray(self._jpype.JByte)(data)

    def _boxed(self, one: Property) -> Any:
        if one.type is PropertyType.BYTES:
            # JMS has no such property, but for Artemis's own messages: text for all others.
            return _plain(one.value)
        box = _BOXES.get(one.type)
        return str(one.value) if box is None else self._jpype.JClass(f"java.lang.{box}")(one.value)

    def _plain_value(self, value: PropertyValue) -> Any:
        if isinstance(value, bytes):
            return self._java_bytes(value)
        if isinstance(value, bool):
            return self._jpype.JClass("java.lang.Boolean")(value)
        if isinstance(value, int):
            fits = -(2**31) <= value < 2**31
            return self._jpype.JClass(f"java.lang.{'Integer' if fits else 'Long'}")(value)
        if isinstance(value, float):
            return self._jpype.JClass("java.lang.Double")(value)
        return value


def _string(value: Any) -> str | None:
    return None if value is None else str(value)


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _destination(text: str, session: Any) -> Any:
    kind, separator, name = text.partition("://")
    if not separator:
        kind, name = "queue", text
    return session.createTopic(name) if kind.endswith("topic") else session.createQueue(name)
