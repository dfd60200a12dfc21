"""The file journal: records on disk in the format of Apache Artemis, checksummed."""

try:
    import journal.format  # noqa: F401 - the lowest extension: is the tree built at all?
except ModuleNotFoundError as missing:
    if missing.name != "journal.format":
        raise
    raise ImportError(
        "Quiver's extension modules are not built: type `make build`, or `pip install .`."
    ) from None
