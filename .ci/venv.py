"""Choose the interpreter that the Makefile's targets use, and complete `.venv`.

    python3 .ci/venv.py interpreter       print the interpreter
    python3 .ci/venv.py run [--chosen]    install what `make run` needs into .venv
    python3 .ci/venv.py test [--chosen]   that of `make test`; also `test-all`, `dev`, `bench`,
                                          `docs`

An interpreter outside of `.venv` that has what the tests import is used as it is. Any other one
makes `.venv`, once: it is made again if the tree was moved, if its interpreter is gone, or if
`--chosen` says that the user chose another one (`make PYTHON=...`).

This file runs in old interpreters, too, so that they can say that they are too old.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig

LEAST = (3, 11)
VENV = ".venv"
PYTHON = os.path.join(VENV, "bin", "python")
# One line a stage: its name, and the digest of the pyproject.toml that it was installed for.
STAMP = os.path.join(VENV, "stages")
# cffi is for Qpid Proton, which is built in .venv too (--no-build-isolation): without it setuptools
# makes a wheel without its native part, and pip keeps that in its cache.
BUILD_TOOLS = ["pip", "setuptools>=77", "Cython>=3.1", "cffi>=1.0"]
# Stage: the extra that it installs, and what a user waits for.
STAGES = {
    "run": ("", "about 20 MB, some 10 seconds"),
    "test": ("[test]", "about 450 MB, 1.3 GB on disk, 1 to 3 minutes: Spark, drivers, pytest"),
    "test-all": ("[test-all]", "about 90 MB: clients of object stores, a server of S3, MkDocs"),
    "dev": ("[dev]", "linters and type checkers, beside what the tests need"),
    "bench": ("[bench]", "other engines to compare with"),
    "docs": ("[docs]", "about 30 MB: MkDocs and its theme"),
}
# A stage, and those that it includes.
INCLUDED = {
    "run": ["run"],
    "test": ["run", "test"],
    "test-all": ["test-all"],
    "dev": ["run", "test", "dev"],
    "bench": ["run", "bench"],
    "docs": ["run", "docs"],
}
# What the tests cannot do without: distribution, and its least major version.
NEEDED = {
    "Cython": 3,
    "setuptools": 77,
    "click": 8,
    "rich": 13,
    "lxml": 5,
    "cryptography": 43,
    "uvloop": 0,
    "prometheus-client": 0,
    "starlette": 0,
    "uvicorn": 0,
    "websockets": 15,
    "pytest": 8,
    "pytest-xdist": 3,
    "pytest-timeout": 2,
    "hypothesis": 6,
    "SQLAlchemy": 2,
    "psycopg": 3,
    "PyMySQL": 1,
}
# A development install is a plain path: a finder would mix the modules of two trees.
EDITABLE = ["--no-build-isolation", "--config-settings", "editable_mode=compat", "-e"]
# The distribution's name before it became quiver-mq; two would register each command twice.
OLD_NAME = "quiver"


def is_complete() -> bool:
    """Whether this interpreter, outside of .venv, has what the tests import."""
    if sys.version_info < LEAST or os.path.realpath(sys.prefix) == os.path.realpath(VENV):
        return False
    from importlib.metadata import PackageNotFoundError, version

    try:
        return all(int(version(name).split(".")[0]) >= least for name, least in NEEDED.items())
    except (PackageNotFoundError, ValueError):
        return False


def configuration() -> "dict[str, str]":
    """What pyvenv.cfg says; empty without one."""
    try:
        with open(os.path.join(VENV, "pyvenv.cfg")) as file:
            lines = [line.partition("=") for line in file]
    except OSError:
        return {}
    return {name.strip(): value.strip() for name, _, value in lines}


def base() -> str:
    """The interpreter that is running, below any virtual environment."""
    executable: str = getattr(sys, "_base_executable", sys.executable)
    return os.path.realpath(executable)


def fault_of_venv(is_chosen: bool) -> str:
    """Why .venv must be made (again); empty if it can stay."""
    config = configuration()
    if not config or not (os.path.exists(STAMP) or os.path.exists(os.path.join(VENV, "ready"))):
        return "there is none"
    made_at = config.get("command", "").rpartition(" -m venv ")[2].split(" ")[-1]
    if made_at and os.path.realpath(made_at) != os.path.realpath(VENV):
        return "it was made for " + made_at
    if not os.path.exists(PYTHON):
        return "its interpreter is gone: " + os.path.realpath(PYTHON)
    made_by = config.get("executable", base())
    if is_chosen and os.path.realpath(made_by) != base():
        return "it is of " + made_by
    return ""


def check_interpreter() -> None:
    """End with one line unless this interpreter can make .venv and compile extensions."""
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < LEAST:
        sys.exit(
            f"Quiver needs Python {LEAST[0]}.{LEAST[1]} or later, and {sys.executable} is {found}: "
            "choose another one, such as `make run PYTHON=python3.12`"
        )
    missing = []
    if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
        missing.append("python3-dev")
    try:
        import ensurepip  # noqa: F401 - Debian leaves it out of python3.
        import venv  # noqa: F401
    except ImportError:
        missing.append("python3-venv")
    if not shutil.which((os.environ.get("CC") or "gcc").split()[0]):
        missing.append("gcc")
    if missing:
        sys.exit(
            f"{sys.executable} ({found}) cannot build Quiver yet; on Debian and Ubuntu: "
            f"apt-get install {' '.join(missing)}"
        )


def make_venv(fault: str) -> None:
    """Make .venv, empty; without its stamp, which comes last, it is made again."""
    check_interpreter()
    print(f"{VENV}: {fault}; making it with {base()} ({sys.version.split()[0]})", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    call([base(), "-m", "venv", VENV])
    open(STAMP, "w").close()


def digest() -> str:
    """Of what pyproject.toml says about the distribution."""
    with open("pyproject.toml", "rb") as file:
        return hashlib.sha256(file.read().partition(b"[tool.")[0]).hexdigest()[:16]


def stages() -> "dict[str, str]":
    """What was installed: stage to digest."""
    try:
        with open(STAMP) as file:
            return dict(line.split() for line in file)
    except OSError:
        return {}


def complete(stage: str) -> None:
    """Install a stage unless it is there for this pyproject.toml."""
    done, now = stages(), digest()
    if done.get(stage) == now:
        return
    extra, cost = STAGES[stage]
    print(f"{VENV}: fetching what `make {stage}` needs ({cost})", flush=True)
    if not done:
        install("--upgrade", *BUILD_TOOLS)
    forget_old_name()
    install(*EDITABLE, "." + extra)
    for part in INCLUDED[stage]:
        done[part] = now
    with open(STAMP, "w") as file:
        file.writelines(f"{name} {value}\n" for name, value in done.items())


def forget_old_name() -> None:
    """Remove the development install under the distribution's old name."""
    call([PYTHON, "-m", "pip", "uninstall", "--yes", "--quiet", OLD_NAME])
    shutil.rmtree(OLD_NAME + ".egg-info", ignore_errors=True)


def install(*words: str) -> None:
    """Run pip in .venv; what it says is shown only if it fails."""
    call([PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words])


def call(words: "list[str]") -> None:
    """Run a command, and end with what it said if it fails."""
    environment = dict(os.environ, QUIVER_NO_EXTENSIONS="1")
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, check=False
    )
    if done.returncode:
        sys.stderr.write(done.stdout.decode(errors="replace"))
        sys.exit("failed: " + " ".join(words))


def main(stage: str, *options: str) -> None:
    """Do what a target of the Makefile asks for, from the root of the tree."""
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if stage == "interpreter":
        print(sys.executable if is_complete() else os.path.abspath(PYTHON))
        return
    if is_complete():
        return
    fault = fault_of_venv("--chosen" in options)
    if fault:
        make_venv(fault)
    complete(stage)


if __name__ == "__main__":
    main(*sys.argv[1:])
