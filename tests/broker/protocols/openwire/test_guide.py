"""What docs/guide/openwire.md lists is so."""

import re
from pathlib import Path

from broker.protocols.openwire.factory import OPENWIRE

GUIDE = (Path(__file__).resolve().parents[4] / "docs/guide/openwire.md").read_text()


def test_it_lists_all_parameters():
    (found,) = re.findall(r"^\| Parameter \|.*\n\|[-|]+\n((?:\|.*\n)+)", GUIDE, re.MULTILINE)
    listed = {
        cells[1].strip(): cells[2].strip()
        for cells in (line.split("|") for line in found.splitlines())
    }

    assert listed == {
        name: str(one.default).lower() if one.default != () else "none"
        for name, one in OPENWIRE.parameters.items()
    }
