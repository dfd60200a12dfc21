"""Data that a newer version wrote: refused with one line and unchanged, or skipped and kept.

Here a newer version is a header, or a record, with a number that this one does not know.
"""

import hashlib
import re

import pytest

from broker.client import AckMode
from broker.client.blocking import Client
from broker.storage.open import bindings_options, messages_options
from journal import Journal
from tests.interop.our_broker import START_TIMEOUT_S, OurBroker

DAMAGED = 1
REFUSED = 2
# Of records; the highest one that has a meaning is 53.
UNKNOWN_TYPE = 200
MESSAGE = 45
# Before the bytes of a message: what reads them.
CORE = 1
UNKNOWN_PERSISTER = 99
# Version, user version and file id are 16 bytes; a leader with the checksum follows.
HEADER = 25
JOURNALS = {"journal": messages_options, "bindings": bindings_options}


@pytest.fixture
def broker(tmp_path):
    """One that has stopped, with a message in a queue."""
    made = OurBroker(tmp_path, options=("--queues", "orders"))
    with Client(made.uri, user=made.USER, password=made.PASSWORD) as client:
        client.session().producer("orders").send("kept")
    assert made.end() == 0
    yield made
    made.ensure_ended()


def header_of(data, at):
    """The header with a higher number there, and without its checksum, which is optional."""
    return data[:at] + bytes([data[at] + 1]) + data[at + 1 : 16] + bytes(HEADER - 16)


def contents(broker, names):
    """Digests of journals' files."""
    return {
        path.relative_to(broker.folder): hashlib.sha256(path.read_bytes()).hexdigest()
        for name in names
        for path in (broker.folder / "data" / name).glob("activemq-*")
    }


def refused_start(broker, status=REFUSED, unchanged=tuple(JOURNALS)):
    """What a start says that is refused; no byte of these journals has changed."""
    before, said = contents(broker, unchanged), len(broker.log())
    broker.process = broker._broker("run", broker.folder)
    assert broker.process.wait(START_TIMEOUT_S) == status
    assert contents(broker, unchanged) == before
    found = broker.log()[said:]
    assert "Traceback" not in found
    return found


def kept(broker):
    """Bodies of what is in the queue."""
    with (
        Client(broker.uri, user=broker.USER, password=broker.PASSWORD) as client,
        client.session(AckMode.CLIENT) as session,
    ):
        received = session.consumer("orders").receive(10)
        return None if received is None else received.text


@pytest.mark.parametrize("name", JOURNALS)
@pytest.mark.parametrize(("at", "what"), [(3, "format version 3"), (7, "user version 1")])
def test_another_format_is_refused_and_the_data_are_not_changed(broker, name, at, what):
    paths = sorted((broker.folder / "data" / name).glob("activemq-*"))
    before = {path: path.read_bytes() for path in paths}
    for path, data in before.items():
        path.write_bytes(header_of(data, at) + data[HEADER:])

    found = refused_start(broker)
    for path, data in before.items():
        path.write_bytes(data)
    broker.start()

    assert len(re.findall(what, found)) == 1, found
    assert kept(broker) == "kept"


def added(options, user_type, body):
    """Append a record; its id."""
    with Journal(options) as journal:
        record_id = journal.load(lambda batch: None).max_id + 1
        journal.add(record_id, user_type, body)
    return record_id


@pytest.mark.parametrize(
    ("name", "user_type", "body", "told"),
    [
        ("journal", UNKNOWN_TYPE, b"of a newer version", f"unknown type {UNKNOWN_TYPE}"),
        ("bindings", UNKNOWN_TYPE, b"of a newer version", f"unknown type {UNKNOWN_TYPE}"),
        ("journal", MESSAGE, bytes([UNKNOWN_PERSISTER]) + bytes(20), "cannot be read here"),
    ],
    ids=["record", "binding", "message"],
)
def test_what_is_not_known_is_told_of_and_stays(broker, name, user_type, body, told):
    options = JOURNALS[name](broker.folder / "data" / name)
    record_id = added(options, user_type, body)

    broker.start()
    found = kept(broker)
    broker.end()
    records = []
    with Journal(options) as journal:
        journal.load(records.extend)

    assert re.search(rf"WARNING .*\b{record_id}\b.*{told}", broker.log()), broker.log()[-2000:]
    assert found == "kept"
    assert [one.body for one in records if one.record_id == record_id] == [body]


def test_a_message_that_is_not_what_it_says_is_refused_with_its_place(broker):
    options = messages_options(broker.folder / "data" / "journal")
    record_id = added(options, MESSAGE, bytes([CORE]) + b"cut")

    found = refused_start(broker, DAMAGED, unchanged=("journal",))

    assert re.search(rf"\brecord {record_id} of type {MESSAGE}\b", found), found
