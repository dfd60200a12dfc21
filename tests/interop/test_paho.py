"""The same programs with paho-mqtt, a client in Python, on ours and on Artemis."""

import contextlib
import queue

import pytest

from tests.interop.artemis_broker import ArtemisBroker

mqtt = pytest.importorskip("paho.mqtt.client")
packettypes = pytest.importorskip("paho.mqtt.packettypes")
paho_properties = pytest.importorskip("paho.mqtt.properties")

pytestmark = pytest.mark.slow

WAIT_S = 60
# Of a receiver that is to get nothing.
SILENT_S = 1
TRIES = 3
VERSIONS = {"3.1": 3, "3.1.1": 4, "5": 5}
SENT = {
    "PayloadFormatIndicator": 1,
    "ContentType": "text/plain",
    "ResponseTopic": "re/ply",
    "CorrelationData": b"\0\1",
    "UserProperty": [("b", "1"), ("a", "2"), ("b", "3")],
}


def properties(kind, **fields):
    made = paho_properties.Properties(getattr(packettypes.PacketTypes, kind))
    for name, value in fields.items():
        setattr(made, name, value)
    return made


class Paho:
    """A connected client; what comes waits in order."""

    def __init__(self, port, name, version, *, clean=True, will=None):
        self.is_5 = version == 5
        # With a clean start it says so when it connects, in version 5.
        session = {} if self.is_5 else {"clean_session": clean}
        self.client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, name, protocol=version, **session
        )
        self._connected, self._answers, self._messages = (queue.SimpleQueue() for _ in range(3))
        self.client.on_connect = lambda _, __, flags, code, ___: self._connected.put(
            (flags.session_present, str(code))
        )
        self.client.on_subscribe = lambda _, __, ___, codes, ____: self._answers.put(
            [one.value for one in codes]
        )
        self.client.on_unsubscribe = lambda _, __, ___, ____, _____: self._answers.put("left")
        self.client.on_message = lambda _, __, message: self._messages.put(message)
        self.client.username_pw_set(ArtemisBroker.USER, ArtemisBroker.PASSWORD)
        if will is not None:
            self.client.will_set(*will)
        named = {}
        if self.is_5:
            named["clean_start"] = clean
            if not clean:
                named["properties"] = properties("CONNECT", SessionExpiryInterval=600)
        self.client.connect("127.0.0.1", port, **named)
        self.client.loop_start()
        self.session_present, self.code = self._connected.get(timeout=WAIT_S)

    def publish(self, topic, payload, qos=1, *, retain=False, **sent):
        named = {"properties": properties("PUBLISH", **sent)} if self.is_5 and sent else {}
        info = self.client.publish(topic, payload, qos, retain, **named)
        info.wait_for_publish(WAIT_S)
        assert info.is_published()

    def subscribe(self, *filters, qos=1):
        self.client.subscribe([(one, qos) for one in filters])
        return self._answers.get(timeout=WAIT_S)

    def unsubscribe(self, *filters):
        self.client.unsubscribe(list(filters))
        return self._answers.get(timeout=WAIT_S)

    def get(self, patience_s=WAIT_S):
        """The next message, as far as it does not depend on the broker."""
        message = self._messages.get(timeout=patience_s)
        # Without the root: another try has another one.
        found = [message.topic.partition("/")[2], message.payload, message.qos, message.retain]
        if self.is_5:
            known = vars(message.properties)
            found += [known.get(name) for name in SENT]
        return found

    def is_silent(self):
        with contextlib.suppress(queue.Empty):
            return self.get(SILENT_S)
        return True

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()

    def break_off(self):
        """Go without a word."""
        self.client.loop_stop()
        self.client.socket().close()


@contextlib.contextmanager
def connected(*arguments, **named):
    client = Paho(*arguments, **named)
    try:
        yield client
    finally:
        client.close()


# --- the programs: each gives what the clients see ------------------------------------------------


def every_qos(port, version, root):
    seen = []
    with connected(port, f"{root}s", version) as one, connected(port, f"{root}p", version) as other:
        for wanted in (0, 1, 2):
            seen.append(one.subscribe(f"{root}/{wanted}/+", qos=wanted))
            for qos in (0, 1, 2):
                payload = b"%d" % qos + b"x" * qos * 700
                other.publish(f"{root}/{wanted}/{qos}", payload, qos, **SENT)
                seen.append(one.get())
    return seen


def retained(port, version, root):
    seen = []
    with connected(port, f"{root}p", version) as one, connected(port, f"{root}s", version) as other:
        one.publish(f"{root}/a", b"old", retain=True)
        one.publish(f"{root}/a", b"kept", 2, retain=True)
        other.subscribe(f"{root}/#", qos=2)
        seen.append(other.get())
        one.publish(f"{root}/b", b"now", retain=True)
        seen.append(other.get())
        one.publish(f"{root}/a", b"", retain=True)
        seen.append(other.get())
        other.unsubscribe(f"{root}/#")
        one.publish(f"{root}/b", b"not heard")
        other.subscribe(f"{root}/#")
        seen += [other.get(), other.is_silent()]
    return seen


def wills(port, version, root):
    seen = []
    with connected(port, f"{root}s", version) as one:
        one.subscribe(f"{root}/#")
        Paho(port, f"{root}w", version, will=(f"{root}/w", b"gone", 1, False)).break_off()
        seen.append(one.get())
    return seen


def sessions(port, version, root):
    seen = []
    with connected(port, f"{root}s", version, clean=False) as one:
        seen += [one.session_present, one.code, one.subscribe(f"{root}/+", qos=2)]
    with connected(port, f"{root}p", version) as other:
        for qos in (0, 1, 2):
            other.publish(f"{root}/{qos}", b"%d" % qos, qos, **SENT)
    with connected(port, f"{root}s", version, clean=False) as one:
        seen += [one.session_present, *(one.get() for _ in range(3)), one.is_silent()]
    with connected(port, f"{root}s", version) as one:
        seen.append(one.session_present)
    return seen


def filters(port, version, root):
    wanted = [f"{root}/+/b", f"{root}/c/#", f"{root}/$d"]
    seen = []
    with connected(port, f"{root}s", version) as one:
        seen.append(one.subscribe(*wanted))
        # Not "f.g/b": Artemis takes a dot for a level's end, and finds no filter for it.
        for topic in ("a/b", "a/c", "c", "c/d/e", "$d", "a b/b", "größe/b"):
            one.publish(f"{root}/{topic}", topic.encode())
        # MQTT promises an order within a topic only, and Artemis keeps to that alone.
        seen += [sorted(one.get() for _ in range(6)), one.is_silent()]
    return seen


def large(port, version, root):
    with connected(port, f"{root}s", version) as one:
        one.subscribe(root, qos=2)
        body = bytes(range(256)) * 4096
        seen = []
        for qos in (0, 1, 2):
            one.publish(root, body, qos)
            found = one.get()
            seen += [found[1] == body, found[2]]
    return seen


PROGRAMS = [every_qos, retained, wills, sessions, filters, large]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_it_sees_the_same(distributed_broker, our_broker, program, version):
    ours = program(our_broker.port, VERSIONS[version], root_of(program, version))

    theirs = seen_at_artemis(distributed_broker, program, version, ours)

    assert ours == theirs


def root_of(program, version, number=0):
    """Where a program's topics begin. An id of version 3.1 has 23 characters at most."""
    return f"{program.__name__}{VERSIONS[version]}{number}"


def seen_at_artemis(broker, program, version, ours):
    """What its clients see: where it is not what ours see, it has another try; ours has none.

    It loses messages where much happens at once, and lets one overtake another.
    """
    theirs = None
    for number in range(TRIES):
        with contextlib.suppress(queue.Empty):
            theirs = program(broker.port, VERSIONS[version], root_of(program, version, number))
            if theirs == ours:
                break
    return theirs


@pytest.mark.parametrize("version", VERSIONS)
def test_a_wrong_password_is_refused_with_the_same_code(
    monkeypatch, distributed_broker, our_broker, version
):
    monkeypatch.setattr(ArtemisBroker, "PASSWORD", "wrong")

    theirs, ours = (
        connection_refused(one.port, VERSIONS[version]) for one in (distributed_broker, our_broker)
    )

    assert ours == theirs


def connection_refused(port, version):
    with connected(port, "refused", version) as client:
        return client.code
