"""The commands of docs/guide/core-bridge.md, with ports that are free."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.broker.bridges.jms.test_guide import END_S, PREAMBLE, free_ports, with_ports

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "core-bridge.md"


def block(kind):
    return re.search(rf"```{kind}\n(.*?)```", GUIDE.read_text(), re.DOTALL)[1]


@pytest.mark.slow
def test_the_commands_do_what_they_say(tmp_path):
    ports = free_ports(2)
    (tmp_path / "bridge.xml").write_text(with_ports(block("xml"), *ports))
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
    assert any(re.match(r"name +queue +target +state +moved +pending", line) for line in lines)
    assert any(re.match(rf"orders +orders +\S+:{ports[1]} +STARTED +\d+", line) for line in lines)
    assert "paused" in lines
    told = (tmp_path / "source.log").read_text()
    assert re.search(r"at most 2000 messages are on their way, id-cache-size of target", told)
