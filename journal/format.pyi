# Nothing for Python: other modules reach the format by cimport (format.pxd).
