"""A floor imports only lower floors, in Python, Cython and C.

One table for all languages stands here instead of contracts of an import linter, which sees
neither .pyx nor .pxd nor C.
"""

import importlib.util
import re
from pathlib import Path

import pytest

from tests.house.layers import (
    Use,
    circles,
    cython_targets,
    header_uses,
    module_uses,
    python_targets,
)

ROOT = Path(__file__).resolve().parents[2]

# The rooms of the broker, and the files beside them, the lowest first: each uses what stands before
# it, for types as well. `ports` has the Protocols by which rooms use what stands above them.
ROOMS = (
    *("environment", "errors", "entry_points", "rare_lines"),
    *("model", "records", "settings", "selector"),
    *("security", "storage", "printing", "ports", "queues", "paging", "transactions"),
    *("notifications", "routing", "recovery"),
    *("sessions", "discovery", "protocols", "client", "transport", "config", "options"),
    *("bridges", "cluster", "routers", "management", "server"),
    *("embedded", "cli"),
)
# Files of a room that use each other in a circle, for types as well: more than three are too many.
# A list to shorten: what is in no such circle any more must go (see below).
CIRCLE_MAX = 3
CIRCLES = {}
# The rooms that only the broker uses: a program that reads stored data needs no part of a running
# broker.
RUNNING = tuple(
    f"broker.{room}"
    for room in ("queues", "paging", "transactions", "routing", "recovery", "sessions", "server")
)

# Who may use what: the longest prefix of the using module that is a key here decides.
# A value means the module and what is below it.
MAY_USE = {
    "journal": ("journal",),
    # Beside the door: what the file journal's own engine shares with any other store.
    "jdbcstore": (
        "jdbcstore",
        "journal.masking",
        "journal.version",
        "journal.api",
        "journal.errors",
        "journal.extras",
        "journal.options",
        "journal.completion",
        "journal.id_map",
        "journal.loaded",
        "journal.nearest",
        "journal.transaction",
        "journal.values",
        "journal.waiters",
    ),
    # What `journal` finds by entry point: commands, and what commands do with a URL.
    "jdbcstore.cli": ("jdbcstore", "journal"),
    "jdbcstore.tools": ("jdbcstore", "journal"),
    "broker": (
        "broker",
        "journal.api",
        "journal.errors",
        "journal.masking",
        "journal.nearest",
        "journal.options",
        "journal.version",
    ),
    # From elements to the options that the stores take.
    "broker.config.persistence": (
        "broker",
        "journal.errors",
        "journal.extras",
        "journal.options",
        "jdbcstore.options",
    ),
    # And the wording that every print of a journal shares.
    "broker.printing": ("broker", "journal.data_print", "journal.errors"),
    "broker.recovery.recover_messages": (
        *("broker", "journal.api", "journal.data_print", "journal.errors"),
    ),
    "broker.storage.layout": ("broker", "jdbcstore.options"),
    "broker.storage.open": ("broker", "journal", "jdbcstore"),
    # Tables, as a command reads them that makes and forgets nothing.
    "broker.storage.stored_tables": ("broker", "journal.errors", "jdbcstore"),
    # Its records are read where the load has them in memory: no object each.
    "broker.storage.journal_messages": ("broker", "journal"),
    # The copies that a file journal keeps of its files are files.
    "broker.storage.history": ("broker", "journal"),
    "broker.storage.traced_records": ("broker", "journal"),
    # Who loses the lock writes no more: what writes asks a guard that the lock's owner makes.
    "broker.storage.node_lock": ("broker", "journal.errors", "journal.files.guard"),
    # Pages are files, too: room is kept for them by the calls of the journal.
    "broker.storage.page_folders": ("broker", "journal"),
    "broker.options": ("broker", "journal.options", "journal.errors", "jdbcstore.options"),
    "broker.cli": ("broker", "journal", "jdbcstore"),
    "pipeline": ("pipeline", "broker", "journal", "jdbcstore"),
    "benchmarks": ("benchmarks", "pipeline", "broker", "journal", "jdbcstore"),
}
# What must not be used although it lies in a permitted room.
MUST_NOT_USE = {
    # The engine runs without its tools and commands; the tools without the commands.
    "journal": ("journal.commands", "journal.tools"),
    "journal.tools": ("journal.commands",),
    "journal.commands": (),
    "journal.cli": (),
    "jdbcstore": ("jdbcstore.tools",),
    "jdbcstore.tools": ("journal.commands",),
    "jdbcstore.cli": (),
    "broker.storage": ("journal.commands",),
    # A client speaks the protocol; it has none of what a broker is made of.
    "broker.client": ("broker.transport", *RUNNING),
    # And the broker none of its client; only commands use both.
    "broker.transport": ("broker.client", *RUNNING),
    "broker.options": ("broker.client",),
    "broker.config": ("broker.client", "broker.server.server"),
    "broker.management": ("broker.client", "broker.server.server"),
    # What is stored is read without a broker that runs; the sources do without the command line.
    "pipeline": (
        "broker.transport",
        "broker.protocols",
        *RUNNING,
        "journal.commands",
    ),
    "pipeline.cli": ("broker.transport", "broker.protocols", *RUNNING),
}


def is_below(module, prefix):
    return module == prefix or module.startswith(prefix + ".")


def rule(table, module):
    """The entry of `table` for the longest prefix of `module`."""
    keys = [key for key in table if is_below(module, key)]
    return table[max(keys, key=len)] if keys else ()


def rooms_of(use):
    """The rooms of the broker that a use leads from and to; None if it does not use a room."""
    ends = [use.file.replace("/", ".").split("."), use.target.split(".")]
    if any(end[0] != "broker" or len(end) < 2 for end in ends):
        return None
    one, other = (end[1] for end in ends)
    return None if "__init__" in (one, other) or one == other else (one, other)


def leads_up(use):
    """Whether a use leads to a room above that of the user."""
    rooms = rooms_of(use)
    return rooms is not None and ROOMS.index(rooms[0]) < ROOMS.index(rooms[1])


def uses_a_command_line(use):
    """Whether a use leads to a `cli` from outside of that very folder."""
    folder, _, name = use.target.partition(".")
    return is_below(name, "cli") and not use.file.startswith(f"{folder}/cli/")


def breaks_a_rule(use):
    if uses_a_command_line(use):
        return True
    module = re.sub(r"(/__init__)?\.\w+$", "", use.file).replace("/", ".")
    if leads_up(use):
        return True
    # `from journal import x` uses journal.x, and is checked as that. The package is its __init__.
    if any(is_below(use.target, prefix) for prefix in rule(MUST_NOT_USE, module)):
        return True
    allowed = rule(MAY_USE, module)
    if any(is_below(use.target, prefix) for prefix in allowed):
        return False
    return not any(is_below(prefix, use.target) for prefix in allowed)


def table_of_extensions():
    spec = importlib.util.spec_from_file_location("quiver_setup", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.EXTENSIONS


def test_no_module_imports_a_higher_floor():
    assert [str(use) for use in module_uses(ROOT) if breaks_a_rule(use)] == []


def test_every_room_has_its_floor():
    folders = [path for path in (ROOT / "broker").iterdir() if (path / "__init__.py").exists()]
    files = [path for path in (ROOT / "broker").glob("*.py") if path.stem != "__init__"]

    assert {path.stem for path in (*folders, *files)} == set(ROOMS)
    # Beside the rooms.
    assert len(files) < 8


def test_no_circle_within_a_room_is_large():
    found = [
        sorted(circle)
        for circle in circles(module_uses(ROOT))
        if len(circle) > CIRCLE_MAX and any(module.startswith("broker.") for module in circle)
    ]

    assert found == []


def test_a_circle_is_found():
    uses = [
        Use("p/a.py", "p.b.name"),
        Use("p/b.pxd", "p.c"),
        Use("p/c.py", "p.a"),
        Use("p/d.py", "p.a"),
    ]

    assert circles(uses) == [{"p.a", "p.b", "p.c"}]


def test_c_headers_are_declared_in_native_pxd_only():
    ours = {header.name for header in (ROOT / "ext").glob("*.h")}

    elsewhere = [
        str(use)
        for use in header_uses(ROOT)
        if use.file.startswith("journal/")
        and Path(use.target).name in ours
        and use.file != "journal/native.pxd"
    ]

    assert elsewhere == []


def test_c_code_includes_the_system_and_itself_and_never_python():
    ours = {header.name for header in (ROOT / "ext").glob("*.h")}

    foreign = [
        str(use)
        for use in header_uses(ROOT)
        if use.file.startswith("ext/")
        and ("Python.h" in use.target or (use.target[0] == '"' and use.target[1:-1] not in ours))
    ]

    assert foreign == []


def test_every_c_object_is_linked_into_exactly_one_extension():
    linked = [name for objects in table_of_extensions().values() for name in objects]

    assert len(linked) == len(set(linked))
    assert {path.stem for path in (ROOT / "ext").glob("*.c")} <= set(linked)


def test_every_cython_module_has_a_row_in_the_table():
    sources = {
        str(path.relative_to(ROOT).with_suffix("")).replace("/", ".")
        for room in ("journal", "jdbcstore", "pipeline")
        for path in (ROOT / room).rglob("*.pyx")
    }

    assert sources <= set(table_of_extensions())


@pytest.mark.parametrize(
    ("file", "target"),
    [
        ("journal/reader.pyx", "broker.records.records"),
        ("journal/api.py", "jdbcstore.store"),
        ("journal/journal.pyx", "journal.cli.main"),
        ("journal/loader.pyx", "journal.tools.stat"),
        ("journal/tools/stat.py", "journal.cli"),
        ("jdbcstore/store.py", "journal.format"),
        ("jdbcstore/lease.py", "jdbcstore.cli.locks"),
        ("journal/cli/main.py", "jdbcstore.cli.locks"),
        ("journal/commands/session.py", "journal.cli.main"),
        ("journal/tools/stat.py", "journal.commands.progress"),
        ("broker/cli/data.py", "journal.cli.main"),
        ("broker/server/server.py", "journal.commands.exit_status"),
        ("pipeline/places.py", "journal.commands.sources"),
        ("pipeline/cli/replay.py", "broker.cli.connect"),
        ("benchmarks/bench_broker_start.py", "broker.cli.run"),
        ("broker/records/records.py", "broker.sessions.session"),
        ("broker/queues/queue.py", "journal.journal"),
        ("broker/queues/queue.py", "broker.sessions.session"),
        ("broker/storage/manager.py", "broker.queues.queue"),
        ("broker/model/message.py", "broker.queues.queue"),
        ("broker/sessions/session.py", "broker.protocols.core.handler"),
        ("broker/protocols/core/handler.py", "broker.transport.connection"),
        ("broker/client/session.py", "broker.sessions.session"),
        ("broker/server/server.py", "pipeline.export"),
        ("pipeline/message_rows.py", "broker.queues.queue"),
        ("pipeline/export.py", "pipeline.cli.export"),
    ],
)
def test_a_use_of_a_higher_floor_is_noticed(file, target):
    assert breaks_a_rule(Use(file, target))


@pytest.mark.parametrize(
    ("file", "target"),
    [
        ("journal/cli/main.py", "journal.tools.stat"),
        ("journal/tools/stat.py", "journal.reader"),
        ("journal/cli/main.py", "journal.cli.stat"),
        ("jdbcstore/cli/locks.py", "journal.commands.output"),
        ("broker/cli/data.py", "journal.commands.session"),
        ("jdbcstore/store.py", "journal.api"),
        ("broker/records/records.py", "journal.errors.JournalDamaged"),
        ("broker/storage/open.py", "journal.journal"),
        ("broker/protocols/core/handler.py", "broker.sessions.session"),
        ("broker/server/server.py", "broker.transport.acceptor"),
        ("broker/client/session.py", "broker.protocols.core.frames"),
        ("pipeline/message_rows.py", "broker.records.records"),
    ],
)
def test_a_use_of_a_lower_floor_is_allowed(file, target):
    assert not breaks_a_rule(Use(file, target))


def test_imports_are_found_in_every_form():
    python = "import a.b\nfrom .c import d\nfrom .. import e\ndef f():\n    from g import h\n"
    cython = "cimport a.b\nfrom c.d cimport e, f\n    import g as h\nfrom i cimport (j,\n    k)\n"

    assert set(python_targets(python, "p.q.m", is_package=False)) == {
        *("a.b", "p.q.c", "p.q.c.d", "p", "p.e", "g", "g.h"),
    }
    assert set(cython_targets(cython)) >= {"a.b", "c.d", "c.d.e", "c.d.f", "g", "i", "i.j"}
