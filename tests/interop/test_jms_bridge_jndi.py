"""JMS bridges by a provider's jars and JNDI names, with JPype, in a process of their own."""

import os
import signal
import subprocess
import sys
import uuid

import pytest

from broker.model.routing_type import RoutingType
from tests.broker.bridges.jms.ends import wait_for
from tests.interop.fetched import PeerUnavailableError
from tests.interop.jms.client import jar
from tests.interop.test_jms_bridge import make_queue, session_of, take

COUNT = 20
END_S = 60
SIDE = """
provider = "jms"
jars = ["{jar}"]
connection-factory = "ConnectionFactory"
queue = "queues/q"
user = "{user}"
password = "{password}"

[{role}.jndi]
"java.naming.factory.initial" = "org.apache.activemq.artemis.jndi.ActiveMQInitialContextFactory"
"connectionFactory.ConnectionFactory" = "{uri}?type=XA_CF"
"queue.queues/q" = "{queue}"
"""
CORE = """
url = "{uri}"
queue = "{queue}"
user = "{user}"
password = "{password}"
"""
HEAD = """
name = "jndi"
quality-of-service = "{quality}"
exactly-once = "{exactly_once}"
max-batch-size = 6
max-batch-time = 50
failure-retry-interval = 100
add-message-id-in-header = true
transaction-log = "log"
max-retries = {retries}
"""


@pytest.fixture(scope="module")
def client_jar():
    pytest.importorskip("jpype")
    try:
        return jar()
    except PeerUnavailableError as error:
        pytest.skip(str(error))


def side(role, kind, broker, queue, client_jar):
    text = (SIDE if kind == "jms" else CORE).format(
        role=role,
        jar=client_jar,
        uri=broker.uri,
        queue=queue,
        user=broker.USER,
        password=broker.PASSWORD,
    )
    return f"\n[{role}]{text}"


def file_of(tmp_path, source, target, quality="DUPLICATES_OK", exactly_once="auto", retries=-1):
    file = tmp_path / "jndi.toml"
    head = HEAD.format(quality=quality, exactly_once=exactly_once, retries=retries)
    file.write_text(head + side("source", *source) + side("target", *target))
    return file


def started(file):
    return subprocess.Popen(
        [sys.executable, "-m", "broker.cli.main", "bridge", "run", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


WAYS = [
    ("AT_MOST_ONCE", "auto"),
    ("DUPLICATES_OK", "auto"),
    ("ONCE_AND_ONLY_ONCE", "two-phase"),
]


@pytest.mark.parametrize(("quality", "exactly_once"), WAYS)
@pytest.mark.parametrize("kinds", [("jms", "core"), ("core", "jms"), ("jms", "jms")])
def test_between_artemis_and_ours(
    tmp_path, distributed_broker, our_broker, client_jar, kinds, quality, exactly_once
):
    queues = make_queue(distributed_broker), make_queue(our_broker)
    contents = [f"m{number}" for number in range(COUNT)] + [b"\x00\xff", {"a": 1, "b": "c"}]
    # Artemis's client takes every id for one of version 1.
    user_id = uuid.uuid1()
    with session_of(distributed_broker) as session, session.producer(queues[0]) as producer:
        for content in contents:
            producer.send(content, properties={"n": 5, "ok": True}, user_id=user_id.bytes)
    file = file_of(
        tmp_path,
        (kinds[0], distributed_broker, queues[0], client_jar),
        (kinds[1], our_broker, queues[1], client_jar),
        quality,
        exactly_once,
    )

    process = started(file)
    try:
        found = take(our_broker, queues[1], len(contents))
    finally:
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=END_S)[0]

    assert [one.content for one in found] == contents, said
    assert {(one.get("n"), one.get("ok")) for one in found} == {(5, True)}
    assert {one.get("AMQ_BRIDGE_MSG_ID_LIST") for one in found} == {f"ID:{user_id}"}
    assert process.returncode == 0, said
    with session_of(distributed_broker) as session:
        assert session.query_queue(queues[0]).message_count == 0


def test_a_missing_jar_is_one_clear_error(tmp_path, distributed_broker, our_broker):
    file = file_of(
        tmp_path,
        ("jms", distributed_broker, "q", tmp_path / "no.jar"),
        ("core", our_broker, "q", None),
    )

    process = started(file)
    said = process.communicate(timeout=END_S)[0]

    assert process.returncode == 2
    assert said == f"broker: {file}: [source]: jar {tmp_path / 'no.jar'} does not exist\n"


@pytest.mark.parametrize(
    ("line", "missing", "java"),
    [
        ('queue = "queues/q"', "queues/other", "other"),
        ('connection-factory = "ConnectionFactory"', "Other", "Other"),
    ],
)
def test_a_missing_jndi_name_is_named(
    tmp_path, distributed_broker, our_broker, client_jar, line, missing, java
):
    file = file_of(
        tmp_path,
        ("jms", distributed_broker, "q", client_jar),
        ("core", our_broker, make_queue(our_broker), None),
        retries=1,
    )
    other = f'{line.partition(" ")[0]} = "{missing}"'
    file.write_text(file.read_text().replace(line, other))

    process = started(file)
    said = process.communicate(timeout=END_S)[0]

    assert process.returncode == 1
    expected = f"jndi: failed: JNDI name '{missing}': javax.naming.NameNotFoundException: {java}"
    assert expected in said.splitlines()


def test_a_durable_subscription_by_two_phase_commit(
    tmp_path, distributed_broker, our_broker, client_jar
):
    """What was sent while the bridge was away is in its subscription, which has its client id."""
    topic, queue = f"t-{uuid.uuid4()}", make_queue(our_broker)
    with session_of(distributed_broker) as session:
        session.create_address(topic, RoutingType.MULTICAST)
    file = file_of(
        tmp_path,
        ("jms", distributed_broker, topic, client_jar),
        ("core", our_broker, queue, None),
        "ONCE_AND_ONLY_ONCE",
        "two-phase",
    )
    text = file.read_text().replace('"queue.queues/q"', '"topic.topics/t"', 1)
    text = text.replace('queue = "queues/q"', 'topic = "topics/t"', 1)
    file.write_text(f'subscription-name = "s"\nclient-id = "{topic}"\n{text}')
    came = []
    for content in ("here", "away"):
        process = started(file)
        try:
            if content == "here":
                wait_for(lambda: f"{topic}.s" in subscriptions(distributed_broker, topic))
                send(distributed_broker, topic, content)
            came += [one.content for one in take(our_broker, queue, 1)]
        finally:
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=END_S)[0]
        assert process.returncode == 0, said
        send(distributed_broker, topic, "away")
    assert came == ["here", "away"]


def subscriptions(broker, topic):
    with session_of(broker) as session:
        return [one.replace("\\", "") for one in session.query_address(topic).queue_names]


def send(broker, address, content):
    with session_of(broker) as session, session.producer(address) as producer:
        producer.send(content, durable=True)
