"""Builds each C test program with the system's compiler, plain and sanitized, and runs it.

A program lists its own cases and what failed; CC chooses the compiler.
"""

import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXT = HERE.parents[1] / "ext"
FLAGS = [
    "-std=c11",
    "-D_GNU_SOURCE",
    "-Wall",
    "-Wextra",
    "-pthread",
    f"-I{EXT}",
    f"-I{HERE}",
]
VARIANTS = {
    "plain": ["-O2"],
    "sanitized": [
        "-O1",
        "-g",
        "-fno-omit-frame-pointer",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    ],
}
# Program, and the objects of ext/ it is linked with.
PROGRAMS = {
    "test_crc32c": ["file_ops", "device"],
    "test_file_ops": ["file_ops", "device"],
    "test_file_tap": ["file_ops", "device"],
    "test_aio_queue": ["file_ops", "device", "completion", "aio_queue"],
    "test_uring_queue": ["file_ops", "device", "completion", "uring_queue"],
    "test_full_disk": ["file_ops", "device"],
    "test_clock": ["file_ops", "device", "clock"],
    "test_park": ["file_ops", "device", "clock", "park"],
}
SKIPPED = 77  # EXIT_SKIPPED in check.h.
TIME_LIMIT_S = 120
ARM64_COMPILER = "aarch64-linux-gnu-gcc"
ARM64_EMULATOR = "qemu-aarch64-static"

# `make sanitize` preloads the sanitizers' libraries for Python's sake; the compiler needs none, and
# the programs bring their own.
ENVIRONMENT = {
    key: value
    for key, value in os.environ.items()
    if key not in {"LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS"}
}


def system_compiler():
    words = shlex.split(os.environ.get("CC", "cc"))
    assert shutil.which(words[0]), f"no C compiler {words[0]!r}: install gcc, or set CC"
    return words


def run(command, cwd):
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=ENVIRONMENT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIME_LIMIT_S,
        check=False,
    )


def build(compiler, program, flags, folder):
    binary = folder / program
    sources = [HERE / f"{program}.c", *(EXT / f"{name}.c" for name in PROGRAMS[program])]

    built = run([*compiler, *FLAGS, *flags, *sources, "-o", binary], folder)

    assert built.returncode == 0, built.stdout
    return binary


def assert_passes(command, folder):
    ran = run(command, folder)
    if ran.returncode == SKIPPED:
        pytest.skip(f"the kernel says: {ran.stdout.strip()}")
    assert ran.returncode == 0, ran.stdout
    print(ran.stdout)


@pytest.fixture(scope="session")
def has_sanitizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sanitizers")
    source = folder / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    built = run(
        [*system_compiler(), *VARIANTS["sanitized"], source, "-o", folder / "empty"], folder
    )
    return built.returncode == 0 and run([folder / "empty"], folder).returncode == 0


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_program_passes(program, variant, has_sanitizers, tmp_path):
    if variant == "sanitized" and not has_sanitizers:
        pytest.skip("this compiler has no address and undefined-behaviour sanitizers")

    binary = build(system_compiler(), program, VARIANTS[variant], tmp_path)

    assert_passes([binary], tmp_path)


@pytest.mark.skipif(
    platform.machine() == "aarch64"
    or not (shutil.which(ARM64_COMPILER) and shutil.which(ARM64_EMULATOR)),
    reason=f"needs {ARM64_COMPILER} and {ARM64_EMULATOR} on a machine that is not arm64 itself",
)
def test_crc32c_passes_on_emulated_arm64(tmp_path):
    binary = build([ARM64_COMPILER], "test_crc32c", ["-O2", "-static"], tmp_path)

    assert_passes([ARM64_EMULATOR, binary], tmp_path)


def test_every_c_program_here_is_run():
    assert {path.stem for path in HERE.glob("test_*.c")} == set(PROGRAMS)
