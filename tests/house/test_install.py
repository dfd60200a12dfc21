"""An unbuilt tree says what to type; a wheel holds all that is needed and nothing else."""

import platform
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from email.parser import Parser
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
SENTENCE = "Quiver's extension modules are not built: type `make build`, or `pip install .`."


# It has wheels for these.
HAS_UVLOOP = platform.machine() in ("x86_64", "aarch64")


def requirements(metadata):
    """What pip installs on this machine where no extra is asked for."""
    lines = Parser().parsestr(metadata).get_all("Requires-Dist", [])
    needed = [Requirement(line) for line in lines]
    return {one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})}


def copy_sources(target):
    """The tree as a clone has it: nothing built, no history."""
    unwanted = shutil.ignore_patterns(
        "*.so", "*.egg-info", "__pycache__", ".*", "build", "dist", "tests"
    )
    shutil.copytree(ROOT, target, ignore=unwanted, dirs_exist_ok=True)


@pytest.mark.parametrize("code", ["import journal", "import journal.format", "import journal.cli"])
def test_an_unbuilt_tree_says_in_one_sentence_what_to_type(tmp_path, code):
    copy_sources(tmp_path)

    # -S: without site-packages, where a development install of the built tree may be.
    run = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode != 0
    assert run.stderr.rstrip().splitlines()[-1] == f"ImportError: {SENTENCE}"
    assert "During handling" not in run.stderr


def test_a_plain_install_brings_the_event_loop_of_the_figures():
    text = (ROOT / "pyproject.toml").read_text()
    needs = tomllib.loads(text)["project"]["dependencies"]

    assert ("uvloop" in requirements("\n".join(f"Requires-Dist: {one}" for one in needs))) == (
        HAS_UVLOOP
    )


def copy_compiled(target):
    """What setup.py has compiled of the tree, with its times: it compiles what is older again."""
    for folder in ("cython-release", "lib*", "temp*"):
        for found in (ROOT / "build").glob(folder):
            shutil.copytree(found, target / "build" / found.name)
    shutil.copy2(ROOT / "build/mode", target / "build/mode")


@pytest.mark.slow
@pytest.mark.timeout(1800)  # It builds every extension once more where the tree is of other flags.
def test_a_wheel_works_in_an_empty_environment(tmp_path):
    tree = tmp_path / "tree"
    copy_sources(tree)
    copy_compiled(tree)

    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation"),
            *("--quiet", "--disable-pip-version-check", "-w", tmp_path),
        ],
        cwd=tree,
        check=True,
    )
    (wheel,) = tmp_path.glob("quiver_mq-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    venv.create(tmp_path / "empty", with_pip=False)
    python = tmp_path / "empty/bin/python"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--quiet"),
            *("--disable-pip-version-check", wheel),
        ],
        check=True,
    )
    shown = subprocess.run(
        [python, "-c", "import journal, broker.storage, pipeline; print(journal.__file__)"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )

    assert Path(shown.stdout.strip()).is_relative_to(tmp_path / "empty")
    assert (tmp_path / "empty/bin/journal").exists()
    assert (tmp_path / "empty/bin/journal-bench").exists()
    assert (tmp_path / "empty/bin/pipeline").exists()
    (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
    needs = requirements(zipfile.ZipFile(wheel).read(metadata).decode())
    assert {"click", "lxml", "rich", "starlette", "uvicorn", "websockets"} <= needs
    assert ("uvloop" in needs) == HAS_UVLOOP
    rooms = ("journal", "jdbcstore", "broker", "pipeline")
    assert {f"{room}/py.typed" for room in rooms} <= set(names)
    assert any(name.endswith(EXTENSION_SUFFIXES[0]) for name in names)
    assert not [name for name in names if name.endswith((".pyx", ".c", ".h"))]
    assert {name.split("/")[0] for name in names} == {
        *("journal", "jdbcstore", "broker", "pipeline"),
        *(name.split("/")[0] for name in names if ".dist-info/" in name),
    }
