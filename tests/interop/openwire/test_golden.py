"""Our golden bytes are those that Classic's client makes."""

import subprocess
from pathlib import Path

import pytest

from tests.interop.artemis import PeerUnavailableError
from tests.interop.fetched import cache_folder, compiled, jars_of, tool
from tests.interop.openwire.client import POM

SOURCE = POM.parent / "Golden.java"
GOLDEN = Path(__file__).parents[2] / "broker" / "protocols" / "openwire" / "golden.txt"


def test_golden_bytes_are_reproduced():
    try:
        folder = cache_folder("openwire-golden", [POM, SOURCE])
        jars = f"{jars_of(POM, folder / 'jars')}/*"
        classes = compiled([SOURCE], jars, folder / "classes")
        command = [tool("java"), "-cp", f"{classes}:{jars}", "Golden"]
    except PeerUnavailableError as missing:
        pytest.skip(str(missing))
    made = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

    assert made.stdout == GOLDEN.read_text()
