"""The commands and the program of docs/guide/jms-bridge.md, with ports that are free."""

import re

import pytest

from broker.bridges.jms.definition import read_definition
from broker.bridges.jms.options import JMSBridgeOptions
from tests.broker.bridges.guides import GUIDES, block, run_commands, with_ports
from tests.broker.bridges.jms.ends import an_end

GUIDE = "jms-bridge.md"


@pytest.mark.slow
def test_the_commands_do_what_they_say(tmp_path):
    lines, _ = run_commands(GUIDE, "orders.toml", tmp_path)

    assert re.match(r"name +state +moved", next(line for line in lines if "moved" in line))
    assert any(re.match(r"orders +started +\d+", line) for line in lines)
    assert "paused" in lines


def test_the_program_runs():
    with an_end() as source, an_end() as target:
        source.create("orders")
        source.send("orders", "one")
        program = with_ports(block(GUIDE, "python"), source.port, target.port)
        wait = "\n    while not target.count('orders'): pass"

        exec(compile(program.rstrip() + wait, GUIDE, "exec"), {"target": Waiting(target)})

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
    file.write_text(block(GUIDE, "toml"))

    assert read_definition(file).name == "orders"


def test_every_parameter_is_in_the_table():
    table = (GUIDES / GUIDE).read_text().partition("| parameter |")[2].partition("\n\n")[0]
    named = set(
        re.findall(r"`([a-z-]+)`", "\n".join(row.split("|")[1] for row in table.splitlines()[2:]))
    )
    of_sides = {"source_user_name", "source_password", "target_user_name", "target_password"}
    wanted = {
        name.replace("_", "-") for name in set(JMSBridgeOptions.__dataclass_fields__) - of_sides
    }

    assert named == wanted | {"transaction-log", "object-name"}


def test_defaults_in_the_table_are_those_of_the_options():
    table = (GUIDES / GUIDE).read_text().partition("| parameter |")[2].partition("\n\n")[0]
    defaults = JMSBridgeOptions()
    for row in table.splitlines()[2:]:
        _, names, default, *_ = row.split("|")
        found = re.fullmatch(r"-?\d+", default.strip())
        if found is not None:
            name = re.search(r"`([a-z-]+)`", names)[1].replace("-", "_")
            assert getattr(defaults, name) == int(found[0]), name
