"""The Java virtual machine of this process, for databases that only a JDBC driver reaches.

There is one in a process, it takes its class path when it starts, and it cannot be started again
(JNI). Another class path, or another program's JVM, needs another process.

Environment:
    QUIVER_JDBC_CLASSPATH: jars, and folders of jars, as in Java's CLASSPATH.
    QUIVER_JVM_OPTIONS: options for the JVM, separated by spaces.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from journal.errors import OptionError
from journal.extras import missing_package

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["CLASSPATH_VARIABLE", "OPTIONS_VARIABLE", "find_jars", "running", "start"]

CLASSPATH_VARIABLE: Final = "QUIVER_JDBC_CLASSPATH"
OPTIONS_VARIABLE: Final = "QUIVER_JVM_OPTIONS"
SYSTEM_JARS: Final = Path("/usr/share/java")  # Where Debian and Fedora put them.

_lock = threading.Lock()


def find_jars(names: Iterable[str]) -> list[str]:
    """Jars on the class path of the environment, else those of the system that have these names.

    Args:
        names: of jars, without `.jar`.
    """
    given = os.environ.get(CLASSPATH_VARIABLE) or os.environ.get("CLASSPATH")
    if not given:
        found = [SYSTEM_JARS / f"{name}.jar" for name in names]
        return [str(jar) for jar in found if jar.exists()]
    jars: list[str] = []
    for part in filter(None, given.split(os.pathsep)):
        folder = Path(part.removesuffix("*"))
        jars += [str(jar) for jar in sorted(folder.glob("*.jar"))] if folder.is_dir() else [part]
    return jars


def running() -> Any | None:
    """The module `jpype` if it runs a JVM; it is not imported for that, and need not be there."""
    jpype = sys.modules.get("jpype")
    return jpype if jpype is not None and jpype.isJVMStarted() else None


def start(jars: list[str], properties: Mapping[str, str]) -> Any:
    """The module `jpype`, its JVM running with these jars.

    Args:
        jars: class path, if the JVM is not running yet; if it is, it must have been started so.
        properties: of Java's system, set before any driver is loaded.

    Raises:
        OptionError: no JPype, or no Java.
    """
    try:
        import jpype
    except ModuleNotFoundError as error:
        raise OptionError(f"a JDBC driver is called by JPype: {missing_package(error)}") from None
    with _lock:
        if not jpype.isJVMStarted():
            # -Xrs: signals are Python's; a JVM would end the process on SIGTERM by itself.
            options = ["-Xrs", *os.environ.get(OPTIONS_VARIABLE, "").split()]
            try:
                jpype.startJVM(*options, classpath=jars, convertStrings=False)
            except (jpype.JVMNotFoundException, OSError) as error:
                raise OptionError(f"no Java to run a JDBC driver: {error}") from error
            # The thread that starts the JVM is its main thread, and at the end of the process the
            # JVM waits for that one to end. Any other thread that comes here is a daemon to it,
            # and so is this one when it comes again.
            jpype.JClass("java.lang.Thread").detach()
        system = jpype.JClass("java.lang.System")
        for key, value in properties.items():
            if system.getProperty(key) is None:
                system.setProperty(key, value)
    return jpype
