"""`.venv` follows its interpreter and its place; a machine that cannot build says what it lacks."""

import ast
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

import setup
from tests import ci_files

venv = ci_files.load("venv")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """The root of a tree whose .venv is there, with nothing installed in it."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "pyproject.toml").write_text('[project]\nname = "x"\n\n[tool.x]\n')
    monkeypatch.chdir(root)
    subprocess.run([venv.base(), "-m", "venv", "--without-pip", ".venv"], check=True)
    Path(venv.STAMP).touch()
    return root


@pytest.mark.parametrize("is_chosen", [False, True])
def test_it_stays_while_nothing_changed(tree, is_chosen):
    assert venv.fault_of_venv(is_chosen) == ""


def test_a_moved_tree_gets_another_one(tree, monkeypatch):
    moved = tree.rename(tree.with_name("moved"))
    monkeypatch.chdir(moved)

    assert venv.fault_of_venv(is_chosen=False) == f"it was made for {tree}/.venv"


def test_one_without_its_interpreter_is_made_again(tree):
    Path(venv.PYTHON).unlink()
    Path(venv.PYTHON).symlink_to(tree / "gone")

    assert venv.fault_of_venv(is_chosen=False) == f"its interpreter is gone: {tree}/gone"


def test_one_that_was_cut_short_is_made_again(tree):
    Path(venv.STAMP).unlink()

    assert venv.fault_of_venv(is_chosen=False) == "there is none"


def test_another_interpreter_counts_only_if_it_was_chosen(tree):
    config = Path(".venv/pyvenv.cfg")
    config.write_text(config.read_text().replace(f"executable = {venv.base()}", "executable = /p"))

    assert venv.fault_of_venv(is_chosen=False) == ""
    assert venv.fault_of_venv(is_chosen=True) == "it is of /p"


def test_an_interpreter_that_is_too_old_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))

    with pytest.raises(SystemExit) as ended:
        venv.make_venv("there is none")

    assert ended.value.code == (
        f"Quiver needs Python 3.11 or later, and {sys.executable} is 3.9.18: "
        "choose another one, such as `make run PYTHON=python3.12`"
    )
    assert list(tmp_path.iterdir()) == []


def test_what_a_machine_lacks_is_named_with_its_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(venv.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setitem(sys.modules, "ensurepip", None)

    with pytest.raises(SystemExit) as ended:
        venv.make_venv("there is none")

    assert ended.value.code.endswith("apt-get install python3-dev python3-venv gcc")
    assert list(tmp_path.iterdir()) == []


def test_a_stage_is_installed_once_until_the_distribution_changes(tree, monkeypatch):
    called = []
    monkeypatch.setattr(venv, "call", lambda words: called.append(words[-1]))

    venv.complete("test")
    venv.complete("run")
    assert called[-1] == ".[test]"
    called.clear()
    (tree / "pyproject.toml").write_text('[project]\nname = "x"\n\n[tool.y]\n')
    venv.complete("run")
    assert called == []
    (tree / "pyproject.toml").write_text('[project]\nname = "y"\n')
    venv.complete("run")
    assert called[-1] == "."


def test_the_old_interpreters_that_are_refused_can_read_it():
    """Python 3.6 and later: no syntax that is newer."""
    source = (ROOT / ".ci/venv.py").read_text()

    ast.parse(source, feature_version=(3, 6))
    assert "from __future__" not in source


def test_a_build_without_shared_memory_translates_in_its_own_process(monkeypatch):
    def missing():
        raise FileNotFoundError(2, "No such file or directory")

    assert setup.translators() == setup.cores()

    monkeypatch.setattr(multiprocessing, "Lock", missing)

    assert setup.translators() == 0


def test_the_makefile_says_what_was_chosen():
    """A PYTHON that the user gave is `--chosen`, the default one is not."""
    # The choice of the user who runs this test must not take part in it.
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHON", "MAKEFLAGS", "MAKELEVEL")}

    def what_is_run(*words):
        command = ["make", "-n", "-C", str(ROOT), "venv-run", *words]
        return subprocess.run(command, env=clean, capture_output=True, text=True, check=True).stdout

    assert "--chosen" not in what_is_run()
    assert "--chosen" in what_is_run(f"PYTHON={sys.executable}")
