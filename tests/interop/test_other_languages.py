"""The programs in JavaScript and Go of the manual's page of clients, as they stand there.

Each runs with the version of its library that the page names. `make soak` runs all of them, against
Artemis, too.
"""

import contextlib
import re
import shutil
import subprocess

import pytest

from broker.client import Client
from broker.client.errors import QueueExists
from tests.interop.fetched import PeerUnavailableError, cache_root, into, tool
from tests.pages import DOCS, fences

# The library that a program is about; one line above its mark.
TRIED = re.compile(r"`([^`]+)` \(tried: ([0-9.]+)\)")
RUN_TIMEOUT_S = 120
SAID = {"rhea": "ten crates", "mqtt": "prices/steel 412"}
SAID |= {"github.com/Azure/go-amqp": SAID["rhea"]}
SAID |= {"github.com/eclipse/paho.mqtt.golang": SAID["mqtt"]}


def programs():
    """Language, library, version and text of each program."""
    page = DOCS / "clients.md"
    blocks = [one for one in fences(page) if one.language in ("js", "go")]
    tried = TRIED.findall(page.read_text())
    assert len(blocks) == len(tried)
    return [
        pytest.param(
            *(block.language, library, version, "\n".join(block.lines)),
            id=f"{block.language}-{library.rpartition('/')[2]}",
            # Go compiles its own library first: a minute or two.
            marks=pytest.mark.soak if block.language == "go" else (),
        )
        for block, (library, version) in zip(blocks, tried, strict=True)
    ]


def npm(library, version):
    """The folder that Node.js finds a library in."""
    tool("node")
    folder = cache_root() / f"npm-{library}-{version}"
    command = [tool("npm"), "install", "--prefix", "{}", f"{library}@{version}"]
    return into(folder, "npm install", command)


def go_module(library, version):
    """The folder of a module of Go that needs a library."""
    go = tool("go")
    folder = cache_root() / f"go-{library.replace('/', '-')}-{version}"
    steps = f"cd {{}} && {go} mod init tried && {go} get {library}@v{version} && {go} mod download"
    return into(folder, "go get", ["sh", "-c", steps])


@pytest.mark.slow
@pytest.mark.parametrize(("language", "library", "version", "text"), programs())
@pytest.mark.parametrize(
    "kind", [pytest.param("distributed_broker", marks=pytest.mark.soak), "our_broker"]
)
def test_a_program_of_the_page(request, tmp_path, kind, language, library, version, text):
    try:
        found = npm(library, version) if language == "js" else go_module(library, version)
    except PeerUnavailableError as error:
        pytest.skip(f"{library} cannot be had: {error}")
    broker = request.getfixturevalue(kind)
    with (
        Client(broker.uri, user=broker.USER, password=broker.PASSWORD) as client,
        client.session() as session,
        # The page's broker is made with it.
        contextlib.suppress(QueueExists),
    ):
        session.create_queue("orders")
    folder = tmp_path / "program"
    shutil.copytree(found, folder)
    text = text.replace("61616", str(broker.port)).replace("localhost", "127.0.0.1")
    text = text.replace('"me"', f'"{broker.USER}"').replace('"secret"', f'"{broker.PASSWORD}"')
    file = folder / f"main.{language}"
    file.write_text(text)
    run = [tool("node"), file.name] if language == "js" else [tool("go"), "run", file.name]

    done = subprocess.run(
        run, cwd=folder, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False
    )

    assert (done.stdout, done.stderr) == (f"{SAID[library]}\n", "")
    assert done.returncode == 0
