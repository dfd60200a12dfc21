"""Whether what is compiled is what the sources say: a stale module would test yesterday's code."""

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("broker", "jdbcstore", "journal", "pipeline")


def stale_modules():
    """Sources newer than the module compiled of them; one that is not compiled runs as it is."""
    found = []
    for package in PACKAGES:
        for compiled in (ROOT / package).rglob(f"*{EXTENSION_SUFFIXES[0]}"):
            stem = compiled.with_name(compiled.name.removesuffix(EXTENSION_SUFFIXES[0]))
            sources = [stem.with_suffix(suffix) for suffix in (".py", ".pyx", ".pxd")]
            made = compiled.stat().st_mtime
            found += [one for one in sources if one.exists() and one.stat().st_mtime > made]
    return sorted(str(path.relative_to(ROOT)) for path in found)
