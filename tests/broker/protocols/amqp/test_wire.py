"""What goes over the wire, frame by frame: what the engine answers for, seen from outside."""

import pytest
from proton import Described, Message, symbol, uint, ulong

from tests.broker.protocols.amqp.client import Client, serving, until
from tests.broker.protocols.amqp.frames import (
    AMQP,
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    DISPOSITION,
    END,
    FLOW,
    OPEN,
    SASL,
    TARGET,
    TRANSFER,
    Wire,
    accepted,
    encoded,
    of,
    source,
    target,
)
from tests.broker.protocols.stomp.test_as_for_core import configured
from tests.interop.asynchronous import asynchronous

VALUE = Message(body="m", durable=True).encode()


def count(broker, queue="q"):
    return broker.parts.postoffice.addresses.queues[queue].message_count


async def filled(broker, *messages):
    async with Client.of(broker) as client:
        await client.send("q")
        sender = await client.sender("q")
        for one in messages:
            await sender.send(one)


# --- headers and frames -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        # A string of two bytes, the second of which begins a character and ends the string.
        (b"\xa1\x02c\xff", "UnicodeDecodeError"),
        # The seventh field after it is a list of symbols, and here a described text.
        (b"\xa1\x01c" + b"\x40" * 7 + b"\x00\xa3\x01d\xa1\x01t", "TypeError"),
    ],
    ids=["no UTF-8", "no list"],
)
@asynchronous
async def test_a_value_that_does_not_belong_there_is_a_decode_error(fields, said):
    async with serving() as broker, Wire.raw(broker) as wire:
        wire.write(AMQP)
        count = 1 if said == "UnicodeDecodeError" else 9
        wire.frame(b"\x00\x53\x10\xc0" + bytes((len(fields) + 1, count)) + fields)
        assert await wire.header() == AMQP
        found = await wire.get(OPEN)
        found = await wire.get(CLOSE)
        assert found.condition == "amqp:decode-error"
        assert str(found.fields[-1].value[1]).startswith(said)


@asynchronous
async def test_a_link_without_a_name_is_refused():
    async with serving() as broker, Wire.of(broker) as wire:
        wire.put(ATTACH, None, uint(0), True, None, None, source("a"), of(TARGET))
        assert (await wire.get(ATTACH)).field(0) is None
        assert (await wire.get(DETACH)).condition == "amqp:invalid-field"


@pytest.mark.parametrize(
    "first", [b"AMQP\x00\x02\x00\x00", b"AMQP\x00\x01\x01\x00", b"AMQP\x02\x01\x00\x00"]
)
@asynchronous
async def test_another_version_is_answered_with_one_that_is_spoken(first):
    async with serving() as broker, Wire.raw(broker) as wire:
        wire.write(first)
        assert await wire.header() == SASL
        assert await wire.next() is None


@asynchronous
async def test_who_may_not_be_anonymous_is_told_to_authenticate(tmp_path):
    async with configured(tmp_path) as broker, Wire.raw(broker) as wire:
        wire.write(AMQP)
        assert await wire.header() == SASL
        assert await wire.next() is None


@asynchronous
async def test_a_header_is_answered_before_anything_else_and_an_open_on_channel_0():
    async with serving() as broker, Wire.raw(broker) as wire:
        wire.write(AMQP)
        assert await wire.header() == AMQP
        wire.put(OPEN, "c")
        answer = await wire.next()
        assert (answer.code, answer.channel) == (OPEN, 0)


@asynchronous
async def test_sasl_offers_mechanisms_and_then_amqp_begins_anew():
    async with serving() as broker, Wire.raw(broker) as wire:
        wire.write(SASL)
        assert await wire.header() == SASL
        offered = await wire.next()
        assert (offered.code, list(offered.fields[0].elements)) == (0x40, ["PLAIN", "ANONYMOUS"])
        wire.frame(encoded(of(0x41, symbol("ANONYMOUS"), b"")), kind=1)
        outcome = await wire.next()
        assert (outcome.code, outcome.fields[0]) == (0x44, 0)
        wire.write(AMQP)
        assert await wire.header() == AMQP


@asynchronous
async def test_an_empty_sasl_frame_ends_the_connection():
    async with serving() as broker, Wire.raw(broker) as wire:
        wire.write(SASL)
        assert await wire.header() == SASL
        await wire.next()
        wire.frame(b"", kind=1)
        assert await wire.next() is None


@asynchronous
async def test_empty_frames_and_what_extends_a_header_are_passed_over():
    async with serving() as broker, Wire.of(broker) as wire:
        for channel in (0, 1, 65535):
            wire.frame(b"", channel=channel)
        wire.frame(
            encoded(of(BEGIN, None, uint(0), uint(9), uint(9))), channel=3, extended=b"x" * 8
        )
        answer = await wire.get(BEGIN)
        assert answer.fields[0] == 3


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x07\x02\x00\x00\x00",
        b"\x00\x00\x00\x08\x01\x00\x00\x00",
        b"\x00\x00\x00\x08\x03\x00\x00\x00",
        (2**24).to_bytes(4, "big") + b"\x02\x00\x00\x00",
    ],
)
@asynchronous
async def test_a_frame_that_is_none_closes_with_framing_error(data):
    async with serving() as broker, Wire.of(broker) as wire:
        wire.write(data)
        assert (await wire.get(CLOSE)).condition == "amqp:connection:framing-error"
        assert await wire.next() is None


@pytest.mark.parametrize(
    "body",
    [
        encoded(of(BEGIN, None, uint(0), uint(9), uint(9))),
        encoded(of(OPEN, None)),
        encoded(of(OPEN)),
        encoded("no performative"),
        encoded(of(0x7F, "unknown")),
    ],
)
@asynchronous
async def test_what_is_no_open_first_is_answered_with_an_error(body):
    async with serving() as broker, Wire.raw(broker) as wire:
        wire.write(AMQP)
        assert await wire.header() == AMQP
        wire.frame(body)
        # As every connection does, it opens before it closes.
        await wire.get(OPEN)
        assert (await wire.get(CLOSE)).condition is not None
        assert await wire.next() is None


@pytest.mark.parametrize(
    "body",
    [
        encoded("no performative"),
        encoded(of(0x7F, "unknown")),
        encoded(of(BEGIN, None, uint(0), uint(9), uint(9)))[:-2],
        b"\xff\xff",
    ],
)
@asynchronous
async def test_a_frame_that_cannot_be_decoded_closes_the_connection(body):
    async with serving() as broker:
        await filled(broker, Message(body=1))
        async with Wire.of(broker) as wire:
            await wire.receive("q", 1)
            await wire.get(TRANSFER)
            wire.frame(body)
            assert (await wire.get(CLOSE)).condition is not None
            assert await wire.next() is None
            # What it was given is for others.
            async with Client.of(broker) as client:
                queue = await client.receiver("q")
                assert await queue.bodies(1) == [1]


@asynchronous
async def test_who_has_not_opened_has_no_session(tmp_path):
    async with configured(tmp_path) as broker, Wire.raw(broker) as wire:
        wire.write(SASL)
        assert await wire.header() == SASL
        await wire.next()
        wire.frame(encoded(of(0x41, symbol("ANONYMOUS"), b"")), kind=1)
        await wire.next()
        wire.write(AMQP)
        assert await wire.header() == AMQP
        wire.put(BEGIN, None, uint(0), uint(9), uint(9))
        assert (await wire.get(OPEN)).channel == 0
        assert (await wire.get(CLOSE)).condition == "amqp:not-allowed"
        assert not broker.clients.sessions
        assert await wire.next() is None


@asynchronous
async def test_beats_come_as_often_as_the_peer_wants_them():
    async with serving() as broker, Wire.of(broker, None, None, uint(400)) as wire:
        assert await wire.is_silent(1.5)
        # At least two in each of its periods.
        assert wire.empty_count >= 3


@asynchronous
async def test_a_close_is_answered_and_is_the_last():
    async with serving() as broker, Wire.of(broker) as wire:
        wire.put(CLOSE)
        answer = await wire.get(CLOSE)
        assert answer.condition is None
        assert await wire.next() is None
        await until(lambda: not broker.clients.connections)


# --- sessions ---------------------------------------------------------------------------------


@asynchronous
async def test_a_session_is_answered_on_its_channel_and_ended():
    async with serving() as broker, Wire.of(broker) as wire:
        for channel in (7, 200):
            answer = await wire.begin(channel=channel)
            assert answer.fields[0] == channel
            wire.put(END, channel=channel)
            ended = await wire.get(END)
            assert (ended.channel, ended.condition) == (answer.channel, None)
        await until(lambda: len(broker.clients.sessions) == 1)


@pytest.mark.parametrize("code", [FLOW, TRANSFER, DETACH])
@asynchronous
async def test_a_handle_that_is_not_attached_is_an_error(code):
    async with serving() as broker, Wire.of(broker) as wire:
        if code == FLOW:
            wire.credit(1, handle=9)
        elif code == TRANSFER:
            wire.transfer(VALUE, 0, handle=9)
        else:
            wire.put(DETACH, uint(9), True)
        # The engine closes the connection, where the session alone would do.
        found = await wire.next()
        assert found.code in (END, CLOSE)
        assert found.condition is not None


@asynchronous
async def test_no_more_frames_come_than_the_window_of_a_session_takes():
    async with serving() as broker:
        await filled(broker, *(Message(body=number) for number in range(5)))
        async with Wire.raw(broker) as wire:
            wire.write(AMQP)
            wire.put(OPEN, "c")
            await wire.header()
            await wire.get(OPEN)
            await wire.begin(window=uint(2))
            await wire.receive("q", 0)
            wire.credit(5, window=uint(2))
            for _ in range(2):
                await wire.get(TRANSFER)
            assert await wire.is_silent()
            wire.credit(3, window=uint(1), delivery_count=2, came=2)
            await wire.get(TRANSFER)
            assert await wire.is_silent()


# --- links ------------------------------------------------------------------------------------


@asynchronous
async def test_a_link_is_answered_by_its_name_with_what_it_is():
    async with serving() as broker, Wire.of(broker) as wire:
        await wire.attach_sender(target("q"))
        answer = await wire.receive("q", 0)
        # Name, our handle, role, the source, where its count begins, no limit of a message's size.
        assert (answer.fields[0], answer.fields[2]) == ("in-0", False)
        assert answer.fields[5].value[0] == "q"
        assert answer.fields[9] == 0
        assert answer.field(10) in (None, 0)


@asynchronous
async def test_a_refused_link_is_attached_without_its_node_and_detached_at_once():
    address = {"auto_create_addresses": False, "auto_create_queues": False}
    async with serving(address=address) as broker, Wire.of(broker) as wire:
        answer = await wire.receive("no", 0)
        assert answer.fields[5] is None
        detached = await wire.get(DETACH)
        assert (detached.fields[1], detached.condition) == (True, "amqp:not-found")
        answer = await wire.attach_sender(target("no"))
        assert answer.field(6) is None
        detached = await wire.get(DETACH)
        assert (detached.fields[1], detached.condition) == (True, "amqp:not-found")


@pytest.mark.parametrize("closed", [True, False])
@asynchronous
async def test_a_detach_is_answered_as_it_was_meant(closed):
    async with serving() as broker, Wire.of(broker) as wire:
        await wire.attach_sender(target("q"))
        await wire.receive("q", 0)
        for handle in (0, 1):
            wire.put(DETACH, uint(handle), closed)
            answer = await wire.get(DETACH)
            assert (bool(answer.field(1)), answer.condition) == (closed, None)
            # Its handle is free again.
            if handle == 0:
                await wire.receive("q", 0)


@asynchronous
async def test_no_more_messages_come_than_there_is_credit_for():
    async with serving() as broker:
        await filled(broker, *(Message(body=number) for number in range(5)))
        async with Wire.of(broker) as wire:
            await wire.receive("q", 2)
            tags = [(await wire.get(TRANSFER)).fields[2] for _ in range(2)]
            assert await wire.is_silent()
            wire.credit(1, delivery_count=2, came=2)
            tags.append((await wire.get(TRANSFER)).fields[2])
            assert await wire.is_silent()
            # None of them is settled: each has a tag of its own.
            assert len(set(tags)) == 3
            assert all(0 < len(tag) <= 32 for tag in tags)


@asynchronous
async def test_a_drain_takes_the_credit_that_is_left():
    async with serving() as broker:
        await filled(broker, Message(body=1))
        async with Wire.of(broker) as wire:
            await wire.receive("q", 0)
            wire.credit(10, drain=True)
            await wire.get(TRANSFER)
            flow = await wire.next()
            # Delivery count and credit: it is gone without messages.
            assert (flow.code, flow.fields[5], flow.fields[6]) == (FLOW, 10, 0)
            # What has come is told in each flow behind a begin.
            assert flow.fields[0] is not None


@asynchronous
async def test_a_message_comes_in_frames_as_large_as_the_peer_takes_in_order():
    large, small = Message(body=b"x" * 3000, durable=True), Message(body="small")
    async with serving() as broker:
        await filled(broker, large, small)
        async with Wire.of(broker, uint(512)) as wire:
            await wire.receive("q", 5)
            found = []
            while not found or found[-1].field(5):
                found.append(await wire.get(TRANSFER))
            assert len(found) > 6
            first = found[0].fields
            assert (first[1], len(first[2]) > 0, first[3]) == (0, True, 0)
            assert b"".join(one.payload for one in found) == large.encode()
            assert all(len(one.payload) < 512 for one in found)
            # What continues it names no other, and nothing comes between.
            assert {one.field(1) for one in found[1:]} <= {None, 0}
            assert (await wire.get(TRANSFER)).payload == small.encode()


@asynchronous
async def test_a_settled_link_gets_settled_transfers_alone():
    async with serving() as broker:
        await filled(broker, Message(body=1))
        async with Wire.of(broker) as wire:
            await wire.receive("q", 1, snd=1)
            assert (await wire.get(TRANSFER)).fields[4] is True
            await until(lambda: not count(broker))


@asynchronous
async def test_a_disposition_is_about_all_from_its_first_to_its_last():
    async with serving() as broker:
        await filled(broker, *(Message(body=number) for number in range(5)))
        async with Wire.of(broker) as wire:
            await wire.receive("q", 5)
            for _ in range(5):
                await wire.get(TRANSFER)
            wire.dispose(1, 3, accepted())
            await until(lambda: count(broker) == 2)


@asynchronous
async def test_messages_may_come_in_parts_those_of_two_links_in_turn():
    async with serving() as broker, Wire.of(broker) as wire:
        for handle in (1, 2):
            await wire.attach_sender(target("q"), handle=handle)
        bodies = [Message(body=name * 50).encode() for name in "ab"]
        for handle, body in enumerate(bodies, 1):
            wire.transfer(body[:20], handle - 1, handle=handle, more=True)
        for handle, body in enumerate(bodies, 1):
            # What continues needs no id.
            wire.transfer(body[20:], -1, handle=handle)
        last = None
        while last != 1:
            # One may be about both.
            answer = await wire.get(DISPOSITION)
            assert (answer.fields[3], answer.fields[4].descriptor) == (True, 0x24)
            last = answer.fields[1] if answer.fields[2] is None else answer.fields[2]
        await wire.receive("q", 2)
        assert [(await wire.get(TRANSFER)).payload for _ in bodies] == bodies


@asynchronous
async def test_an_aborted_message_is_dropped():
    async with serving() as broker, Wire.of(broker) as wire:
        await wire.attach_sender(target("q"))
        wire.transfer(VALUE[:10], 0, more=True)
        wire.transfer(b"", -1, aborted=True)
        wire.transfer(VALUE, 1)
        answer = await wire.get(DISPOSITION)
        assert answer.fields[1] == 1
        assert count(broker) == 1


# --- messages ---------------------------------------------------------------------------------

HEADER = encoded(Described(ulong(0x70), [True, None, None, True]))
ANNOTATIONS = {symbol("x-opt-unknown"): "kept", ulong(7): [1]}
BARE = {
    "several data": encoded(Described(ulong(0x75), b"one")) + encoded(Described(ulong(0x75), b"2")),
    "sequences": encoded(Described(ulong(0x76), [1])) + encoded(Described(ulong(0x76), ["two"])),
    "value": encoded(Described(ulong(0x77), {"a": [None, True]})),
    "symbols": encoded(Described(symbol("amqp:amqp-value:*"), "x")),
    "all": encoded(Described(ulong(0x73), ["id", None, "elsewhere", "subject"]))
    + encoded(Described(ulong(0x74), {"a": 1, "b": None}))
    + encoded(Described(ulong(0x77), "x")),
}
FOOTER = encoded(Described(ulong(0x78), {symbol("x-opt-digest"): b"\0\1"}))


@pytest.mark.parametrize("kind", BARE)
@asynchronous
async def test_a_message_comes_byte_for_byte_without_delivery_annotations(tmp_path, kind):
    before = encoded(Described(ulong(0x71), {symbol("x-opt-hop"): 1}))
    behind = encoded(Described(ulong(0x72), ANNOTATIONS)) + BARE[kind] + FOOTER
    for is_again in (False, True):
        async with serving(tmp_path) as broker, Wire.of(broker) as wire:
            if not is_again:
                await wire.attach_sender(target("q"))
                wire.transfer(HEADER + before + behind, 0)
                assert (await wire.get(DISPOSITION)).fields[4].descriptor == 0x24
                continue
            await wire.receive("q", 1)
            assert (await wire.get(TRANSFER)).payload == HEADER + behind


@asynchronous
async def test_a_header_that_is_left_out_has_its_defaults(tmp_path):
    async with serving(tmp_path) as broker, Wire.of(broker) as wire:
        await wire.attach_sender(target("q"))
        for number, header in enumerate((b"", encoded(Described(ulong(0x70), [])))):
            wire.transfer(header + BARE["value"], number)
            await wire.get(DISPOSITION)
        queue = broker.parts.postoffice.addresses.queues["q"]
        for one in queue.references():
            message = one.message
            assert (message.durable, message.priority, message.expiration) == (False, 4, 0)


# --- what a node is ---------------------------------------------------------------------------


@asynchronous
async def test_a_dynamic_node_is_told_by_its_name_and_a_filter_if_it_counts():
    filters = {
        symbol("s"): Described(ulong(0x0000468C00000004), "a = 1"),
        symbol("other"): Described(symbol("example:filter:string"), "?"),
    }
    async with serving() as broker, Wire.of(broker) as wire:
        answer = await wire.receive(None, 0, dynamic=True)
        made = answer.fields[5].value
        assert (made[4], made[0] in broker.parts.postoffice.addresses.by_name) == (True, True)
        await wire.attach_sender(target("q"))
        answer = await wire.receive("q", 0, handle=2, filter=filters)
        assert answer.fields[5].value[7] == {symbol("s"): filters[symbol("s")]}


# --- transactions -----------------------------------------------------------------------------


def request(*described):
    return encoded(Described(ulong(0x77), of(*described)))


@pytest.mark.parametrize("outcomes", [None, ["amqp:accepted:list", "amqp:rejected:list"]])
@asynchronous
async def test_a_discharge_that_fails_is_rejected_with_its_error(outcomes):
    named = None if outcomes is None else [symbol(one) for one in outcomes]
    async with serving() as broker, Wire.of(broker) as wire:
        answer = await wire.attach_sender(of(0x30), origin=source("c", outcomes=named))
        offered = answer.fields[6].value[0].elements
        assert "amqp:local-transactions" in list(offered)
        wire.transfer(request(0x32, b"unknown", False), 0)
        state = (await wire.get(DISPOSITION)).fields[4]
        assert (state.descriptor, str(state.value[0].value[0])) == (
            0x25,
            "amqp:transaction:unknown-id",
        )


@asynchronous
async def test_or_the_link_is_detached_with_it_where_the_source_knows_no_rejected():
    origin = source("c", outcomes=[symbol("amqp:accepted:list")])
    async with serving() as broker, Wire.of(broker) as wire:
        await wire.attach_sender(of(0x30), origin=origin)
        wire.transfer(request(0x31), 0)
        declared = (await wire.get(DISPOSITION)).fields[4]
        assert (declared.descriptor, len(declared.value[0])) == (0x33, 36)
        wire.transfer(request(0x32, b"unknown", False), 1)
        detached = await wire.get(DETACH)
        assert (detached.fields[1], detached.condition) == (True, "amqp:transaction:unknown-id")


@asynchronous
async def test_what_is_sent_in_a_transaction_is_answered_with_its_state_and_outcome():
    async with serving() as broker, Wire.of(broker) as wire:
        await wire.attach_sender(of(0x30))
        wire.transfer(request(0x31), 0)
        id = (await wire.get(DISPOSITION)).fields[4].value[0]
        await wire.attach_sender(target("q"), handle=2)
        wire.transfer(VALUE, 1, handle=2, state=of(0x34, id))
        state = (await wire.get(DISPOSITION)).fields[4]
        assert (state.descriptor, state.value[0], state.value[1].descriptor) == (0x34, id, 0x24)
        assert count(broker) == 0
        wire.transfer(request(0x32, id, False), 2)
        assert (await wire.get(DISPOSITION)).fields[4].descriptor == 0x24
        assert count(broker) == 1
