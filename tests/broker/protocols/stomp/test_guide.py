"""What docs/guide/stomp.md shows and lists is so."""

import io
import re
import time
from contextlib import redirect_stdout
from pathlib import Path

from broker.embedded import EmbeddedBroker
from broker.protocols.stomp.factory import STOMP
from broker.protocols.stomp.message_frame import _OWN
from broker.protocols.stomp.sent_message import _OF_THE_FRAME, _RENAMED

GUIDE = (Path(__file__).resolve().parents[4] / "docs/guide/stomp.md").read_text()
WAIT_S = 30


def test_its_program_prints_the_message():
    (program,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    printed = io.StringIO()
    with EmbeddedBroker() as broker, redirect_stdout(printed):
        scope = {"port": broker.port}
        exec(program, scope)
        deadline = time.monotonic() + WAIT_S
        while "ten crates" not in printed.getvalue():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        scope["connection"].disconnect()

    assert printed.getvalue() == "orders ten crates\n"


def table(title):
    """The first column of the table that has this title in its head."""
    (found,) = re.findall(rf"^\| {title} \|.*\n\|[-|]+\n((?:\|.*\n)+)", GUIDE, re.MULTILINE)
    return [
        name for line in found.splitlines() for name in re.findall(r"`([^`]+)`", line.split("|")[1])
    ]


def test_it_lists_all_parameters():
    assert set(table("parameter")) == set(STOMP.parameters)


def test_it_lists_the_headers_of_a_send():
    named = _OF_THE_FRAME | set(_RENAMED) - {"destination", "destination-type", "receipt"}

    assert named - {"destination", "destination-type", "receipt"} <= set(table("SEND"))


def test_it_lists_the_headers_of_a_message():
    (text,) = re.findall(r"A MESSAGE has, in this order: (.*?)\n\n", GUIDE, re.DOTALL)

    assert _OWN - {"receipt", "receipt-id", "transaction"} == set(
        re.findall(r"`([^`]+)`", text)
    ) - {"populate-validated-user"}
