"""A module does one thing, and is short: longer ones are cut where one thing ends."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("broker", "journal", "jdbcstore", "pipeline")
LINES_MAX = 500


def longer_modules():
    """{module: its lines} of all that are too long."""
    found = {}
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py*"):
            if path.suffix in {".py", ".pyi", ".pyx", ".pxd"}:
                count = len(path.read_text().splitlines())
                if count > LINES_MAX:
                    found[str(path.relative_to(ROOT))] = count
    return found


def test_no_module_is_longer_than_500_lines():
    assert longer_modules() == {}
