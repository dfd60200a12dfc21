"""The commands of a guide to bridges, between two brokers whose ports are free."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.servers import free_port

GUIDES = Path(__file__).parents[3] / "docs" / "guide"
END_S = 120
# `broker run NAME &` returns before the broker serves; a reader waits for its line.
PREAMBLE = f"""
set -e
broker() {{ {sys.executable} -m broker.cli.main "$@"; }}
running() {{ exec {sys.executable} -m broker.cli.main run $1 >$1.out 2>$1.log; }}
serves() {{ until grep -q "serving at" $1.log; do sleep 0.05; done; }}
trap 'kill $(jobs -p); wait' EXIT
"""


def block(guide, kind):
    """The first block of a kind, as it stands."""
    return re.search(rf"```{kind}\n(.*?)```", (GUIDES / guide).read_text(), re.DOTALL)[1]


def with_ports(text, source, target):
    """A text with other ports."""
    return text.replace("61616", str(source)).replace("61716", str(target))


def _free_ports(count):
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return list(ports)


def run_commands(guide, definition, folder):
    """Run what a guide says, with its bridge in a file of that name.

    Returns:
        The lines that the commands printed, and the port of the target.
    """
    ports = _free_ports(2)
    kind = definition.rpartition(".")[2]
    (folder / definition).write_text(with_ports(block(guide, kind), *ports))
    commands = with_ports(block(guide, "sh"), *ports)
    commands = re.sub(r"broker run (\w+) &", r"running \1 &\nserves \1", commands)
    # They talk to the default port, which the source has in the guide.
    url = f"--url tcp://localhost:{ports[0]}"
    commands = re.sub(r"(broker (?:producer|bridge) .*)", rf"\1 {url}", commands)
    done = subprocess.run(
        ["bash", "-c", PREAMBLE + commands],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(GUIDES.parents[1])},
        capture_output=True,
        text=True,
        timeout=END_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), ports[1]
