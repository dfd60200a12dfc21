"""What docs/guide/amqp.md shows and lists is so."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

from broker.embedded import EmbeddedBroker
from broker.protocols.amqp.factory import AMQP

GUIDE = (Path(__file__).resolve().parents[4] / "docs/guide/amqp.md").read_text()


def test_its_program_prints_the_message():
    (program,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    printed = io.StringIO()
    with EmbeddedBroker() as broker, redirect_stdout(printed):
        exec(program, {"port": broker.port})

    assert printed.getvalue() == "ten crates\n"


def test_it_lists_all_parameters():
    (table,) = re.findall(r"^\| parameter \|.*\n\|[-|]+\n((?:\|.*\n)+)", GUIDE, re.MULTILINE)
    without = re.findall(r"^`(\w+)` is read and has no effect", GUIDE, re.MULTILINE)
    listed = {
        name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }

    assert listed | set(without) == set(AMQP.parameters)
