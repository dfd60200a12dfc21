"""mypy, as a user runs it, refuses wrong keyword arguments and takes right ones."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from broker.records.binding_records import QueueBinding, QueueBindingChanges
from broker.settings.settings import SETTINGS
from broker.settings.settings_changes import AddressSettingsChanges

ROOT = Path(__file__).resolve().parents[2]
# The lines with `refused` at their end, and no others, are errors.
PROGRAM = """\
from pathlib import Path

from broker.routing.addresses import Addresses
from broker.client import AckMode, AsyncClient, Client
from broker.settings.settings import AddressSettings
from broker.storage.open import bindings_options, messages_options
from jdbcstore import DatabaseStoreOptions
from journal import JournalOptions, JournalType

journal = JournalOptions(directory="data", file_size="10M", journal_type="NIO", max_io=None)
journal = JournalOptions(directory=Path("data"), journal_type=JournalType.NIO)
JournalOptions(directory="data", file_sise=1)  # refused
JournalOptions(file_size=1)  # refused
journal.replace(directory="other", buffer_timeout_ns="2ms", replaceable_types=[34])
journal.replace(file_sise=1)  # refused
journal.replace(min_files="2")  # refused
journal.replace(journal_type="NIOO")  # refused
messages_options("data", min_files=3)
messages_options("data", min_file=3)  # refused
bindings_options("data", checksum=False)  # refused

database = DatabaseStoreOptions(connection_url="sqlite://")
database.replace(network_timeout_ms=1, user=None)
database.replace(network_timeout=1)  # refused
database.replace(network_timeout_ms="1")  # refused
DatabaseStoreOptions.from_elements({}, connection_url="sqlite://")
DatabaseStoreOptions.from_elements({}, conection_url="sqlite://")  # refused

AddressSettings(max_delivery_attempts=3, expiry_address=None)
AddressSettings(max_delivery_attempt=3)  # refused
AddressSettings(max_delivery_attempts="3")  # refused


def update(addresses: Addresses) -> None:
    addresses.update_queue("q", max_consumers=3, filter=None)
    addresses.update_queue("q", max_consumer=3)  # refused
    addresses.update_queue("q", max_consumers="3")  # refused


Client(user="me", call_timeout=5)
Client(call_timeout_ms=5)  # refused
Client(call_timeout="5")  # refused
AsyncClient(reconnect_attempt=5)  # refused
with Client() as client, client.connect() as connection:
    client.session(AckMode.AUTO, start=False, pre_acknowledge=True)
    client.session(preacknowledge=True)  # refused
    connection.session(preacknowledge=True)  # refused
    with connection.session(block_on_acknowledge=True) as session:
        session.create_queue("q", ring_size=5, exclusive=None)
        session.create_queue("q", ringsize=5)  # refused
        session.create_shared_queue("q", "a", max_consumers=5)
        session.create_shared_queue("q", "a", auto_created=True)  # refused
        session.producer("q").send("text", priority=9, properties={"n": 1})
        session.producer("q").send("text", prio=9)  # refused
        session.producer("q").post("text", priority="9")  # refused
        session.producer("q").send_stream(open("f", "rb"), time_to_live=9)  # refused
        answer = session.request("q", "text", timeout_s=1, durable=False)
        session.request("q", "text", timeout=1)  # refused
        session.reply(answer, "text", prio=1)  # refused


async def main() -> None:
    async with AsyncClient(call_timeout=5) as client:
        session = await client.session(client_id="me")
        await client.session(clientid="me")  # refused
        await (await client.connect()).session(clientid="me")  # refused
        await session.create_queue("q", ringsize=5)  # refused
        await session.create_shared_queue("q", "a", ringsize=5)  # refused
        await session.producer("q").send("text", prio=9)  # refused
        await session.producer("q").post("text", prio=9)  # refused
        answer = await session.request("q", "text", prio=9)  # refused
        await session.reply(answer, "text", prio=9)  # refused
"""


@pytest.mark.slow
def test_mypy_refuses_wrong_keyword_arguments(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed: quiver-mq[dev] brings it")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    outcome = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", f"--config-file={ROOT / 'pyproject.toml'}"),
            *("--follow-imports=silent", f"--cache-dir={tmp_path / 'cache'}", str(program)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    found = {int(line) for line in re.findall(r"program\.py:(\d+): error", outcome.stdout)}
    lines = PROGRAM.splitlines()
    wanted = {number for number, line in enumerate(lines, 1) if line.endswith("# refused")}
    assert outcome.stderr == ""
    assert found == wanted, outcome.stdout


def test_the_keywords_of_settings_and_queues_are_their_attributes():
    assert AddressSettingsChanges.__annotations__.keys() == {one.attribute for one in SETTINGS}
    fields = {one.name for one in dataclasses.fields(QueueBinding)} - {"name", "address"}
    assert QueueBindingChanges.__annotations__.keys() == fields
