"""A distribution made for a test: its modules and entry points, on sys.path."""

from broker.protocols.registry import GROUP


def install(folder, monkeypatch, entry_points, **modules):
    """Install protocols for this test.

    Args:
        folder: new; goes to the head of sys.path.
        monkeypatch: undoes it.
        entry_points: by name, as `module:object`.
        modules: source texts by name.
    """
    metadata = folder / "made_for_a_test-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: made-for-a-test\nVersion: 1\n")
    lines = [f"{name} = {value}\n" for name, value in entry_points.items()]
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{''.join(lines)}")
    for name, text in modules.items():
        if text:
            (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
