"""What receivers of each protocol get of what senders of each protocol send, in words.

A cell is one sender, one kind of body or one header, one receiver. For each row of cells five
subscribers wait at an address, one of each protocol, and one sender sends one message.

`python -m tests.broker.protocols.between` prints both tables of docs/guide/between-protocols.md, of
a broker of ours.
"""

import asyncio
import contextlib
import re
import time
from typing import NamedTuple

from proton import Delivery, ProtonException, byte, float32, int32, short, symbol

from broker.client import AsyncClient
from broker.model.bodies import decode_map, decode_stream, decode_text, encode_map, encode_stream
from broker.model.bodies import encode_text as core_text
from broker.model.message import Message as CoreMessage
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.protocols.mqtt.packets import Publish
from broker.protocols.mqtt.properties import PropertyId
from broker.protocols.openwire import commands as c
from broker.protocols.openwire.destinations import qualified
from broker.protocols.openwire.primitives import read_map, read_values, write_map, write_values
from tests.broker.protocols.amqp.client import Capability, Client, Message
from tests.broker.protocols.mqtt.client import Mqtt
from tests.broker.protocols.openwire.client import SIZE, OpenWire
from tests.broker.protocols.stomp.client import Stomp, serving

PROTOCOLS = ("Core", "AMQP", "MQTT", "OpenWire", "STOMP")
TEXT = "grüße €"
DATA = bytes((0, 1, 254, 255))
MAP = {"n": 1}
STREAM = ["x", 1]
# As Java writes a text; no test reads it.
OBJECT = bytes.fromhex("aced0005740001") + b"x"
BODIES = {
    "Core": ("text", "bytes", "map", "stream", "object", "none"),
    "AMQP": (
        *(
            "text",
            "bytes",
            "map",
            "stream",
            "sequence",
            "object",
            "number",
            "real",
            "truth",
            "none",
        ),
    ),
    "MQTT": ("text", "bytes", "none"),
    "OpenWire": ("text", "bytes", "map", "stream", "object", "none"),
    "STOMP": ("text", "bytes", "none"),
}
# Rows, and the properties that they are of.
PROPERTY_ROWS = {"text property": "k", "number property": "n", "truth property": "f"} | {
    f"{kind} property": kind for kind in ("byte", "short", "long", "float", "double", "bytes")
}
# As a sender gives them.
MESSAGE_ID, USER_ID, CONTENT_TYPE = "ID:1", "me", "text/plain"
TIMESTAMP_MS, HOUR_S = 1_700_000_000_000, 3600
# Kinds of destinations for an answer that a protocol tells apart: what Core's text of one begins
# with, AMQP's number, OpenWire's type.
REPLY_TO = {
    "queue": ("queue://", 0, c.ActiveMQQueue),
    "topic": ("topic://", 1, c.ActiveMQTopic),
    "temporary queue": ("temp-queue://", 2, c.ActiveMQTempQueue),
    "temporary topic": ("temp-topic://", 3, c.ActiveMQTempTopic),
}
REPLIED_BY = ("Core", "AMQP", "OpenWire")
JMS_REPLY_TO, JMS_DESTINATION = symbol("x-opt-jms-reply-to"), symbol("x-opt-jms-dest")
HEADERS = (
    "destination",
    *("durable", "priority", "type", "correlation id", "reply to", "group"),
    *("message id", "timestamp", "expiration", "group sequence", "user id", "content type"),
    *PROPERTY_ROWS,
)
NOTHING = "nothing"
WAIT_S = 5
# An error in a message's place, a connection that was closed, or silence.
NOTHING_COMES = (OSError, EOFError, AssertionError, ProtonException)
PROPERTIES = [
    Property("k", PropertyType.STRING, "v"),
    Property("n", PropertyType.INT, 7),
    Property("f", PropertyType.BOOLEAN, True),
    Property("byte", PropertyType.BYTE, -3),
    Property("short", PropertyType.SHORT, 300),
    Property("long", PropertyType.LONG, 2**40),
    Property("float", PropertyType.FLOAT, 0.25),
    Property("double", PropertyType.DOUBLE, 1.5),
    # Not of OpenWire.
    Property("bytes", PropertyType.BYTES, b"\1\2"),
]


class Login(NamedTuple):
    """Where a broker is, and as whom it is asked."""

    port: int
    user: str | None = None
    password: str | None = None


class Got(NamedTuple):
    """What a receiver has of a message: its body, and its headers by name."""

    body: str
    headers: dict


def words(value):
    """A body."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return f"text {value}".rstrip()
    if isinstance(value, bytes | bytearray | memoryview):
        return f"bytes {bytes(value).hex()}".rstrip()
    if isinstance(value, dict):
        return "map " + " ".join(f"{name}={_word(value[name])}" for name in sorted(value))
    if isinstance(value, int | float):
        return f"value {_word(value)}"
    return "stream " + " ".join(map(_word, value))


def payload(data):
    """A body of which nothing says what it is."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return words(data)
    return words(text if text.isprintable() else data) if text else "none"


def _word(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    # The engine's types show their names.
    if isinstance(value, int | float):
        return str(float(value) if isinstance(value, float) else int(value))
    return "" if value is None else str(value)


def _property(one):
    return "" if one is None else f"{one.type.name.lower()} {_word(one.value)}"


def _given(value, sent):
    """A header that the sender has given, or one that is made of nothing that it gave."""
    if not value:
        return ""
    return _word(sent) if value == sent else "another"


def _until(expires_ms):
    """An expiration; what a message has on its way does not count."""
    if not expires_ms:
        return ""
    left_s = expires_ms / 1000 - time.time()
    return "in 1 h" if HOUR_S - 60 < left_s < HOUR_S + 60 else f"in {left_s:.0f} s"


def _in_an_hour_ms():
    return int((time.time() + HOUR_S) * 1000)


# --- senders ----------------------------------------------------------------------------------


def core_body(kind):
    return {
        "text": (MessageType.TEXT, core_text(TEXT)),
        "bytes": (MessageType.BYTES, DATA),
        "map": (MessageType.MAP, encode_map(MAP)),
        "stream": (MessageType.STREAM, encode_stream(STREAM)),
        "object": (MessageType.OBJECT, SIZE.pack(len(OBJECT)) + OBJECT),
        "none": (MessageType.DEFAULT, b""),
    }[kind]


@contextlib.asynccontextmanager
async def core_session(login):
    uri = f"tcp://127.0.0.1:{login.port}"
    async with (
        AsyncClient(uri, user=login.user, password=login.password) as client,
        await client.session() as session,
    ):
        session.start()
        yield session


async def send_core(login, address, kind, reply_to):
    type_, body = core_body(kind)
    message = CoreMessage(address, body)
    message.type = type_
    if reply_to:
        message.durable, message.priority = True, 7
        message.set("JMSType", PropertyType.STRING, "kind")
        message.set("JMSCorrelationID", PropertyType.STRING, "c-1")
        message.set("JMSReplyTo", PropertyType.STRING, f"{REPLY_TO[reply_to][0]}answers")
        message.set("_AMQ_GROUP_ID", PropertyType.STRING, "g")
        message.set("_AMQ_GROUP_SEQUENCE", PropertyType.INT, 3)
        message.timestamp, message.expiration = TIMESTAMP_MS, _in_an_hour_ms()
        for one in PROPERTIES:
            message.set(one.name, one.type, one.value)
    async with core_session(login) as session:
        await session.producer(address).send(message)


def amqp_options(login):
    if login.user is None:
        return {}
    return {"user": login.user, "password": login.password, "allowed_mechs": "PLAIN"}


async def send_amqp(login, address, kind, reply_to):
    bodies = {"text": TEXT, "bytes": DATA, "map": MAP, "stream": STREAM, "none": None}
    bodies |= {"sequence": STREAM, "object": OBJECT, "number": 7, "real": 0.5, "truth": True}
    message = Message(body=bodies[kind], inferred=kind in ("bytes", "sequence", "object"))
    if kind == "object":
        message.content_type = symbol("application/x-java-serialized-object")
    if reply_to:
        message.durable, message.priority, message.subject = True, 7, "kind"
        message.correlation_id, message.reply_to, message.group_id = "c-1", "answers", "g"
        if reply_to != "queue":
            message.annotations = {JMS_REPLY_TO: byte(REPLY_TO[reply_to][1])}
        message.id, message.user_id = MESSAGE_ID, USER_ID.encode()
        message.creation_time, message.ttl = TIMESTAMP_MS / 1000, HOUR_S
        message.group_sequence, message.content_type = 3, symbol(CONTENT_TYPE)
        message.properties = {"k": "v", "n": int32(7), "f": True, "bytes": b"\1\2"}
        message.properties |= {"byte": byte(-3), "short": short(300), "long": 2**40}
        message.properties |= {"float": float32(0.25), "double": 1.5}
    async with Client.of(login.port, **amqp_options(login)) as client:
        await (await client.sender(address, Capability("topic"))).send(message)


def mqtt_options(login):
    if login.user is None:
        return {}
    return {"user": login.user, "password": login.password.encode()}


async def send_mqtt(login, address, kind, reply_to):
    properties = {}
    if reply_to:
        properties = {
            PropertyId.RESPONSE_TOPIC: "answers",
            PropertyId.CORRELATION_DATA: b"c-1",
            PropertyId.USER_PROPERTY: [("k", "v"), ("n", "7"), ("f", "true")],
            PropertyId.MESSAGE_EXPIRY_INTERVAL: HOUR_S,
            PropertyId.CONTENT_TYPE: CONTENT_TYPE,
        }
    data = {"text": TEXT.encode(), "bytes": DATA, "none": b""}[kind]
    async with Mqtt.of(login.port, "sender", **mqtt_options(login)) as client:
        await client.publish(address.replace(".", "/"), data, 1, properties=properties)


async def send_openwire(login, address, kind, reply_to):
    encoded = TEXT.encode()
    made, content = {
        "text": (c.ActiveMQTextMessage, SIZE.pack(len(encoded)) + encoded),
        "bytes": (c.ActiveMQBytesMessage, DATA),
        "map": (c.ActiveMQMapMessage, write_map(read_items(MAP))),
        "stream": (c.ActiveMQStreamMessage, write_values(read_items(STREAM))),
        "object": (c.ActiveMQObjectMessage, OBJECT),
        "none": (c.ActiveMQMessage, None),
    }[kind]
    fields = {}
    if reply_to:
        fields = {
            "type": "kind",
            "correlation_id": "c-1",
            "reply_to": REPLY_TO[reply_to][2]("answers"),
            "group_id": "g",
            "group_sequence": 3,
            "user_id": USER_ID,
            "timestamp": TIMESTAMP_MS,
            "expiration": _in_an_hour_ms(),
            "marshalled_properties": write_map(PROPERTIES[:-1]),
        }
    async with openwire(login, "sender") as client:
        message = client.sent(made, c.ActiveMQTopic(address), content, **fields)
        message.persistent, message.priority = reply_to is not None, 7 if reply_to else 4
        await client.ask(message)


def read_items(values):
    pairs = values.items() if isinstance(values, dict) else (("", value) for value in values)
    return [
        Property(name, PropertyType.STRING if isinstance(value, str) else PropertyType.INT, value)
        for name, value in pairs
    ]


def openwire(login, name):
    return OpenWire.of(
        login.port,
        f"client-{name}",
        name=f"ID:{name}-1-2-3:1",
        user_name=login.user,
        password=login.password,
    )


def stomp(login):
    if login.user is None:
        return Stomp.of(login.port)
    return Stomp.of(login.port, login=login.user, passcode=login.password)


async def send_stomp(login, address, kind, reply_to):
    headers = {"destination": address, "destination-type": "MULTICAST"}
    body = b"" if kind == "none" else TEXT.encode()
    if kind == "bytes":
        body, headers["content-length"] = DATA, len(DATA)
    if reply_to:
        headers |= {"persistent": "true", "priority": 7, "type": "kind", "JMSXGroupID": "g"}
        headers |= {"correlation-id": "c-1", "reply-to": "answers", "k": "v", "n": 7, "f": "true"}
        headers |= {"expires": _in_an_hour_ms(), "content-type": CONTENT_TYPE}
    async with stomp(login) as client:
        await client.do("SEND", headers, body)


SENDERS = {
    "Core": send_core,
    "AMQP": send_amqp,
    "MQTT": send_mqtt,
    "OpenWire": send_openwire,
    "STOMP": send_stomp,
}


# --- receivers: each gives what awaits one message --------------------------------------------


@contextlib.asynccontextmanager
async def receive_core(login, address):
    kinds = {
        MessageType.TEXT: decode_text,
        MessageType.BYTES: bytes,
        MessageType.MAP: decode_map,
        MessageType.STREAM: decode_stream,
    }
    async with core_session(login) as session:
        queue = f"{address}.core"
        await session.create_queue(
            queue, address, routing_type=RoutingType.MULTICAST, durable=False, temporary=True
        )
        consumer = await session.consumer(queue)

        async def get():
            received = await consumer.receive(WAIT_S)
            if received is None:
                return None
            message = received.message
            body = bytes(message.body)
            if message.type in kinds:
                body = words(kinds[message.type](body))
            elif message.type == MessageType.OBJECT:
                body = f"object {body[SIZE.size :].hex()}"
            else:
                body = words(body or None)
            names = message.properties
            return Got(
                body,
                {
                    "destination": message.address,
                    "durable": _word(message.durable),
                    "priority": _word(message.priority),
                    "type": _word(message.get("JMSType")),
                    "correlation id": _word(message.get("JMSCorrelationID")),
                    "reply to": _word(message.get("JMSReplyTo")),
                    "group": _word(message.get("_AMQ_GROUP_ID")),
                    "message id": "another" if message.user_id else "",
                    "timestamp": _given(message.timestamp, TIMESTAMP_MS),
                    "expiration": _until(message.expiration),
                    "group sequence": _word(message.group_sequence or None),
                    "user id": _given(message.get("_AMQ_VALIDATED_USER"), USER_ID),
                    "content type": _word(
                        message.get("JMS_AMQP_ContentType") or message.get("content-type")
                    ),
                }
                | {row: _property(names.get(name)) for row, name in PROPERTY_ROWS.items()},
            )

        yield get


@contextlib.asynccontextmanager
async def receive_amqp(login, address):
    names = {"str": "string", "bool": "boolean", "int": "long", "int32": "int", "bytes": "binary"}
    names |= {"memoryview": "binary", "float32": "float", "float": "double"}

    def of_type(value):
        kind = type(value).__name__
        return "" if value is None else f"{names.get(kind, kind)} {_word(value)}"

    async with Client.of(login.port, **amqp_options(login)) as client:
        receiver = await client.receiver(address, Capability("topic"))

        async def get():
            message = await receiver.get(WAIT_S)
            await receiver.settle(Delivery.ACCEPTED)
            properties = message.properties or {}

            def jms_name(name, annotation):
                kind = (message.annotations or {}).get(annotation)
                return _word(name) if kind is None else f"{list(REPLY_TO)[kind]} {name or ''}"

            # Proton has a symbol of None.
            content = str(message.content_type).replace("None", "")
            body = words(message.body)
            if "java-serialized" in content:
                body = body.replace("bytes", "object")
            return Got(
                body,
                {
                    "destination": jms_name(message.address, JMS_DESTINATION),
                    "durable": _word(message.durable),
                    "priority": _word(message.priority),
                    "type": _word(message.subject),
                    "correlation id": _word(message.correlation_id),
                    "reply to": jms_name(message.reply_to, JMS_REPLY_TO),
                    "group": _word(message.group_id),
                    "message id": _given(message.id, MESSAGE_ID),
                    "timestamp": _given(message.creation_time * 1000, TIMESTAMP_MS),
                    "expiration": _until(
                        message.expiry_time * 1000
                        or (message.ttl and (time.time() + message.ttl) * 1000)
                    ),
                    "group sequence": _word(message.group_sequence or None),
                    "user id": _given(bytes(message.user_id or b"").decode(), USER_ID),
                    "content type": content,
                }
                | {row: of_type(properties.get(name)) for row, name in PROPERTY_ROWS.items()},
            )

        yield get


@contextlib.asynccontextmanager
async def receive_mqtt(login, address):
    async with Mqtt.of(login.port, "receiver", **mqtt_options(login)) as client:
        await client.subscribe(address.replace(".", "/"), qos=1)

        async def get():
            found = await client.get(Publish)
            named = dict(found.properties.get(PropertyId.USER_PROPERTY, ()))
            return Got(
                payload(found.payload),
                {
                    "destination": found.topic,
                    # What is not durable comes with QoS 0.
                    "durable": _word(found.qos > 0),
                    "correlation id": payload(
                        found.properties.get(PropertyId.CORRELATION_DATA, b"")
                    )
                    .removeprefix("text ")
                    .removesuffix("none"),
                    "reply to": _word(found.properties.get(PropertyId.RESPONSE_TOPIC)),
                    "expiration": _until(
                        (interval := found.properties.get(PropertyId.MESSAGE_EXPIRY_INTERVAL, 0))
                        and (time.time() + interval) * 1000
                    ),
                    "content type": _word(found.properties.get(PropertyId.CONTENT_TYPE)),
                }
                | {row: _word(named.get(name)) for row, name in PROPERTY_ROWS.items()},
            )

        yield get


@contextlib.asynccontextmanager
async def receive_openwire(login, address):
    def body_of(message):
        content = bytes(message.content or b"")
        match message:
            case c.ActiveMQTextMessage():
                return words(content[SIZE.size :].decode() if content else None)
            case c.ActiveMQBytesMessage():
                return words(content)
            case c.ActiveMQMapMessage():
                return words({one.name: one.value for one in read_map(content)})
            case c.ActiveMQStreamMessage():
                return words([one.value for one in read_values(content)])
            case c.ActiveMQObjectMessage():
                return f"object {content.hex()}"
        return words(content or None)

    async with openwire(login, "receiver") as client:
        await client.consume(c.ActiveMQTopic(address))

        async def get():
            message = (await client.message()).message
            names = {one.name: one for one in read_map(message.marshalled_properties or b"\0" * 4)}
            reply = message.reply_to
            return Got(
                body_of(message),
                {
                    "destination": qualified(message.destination),
                    "durable": _word(message.persistent),
                    "priority": _word(message.priority),
                    "type": _word(message.type),
                    "correlation id": _word(message.correlation_id),
                    "reply to": "" if reply is None else qualified(reply),
                    "group": _word(message.group_id),
                    "message id": "another" if message.message_id else "",
                    "timestamp": _given(message.timestamp, TIMESTAMP_MS),
                    "expiration": _until(message.expiration),
                    "group sequence": _word(message.group_sequence or None),
                    "user id": _given(message.user_id, USER_ID),
                    "content type": _property(names.get("JMS_AMQP_ContentType"))
                    or _property(names.get("content-type")),
                }
                | {row: _property(names.get(name)) for row, name in PROPERTY_ROWS.items()},
            )

        yield get


@contextlib.asynccontextmanager
async def receive_stomp(login, address):
    async with stomp(login) as client:
        await client.subscribe(address, subscription_type="MULTICAST")

        async def get():
            reply = await client.get("MESSAGE")
            headers = reply.headers
            names = {
                "destination": "destination",
                "durable": "persistent",
                "priority": "priority",
                "type": "type",
                "correlation id": "correlation-id",
                "reply to": "reply-to",
                "group": "JMSXGroupID",
                "group sequence": "JMSXGroupSeq",
                "content type": "content-type",
                **PROPERTY_ROWS,
            }
            made = {
                "message id": _given(headers["message-id"], MESSAGE_ID),
                "timestamp": _given(int(headers["timestamp"]), TIMESTAMP_MS),
                "expiration": _until(int(headers["expires"])),
                "user id": _given(headers.get("JMSXUserID"), USER_ID),
            }
            return Got(
                payload(reply.body),
                {
                    # A hash that Java makes of bytes is another one each time.
                    name: re.sub(r"(?<=^\[B@).*", "…", headers.get(one, ""))
                    for name, one in names.items()
                }
                | made,
            )

        yield get


RECEIVERS = {
    "Core": receive_core,
    "AMQP": receive_amqp,
    "MQTT": receive_mqtt,
    "OpenWire": receive_openwire,
    "STOMP": receive_stomp,
}


# --- all of it --------------------------------------------------------------------------------


async def received(login, sender, kind, *, reply_to=None, receivers=PROTOCOLS):
    """What each receiver has of one message: {receiver: Got or None}."""
    address = f"{sender}.{reply_to or kind}".replace(" ", "-").lower()

    async def one(get):
        try:
            async with asyncio.timeout(WAIT_S):
                return await get()
        except NOTHING_COMES:
            return None

    async with contextlib.AsyncExitStack() as stack:
        getting = {
            name: await stack.enter_async_context(RECEIVERS[name](login, address))
            for name in receivers
        }
        await SENDERS[sender](login, address, kind, reply_to)
        found = await asyncio.gather(*(one(get) for get in getting.values()))
    return dict(zip(getting, found, strict=True))


async def bodies(login):
    """A row for each sender and kind of body: what each receiver has of it."""
    rows = {}
    for sender, kinds in BODIES.items():
        for kind in kinds:
            found = await received(login, sender, kind)
            rows[sender, kind] = [
                NOTHING if found[name] is None else found[name].body for name in PROTOCOLS
            ]
    return rows


async def headers(login):
    """A row for each sender and each header that any receiver has, likewise."""
    rows = {}

    def add(sender, row, found, header):
        cells = [
            NOTHING if found[name] is None else found[name].headers.get(header, "")
            for name in PROTOCOLS
        ]
        if any(cells):
            rows[sender, row] = [cell or "–" for cell in cells]

    for sender in SENDERS:
        found = await received(login, sender, "text", reply_to="queue")
        for header in HEADERS:
            add(sender, header, found, header)
        for kind in list(REPLY_TO)[1:] if sender in REPLIED_BY else ():
            found = await received(login, sender, "text", reply_to=kind)
            add(sender, f"reply to a {kind}", found, "reply to")
    return rows


def table(rows, second):
    """Rows as the manual has them."""
    lines = [f"| sender | {second} | {' | '.join(PROTOCOLS)} |", "|---" * 7 + "|"]
    lines += [
        f"| {sender} | {what} | {' | '.join(cells)} |" for (sender, what), cells in rows.items()
    ]
    return "\n".join(lines)


def rows_of(page, second):
    """The rows of a table of the manual, as it has them."""
    lines = iter(page.read_text().splitlines())
    for line in lines:
        if line.startswith(f"| sender | {second} |"):
            next(lines)
            break
    found = {}
    for line in lines:
        if not line.startswith("|"):
            break
        sender, what, *cells = (one.strip() for one in line.strip("|").split("|"))
        found[sender, what] = cells
    return found


async def main():
    async with serving() as broker:
        login = Login(broker.acceptors[0].port)
        print(table(await bodies(login), "sends"))
        print()
        print(table(await headers(login), "header"))


if __name__ == "__main__":
    asyncio.run(main())
