"""Builds the extension modules: a table, and how a row of it is compiled.

Everything else about the distribution stands in pyproject.toml.

Environment:
    QUIVER_BUILD: "release" (default), "debug" (asserts in C, bounds checks), "coverage" (debug with
        line tracing) or "sanitize" (debug under the address and undefined-behaviour sanitizers).
    QUIVER_NO_EXTENSIONS: if set, build none; for a development install whose
        extensions `make build` puts in place.
"""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

from setuptools import Extension, setup

# Module, and the objects of ext/ linked into it. An object belongs to exactly one module, since it
# may hold state that must exist once (docs/decisions/0001-link-each-c-object-into-one-module.md);
# all other modules reach it by cimport. tests/house/test_layers.py holds this table to that.
EXTENSIONS: dict[str, list[str]] = {
    "journal.format": ["crc32c"],
    "journal.files.base": ["file_ops", "device", "completion", "aio_queue", "uring_queue"],
    "journal.files.guard": [],
    "journal.files.nio": [],
    "journal.files.aio": [],
    "journal.files.uring": [],
    "journal.files.mapped": [],
    "journal.files.chunks": [],
    "journal.files.tap": [],
    "journal.parking": ["clock", "park"],
    "journal.waiters": [],
    "journal.batch_ring": [],
    "journal.buffer": [],
    "journal.completion": [],
    "journal.id_map": [],
    "journal.place_map": [],
    "journal.file_pins": [],
    "journal.index": [],
    "journal.window": [],
    "journal.scan": [],
    "journal.validation": [],
    "journal.reader": [],
    "journal.bodies": [],
    "journal.salvage": [],
    "journal.replay": [],
    "journal.scan_ahead": [],
    "journal.header_check": [],
    "journal.delivery": [],
    "journal.loader": [],
    "journal.reclaim": [],
    "journal.reserve": [],
    "journal.relocations": [],
    "journal.old_files": [],
    "journal.pending_records": [],
    "journal.new_files": [],
    "journal.compactor": [],
    "journal.replacement": [],
    "journal.data_files": [],
    "journal.history": [],
    "journal.compaction": [],
    "journal.file_maintenance": [],
    "journal.adoption": [],
    "journal.lifecycle": [],
    "journal.appends": [],
    "journal.journal": [],
    "broker.model.message_fields": [],
    "broker.model.packed": [],
    "broker.protocols.core.packed": [],
    "broker.records.core_form": [],
    "broker.storage.journal_messages": [],
    "broker.queues.stored_references": [],
    "jdbcstore.live": [],
    "jdbcstore.batch": [],
    "jdbcstore.writer": [],
    "jdbcstore.appends": [],
    "jdbcstore.record_tables.copy_binary": [],
    "jdbcstore.record_tables.mysql_commands": [],
    "jdbcstore.record_tables.mysql_exchange": [],
    "jdbcstore.tickets": [],
    "pipeline.column_buffers": [],
    "pipeline.message_columns": [],
    "pipeline.message_states": [],
    "pipeline.raw_columns": [],
}

# Python as it stands, compiled as well, because every message passes through it. Types of its
# classes' fields stand in a .pxd beside the source; without a compiler the source runs as it is.
COMPILED = [
    "broker.model.address",
    "broker.model.core_layout",
    "broker.queues.consumer",
    "broker.queues.consumers",
    "broker.queues.contents",
    "broker.queues.dispatch",
    "broker.routing.duplicates",
    "broker.queues.flow_control",
    "broker.recovery.loaded_messages",
    "broker.queues.joint_records",
    "broker.queues.memory",
    "broker.model.message",
    "broker.model.message_bytes",
    "broker.model.message_form",
    "broker.paging.acknowledgements",
    "broker.paging.cursor",
    "broker.paging.page",
    "broker.paging.reference",
    "broker.paging.store",
    "broker.paging.subscription",
    "broker.paging.window",
    "broker.routing.balancing",
    "broker.routing.bindings",
    "broker.routing.enqueuer",
    "broker.routing.joint_moves",
    "broker.routing.message_copies",
    "broker.routing.message_mover",
    "broker.routing.named_queues",
    "broker.routing.postoffice",
    "broker.routing.queue_ids",
    "broker.routing.remote_bindings",
    "broker.routing.route",
    "broker.sessions.permissions",
    "broker.sessions.producer",
    "broker.protocols.amqp.deliveries",
    "broker.protocols.amqp.incoming",
    "broker.protocols.amqp.outgoing",
    "broker.protocols.core.answers",
    "broker.protocols.core.channel",
    "broker.protocols.core.frames",
    "broker.protocols.core.handler",
    "broker.protocols.core.packet_message",
    "broker.protocols.core.session_channel",
    "broker.protocols.core.upload_requests",
    "broker.protocols.mqtt.decoding",
    "broker.protocols.mqtt.deliveries",
    "broker.protocols.mqtt.framing",
    "broker.protocols.mqtt.published_message",
    "broker.protocols.mqtt.publishing",
    "broker.protocols.mqtt.wire",
    "broker.protocols.stomp.answers",
    "broker.protocols.stomp.deliveries",
    "broker.protocols.stomp.frames",
    "broker.protocols.stomp.message_frame",
    "broker.protocols.flow",
    "broker.protocols.openwire.decoding",
    "broker.protocols.openwire.encoding",
    "broker.protocols.openwire.modified_utf8",
    "broker.protocols.output",
    "broker.protocols.producers",
    "broker.protocols.stomp.sends",
    "broker.protocols.stomp.sent_message",
    "broker.queues.queue",
    "broker.queues.reference",
    "broker.queues.reference_lists",
    "broker.security.facade",
    "broker.security.manager",
    "broker.queues.selector_index",
    "broker.sessions.sending",
    "broker.sessions.session",
    "broker.sessions.session_transaction",
    "broker.sessions.uploads",
    "broker.sessions.xa_resource",
    "broker.storage.spill_file",
    "broker.storage.context",
    "broker.storage.identifiers",
    "broker.storage.manager",
    "broker.storage.null_storage",
    "broker.storage.page_appends",
    "broker.transactions.transaction",
    "broker.records.amqp_message",
    "broker.records.amqp_outline",
    "broker.records.noted_properties",
    "broker.records.page_records",
    "broker.transport.connection",
    "broker.routing.cached_routes",
]

MODE = os.environ.get("QUIVER_BUILD", "release")
FLAGS = {
    # -fvisibility=hidden: two modules can never share an object of ext/ by accident of the linker.
    "release": ["-O3", "-g1", "-fvisibility=hidden"],
    "debug": ["-O0", "-g3", "-UNDEBUG"],
    "coverage": ["-O0", "-g1", "-UNDEBUG"],
    "sanitize": [
        "-O1",
        "-g",
        "-UNDEBUG",
        "-fno-omit-frame-pointer",
        "-fno-sanitize-recover=undefined",
    ],
}
# What gcc 14 (Debian 13) refuses by itself, and an older one would let pass.
ERRORS = [
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
    "-Werror=int-conversion",
]
SANITIZERS = ["-fsanitize=address,undefined"] if MODE == "sanitize" else []
# The calls of Linux, not those of POSIX only.
MACROS: list[tuple[str, str | None]] = [("_GNU_SOURCE", None)]
if MODE == "coverage":
    MACROS += [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")]
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": MODE != "release",
    "wraparound": False,
    "initializedcheck": MODE != "release",
    "cdivision": True,
    "embedsignature": True,
    "linetrace": MODE == "coverage",
}
# What is Python keeps Python's meaning: annotations are for people and mypy.
PYTHON_DIRECTIVES = {
    **DIRECTIVES,
    "boundscheck": True,
    "wraparound": True,
    "cdivision": False,
    "initializedcheck": True,
    "annotation_typing": False,
    "nonecheck": True,
}


def source_of(module: str) -> str:
    """Where a module's source lies."""
    path = module.replace(".", "/")
    return f"{path}.py" if module in COMPILED else f"{path}.pyx"


def extension(module: str, objects: list[str], stamp: Path) -> Extension:
    """One row of the table as a build instruction."""
    return Extension(
        module,
        [source_of(module), *(f"ext/{name}.c" for name in objects)],
        include_dirs=[".", "ext"],
        define_macros=MACROS,
        # C11 without GNU syntax; -fno-strict-aliasing is not needed: records are read and written
        # byte by byte or by memcpy, never through a pointer to another type.
        # Cython's own loops compare signed with unsigned.
        # What was Python spends its time in the interpreter's calls: -O3 would compile longer only.
        extra_compile_args=[
            "-std=c11",
            "-Wno-sign-compare",
            *ERRORS,
            *FLAGS[MODE],
            *(["-O1"] if module in COMPILED else []),
            *SANITIZERS,
        ],
        extra_link_args=SANITIZERS,
        # Cython follows .pxd files by itself; the compiler's inputs have to be named.
        depends=[*map(str, sorted(Path("ext").glob("*.h"))), str(stamp)],
    )


def mode_stamp() -> Path:
    """A file rewritten when the build mode changes, so that every object is rebuilt then."""
    stamp = Path("build/mode")
    if not stamp.exists() or stamp.read_text() != MODE:
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(MODE)
    return stamp


def cores() -> int:
    """How many compilers run side by side: one a core, within what memory a laptop has."""
    return max(2, min(8, len(os.sched_getaffinity(0))))


def translators() -> int:
    """How many processes Cython starts: 0 where they cannot share a lock, such as without /dev/shm.

    In that case it translates in this process.
    """
    try:
        multiprocessing.Lock()
    except (ImportError, OSError):
        return 0
    return cores()


def extensions() -> list[Extension]:
    """All rows, translated to C below build/."""
    if "QUIVER_NO_EXTENSIONS" in os.environ:
        return []
    from Cython.Build import cythonize  # Not at the top: an install without extensions needs none.

    stamp = mode_stamp()

    def translate(rows: list[Extension], directives: dict[str, int]) -> list[Extension]:
        translated: list[Extension] = cythonize(
            rows,
            # Where coverage.py looks for the C code that lines are counted in: beside the source.
            build_dir=None if MODE == "coverage" else f"build/cython-{MODE}",
            compiler_directives=directives,
            nthreads=translators(),
        )
        return translated

    return [
        *translate(
            [extension(name, objects, stamp) for name, objects in EXTENSIONS.items()], DIRECTIVES
        ),
        *translate([extension(name, [], stamp) for name in COMPILED], PYTHON_DIRECTIVES),
    ]


# The guard is for cythonize's worker processes, which import this file when they are spawned.
if __name__ == "__main__":
    setup(ext_modules=extensions(), options={"build_ext": {"parallel": cores()}})
