"""What AMQP 1.0 says that a broker must do, parts 2 to 5: each line with the tests that show it.

Numbered by the standard's sections, in its order. What is Proton's to do says so ("engine"): the
broker has no code for it. It is seen from outside, frame by frame, in test_wire.py, or by Proton's
own client at the other end. What is about clients alone is left out. What is not kept, as in
Artemis, is NOT_KEPT, with the test that shows what happens instead where there is one.
"""

import importlib

import pytest

WIRE, CONNECTIONS, FRAMES, LINKS = "test_wire", "test_connections", "test_frames", "test_links"
MESSAGES, LARGE, TRANSACTIONS = "test_messages", "test_large", "test_transactions"
SETTLEMENT, PARAMETERS, AS_FOR_CORE = "test_settlement", "test_parameters", "test_as_for_core"
OUTCOMES = (LINKS, "test_an_outcome_counts_as_it_says")
COMMITS = (TRANSACTIONS, "test_what_is_sent_comes_with_the_commit_and_goes_with_a_rollback")
RETIRES = (TRANSACTIONS, "test_what_is_accepted_is_gone_with_the_commit")
GIVEN_BACK = (TRANSACTIONS, "test_a_message_that_is_given_back_comes_with_the_commit")
IN_PARTS = (WIRE, "test_a_message_comes_in_frames_as_large_as_the_peer_takes_in_order")
CREDIT = (WIRE, "test_no_more_messages_come_than_there_is_credit_for")
CUT = (FRAMES, "test_a_conversation_comes_byte_by_byte_and_cut_anywhere")
FRAME_SIZES = (
    PARAMETERS,
    "test_frames_are_as_large_as_the_acceptor_says_and_the_peer_takes",
)
MECHANISMS = (CONNECTIONS, "test_the_mechanisms_are_offered_and_others_refused")

# (section, whose it is, what, [(module, test)])
STATEMENTS = [
    # Part 2: transport.
    ("2.2-1", "broker", "each side begins with a header", [
        (WIRE, "test_a_header_is_answered_before_anything_else_and_an_open_on_channel_0")]),
    ("2.2-2", "broker", "another protocol or version: a header that is spoken, then the end", [
        (WIRE, "test_another_version_is_answered_with_one_that_is_spoken")]),
    ("2.2-3", "broker", "so is one without the security layer that is wanted", [
        (WIRE, "test_who_may_not_be_anonymous_is_told_to_authenticate")]),
    ("2.3.1-1", "engine", "a frame smaller than its header, or that begins behind its end, is none",
        [(WIRE, "test_a_frame_that_is_none_closes_with_framing_error")]),
    ("2.3.1-2", "engine", "what extends a header is ignored", [
        (WIRE, "test_empty_frames_and_what_extends_a_header_are_passed_over")]),
    ("2.3.2-1", "broker", "a body is a performative: any other closes the connection", [
        (WIRE, "test_a_frame_that_cannot_be_decoded_closes_the_connection"),
        (FRAMES, "test_damaged_frames_end_their_connection_alone")]),
    ("2.4.1-1", "broker", "open is the first frame: no session begins before", [
        (WIRE, "test_what_is_no_open_first_is_answered_with_an_error"),
        (WIRE, "test_who_has_not_opened_has_no_session")]),
    ("2.4.1-2", "engine", "it is on channel 0", [
        (WIRE, "test_a_header_is_answered_before_anything_else_and_an_open_on_channel_0")]),
    ("2.4.1-3", "engine", "each keeps to what the other's open allows", [
        IN_PARTS, FRAME_SIZES]),
    ("2.4.2-1", "broker", "frames may follow an open without waiting for its answer", [CUT]),
    ("2.4.3-1", "broker", "a close with the reason goes before the end of a connection", [
        (WIRE, "test_what_is_no_open_first_is_answered_with_an_error"),
        (CONNECTIONS, "test_who_is_nobody_or_may_not_is_refused")]),
    ("2.4.3-2", "engine", "it is the last frame, and is answered", [
        (WIRE, "test_a_close_is_answered_and_is_the_last")]),
    ("2.4.5-1", "engine", "empty frames may come on any channel", [
        (WIRE, "test_empty_frames_and_what_extends_a_header_are_passed_over")]),
    ("2.4.5-2", "engine", "something is sent within the peer's idle-time-out", [
        (WIRE, "test_beats_come_as_often_as_the_peer_wants_them")]),
    ("2.4.5-3", "broker", "who is silent for longer than ours is closed", [
        (CONNECTIONS, "test_who_is_silent_is_cut_off_and_who_beats_is_not")]),
    ("2.5.1-1", "engine", "a begin is answered with the channel that it came on", [
        (WIRE, "test_a_session_is_answered_on_its_channel_and_ended")]),
    ("2.5.2-1", "broker", "an end is answered, and its channels are free", [
        (WIRE, "test_a_session_is_answered_on_its_channel_and_ended")]),
    ("2.5.6-1", "engine", "no more transfers than the peer's incoming window", [
        (WIRE, "test_no_more_frames_come_than_the_window_of_a_session_takes")]),
    ("2.6.3-1", "broker", "a link that is refused has no terminus, and is detached at once", [
        (WIRE, "test_a_refused_link_is_attached_without_its_node_and_detached_at_once")]),
    ("2.6.4-1", "broker", "a detach is answered: closed if it was, else not; the handle is free", [
        (WIRE, "test_a_detach_is_answered_as_it_was_meant")]),
    ("2.6.5-1", "broker", "a link that is closed leaves nothing, one that is detached its node", [
        (LINKS, "test_a_durable_subscription_stays_when_detached_and_goes_when_closed")]),
    ("2.6.7-1", "broker", "nothing is sent without credit", [CREDIT]),
    ("2.6.7-2", "broker", "drain: what there is, then the credit goes back, and that is told", [
        (WIRE, "test_a_drain_takes_the_credit_that_is_left"),
        (LINKS, "test_a_drained_link_has_what_there_was"),
        (LINKS, "test_a_drained_link_has_what_there_was_also_if_the_peer_takes_little_at_once")]),
    ("2.6.12-1", "broker", "tags of what is not settled are unique, at most 32 bytes", [CREDIT]),
    ("2.6.12-2", "broker", "first: who receives settles at once; second: behind the sender", [
        (SETTLEMENT, "test_a_sender_that_asks_for_second_settles_first"),
        (SETTLEMENT, "test_what_such_a_sender_does_not_settle_takes_of_its_credit"),
        (SETTLEMENT, "test_a_receiver_that_asks_for_second_is_settled_before_it_settles")]),
    ("2.6.14-1", "engine", "messages of a link are never interleaved, those of two may be", [
        IN_PARTS, (WIRE, "test_messages_may_come_in_parts_those_of_two_links_in_turn")]),
    ("2.6.14-2", "broker", "what was sent of an aborted message is dropped", [
        (WIRE, "test_an_aborted_message_is_dropped"),
        (LARGE, "test_one_that_never_comes_to_its_end_leaves_nothing")]),
    ("2.7.1-1", "broker", "an open has a container-id", [
        (WIRE, "test_what_is_no_open_first_is_answered_with_an_error")]),
    ("2.7.1-2", "engine", "a frame larger than max-frame-size: framing-error", [
        FRAME_SIZES]),
    ("2.7.1-3", "engine", "frames of 512 bytes do", [IN_PARTS]),
    ("2.7.3-1", "engine", "who sends says where its delivery count begins", [
        (WIRE, "test_a_link_is_answered_by_its_name_with_what_it_is")]),
    ("2.7.3-2", "broker", "the sender settle mode that a receiver wants is kept to", [
        (WIRE, "test_a_settled_link_gets_settled_transfers_alone"),
        (SETTLEMENT, "test_the_sender_settle_mode_is_that_of_the_peer")]),
    ("2.7.4-1", "engine", "a flow behind a begin says what has come", [
        (WIRE, "test_a_drain_takes_the_credit_that_is_left")]),
    ("2.7.4-2", "engine", "a handle that is not attached is an error", [
        (WIRE, "test_a_handle_that_is_not_attached_is_an_error")]),
    ("2.7.5-1", "broker", "the first transfer of a message has its id, tag and format", [IN_PARTS]),
    ("2.7.5-2", "engine", "those that continue it may leave them out", [
        (WIRE, "test_messages_may_come_in_parts_those_of_two_links_in_turn")]),
    ("2.7.5-3", "broker", "what is sent settled is not answered", [
        (SETTLEMENT, "test_one_that_has_settled_before_is_not_answered")]),
    ("2.7.6-1", "engine", "a disposition is about all from first to last", [
        (WIRE, "test_a_disposition_is_about_all_from_its_first_to_its_last")]),
    # Part 3: messaging.
    ("3.2-1", "broker", "the bare message is never changed", [
        (WIRE, "test_a_message_comes_byte_for_byte_without_delivery_annotations"),
        (MESSAGES, "test_all_sections_come_as_they_were_sent"),
        (LARGE, "test_a_large_message_is_delivered_as_it_was_sent")]),
    ("3.2-2", "broker", "bytes that are not a message are rejected", [
        (MESSAGES, "test_what_is_no_message_is_rejected")]),
    ("3.2.1-1", "broker", "a durable message is not lost, even if the broker is killed", [
        ("test_kill", "test_kill_9_loses_and_doubles_nothing")]),
    ("3.2.1-2", "broker", "what a header leaves out has its default", [
        (WIRE, "test_a_header_that_is_left_out_has_its_defaults")]),
    ("3.2.1-3", "broker", "a message whose time is over is not delivered", [
        (MESSAGES, "test_what_expires_and_what_is_delayed")]),
    ("3.2.1-4", "broker", "delivery-count is how often it was delivered before", [
        OUTCOMES, (LARGE, "test_one_that_was_delivered_before_says_so")]),
    ("3.2.2-1", "broker", "delivery annotations go no further than the next node", [
        (WIRE, "test_a_message_comes_byte_for_byte_without_delivery_annotations")]),
    ("3.2.3-1", "broker", "message annotations travel on, x-opt ones unread", [
        (WIRE, "test_a_message_comes_byte_for_byte_without_delivery_annotations")]),
    ("3.4-1", "broker", "a terminal outcome ends it: accepted is gone, rejected elsewhere", [
        OUTCOMES, (LINKS, "test_messages_go_through_a_queue_and_a_topic")]),
    ("3.4.4-1", "broker", "released: there again, not counted", [OUTCOMES, GIVEN_BACK]),
    ("3.4.5-1", "broker", "modified with delivery-failed: counted", [OUTCOMES, GIVEN_BACK]),
    ("3.4.5-2", "broker", "with undeliverable-here: not to this link again", [
        (LINKS, "test_what_is_undeliverable_here_is_for_others"), GIVEN_BACK]),
    ("3.5.1-1", "broker", "expiry policies link-detach and session-end remove a node", [
        (AS_FOR_CORE, "test_a_detach_removes_what_expires_with_the_link")]),
    ("3.5.3-1", "broker", "a dynamic source is made, and its address told", [
        (WIRE, "test_a_dynamic_node_is_told_by_its_name_and_a_filter_if_it_counts"),
        (LINKS, "test_a_dynamic_node_lives_as_long_as_its_connection")]),
    ("3.5.3-2", "broker", "the filters of the answer are those in place", [
        (WIRE, "test_a_dynamic_node_is_told_by_its_name_and_a_filter_if_it_counts"),
        (LINKS, "test_a_selector_chooses_by_headers_properties_and_annotations")]),
    ("3.5.3-3", "broker", "copy leaves messages where they are", [
        (LINKS, "test_a_browser_looks_and_takes_nothing")]),
    ("3.5.3-4", "broker", "an outcome that is sent is one of the source's", [
        (PARAMETERS, "test_a_full_address_answers_modified_where_both_want_it")]),
    ("3.5.4-1", "broker", "a dynamic target likewise", [
        (AS_FOR_CORE, "test_a_dynamic_target_is_a_temporary_queue_or_topic"),
        (AS_FOR_CORE, "test_a_dynamic_target_without_a_capability_is_a_queue")]),
    ("3.5.10-1", "broker", "such a node ends with its link, or its connection if it is used", [
        (AS_FOR_CORE, "test_a_dynamic_target_without_a_capability_is_a_queue"),
        (AS_FOR_CORE, "test_a_dynamic_target_that_is_used_stays_until_its_connection_ends")]),
    # Part 4: transactions.
    ("4.1-1", "broker", "the coordinator says what it can do", [
        (WIRE, "test_a_discharge_that_fails_is_rejected_with_its_error")]),
    ("4.2-1", "broker", "a declare is answered with the id", [
        (WIRE, "test_or_the_link_is_detached_with_it_where_the_source_knows_no_rejected"),
        COMMITS]),
    ("4.3-1", "broker", "a discharge that is complete is accepted", [COMMITS]),
    ("4.3-2", "broker", "one that cannot be: rejected with the error, if the source has that", [
        (WIRE, "test_a_discharge_that_fails_is_rejected_with_its_error"),
        (TRANSACTIONS, "test_a_transaction_of_which_something_was_refused_is_rolled_back")]),
    ("4.3-3", "broker", "else the link is detached with it", [
        (WIRE, "test_or_the_link_is_detached_with_it_where_the_source_knows_no_rejected")]),
    ("4.3-4", "broker", "transactions end with the link's connection: rolled back", [
        (TRANSACTIONS, "test_several_sessions_work_for_one_and_a_lost_connection_rolls_back")]),
    ("4.4-1", "broker", "an id that is unknown is an error", [
        (TRANSACTIONS, "test_an_unknown_transaction_is_refused")]),
    ("4.4.1-1", "broker", "what is posted counts with the commit, and is gone with a rollback", [
        COMMITS]),
    ("4.4.1-2", "broker", "it is answered with the transaction and its outcome before that", [
        (WIRE, "test_what_is_sent_in_a_transaction_is_answered_with_its_state_and_outcome"),
        (SETTLEMENT, "test_a_refusal_and_a_transaction_are_answered_in_that_mode_too")]),
    ("4.4.2-1", "broker", "what is retired: its outcome, whichever, counts with the commit", [
        RETIRES, GIVEN_BACK,
        (TRANSACTIONS, "test_a_rejection_counts_with_the_commit")]),
    ("4.4.2-2", "broker", "after a rollback it is not retired", [
        RETIRES,
        (TRANSACTIONS, "test_what_is_given_back_counts_as_delivered_where_it_is_rolled_back")]),
    # Part 5: security.
    ("5.3-1", "broker", "its header is answered, then frames of SASL, then the header of AMQP", [
        (WIRE, "test_sasl_offers_mechanisms_and_then_amqp_begins_anew")]),
    ("5.3.1-1", "broker", "an empty frame of SASL is an error that ends the connection", [
        (WIRE, "test_an_empty_sasl_frame_ends_the_connection")]),
    ("5.3.2-1", "broker", "the mechanisms are announced, at least one", [MECHANISMS]),
    ("5.3.2-2", "broker", "another one ends the connection", [MECHANISMS]),
    ("5.3.3-1", "broker", "the outcome is told", [
        MECHANISMS, ("test_external", "test_a_certificate_of_a_stranger_or_none_is_refused")]),
]  # fmt: skip

# (section, what is said, what happens, [(module, test)])
NOT_KEPT = [
    ("2.6.1", "a second attach of a link's name takes it over from another connection",
     "a durable subscription is for one link at a time: the second is refused, as in Artemis",
     [(LINKS, "test_a_durable_subscription_stays_when_detached_and_goes_when_closed")]),
    ("2.6.13", "a link that is resumed takes up what is not settled",
     "as in Artemis what was not settled goes back with the detach, and is delivered anew",
     [(LINKS, "test_detach_and_end_give_back_without_counting")]),
    ("2.7.4", "a handle that is not attached ends its session",
     "the engine ends the connection", [
         (WIRE, "test_a_handle_that_is_not_attached_is_an_error")]),
    ("3.2.10", "an annotation that is not understood, and not x-opt, detaches the link",
     "it travels on, as in Artemis", [
         (WIRE, "test_a_message_comes_byte_for_byte_without_delivery_annotations")]),
    ("4.4.3", "messages may be acquired in a transaction",
     "the capability is not offered: what is delivered is outside of any", []),
]  # fmt: skip


@pytest.mark.parametrize("statement", [*STATEMENTS, *NOT_KEPT], ids=lambda one: one[0])
def test_it_has_the_tests_that_it_names(statement):
    for module, test in statement[-1]:
        found = importlib.import_module(f"tests.broker.protocols.amqp.{module}")
        assert hasattr(found, test), (module, test)
    assert statement[-1] or statement in NOT_KEPT


def test_sections_are_in_order_and_unique():
    def place(number):
        section, _, index = number.partition("-")
        return [*map(int, section.split("."))], int(index)

    places = [place(one[0]) for one in STATEMENTS]

    assert places == sorted(places)
    assert len({str(one) for one in places}) == len(places)
    assert {one[1] for one in STATEMENTS} == {"broker", "engine"}
