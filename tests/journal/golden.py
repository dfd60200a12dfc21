"""The folders that Artemis wrote, and how its report of them compares with ours."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from tests.unpack import unpack

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


@dataclass(frozen=True)
class Scenario:
    """One journal of one golden folder; `part` names the journal of a broker's folder."""

    name: str
    part: str = ""

    def __str__(self):
        return f"{self.name}-{self.part}" if self.part else self.name

    @property
    def expected(self):
        report = json.loads((GOLDEN / self.name / "expected.json").read_text())
        return report[f"{self.part}_journal"] if self.part else report

    def unpack(self, target):
        """Unpack below `target`; the journal's folder."""
        archive = "broker.tar.gz" if self.part else "journal.tar.gz"
        unpack(GOLDEN / self.name / archive, target)
        return Path(target) / ("bindings" if self.part == "bindings" else "journal")


def scenarios():
    found = []
    for folder in sorted(GOLDEN.iterdir()):
        if (folder / "broker.tar.gz").exists():
            found += [Scenario(folder.name, "messages"), Scenario(folder.name, "bindings")]
        elif (folder / "expected.json").exists():
            found.append(Scenario(folder.name))
    return found


def is_body(body, report):
    """Whether `body` is what the report describes, whole or by digest."""
    if len(body) != report["len"]:
        return False
    if "hex" in report:
        return body.hex() == report["hex"]
    return hashlib.sha256(body).hexdigest() == report["sha256"]


def unsigned(byte):
    return byte & 0xFF
