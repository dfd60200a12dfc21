"""Every record that Artemis wrote: decoded, described and encoded as Artemis does."""

import re

from broker.printing.journal_decoder import JournalDecoder
from broker.records.message_records import DuplicateId
from broker.records.records import decode_prepared, decode_record, encode_prepared, encode_record
from broker.records.stored_messages import CoreMessage, LargeCoreMessage

DECODER = JournalDecoder()
# Where Artemis prints an identity hash, ours prints 0.
IDENTITY = re.compile(r"(?<=\]@)\d+|(?<=BridgeConfiguration@)[0-9a-f]+|(?<=XidImpl \()\d+")
# The names of Artemis's objects for what the format calls otherwise.
REFERENCE_NAMES = {
    "queueID": "queueId",
    "transactionID": "txId",
    "pageTX": "txId",
    "scheduledDeliveryTime": "time",
    "duplID": "duplicateId",
    "addressMatch": "match",
    "jsonSetting": "json",
    "largeMessageID": "messageId",
    "pageID": "pageId",
    "collectionID": "collectionId",
    "filterString": "filter",
}
# What Artemis keeps beside the body, or computes.
NOT_STORED = {"id", "storeId", "addressStatusEncoding", "setting", "config"}


def mask(text):
    return IDENTITY.sub("0", text)


def pairs(scenario, journal):
    ours, theirs = scenario.records(journal), scenario.expected_records(journal)
    assert [record.kind for record in ours] == [record["kind"] for record in theirs]
    return zip(ours, theirs, strict=True)


def with_body(scenario, journal):
    for record, expected in pairs(scenario, journal):
        if record.user_type is not None:
            assert record.body.hex() == expected["hex"]
            yield record, expected


def test_bodies_come_back_byte_for_byte(scenario, journal):
    for record, _ in with_body(scenario, journal):
        decoded = decode_record(record.user_type, record.body, is_update=record.is_update)

        assert decoded.record_type == record.user_type
        # What ours says more: the message, of which these say nothing.
        owner = bytes(8) if isinstance(decoded, DuplicateId) else b""
        assert encode_record(decoded) == record.body + owner


def test_text_is_that_of_artemis(scenario, journal):
    for record, expected in with_body(scenario, journal):
        text = DECODER.describe(
            record.user_type,
            record.body,
            record_id=record.record_id,
            is_update=record.is_update,
        )

        assert text == mask(expected["describe"] or "** null **")


def test_type_name_and_fields_are_those_of_artemis(scenario, journal):
    checked = 0
    for record, expected in with_body(scenario, journal):
        decoded = DECODER.decode(
            record.user_type,
            record.body,
            record_id=record.record_id,
            is_update=record.is_update,
        )

        assert decoded["recordType"] == expected["type_name"]
        for name, value in flat_fields(expected.get("fields", {})):
            ours = REFERENCE_NAMES.get(name, name)
            if ours in decoded and name not in NOT_STORED:
                assert as_artemis(decoded[ours]) == value, (name, record)
                checked += 1
    assert checked or journal == "messages"


def flat_fields(fields):
    """Give the fields of a reference's object and of the objects in it."""
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from flat_fields(value)
        elif isinstance(value, str) and value.startswith("hex:"):
            yield name, value.removeprefix("hex:")
        else:
            yield name, value


def as_artemis(value):
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    return repr(value) if isinstance(value, float) else value


def test_messages_are_those_of_artemis(scenario):
    for record, expected in with_body(scenario, "messages"):
        if "message" not in expected:
            continue
        theirs = expected["message"]
        message = decode_record(record.user_type, record.body, is_update=False)
        is_large = isinstance(message, LargeCoreMessage)
        headers = message.headers if is_large else message.current_headers

        assert is_large == theirs["large"]
        assert isinstance(message, LargeCoreMessage | CoreMessage)
        assert headers.message_id == theirs["message_id"]
        assert headers.address == theirs["address"]
        assert headers.durable == theirs["durable"]
        assert headers.priority == theirs["priority"]
        assert headers.timestamp == theirs["timestamp"]
        assert headers.expiration == theirs["expiration"]
        assert headers.type == theirs["core_type"]
        assert properties_as_artemis(headers) == theirs["properties"]
        decoded = DECODER.decode(record.user_type, record.body, record_id=0, is_update=False)
        assert decoded["userId"] == theirs["user_id"]
        if "body_hex" in theirs:
            assert message.body.hex() == theirs["body_hex"]
            assert decoded["body"] == theirs["body_hex"]


def properties_as_artemis(headers):
    java = {
        "NULL": "null",
        "BOOLEAN": "Boolean",
        "BYTE": "Byte",
        "BYTES": "byte[]",
        "SHORT": "Short",
        "INT": "Integer",
        "LONG": "Long",
        "FLOAT": "Float",
        "DOUBLE": "Double",
        "STRING": "SimpleString",
        "CHAR": "Character",
    }
    return [
        {"name": item.name, "java": java[item.type.name], "value": value_as_artemis(item)}
        for item in sorted(headers.properties)
    ]


def value_as_artemis(item):
    from broker.model.java_text import double_text, float_text

    match item.type.name:
        case "BYTES":
            return f"hex:{item.value.hex()}"
        case "CHAR":
            return f"char:{ord(item.value)}"
        case "FLOAT":
            return float_text(item.value)
        case "DOUBLE":
            return double_text(item.value)
    return item.value


def test_prepared_extra_data_comes_back(scenario):
    for record in scenario.records("messages"):
        if record.kind == "prepare":
            assert encode_prepared(decode_prepared(record.body)) == record.body
