"""The commands of docs/guide/core-bridge.md, with ports that are free."""

import re

import pytest

from tests.broker.bridges.guides import run_commands


@pytest.mark.slow
def test_the_commands_do_what_they_say(tmp_path):
    lines, target_port = run_commands("core-bridge.md", "bridge.xml", tmp_path)

    assert any(re.match(r"name +queue +target +state +moved +pending", line) for line in lines)
    assert any(
        re.match(rf"orders +orders +\S+:{target_port} +STARTED +\d+", line) for line in lines
    )
    assert "paused" in lines
    told = (tmp_path / "source.log").read_text()
    assert re.search(r"at most 4000 messages are on their way, id-cache-size of target", told)
