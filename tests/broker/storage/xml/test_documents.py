"""The document: what is written is read, and what cannot be one is refused in one line."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as some

from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.printing.xml.reader import (
    BODY_MEMORY_MAX,
    AddressElement,
    DocumentError,
    OldBindingElement,
    QueueElement,
    read_document,
    read_sorted,
)
from broker.printing.xml.writer import XmlWriter
from broker.records.binding_records import AddressBinding, QueueBinding

HEADERS = {
    "user_id": bytes(range(16)),
    "type": 3,
    "durable": True,
    "expiration": 7,
    "timestamp": 8,
    "priority": 9,
}


class Document:
    """A document as it is written."""

    def __init__(self):
        self.texts = []
        self.losses = []
        self.writer = XmlWriter(self.texts.append, self.losses.append)

    @property
    def text(self):
        return "".join(self.texts)

    def read(self, read=read_document):
        return list(read(io.BytesIO(self.text.encode())))


def written(*messages):
    document = Document()
    document.writer.begin()
    document.writer.begin_messages()
    for one in messages:
        document.writer.message(*one)
    document.writer.end()
    return document


def message(body=b"", message_id=5, **changes):
    values = {**HEADERS, "message_id": message_id, **changes}
    return Message("a", body, **values)


def test_the_text_is_that_of_artemis():
    document = Document()
    writer = document.writer
    writer.begin()
    writer.address(
        1, AddressBinding("a", (RoutingType.ANYCAST, RoutingType.MULTICAST), auto_created=False)
    )
    writer.queue(2, QueueBinding("q", "a", "x > '1'", "", False, routing_type=RoutingType.ANYCAST))
    writer.begin_messages()
    properties = (Property("n", PropertyType.INT, -1), Property("none", PropertyType.NULL, None))
    writer.message(message(b"hi\xff\xfe", properties=properties), ["q"])
    writer.message(message(user_id=None, type=0), ["q"], iter([bytes(1000), b"x"]))
    writer.end()

    large = "A" * 1332 + "AA=="
    assert (
        document.text
        == f"""
<activemq-journal>
   <bindings>
      <address-binding routing-types="MULTICAST,ANYCAST" name="a" id="1"/>
      <queue-binding address="a" filter-string="x &gt; '1'" name="q" id="2" routing-type="ANYCAST"/>
   </bindings>
   <messages>
      <message id="5" priority="9" expiration="7" timestamp="8" type="text" \
user-id="00010203-0405-1607-8809-0a0b0c0d0e0f">
         <properties>
            <property name="n" value="-1" type="integer"/>
            <property name="none" value="_AMQ_NULL" type="bytes"/>
         </properties>
         <queues>
            <queue name="q"/>
         </queues>
         <body>
            <![CDATA[aGn__g==]]>
         </body>
      </message>
      <message id="5" priority="9" expiration="7" timestamp="8" type="default">
         <properties>
         </properties>
         <queues>
            <queue name="q"/>
         </queues>
         <body isLarge="true">
            <![CDATA[{large}]]>
            <![CDATA[eA==]]>
         </body>
      </message>
   </messages>
</activemq-journal>"""
    )
    assert document.losses == []


TEXTS = some.text(
    some.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
    | some.sampled_from("\t\n\r<>&\"'")
)
VALUES = some.one_of(
    *(
        some.tuples(some.just(kind), values)
        for kind, values in (
            (PropertyType.NULL, some.none()),
            (PropertyType.BOOLEAN, some.booleans()),
            (PropertyType.BYTE, some.integers(-(2**7), 2**7 - 1)),
            (PropertyType.SHORT, some.integers(-(2**15), 2**15 - 1)),
            (PropertyType.INT, some.integers(-(2**31), 2**31 - 1)),
            (PropertyType.LONG, some.integers(-(2**63), 2**63 - 1)),
            (PropertyType.FLOAT, some.floats(width=32, allow_nan=False)),
            (PropertyType.DOUBLE, some.floats(allow_nan=False)),
            (PropertyType.STRING, TEXTS.filter(lambda text: text != "_AMQ_NULL")),
            (PropertyType.BYTES, some.binary()),
            (PropertyType.CHAR, some.sampled_from("aé<\t")),
        )
    )
)


@given(
    properties=some.dictionaries(TEXTS, VALUES, max_size=20),
    queues=some.lists(TEXTS, min_size=1, max_size=4),
    body=some.binary(max_size=5000),
    is_large=some.booleans(),
)
def test_what_is_written_is_read(properties, queues, body, is_large):
    items = tuple(Property(name, kind, value) for name, (kind, value) in properties.items())
    pieces = iter([body[:1700], body[1700:]]) if is_large else None

    document = written((message(body, properties=items), queues, pieces))
    (found,) = document.read()

    sent = found.message
    assert dict(sent.properties) == {item.name: item for item in items}
    assert (found.message_id, found.queues) == (5, queues)
    assert (found.body.read(), found.body_size) == (body, len(body))
    assert (sent.type, sent.priority, sent.expiration) == (3, 9, 7)
    assert (sent.timestamp, sent.durable) == (8, True)
    assert len(sent.user_id) == 16
    assert document.losses == []


def test_what_xml_cannot_hold_is_replaced_and_told():
    item = Property("bad\x01", PropertyType.STRING, "a\x00\ud800b")

    document = written((message(properties=(item,)), ["q"]))

    assert "bad\ufffd" in document.text
    assert "a\ufffd\ufffdb" in document.text
    assert len(document.losses) == 2


def test_a_long_body_waits_in_a_file():
    body = bytes(range(256)) * (BODY_MEMORY_MAX // 256 + 1)
    pieces = (body[at : at + 64_000] for at in range(0, len(body), 64_000))

    (found,) = written((message(), ["q"], pieces)).read()

    with found.body:
        assert not isinstance(found.body, io.BytesIO)
        assert found.body.read() == body


def test_a_section_of_any_length_is_one_piece():
    (found,) = written((message(bytes(300_001)), ["q"])).read()

    assert found.body_size == 300_001


def test_messages_are_sorted_by_their_ids():
    document = written(*((message(b"%d" % number, number), ["q"]) for number in (30, 4, 2**40)))
    document.texts.insert(0, "<?xml version='1.0' encoding='UTF-8'?>")

    found = document.read(read_sorted)

    assert [(one.message_id, one.body.read()) for one in found] == [
        (4, b"4"),
        (30, b"30"),
        (2**40, b"%d" % 2**40),
    ]


def test_bindings_of_both_generations_are_read():
    text = b"""<activemq-journal><bindings>
        <address-binding routing-types="" name="none" id="3"/>
        <address-binding routing-types="MULTICAST, ANYCAST" name="a" id="1"/>
        <queue-binding address="a" filter-string="" name="q" id="2" routing-type="ANYCAST"/>
        <binding address="jms.queue.a" filter-string="x=1" queue-name="jms.queue.a" id="1"/>
        <unknown/></bindings></activemq-journal>"""

    assert list(read_document(io.BytesIO(text))) == [
        AddressElement("none", ()),
        AddressElement("a", (RoutingType.MULTICAST, RoutingType.ANYCAST)),
        QueueElement("q", "a", "", RoutingType.ANYCAST),
        OldBindingElement("jms.queue.a", "jms.queue.a", "x=1"),
    ]


MESSAGE = (
    '<activemq-journal><messages><message id="1" {}>{}</message></messages></activemq-journal>'
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: no element found"),
        ("<activemq-journal>", "line 1: no element found"),
        ("no XML", "line 1: syntax error"),
        ("<html/>", "line 1: <html> where <activemq-journal> should be"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a/>', "line 1: a document type is not allowed"),
        ("<activemq-journal>\n<queue-binding name='q'/>", "line 2: 'routing-type' is missing"),
        (
            "<activemq-journal><address-binding name='a' routing-types='BOTH'/>",
            "line 1: 'BOTH' is not a routing type",
        ),
        (MESSAGE.format('priority="ten"', ""), "line 1: priority 'ten' is not a number"),
        (MESSAGE.format('priority="10"', ""), "line 1: priority 10 is not 0 … 9"),
        (MESSAGE.format('timestamp="9223372036854775808"', ""), "does not fit 64 bits"),
        (MESSAGE.format("", "<body>a?b</body>"), "'a?b' is not valid base64"),
        (MESSAGE.format("", "<body>abcde</body>"), "'abcde' is not valid base64"),
        (
            MESSAGE.format("", '<property name="n" value="1" type="int"/>'),
            "property n is of the unknown type 'int'",
        ),
        (
            MESSAGE.format("", '<property name="n" value="128" type="byte"/>'),
            "property n 128 does not fit 8 bits",
        ),
        (
            MESSAGE.format("", '<property name="n" value="1e40" type="float"/>'),
            "property n '1e40' is not a valid float",
        ),
        (MESSAGE.format("", '<property name="n" type="byte"/>'), "'value' is missing"),
    ],
)
def test_what_is_no_document_is_refused(text, said):
    with pytest.raises(DocumentError) as refused:
        list(read_document(io.BytesIO(text.encode())))

    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
