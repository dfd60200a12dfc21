"""The file journal: records on disk in the format of Apache Artemis, checksummed."""
