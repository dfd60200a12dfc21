"""docs/format/records.md says what the code does."""

import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from broker.model.message_types import Persister
from broker.model.properties import PropertyType
from broker.model.wire import RecordType, WireRecord
from broker.printing.json_view import camel_case
from broker.records.records import decode_record, encode_record
from tests.broker.storage import format_example

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs/format/records.md").read_text("utf-8")
RECORD_ROW = re.compile(r"^\| (\d\d) \| ([A-Z_]+) \|(.*)\|$", re.MULTILINE)
PERSISTER_ROW = re.compile(r"^\| (\d) ([A-Z_0-9]+) \|(.*)\|$", re.MULTILINE)
# Rows that point to another section instead of naming fields.
ELSEWHERE = {30, 45}


def classes():
    """The record classes; a slotted one leaves behind the plain class that it was made from."""
    for kind in WireRecord.__subclasses__():
        if getattr(sys.modules[kind.__module__], kind.__name__) is kind:
            yield kind


def labels(kind):
    return [item.metadata.get("label") or camel_case(item.name) for item in fields(kind)]


def documented(text):
    return [name for name in re.findall(r"`([^`]+)`", text) if "/" not in name]


@pytest.mark.parametrize(("number", "name", "text"), RECORD_ROW.findall(DOCUMENT))
def test_fields_of_a_record_are_those_of_its_class(number, name, text):
    user_type = RecordType(int(number))

    assert user_type.name == name
    if user_type not in ELSEWHERE:
        of_this_type = [labels(kind) for kind in classes() if has_type(kind, user_type)]
        assert documented(text) in of_this_type


def has_type(kind, user_type):
    return getattr(kind, "record_type", None) is user_type


def test_every_record_type_stands_in_the_document():
    numbers = [int(number) for number, _, _ in RECORD_ROW.findall(DOCUMENT)]

    assert set(numbers) == set(RecordType)


@pytest.mark.parametrize(("number", "name", "text"), PERSISTER_ROW.findall(DOCUMENT))
def test_fields_of_a_message_are_those_of_its_class(number, name, text):
    persister = Persister(int(number))
    (kind,) = [kind for kind in classes() if getattr(kind, "persister", None) is persister]

    assert persister.name == name
    shown = documented(text)
    assert shown == [label for label in labels(kind) if label in shown]
    if persister is Persister.AMQP_LARGE:
        assert shown == labels(kind)


def test_tags_of_properties():
    row = re.search(r"^\| tag \|(.*)\|$", DOCUMENT, re.MULTILINE)[1]

    assert [int(tag) for tag in row.split("|")] == list(PropertyType)


def test_the_worked_example_is_what_the_code_reads_and_writes():
    message = decode_record(45, format_example.MESSAGE, is_update=False)
    shown = "".join(f"    {line}\n" for line in format_example.text().splitlines())

    assert message.message_id == 77
    assert encode_record(message) == format_example.MESSAGE
    assert DOCUMENT.endswith("\n\n" + shown)
