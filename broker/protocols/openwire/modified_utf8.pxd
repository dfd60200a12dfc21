# Types for modified_utf8.py, compiled; see setup.py (COMPILED).

cpdef bytes encode(str text)
cpdef str decode(bytes data)
