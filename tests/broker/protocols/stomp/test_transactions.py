"""BEGIN, COMMIT, ABORT."""

import pytest

from broker.settings.settings import AddressFullPolicy
from tests.broker.protocols.stomp.client import Stomp, serving
from tests.interop.asynchronous import asynchronous

VERSIONS = ["1.0", "1.1", "1.2"]
ANYCAST = {"destination-type": "ANYCAST"}


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_messages_count_with_the_commit_of_their_transaction(tmp_path, version):
    async with serving(tmp_path) as broker, Stomp.of(broker, version) as client:
        for transaction in ("kept", "dropped", "left open"):
            await client.do("BEGIN", {"transaction": transaction})
        for number in "12":
            for transaction in ("kept", "dropped", "left open"):
                body = f"{transaction} {number}".encode()
                await client.send("q", body, **ANYCAST, transaction=transaction)
        await client.send("q", b"alone", **ANYCAST)
        await client.do("COMMIT", {"transaction": "kept"})
        await client.do("ABORT", {"transaction": "dropped"})

    async with serving(tmp_path) as broker, Stomp.of(broker, version) as client:
        await client.subscribe("q")
        assert await client.bodies(3) == ["alone", "kept 1", "kept 2"]
        assert await client.is_silent()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("command", "headers", "text"),
    [
        ("BEGIN", {}, "AMQ339032"),
        ("COMMIT", {}, "AMQ339030"),
        ("ABORT", {}, "AMQ339033"),
        ("BEGIN", {"transaction": "open"}, "Transaction already started: open"),
        ("COMMIT", {"transaction": "no"}, "AMQ339013"),
        ("ABORT", {"transaction": "no"}, "AMQ339014"),
        ("SEND", {"transaction": "no", "destination": "q"}, "No transaction started: no"),
    ],
)
@asynchronous
async def test_a_transaction_has_an_id_and_begins_and_ends_once(version, command, headers, text):
    async with serving() as broker, Stomp.of(broker, version) as client:
        await client.do("BEGIN", {"transaction": "open"})
        error = await client.refused(command, {**headers, "receipt": "r"})

        assert text in error.headers["message"]
        assert error.headers["receipt-id"] == "r"


@asynchronous
async def test_ids_are_free_again_and_sessions_do_not_pile_up():
    async with serving() as broker, Stomp.of(broker) as client:
        for number in range(50):
            await client.do("BEGIN", {"transaction": "t"})
            await client.send("q", str(number).encode(), **ANYCAST, transaction="t")
            await client.do("COMMIT" if number % 2 else "ABORT", {"transaction": "t"})

        assert len(broker.clients.sessions) == 2
        await client.subscribe("q")
        assert await client.bodies(25) == [str(number) for number in range(1, 50, 2)]


@asynchronous
async def test_open_transactions_have_an_end():
    async with serving() as broker, Stomp.of(broker, "1.1") as client:
        for number in range(1000):
            client.put("BEGIN", {"transaction": number})
        error = await client.refused("BEGIN", {"transaction": "one more"})
        assert "1000 transactions" in error.headers["message"]
        await client.do("DISCONNECT")
        await client.is_closed()
        assert broker.clients.sessions == {}


@asynchronous
async def test_a_transaction_with_a_refused_message_is_rolled_back_as_a_whole():
    address = {"max_size_messages": 2, "address_full_policy": AddressFullPolicy.FAIL}
    async with serving(address=address) as broker, Stomp.of(broker, "1.1") as client:
        await client.send("q", b"1", **ANYCAST)
        await client.send("q", b"2", **ANYCAST)
        await client.do("BEGIN", {"transaction": "t"})
        await client.send("other", b"x", **ANYCAST, transaction="t")
        full = {"destination": "q", "transaction": "t"}
        error = await client.refused("SEND", full, b"3")
        assert "AMQ339011" in error.headers["message"]
        assert "AMQ229102" in error.headers["message"]
        error = await client.refused("COMMIT", {"transaction": "t"})
        assert "AMQ339013: Error committing t" in error.headers["message"]
        await client.subscribe("other")
        assert await client.is_silent()
        await client.do("BEGIN", {"transaction": "t"})
        await client.do("COMMIT", {"transaction": "t"})


@asynchronous
async def test_an_acknowledgement_is_in_no_transaction():
    """As in Artemis: ABORT does not bring the message back."""
    async with serving() as broker, Stomp.of(broker) as client:
        await client.send("q", **ANYCAST)
        await client.subscribe("q", ack="client")
        got = await client.get("MESSAGE")
        await client.do("BEGIN", {"transaction": "t"})
        await client.do("ACK", {"id": got.headers["ack"], "transaction": "t"})
        await client.do("ABORT", {"transaction": "t"})

        assert broker.parts.postoffice.addresses.queues["q"].message_count == 0


@asynchronous
async def test_one_larger_than_a_blocking_address_gets_to_its_commit(tmp_path):
    address = {"max_size_messages": 2, "address_full_policy": AddressFullPolicy.BLOCK}
    async with (
        serving(tmp_path, match="full", address=address) as broker,
        Stomp.of(broker) as client,
    ):
        await client.do("BEGIN", {"transaction": "t"})
        for number in range(6):
            await client.send("full", str(number).encode(), **ANYCAST, transaction="t")
        await client.do("COMMIT", {"transaction": "t"})
        await client.subscribe("full")
        assert await client.bodies(6) == [*"012345"]
