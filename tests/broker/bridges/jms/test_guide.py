"""The commands and the program of docs/guide/jms-bridge.md, with ports that are free."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from broker.bridges.jms.definition import read_definition
from broker.bridges.jms.options import JMSBridgeOptions
from tests.broker.bridges.jms.ends import an_end

GUIDE = Path(__file__).parents[4] / "docs" / "guide" / "jms-bridge.md"
END_S = 120
# `broker run NAME &` returns before the broker serves; a reader waits for its line.
PREAMBLE = f"""
set -e
broker() {{ {sys.executable} -m broker.cli.main "$@"; }}
running() {{ exec {sys.executable} -m broker.cli.main run $1 >$1.out 2>$1.log; }}
serves() {{ until grep -q "serving at" $1.log; do sleep 0.05; done; }}
trap 'kill $(jobs -p); wait' EXIT
"""


def block(kind):
    return re.search(rf"```{kind}\n(.*?)```", GUIDE.read_text(), re.DOTALL)[1]


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def with_ports(text, source, target):
    return text.replace("61616", str(source)).replace("61716", str(target))


@pytest.mark.slow
def test_the_commands_do_what_they_say(tmp_path):
    ports = free_ports(2)
    (tmp_path / "orders.toml").write_text(with_ports(block("toml"), *ports))
    commands = with_ports(block("sh"), *ports)
    commands = re.sub(r"broker run (\w+) &", r"running \1 &\nserves \1", commands)
    url = f"--url tcp://localhost:{ports[0]}"
    # They talk to the default port, which the source has in the guide.
    commands = re.sub(r"(broker (?:producer|bridge) .*)", rf"\1 {url}", commands)

    done = subprocess.run(
        ["bash", "-c", PREAMBLE + commands],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(GUIDE.parents[2])},
        capture_output=True,
        text=True,
        timeout=END_S,
    )

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert re.match(r"name +state +moved", next(line for line in lines if "moved" in line))
    assert any(re.match(r"orders +started +\d+", line) for line in lines)
    assert "paused" in lines


def test_the_program_runs():
    with an_end() as source, an_end() as target:
        source.create("orders")
        source.send("orders", "one")
        program = with_ports(block("python"), source.port, target.port)
        wait = "\n    while not target.count('orders'): pass"

        exec(compile(program.rstrip() + wait, str(GUIDE), "exec"), {"target": Waiting(target)})

        assert target.contents("orders", 1) == ["one"]


class Waiting:
    """The target, as the program's own lines see it: the queue is made by the bridge."""

    def __init__(self, end):
        self._end = end

    def count(self, queue):
        with self._end.client.session() as session:
            found = session.query_queue(queue)
            return found.message_count if found.exists else 0


def test_the_file_is_as_the_guide_says(tmp_path):
    file = tmp_path / "orders.toml"
    file.write_text(block("toml"))

    assert read_definition(file).name == "orders"


def test_every_parameter_is_in_the_table():
    table = GUIDE.read_text().partition("| parameter |")[2].partition("\n\n")[0]
    named = set(
        re.findall(r"`([a-z-]+)`", "\n".join(row.split("|")[1] for row in table.splitlines()[2:]))
    )
    of_sides = {"source_user_name", "source_password", "target_user_name", "target_password"}
    wanted = {
        name.replace("_", "-") for name in set(JMSBridgeOptions.__dataclass_fields__) - of_sides
    }

    assert named == wanted | {"transaction-log", "object-name"}


def test_defaults_in_the_table_are_those_of_the_options():
    table = GUIDE.read_text().partition("| parameter |")[2].partition("\n\n")[0]
    defaults = JMSBridgeOptions()
    for row in table.splitlines()[2:]:
        _, names, default, *_ = row.split("|")
        found = re.fullmatch(r"-?\d+", default.strip())
        if found is not None:
            name = re.search(r"`([a-z-]+)`", names)[1].replace("-", "_")
            assert getattr(defaults, name) == int(found[0]), name
