"""What a folder looked like, to show that nothing touched it."""

import hashlib


def snapshot(folder):
    """Every file and folder below: mode, modification and change time, digest."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (status.st_mode, status.st_mtime_ns, status.st_ctime_ns, digest)
    return found
