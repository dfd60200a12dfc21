"""The datagram: Artemis's own bytes, and whatever else may come."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cluster.connectors import told_connector
from broker.config.transport import parse_transport
from broker.discovery.datagram import (
    DATAGRAM_SIZE_MAX,
    Broadcast,
    decode_broadcast,
    encode_broadcast,
)
from broker.model.encoding import RecordFormatError
from broker.model.transport_configuration import TransportConfiguration

# Sent by Artemis 2.44.0, which has <connector name="artemis">tcp://127.0.0.1:49111</connector>;
# 2.56.0 sends the same.
CAPTURED = bytes.fromhex(
    "00000024002466316336393431622d653766362d313166312d626537392d303266633030303030303031"
    "00000024002466316535386463632d653766362d313166312d626537392d303266633030303030303031"
    "00000001000000070061007200740065006d006900730000004a004a6f72672e6170616368652e616374"
    "6976656d712e617274656d69732e636f72652e72656d6f74696e672e696d706c2e6e657474792e4e6574"
    "7479436f6e6e6563746f72466163746f727900000002000000040070006f007200740300000005003400"
    "39003100310031000000040068006f00730074030000000900093132372e302e302e31"
)
SENT = Broadcast(
    "f1c6941b-e7f6-11f1-be79-02fc00000001",
    "f1e58dcc-e7f6-11f1-be79-02fc00000001",
    (told_connector(parse_transport("artemis", "tcp://127.0.0.1:49111")),),
)

connectors = st.builds(
    TransportConfiguration,
    st.text(max_size=20),
    parameters=st.dictionaries(
        st.text(max_size=10),
        st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=20),
        max_size=4,
    ),
)
broadcasts = st.builds(
    Broadcast, st.text(max_size=40), st.text(max_size=40), st.tuples(connectors, connectors)
)


def test_the_bytes_are_those_of_artemis():
    assert decode_broadcast(CAPTURED) == SENT
    assert encode_broadcast(SENT) == CAPTURED


def test_zeros_behind_the_last_connector_are_passed_over():
    assert decode_broadcast(CAPTURED.ljust(4096, b"\0")) == SENT


@given(broadcasts)
def test_what_is_encoded_is_decoded(broadcast):
    assert decode_broadcast(encode_broadcast(broadcast)) == broadcast


@pytest.mark.parametrize("size", range(len(CAPTURED)))
def test_a_datagram_that_was_cut_is_refused(size):
    with pytest.raises(RecordFormatError):
        decode_broadcast(CAPTURED[:size])


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(RecordFormatError):
        decode_broadcast(data)


def test_what_does_not_fit_a_datagram_is_refused():
    many = (TransportConfiguration("x" * 1000),) * 100

    with pytest.raises(ValueError, match=f"{DATAGRAM_SIZE_MAX} at most"):
        encode_broadcast(Broadcast("n", "u", many))


def test_passwords_are_not_told():
    uri = "tcp://h:1?sslEnabled=true;trustStorePassword=secret;keyStorePassword=secret"

    told = told_connector(parse_transport("c", uri))

    assert told.parameters == {"port": "1", "host": "h", "sslEnabled": "true"}
