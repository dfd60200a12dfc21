"""Reads the imports, cimports and includes of every source file: who depends on whom."""

import ast
import re
from dataclasses import dataclass

PACKAGES = ("journal", "jdbcstore", "broker", "pipeline", "benchmarks")

FROM = re.compile(r"^\s*from\s+([\w.]+)\s+c?import\s+\(?\s*([\w, *]+)", re.MULTILINE)
IMPORT = re.compile(r"^\s*c?import\s+([\w.]+(?:\s+as\s+\w+)?(?:\s*,\s*[\w.]+)*)", re.MULTILINE)
EXTERN = re.compile(r'^\s*cdef\s+extern\s+from\s+"([^"]+)"', re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"][^>"]+[>"])', re.MULTILINE)


@dataclass(frozen=True)
class Use:
    """One file's dependence on one thing."""

    file: str  # From the root of the tree.
    target: str  # A dotted module, or a header.

    def __str__(self):
        return f"{self.file} uses {self.target}"


def module_of(file, root):
    """The dotted name under which a source file is imported."""
    parts = list(file.relative_to(root).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def python_targets(text, module, *, is_package):
    """Dotted modules that a .py or .pyi imports anywhere in it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = module.split(".")
                up = up[: len(up) - node.level + is_package]
                base = ".".join([*up, *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def cython_targets(text):
    """Dotted modules that a .pyx or .pxd imports or cimports."""
    for base, names in FROM.findall(text):
        yield base
        yield from (f"{base}.{name.strip()}" for name in names.split(",") if name.strip())
    for names in IMPORT.findall(text):
        yield from (name.split(" as ")[0].strip() for name in names.split(","))


def module_uses(root):
    """Every use of a module of ours by a file of ours, tests left out."""
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*")):
            if file.suffix in {".py", ".pyi"}:
                name = module_of(file, root)
                is_package = file.stem == "__init__"
                targets = python_targets(file.read_text(), name, is_package=is_package)
            elif file.suffix in {".pyx", ".pxd"}:
                targets = cython_targets(file.read_text())
            else:
                continue
            for target in targets:
                if target.split(".")[0] in PACKAGES:
                    yield Use(str(file.relative_to(root)), target)


def circles(uses):
    """Sets of two modules or more, of which each is used by each, by way of others or not.

    Without packages themselves: `from a.b import c` uses a.b.c.
    """
    uses = [use for use in uses if "/__init__." not in use.file]
    modules = {_module(use.file) for use in uses}
    graph = {module: set() for module in modules}
    for use in uses:
        # `from a import b` uses a.b, a module or what is in one.
        target = use.target if use.target in modules else use.target.rpartition(".")[0]
        if target in modules:
            graph[_module(use.file)].add(target)
    reached = {module: _reached(graph, module) for module in graph}
    found = []
    for module in sorted(graph):
        circle = {one for one in reached[module] if module in reached[one]}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def _module(file):
    return file.rpartition(".")[0].replace("/", ".")


def _reached(graph, module):
    """What a module uses, by way of others or not."""
    reached, left = set(), [module]
    while left:
        for target in graph[left.pop()] - reached:
            reached.add(target)
            left.append(target)
    return reached


def header_uses(root):
    """Every header that a Cython file declares from or a C file includes."""
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.p[yx]*")):
            if file.suffix in {".pyx", ".pxd"}:
                for header in EXTERN.findall(file.read_text()):
                    yield Use(str(file.relative_to(root)), header)
    for file in sorted((root / "ext").rglob("*.[ch]")):
        for header in INCLUDE.findall(file.read_text()):
            yield Use(str(file.relative_to(root)), header)
