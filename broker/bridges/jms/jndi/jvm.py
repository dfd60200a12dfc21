"""The Java virtual machine of this process, and a class loader for each provider's jars.

There is one JVM in a process (JNI). Two providers do not see each other's classes, so that a bridge
between two versions of one client is possible.

Environment:
    QUIVER_JVM_OPTIONS: options for the JVM, separated by spaces.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.bridges.jms.errors import BridgeConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["class_loader", "running_jvm"]

OPTIONS_VARIABLE: Final = "QUIVER_JVM_OPTIONS"

_lock = threading.Lock()
_loaders: dict[tuple[str, ...], Any] = {}


def running_jvm() -> Any:
    """Give the module `jpype`, its JVM running.

    Raises:
        BridgeConfigError: no JPype, or no Java.
    """
    try:
        import jpype
    except ImportError as error:
        raise BridgeConfigError("provider jms needs JPype: pip install 'quiver-mq[jms]'") from error
    with _lock:
        if not jpype.isJVMStarted():
            # -Xrs: signals are Python's; a JVM would end the process on SIGTERM by itself.
            options = ["-Xrs", *os.environ.get(OPTIONS_VARIABLE, "").split()]
            try:
                jpype.startJVM(*options, convertStrings=False)
            except (jpype.JVMNotFoundException, OSError) as error:
                raise BridgeConfigError(f"provider jms needs Java: {error}") from error
            # The thread that starts the JVM is its main thread, for which the JVM waits at the end
            # of the process. When it comes again, it is a daemon, as every other one.
            jpype.JClass("java.lang.Thread").detach()
    return jpype


def class_loader(jars: Sequence[str]) -> Any:
    """Give the class loader of these jars; the same one for the same jars.

    Args:
        jars: paths of jars, or of folders of jars.

    Raises:
        BridgeConfigError: a jar is missing, or there are none.
    """
    found = tuple(str(jar.resolve()) for one in jars for jar in _files(Path(one)))
    if not found:
        raise BridgeConfigError(f"jars is {list(jars)}: it names no jar")
    jpype = running_jvm()
    with _lock:
        if found not in _loaders:
            file = jpype.JClass("java.io.File")
            url = jpype.JClass("java.net.URL")
            urls = jpype.JArray(url)([file(path).toURI().toURL() for path in found])
            parent = jpype.JClass("java.lang.ClassLoader").getPlatformClassLoader()
            _loaders[found] = jpype.JClass("java.net.URLClassLoader")(urls, parent)
        return _loaders[found]


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.glob("*.jar"))
    if not path.is_file():
        raise BridgeConfigError(f"jar {path} does not exist")
    return [path]
