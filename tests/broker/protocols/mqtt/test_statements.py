"""The numbered statements of MQTT that are about servers: each with the tests that show it.

Numbers are those of MQTT 5; where 3.1.1 has the same under another one, that stands behind it. Not
in the table: what is about clients alone, enhanced authentication, which is refused, and WebSocket.
"""

import importlib

import pytest

CODEC, CONNECTIONS, MESSAGES = "test_codec", "test_connections", "test_messages"
SUBSCRIPTIONS, SESSIONS = "test_subscriptions", "test_sessions"
BAD = (CODEC, "test_what_is_not_a_packet_is_refused_with_its_reason")
ROUND = (CODEC, "test_what_is_written_is_read_again_however_it_is_cut")
ENDS = (CONNECTIONS, "test_what_a_client_may_not_send_ends_the_connection")
QOS = (MESSAGES, "test_a_message_goes_from_one_client_to_another")
ONCE = (MESSAGES, "test_a_qos_2_message_that_comes_twice_is_routed_once")
AGAIN = (MESSAGES, "test_what_was_not_acknowledged_comes_again_with_its_id_and_dup")
RELEASE = (MESSAGES, "test_a_pubrel_without_answer_is_sent_again")
WINDOW = (MESSAGES, "test_no_more_are_on_their_way_than_the_client_takes")
FILTERS = (SUBSCRIPTIONS, "test_a_filter_matches_topics")
NO_FILTERS = (SUBSCRIPTIONS, "test_filters_that_are_none")
RETAINED = (SUBSCRIPTIONS, "test_the_last_message_of_a_topic_is_retained")
CHOICE = (SUBSCRIPTIONS, "test_when_retained_messages_come_is_the_clients_choice")
WAITS = (SESSIONS, "test_a_session_waits_for_its_client")
WILL = (SESSIONS, "test_a_will_is_sent_unless_the_client_says_goodbye")
ALIAS = (MESSAGES, "test_an_alias_that_is_not_known_ends_the_connection")
ALIASES = (MESSAGES, "test_aliases_stand_for_topics_both_ways")
PROPERTIES = (MESSAGES, "test_properties_come_as_they_were_sent")
LEVELS = (CONNECTIONS, "test_a_level_that_is_not_spoken_is_refused")
NO_ID = (CONNECTIONS, "test_a_client_without_an_id_is_given_one_or_refused")
TAKEN = (
    CONNECTIONS,
    "test_a_client_that_connects_again_takes_the_place_of_its_older_connection",
)
DAMAGED = (
    "test_damaged_packets",
    "test_a_damaged_packet_ends_the_connection_with_its_reason",
)
GROUP = (SUBSCRIPTIONS, "test_a_group_shares_messages_and_its_queue_goes_with_the_last")

STATEMENTS = {
    "MQTT-1.5.4-1, 3.1.1: 1.5.3-1": ("a text that is not UTF-8 ends the connection", [BAD]),
    "MQTT-1.5.4-2, 3.1.1: 1.5.3-2": ("nor may it have U+0000", [BAD]),
    "MQTT-1.5.5-1": ("numbers of variable size are as short as they can be", [BAD, ROUND]),
    "MQTT-2.1.3-1, 3.1.1: 2.2.2-1": ("reserved flags have their values", [BAD, ENDS]),
    "MQTT-2.2.1-2, 3.1.1: 2.3.1-5": ("a PUBLISH of QoS 0 has no packet id", [ROUND]),
    "MQTT-2.2.1-4, 3.1.1: 2.3.1-1": ("the server gives ids that are not in use", [AGAIN, WINDOW]),
    "MQTT-2.2.1-5, 3.1.1: 2.3.1-6": ("answers have the id of what they answer", [QOS]),
    "MQTT-2.2.1-6, 3.1.1: 2.3.1-7": ("so have SUBACK and UNSUBACK", [
        (SUBSCRIPTIONS, "test_an_end_of_a_subscription_is_answered_and_removes_its_queue")]),
    "MQTT-2.2.2-1": ("without properties their size is 0", [ROUND]),
    "MQTT-3.1.0-1": ("the first packet is CONNECT", [
        (CONNECTIONS, "test_another_packet_first_closes_the_connection")]),
    "MQTT-3.1.0-2": ("a second CONNECT ends the connection", [
        (CONNECTIONS, "test_a_second_connect_ends_the_connection")]),
    "MQTT-3.1.2-1": ("the protocol's name is MQTT", [
        BAD, (CONNECTIONS, "test_detection_needs_no_more_than_it_says")]),
    "MQTT-3.1.2-2": ("another version may be answered, and is left", [LEVELS]),
    "MQTT-3.1.2-3": ("the reserved flag of CONNECT is 0", [BAD]),
    "MQTT-3.1.2-4": ("Clean Start discards the session", [WAITS]),
    "MQTT-3.1.2-5": ("without it the session is taken up", [WAITS]),
    "MQTT-3.1.2-6": ("or a new one is made", [WAITS]),
    "MQTT-3.1.2-7": ("a will is stored with the session", [WILL]),
    "MQTT-3.1.2-8": ("and published when the client goes, unless it says DISCONNECT 0x00", [WILL]),
    "MQTT-3.1.2-9": ("its flags stand for fields of the payload", [ROUND, BAD]),
    "MQTT-3.1.2-10": ("a will goes once it is published, or by DISCONNECT 0x00", [WILL]),
    "MQTT-3.1.2-11": ("without a will its QoS is 0", [BAD]),
    "MQTT-3.1.2-12": ("a will of QoS 3 is refused", [BAD]),
    "MQTT-3.1.2-13": ("without a will its RETAIN is 0", [BAD]),
    "MQTT-3.1.2-14": ("a will without RETAIN is not retained", [WILL]),
    "MQTT-3.1.2-15": ("one with RETAIN is", [WILL]),
    "MQTT-3.1.2-16 … 19": ("user and password are there as the flags say", [BAD, ROUND]),
    "MQTT-3.1.2-22, 3.1.1: 3.1.2-24": ("silence for half as long again ends the connection", [
        (CONNECTIONS, "test_a_client_that_says_nothing_for_too_long_is_left")]),
    "MQTT-3.1.2-23": ("a session with an expiry outlives its connection", [WAITS]),
    "MQTT-3.1.2-24": ("no packet is larger than the client takes", [
        (MESSAGES, "test_what_is_too_large_for_a_client_is_not_sent_to_it")]),
    "MQTT-3.1.2-25": ("such a message counts as sent", [
        (MESSAGES, "test_what_is_too_large_for_a_client_is_not_sent_to_it")]),
    "MQTT-3.1.2-26": ("no greater alias is sent than the client takes", [ALIASES]),
    "MQTT-3.1.2-27": ("none where it takes none", [PROPERTIES]),
    "MQTT-3.1.2-29": ("no reason is told to a client that wants none", [
        (CONNECTIONS, "test_a_client_that_wants_no_problem_information_is_told_the_code_alone")]),
    "MQTT-3.1.3-1": ("fields of the payload have their order", [ROUND, BAD]),
    "MQTT-3.1.3-2": ("a session is of a client id", [WAITS]),
    "MQTT-3.1.3-5": ("ids of 1 to 23 letters and digits are taken", [WAITS]),
    "MQTT-3.1.3-6, -7": ("a client without an id is given one, and told", [NO_ID]),
    "MQTT-3.1.3-8": ("an id that is refused is answered by 0x85", [NO_ID]),
    "MQTT-3.1.3-9": ("a will is not sent if its client is back in time", [
        (SESSIONS, "test_a_client_that_comes_back_in_time_has_no_will_sent")]),
    "MQTT-3.1.3-10": ("user properties of a will keep their order", [
        (SESSIONS, "test_a_client_of_5_may_go_with_its_will")]),
    "MQTT-3.1.4-1": ("CONNECT is checked, or the connection closed", [BAD, LEVELS]),
    "MQTT-3.1.4-2": ("more is checked, such as the password", [
        (CONNECTIONS, "test_a_wrong_password_is_refused")]),
    "MQTT-3.1.4-3": ("the older connection of a client ends with 0x8E", [
        TAKEN]),
    "MQTT-3.1.4-4": ("Clean Start is processed", [WAITS]),
    "MQTT-3.1.4-5": ("a client that is let in gets CONNACK 0x00", [
        (CONNECTIONS, "test_every_version_is_found_byte_by_byte")]),
    "MQTT-3.1.4-6": ("one that is not: nothing it sent behind CONNECT is looked at", [
        (CONNECTIONS, "test_a_wrong_password_is_refused")]),
    "MQTT-3.2.0-1": ("CONNACK is the first packet", [
        (CONNECTIONS, "test_every_version_is_found_byte_by_byte"), AGAIN]),
    "MQTT-3.2.2-2": ("with Clean Start no session is present", [WAITS]),
    "MQTT-3.2.2-3": ("without, it says whether there is one", [WAITS]),
    "MQTT-3.2.2-6": ("where CONNECT is refused none is", [LEVELS, NO_ID]),
    "MQTT-3.2.2-7": ("after a code of 0x80 or more the connection is closed", [NO_ID]),
    "MQTT-3.2.2-18": ("a client is told the topic aliases it may use", [
        (CONNECTIONS, "test_a_client_of_5_is_told_what_holds")]),
    "MQTT-3.2.2-21, -22": ("and the keep alive that counts", [
        (CONNECTIONS, "test_a_client_of_5_is_told_what_holds")]),
    "MQTT-3.3.1-1": ("DUP is set where a message is sent again", [AGAIN]),
    "MQTT-3.3.1-2": ("and is 0 with QoS 0", [BAD, QOS]),
    "MQTT-3.3.1-3": ("DUP of what comes says nothing for what goes", [QOS]),
    "MQTT-3.3.1-4": ("QoS 3 ends the connection", [BAD, ENDS]),
    "MQTT-3.3.1-5": ("RETAIN replaces the message of a topic", [RETAINED]),
    "MQTT-3.3.1-6, -7": ("an empty one removes it, and is not stored", [RETAINED]),
    "MQTT-3.3.1-8": ("without RETAIN nothing is stored or replaced", [RETAINED]),
    "MQTT-3.3.1-9 … 11": ("retain handling says when retained messages come", [CHOICE]),
    "MQTT-3.3.1-12, -13": ("retain as published says which flag live messages have", [
        (SUBSCRIPTIONS, "test_a_client_may_keep_the_flag_as_it_was_published"), RETAINED]),
    "MQTT-3.3.2-1": ("a PUBLISH has a topic", [
        (SUBSCRIPTIONS, "test_a_filter_matches_topics")]),
    "MQTT-3.3.2-2": ("without wildcards", [
        (CONNECTIONS, "test_a_client_that_wants_no_problem_information_is_told_the_code_alone")]),
    "MQTT-3.3.2-3": ("of what goes it matches the filter", [FILTERS]),
    "MQTT-3.3.2-4": ("the payload format is passed on", [PROPERTIES]),
    "MQTT-3.3.2-5": ("a message that has expired is not delivered", [
        (MESSAGES, "test_a_message_expires_and_says_how_long_it_has")]),
    "MQTT-3.3.2-6": ("the interval that goes is less by the time it waited", [
        (MESSAGES, "test_a_message_expires_and_says_how_long_it_has")]),
    "MQTT-3.3.2-7": ("aliases are of one connection", [ALIASES]),
    "MQTT-3.3.2-8 … 11": ("and from 1 to the maximum", [ALIAS, ALIASES]),
    "MQTT-3.3.2-12": ("all up to it are taken", [ALIASES]),
    "MQTT-3.3.2-15, -16": ("response topic and correlation data are passed on", [PROPERTIES]),
    "MQTT-3.3.2-17, -18": ("so are user properties, in their order", [PROPERTIES]),
    "MQTT-3.3.2-20": ("so is the content type", [PROPERTIES]),
    "MQTT-3.3.4-1": ("a message is answered as its QoS says", [QOS]),
    "MQTT-3.3.4-2": ("it has the greatest QoS of its subscription at most", [
        (MESSAGES, "test_the_lower_qos_counts")]),
    "MQTT-3.3.4-3 … 5": ("it has the identifier of its subscription", [
        (SUBSCRIPTIONS, "test_each_subscription_that_matches_gets_a_message_of_its_own")]),
    "MQTT-3.3.4-7, -9": ("no more are open than the other side takes", [
        WINDOW, (MESSAGES, "test_a_client_that_sends_more_than_the_broker_takes_is_left")]),
    "MQTT-3.8.1-1": ("the flags of SUBSCRIBE are 2", [BAD]),
    "MQTT-3.8.3-1": ("filters are UTF-8", [BAD]),
    "MQTT-3.8.3-2": ("there is one at least", [BAD]),
    "MQTT-3.8.3-3": ("with no-local a client does not hear itself", [
        (SUBSCRIPTIONS, "test_without_local_messages_a_client_does_not_hear_itself")]),
    "MQTT-3.8.3-4": ("which is not for groups", [
        (SUBSCRIPTIONS, "test_without_local_messages_a_client_does_not_hear_itself")]),
    "MQTT-3.8.3-5": ("reserved options are 0", [BAD]),
    "MQTT-3.8.4-1, -2": ("SUBSCRIBE is answered by SUBACK", [
        (SUBSCRIPTIONS, "test_every_filter_has_its_own_answer")]),
    "MQTT-3.8.4-3, -4": ("the same filter again replaces the subscription", [
        (SUBSCRIPTIONS, "test_one_that_is_subscribed_again_has_the_options_of_the_last_time"),
        CHOICE]),
    "MQTT-3.8.4-5 … 7": ("each filter has its answer, in order", [
        (SUBSCRIPTIONS, "test_every_filter_has_its_own_answer")]),
    "MQTT-3.8.4-8": ("messages come with the lower QoS", [
        (MESSAGES, "test_the_lower_qos_counts")]),
    "MQTT-3.10.1-1": ("the flags of UNSUBSCRIBE are 2", [BAD]),
    "MQTT-3.10.3-2": ("it has one filter at least", [BAD]),
    "MQTT-3.10.4-1 … 6": ("it ends a subscription, and is answered", [
        (SUBSCRIPTIONS, "test_an_end_of_a_subscription_is_answered_and_removes_its_queue")]),
    "MQTT-3.12.4-1": ("PINGREQ is answered", [
        (CONNECTIONS, "test_every_version_is_found_byte_by_byte")]),
    "MQTT-3.14.0-1": ("no DISCONNECT is sent before CONNACK", [
        (CONNECTIONS, "test_without_link_stealing_the_newer_connection_is_refused")]),
    "MQTT-3.14.1-1": ("reserved bits of DISCONNECT are 0", [BAD]),
    "MQTT-3.14.2-2": ("a session expiry cannot begin there", [
        (CONNECTIONS, "test_a_session_expiry_cannot_begin_with_disconnect")]),
    "MQTT-3.14.4-3": ("DISCONNECT 0x00 drops the will", [WILL]),
    "MQTT-4.1.0-1, -2": ("a session is kept as long as it is to be", [
        WAITS, (SESSIONS, "test_a_session_expires_unless_its_client_comes_back")]),
    "MQTT-4.3.1-1": ("QoS 0", [QOS]),
    "MQTT-4.3.2-1 … 5": ("QoS 1", [QOS, AGAIN]),
    "MQTT-4.3.3-1 … 13": ("QoS 2", [QOS, ONCE, AGAIN, RELEASE, (
        MESSAGES, "test_a_pubrec_that_refuses_ends_a_message")]),
    "MQTT-4.4.0-1": ("what has no answer is sent again under its id, at reconnection only", [
        AGAIN, RELEASE]),
    "MQTT-4.4.0-2": ("PUBACK or PUBREC of 0x80 or more ends a message", [
        (MESSAGES, "test_a_pubrec_that_refuses_ends_a_message")]),
    "MQTT-4.5.0-1": ("a message is added to sessions that match", [WAITS, FILTERS]),
    "MQTT-4.6.0-5, -6": ("messages of one topic come in their order", [AGAIN, WAITS]),
    "MQTT-4.7.0-1": ("wildcards are for filters alone", [
        (CONNECTIONS, "test_a_will_goes_to_a_topic")]),
    "MQTT-4.7.1-1, -2": ("# and + are whole levels, # the last one", [NO_FILTERS, FILTERS]),
    "MQTT-4.7.2-1": ("no wildcard matches a first level with $", [FILTERS]),
    "MQTT-4.7.3-1": ("names and filters have one character at least", [NO_FILTERS]),
    "MQTT-4.7.3-4": ("nothing is normalised", [FILTERS]),
    "MQTT-4.8.2-1, -2": ("the name of a group has a character, and no wildcards", [
        (SUBSCRIPTIONS, "test_groups_that_are_none")]),
    "MQTT-4.8.2-3 … 5": ("members of a group get their own QoS, each message one of them", [GROUP]),
    "MQTT-4.9.0-1, -2": ("the quota of the client counts until PUBACK or PUBCOMP", [WINDOW]),
    "MQTT-3.3.2-14": ("a response topic has no wildcards", [DAMAGED]),
    "MQTT-3.3.4-6": ("a client names no subscription identifier in PUBLISH", [DAMAGED]),
    "MQTT-4.13.1-1": ("a malformed packet ends the connection", [BAD, ENDS]),
    "MQTT-4.13.2-1": ("what is refused in CONNECT is told", [NO_ID, LEVELS]),
}  # fmt: skip


@pytest.mark.parametrize("number", STATEMENTS)
def test_its_tests_are_there(number):
    text, tests = STATEMENTS[number]
    assert text
    for module, name in tests:
        found = importlib.import_module(f"tests.broker.protocols.mqtt.{module}")
        assert callable(getattr(found, name)), name
