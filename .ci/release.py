"""Make a release in dist/: sdist, wheel, container file, systemd unit, SBOM, changes.

    python .ci/release.py

The wheel is built from the sdist, not from the tree, and tried in a virtual environment that has
nothing else: what a user gets is what was tried. It fits Pythons like this one's, and C libraries
from the version in its name on (manylinux). For others build it there, or by cibuildwheel
(pyproject.toml): that needs containers, and calls the same `build` and `auditwheel`.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
DIST: Final = ROOT / "dist"
PACKAGING: Final = ROOT / "packaging"
PACKAGES: Final = ("journal", "jdbcstore", "broker", "pipeline")
COMMANDS: Final = ("broker", "journal", "journal-bench", "pipeline")
# What an installation does first; prints nothing if it works.
TRIAL: Final = """
import os, tempfile
from broker.client import Client
from broker.embedded import EmbeddedBroker

with tempfile.TemporaryDirectory() as folder, EmbeddedBroker.in_folder(folder) as broker:
    with Client(f"tcp://127.0.0.1:{broker.port}") as client, client.session() as session:
        session.create_queue("orders")
        with session.producer("orders") as producer, session.consumer("orders") as consumer:
            producer.send("ten crates")
            assert consumer.receive(30).text == "ten crates"
"""
# Of the distributions in an environment, as JSON.
INSTALLED: Final = """
import importlib.metadata, json
print(json.dumps([
    [one.metadata["Name"], one.version, one.metadata.get("License-Expression")
     or one.metadata.get("License") or "", one.requires or []]
    for one in importlib.metadata.distributions()
]))
"""


def run(*words: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """Run a command; what it prints. It ends this one if it fails."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    kept |= variables
    done = subprocess.run(words, cwd=cwd, env=kept, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, words))}\n{done.stdout}")
    return done.stdout


def tracked() -> list[str]:
    """The files of the packages and of `ext/`, as git has them."""
    return run("git", "ls-files", *PACKAGES, "ext", "setup.py", "pyproject.toml").split()


def missing(names: list[str], wanted: list[str]) -> list[str]:
    """Which files an archive does not have below its one folder.

    >>> missing(["a-1", "a-1/setup.py"], ["setup.py", "ext/a.h"])
    ['ext/a.h']
    """
    return sorted(set(wanted) - {name.partition("/")[2] for name in names})


def changes(text: str, version: str) -> str:
    r"""The section of a version in the changelog; that of what is not released yet without one.

    >>> changes("# C\n\n## Unreleased\n\n- a\n\n## 1.0\n\n- b\n", "1.0")
    '## 1.0\n\n- b\n'
    >>> changes("# C\n\n## Unreleased\n\n- a\n\n## 1.0\n\n- b\n", "2.0")
    '## Unreleased\n\n- a\n'
    """
    sections = [f"## {one.strip()}\n" for one in re.split(r"^## ", text, flags=re.MULTILINE)[1:]]
    named = [one for one in sections if re.match(rf"## \[?v?{re.escape(version)}\b", one)]
    return (named or sections)[0]


def with_python(text: str, version: tuple[int, int] = sys.version_info[:2]) -> str:
    r"""A container file for the Python that the wheel was built with.

    >>> with_python("ARG PYTHON=3.11\n", (3, 13))
    'ARG PYTHON=3.13\n'
    """
    return re.sub(r"^ARG PYTHON=.*$", f"ARG PYTHON={version[0]}.{version[1]}", text, flags=re.M)


def sbom(installed: list[Any], name: str, wheel: Path) -> dict[str, Any]:
    """A CycloneDX document: the wheel, and what an installation of it brings."""
    components = []
    own: dict[str, Any] = {}
    for one, version, licence, _ in sorted(installed):
        component: dict[str, Any] = {
            "type": "library",
            "bom-ref": f"pkg:pypi/{one.lower()}@{version}",
            "name": one,
            "version": version,
            "purl": f"pkg:pypi/{one.lower()}@{version}",
        }
        if licence and "\n" not in licence:
            component["licenses"] = [{"license": {"name": licence}}]
        if one == name:
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            own = component | {"hashes": [{"alg": "SHA-256", "content": digest}]}
        elif one not in ("pip", "setuptools"):
            components.append(component)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": components,
    }


def repaired(wheel: Path, folder: Path) -> Path:
    """The wheel named after the oldest C library that it runs on; itself where that has no name."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ("-m", "auditwheel", "repair", "--wheel-dir", folder, wheel)
    if platform.libc_ver()[0] != "glibc":
        return wheel
    run(sys.executable, *words, PATH=path)
    (found,) = folder.glob("*.whl")
    return found


def try_wheel(wheel: Path, folder: Path) -> list[Any]:
    """Install it into an empty environment and use it; the distributions that it brought."""
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    binary = folder / "venv/bin"
    run(binary / "python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    for command in COMMANDS:
        run(binary / command, "--version", cwd=folder)
    run(binary / "broker", "create", "shop", "--user", "me", "--password", "secret", cwd=folder)
    run(binary / "python", "-c", TRIAL, cwd=folder)
    found: list[Any] = json.loads(run(binary / "python", "-c", INSTALLED, cwd=folder))
    return found


def main() -> None:
    """Make all of it."""
    shutil.rmtree(DIST, ignore_errors=True)
    print("building the sdist, and the wheel from it", flush=True)
    # The sources of the extensions are in it (MANIFEST.in), and not what Cython makes of them.
    run(sys.executable, "-m", "build", "--sdist", "--outdir", DIST, QUIVER_NO_EXTENSIONS="1")
    (sdist,) = DIST.glob("*.tar.gz")
    name, version = sdist.name.removesuffix(".tar.gz").rsplit("-", 1)
    with tempfile.TemporaryDirectory() as unpacked, tarfile.open(sdist) as archive:
        names = archive.getnames()
        if lacking := missing(names, tracked()):
            sys.exit(f"{sdist.name} lacks {', '.join(lacking)}: see MANIFEST.in")
        archive.extractall(unpacked, filter="data")
        tree = Path(unpacked, names[0].split("/")[0])
        made = Path(unpacked, "made")
        run(sys.executable, "-m", "build", "--wheel", "--outdir", made, cwd=tree)
        (plain,) = made.glob("*.whl")
        wheel = Path(shutil.copy(repaired(plain, Path(unpacked, "repaired")), DIST))
    print(f"{sdist.name}: {len(names)} files; {wheel.name}: {wheel.stat().st_size >> 10} KiB")
    with tempfile.TemporaryDirectory() as folder:
        print("trying the wheel in an empty environment", flush=True)
        installed = try_wheel(wheel, Path(folder))
    document = sbom(installed, name.replace("_", "-"), wheel)
    (DIST / "sbom.cdx.json").write_text(json.dumps(document, indent=1) + "\n")
    for file in sorted(PACKAGING.iterdir()):
        (DIST / file.name).write_text(with_python(file.read_text()))
    (DIST / "CHANGES.md").write_text(changes((ROOT / "CHANGELOG.md").read_text(), version))
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
        for path in sorted(DIST.iterdir())
    ]
    (DIST / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    print("\n".join(path.name for path in sorted(DIST.iterdir())))


if __name__ == "__main__":
    main()
