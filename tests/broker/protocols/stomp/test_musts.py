"""What STOMP 1.2 says that a server, or both sides, must do: each line with the tests that show it.

Numbered by the specification's sections, in its order. SHOULD stands beside MUST where a server of
ours keeps to it; what it leaves to Artemis's habits is in docs/guide/stomp.md.
"""

import importlib

import pytest

from tests.broker.protocols.stomp.client import Stomp, serving
from tests.interop.asynchronous import asynchronous

FRAMES, CONNECTIONS, MESSAGES = "test_frames", "test_connections", "test_messages"
SUBSCRIPTIONS, TRANSACTIONS, HERE = "test_subscriptions", "test_transactions", "test_musts"
LARGE = "test_large"

# (number, MUST or SHOULD, what, [(module, test)])
STATEMENTS = [
    ("frames-1", "MUST", "commands are case sensitive, lines end in LF or CR LF",
     [(FRAMES, "test_frames_are_the_same_however_they_are_cut"),
      (FRAMES, "test_bytes_that_are_no_frame_are_refused_however_they_are_cut")]),
    ("frames-2", "MUST", "a body ends at a NUL; line ends behind it are passed over",
     [(FRAMES, "test_frames_are_the_same_however_they_are_cut")]),
    ("frames-3", "MUST", "blanks of headers are neither trimmed nor added",
     [(FRAMES, "test_a_value_is_what_its_version_says")]),
    ("encoding-1", "MUST", "commands and headers are UTF-8",
     [(FRAMES, "test_a_value_is_what_its_version_says")]),
    ("encoding-2", "MUST", "escapes are decoded in every frame but CONNECT",
     [(FRAMES, "test_a_value_is_what_its_version_says"),
      (FRAMES, "test_the_first_frame_has_the_rules_of_1_0_and_its_line_ends_stay")]),
    ("encoding-3", "MUST", "an escape that is not defined is a fatal error",
     [(FRAMES, "test_bytes_that_are_no_frame_are_refused_however_they_are_cut")]),
    ("encoding-4", "MUST", "escapes are encoded in every frame but CONNECTED",
     [(FRAMES, "test_what_is_written_has_the_escapes_of_its_version"),
      (FRAMES, "test_connected_is_written_without_escapes"),
      (MESSAGES, "test_values_with_special_characters_come_back")]),
    ("body-1", "MUST", "only SEND, MESSAGE and ERROR have a body: RECEIPT and CONNECTED have none",
     [(HERE, "test_receipts_and_connected_have_no_body")]),
    ("length-1", "MUST", "with content-length so many bytes are the body, NUL or not",
     [(FRAMES, "test_frames_are_the_same_however_they_are_cut"),
      (MESSAGES, "test_bytes_come_back_as_they_were_with_their_number")]),
    ("length-2", "MUST", "a NUL ends that body, too",
     [(FRAMES, "test_bytes_that_are_no_frame_are_refused_however_they_are_cut")]),
    ("type-1", "MUST", "content-type says what a body is: it comes as it was sent",
     [(MESSAGES, "test_a_message_has_artemis_headers_in_its_order")]),
    ("receipt-1", "MUST", "any frame but CONNECT may ask for a receipt and gets it",
     [(HERE, "test_every_frame_but_connect_gets_its_receipt")]),
    ("repeated-1", "SHOULD", "of repeated headers the first counts",
     [(FRAMES, "test_of_repeated_headers_the_first_counts_in_1_2_and_the_last_before")]),
    ("limits-1", "SHOULD", "what exceeds a limit gets an ERROR, and the connection ends",
     [(CONNECTIONS, "test_a_frame_too_large_or_slow_before_login_ends_the_connection")]),
    ("lingering-1", "MUST", "clients may connect and disconnect rapidly",
     [(HERE, "test_many_connect_and_disconnect_rapidly")]),
    ("connect-1", "MUST", "the command STOMP is as CONNECT",
     [(CONNECTIONS, "test_the_command_stomp_is_as_good_as_connect_from_1_1_on")]),
    ("connect-2", "SHOULD", "who is refused gets an ERROR, and the connection ends",
     [(CONNECTIONS, "test_other_versions_are_refused_with_those_that_are_spoken")]),
    ("connected-1", "MUST", "CONNECTED has the version of the session",
     [(CONNECTIONS, "test_the_highest_version_of_both_is_spoken")]),
    ("negotiation-1", "MUST", "it is the highest that both have",
     [(CONNECTIONS, "test_the_highest_version_of_both_is_spoken")]),
    ("negotiation-2", "MUST", "without a common one: ERROR, and the connection ends",
     [(CONNECTIONS, "test_other_versions_are_refused_with_those_that_are_spoken")]),
    ("heart-beat-1", "MUST", "the header has two numbers that are not negative",
     [(CONNECTIONS, "test_a_heart_beat_that_is_not_two_numbers_is_refused"),
      (CONNECTIONS, "test_heart_beats_are_agreed_by_artemis_rules")]),
    ("heart-beat-2", "MUST", "a missing header is 0,0: no beats",
     [(HERE, "test_without_the_header_nothing_beats")]),
    ("heart-beat-3", "MUST", "something is sent within the time agreed: a line end at least",
     [(CONNECTIONS, "test_the_broker_beats_also_beside_data")]),
    ("heart-beat-4", "MAY", "who is silent for longer may be taken for dead",
     [(CONNECTIONS, "test_a_silent_client_is_told_and_closed_and_one_that_beats_is_not")]),
    ("send-1", "MUST", "destination is required",
     [(MESSAGES, "test_a_send_that_is_not_valid_gets_one_clear_error")]),
    ("send-2", "MUST", "headers of the sender come to the consumer",
     [(MESSAGES, "test_a_message_has_artemis_headers_in_its_order")]),
    ("send-3", "MUST", "a SEND that cannot be processed: ERROR, and the connection ends",
     [(MESSAGES, "test_a_send_that_is_not_valid_gets_one_clear_error")]),
    ("subscribe-1", "MUST", "destination is required; a refused one: ERROR, and the end",
     [(HERE, "test_a_refused_subscription_ends_the_connection"),
      (SUBSCRIPTIONS, "test_a_subscription_that_cannot_be_gets_one_clear_error")]),
    ("subscribe-2", "MUST", "ids of one connection differ",
     [(SUBSCRIPTIONS, "test_ids_are_unique_and_have_a_default")]),
    ("ack-mode-1", "MUST", "auto: what is sent is taken for received",
     [(SUBSCRIPTIONS, "test_in_mode_auto_a_message_is_gone_once_it_is_written")]),
    ("ack-mode-2", "MUST", "client: an ACK is for all before it; what has none comes again",
     [(SUBSCRIPTIONS, "test_in_mode_client_an_ack_is_for_all_before_it")]),
    ("ack-mode-3", "MUST", "client-individual: an ACK is for one",
     [(SUBSCRIPTIONS, "test_in_mode_client_individual_an_ack_is_for_one")]),
    ("unsubscribe-1", "MUST", "id is required, and is that of a subscription",
     [(SUBSCRIPTIONS, "test_an_unsubscribe_of_nothing_is_refused")]),
    ("ack-1", "MUST", "ACK has the id of the MESSAGE's header ack",
     [(SUBSCRIPTIONS, "test_an_ack_of_nothing_is_refused")]),
    ("nack-1", "MUST", "NACK is for as many messages as an ACK",
     [(SUBSCRIPTIONS, "test_a_nack_may_be_for_dead_letters_and_in_mode_client_for_all_before")]),
    ("begin-1", "MUST", "transaction is required; ids of one connection differ",
     [(TRANSACTIONS, "test_a_transaction_has_an_id_and_begins_and_ends_once")]),
    ("begin-2", "MUST", "what is open when the connection ends is aborted",
     [(TRANSACTIONS, "test_messages_count_with_the_commit_of_their_transaction")]),
    ("commit-1", "MUST", "COMMIT and ABORT name a transaction that has begun",
     [(TRANSACTIONS, "test_a_transaction_has_an_id_and_begins_and_ends_once")]),
    ("disconnect-1", "MUST", "its receipt says that all frames before were processed",
     [(CONNECTIONS, "test_disconnect_is_answered_once_all_before_is_durable")]),
    ("disconnect-2", "MUST", "nothing behind DISCONNECT counts",
     [(CONNECTIONS, "test_disconnect_without_receipt_closes")]),
    ("message-1", "MUST", "MESSAGE has destination, message-id, subscription",
     [(MESSAGES, "test_a_message_has_artemis_headers_in_its_order"),
      (SUBSCRIPTIONS, "test_two_subscriptions_of_a_connection_share_a_queue_and_ids_differ")]),
    ("message-2", "MUST", "and ack, where it is to be acknowledged",
     [(MESSAGES, "test_a_message_has_artemis_headers_in_its_order")]),
    ("receipt-2", "MUST", "RECEIPT has the receipt-id of what it answers",
     [(HERE, "test_every_frame_but_connect_gets_its_receipt")]),
    ("error-1", "MUST", "the connection ends behind an ERROR",
     [(HERE, "test_a_refused_subscription_ends_the_connection"),
      (MESSAGES, "test_a_send_that_is_not_valid_gets_one_clear_error")]),
    ("error-2", "SHOULD", "ERROR has the receipt-id of the frame that it is about",
     [(MESSAGES, "test_a_send_that_is_not_valid_gets_one_clear_error")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "tests"),
    [(one[0], one[3]) for one in STATEMENTS],
    ids=[one[0] for one in STATEMENTS],
)
def test_each_statement_has_tests_that_are_there(number, tests):
    for module, test in tests:
        found = importlib.import_module(f"tests.broker.protocols.stomp.{module}")
        assert callable(getattr(found, test)), (number, test)


def test_numbers_are_unique():
    numbers = [one[0] for one in STATEMENTS]

    assert len(set(numbers)) == len(numbers)


@asynchronous
async def test_receipts_and_connected_have_no_body():
    async with serving() as broker, Stomp.raw(broker) as client:
        client.put("CONNECT", {"accept-version": "1.2"})
        assert (await client.get("CONNECTED")).body == b""
        client.put("BEGIN", {"transaction": "t", "receipt": "1"})
        receipt = await client.get("RECEIPT")
        assert (receipt.names, receipt.body) == (["receipt-id"], b"")


@asynchronous
async def test_every_frame_but_connect_gets_its_receipt():
    anycast = {"destination": "q", "subscription-type": "ANYCAST"}
    async with serving() as broker, Stomp.of(broker) as client:
        await client.do("SUBSCRIBE", {**anycast, "id": "1", "ack": "client-individual"})
        for _ in range(2):
            client.put("SEND", {"destination": "q"}, b"x")
        messages = [await client.get("MESSAGE") for _ in range(2)]
        await client.do("ACK", {"id": messages[0].headers["ack"]})
        await client.do("NACK", {"id": messages[1].headers["ack"]})
        await client.do("UNSUBSCRIBE", {"id": "1"})
        for command in ("BEGIN", "COMMIT", "BEGIN", "ABORT"):
            await client.do(command, {"transaction": "t"})
        await client.do("SEND", {"destination": "q"}, b"x")
        await client.do("DISCONNECT")


@asynchronous
async def test_many_connect_and_disconnect_rapidly():
    async with serving() as broker:
        for _ in range(200):
            async with Stomp.of(broker) as client:
                await client.do("DISCONNECT")
                assert await client.is_closed()
        assert broker.clients.connections == {}
        assert broker.clients.sessions == {}


@asynchronous
async def test_without_the_header_nothing_beats():
    async with serving() as broker, Stomp.raw(broker) as client:
        client.put("CONNECT", {"accept-version": "1.2"})
        assert "heart-beat" not in (await client.get("CONNECTED")).headers
        client.reader._buffer.clear()
        assert not client.reader._buffer
        assert await client.is_silent(0.7)


@asynchronous
async def test_a_refused_subscription_ends_the_connection():
    async with serving() as broker, Stomp.of(broker) as client:
        error = await client.refused("SUBSCRIBE", {"id": "1", "receipt": "2"})
        assert error.headers["receipt-id"] == "2"
        assert await client.is_closed()
