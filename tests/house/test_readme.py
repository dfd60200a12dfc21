"""README's code blocks, typed literally: what types them, and pages that need a server or Java.

The sections for a machine that has nothing are `make fresh`'s.
"""

import doctest
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests import ci_files
from tests.servers import free_port

readme = ci_files.load("readme")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    """As the root of a tree where `make run` was typed."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    # The interpreter of the tests may be another one than that of .venv.
    (tmp_path / ".venv/bin/activate").write_text(
        f"export PATH={Path(sys.executable).parent}:$PATH PYTHONPATH={ROOT}\n"
    )
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    return tmp_path


def sections(*names, document="README.md"):
    found = readme.blocks((ROOT / document).read_text())
    return [block for block in found if block.section in names]


def unpacking():
    """The block that puts a broker's data below build/try."""
    return [block for block in sections("Five minutes") if "tar -xzf" in "".join(block.lines)]


def shell(*lines):
    return readme.Block("", 1, lines)


def test_blocks_are_found():
    assert doctest.testmod(readme).failed == 0
    assert sections("Two commands")
    assert len(unpacking()) == 1


def test_a_terminal_keeps_what_was_typed_before(folder, capfdbinary):
    readme.type_blocks(
        [
            shell(". .venv/bin/activate", "export A=1; cat"),
            shell("from pathlib import Path", "Path('out').write_text('x')"),
            shell('test "$A" = 1   # a comment', 'printf "%s" "$A" >>out'),
        ],
        folder,
    )

    assert (folder / "out").read_text() == "x1"


@pytest.mark.parametrize("line", ["false", "no-such-command", "exit 3", "true | cat -x"])
def test_a_line_that_fails_is_named(folder, line):
    with pytest.raises(readme.LineFailedError, match=r"^README.md:2: failed: "):
        readme.type_blocks([shell("true", line, "touch reached")], folder)

    assert not (folder / "reached").exists()


def test_what_follows_a_broker_is_typed_in_another_terminal(folder):
    stand_in = "sh -c 'echo serving at; exec sleep 600' broker run x"

    readme.type_blocks([shell("A=1", stand_in, 'test -z "$A"', "touch reached")], folder)

    assert (folder / "reached").exists()


def test_a_broker_that_does_not_serve_is_named(folder, monkeypatch):
    monkeypatch.setattr(readme, "START_TIMEOUT_S", 0)

    with pytest.raises(readme.LineFailedError, match="broker run"):
        readme.type_blocks([shell("echo broker run", "true")], folder)


@pytest.mark.slow
def test_the_section_of_databases(folder, database_servers):
    server = database_servers.get("postgresql")
    with server._connect() as connection:
        connection.execute("CREATE ROLE me LOGIN PASSWORD 'secret'")
        connection.execute("CREATE DATABASE broker OWNER me")
    try:
        readme.type_blocks(
            [*unpacking(), *sections("With a database", document="docs/guide/databases.md")],
            folder,
            environment={k: v for k, v in os.environ.items() if not k.startswith("QUIVER_")},
            replaced={"@host/": f"@127.0.0.1:{server.port}/", "61617": str(free_port())},
        )
    finally:
        with server._connect() as connection:
            connection.execute("DROP DATABASE broker WITH (FORCE)")
            connection.execute("DROP ROLE me")


@pytest.mark.slow
def test_the_python_of_the_section_of_spark(folder):
    pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")
    pytest.importorskip("matplotlib", reason="quiver-mq[report] brings it")
    if shutil.which("java") is None:
        pytest.skip("no Java here: install Debian's `default-jre-headless`")
    code = [
        block for block in sections("With Spark", document="docs/guide/spark.md") if block.is_python
    ]

    readme.type_blocks(
        [*unpacking(), *code],
        folder,
        environment=os.environ | {"MPLBACKEND": "Agg", "SPARK_LOCAL_IP": "127.0.0.1"},
    )

    assert (folder / "build/try/kinds.png").stat().st_size > 0


def test_the_badges_say_what_pyproject_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    told = re.findall(r"badge/([^)]+)-blue\)", (ROOT / "README.md").read_text())
    found = dict(one.replace("--", "\0").split("-") for one in map(unquote, told))

    assert found == {
        "python": f"{project['project']['requires-python'].removeprefix('>=')}+",
        "system": "Linux",
        "licence": project["project"]["license"].replace("-", "\0"),
        "types": "mypy strict",
    }
    assert project["tool"]["mypy"]["strict"] is True
    assert "Operating System :: POSIX :: Linux" in project["project"]["classifiers"]
