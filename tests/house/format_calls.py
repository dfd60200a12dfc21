"""The encoders of journal/format.pyx, callable from Python.

They are C functions that other modules cimport. Cython publishes such functions as capsules, a
pointer named by its C signature; the tests of the format call these very pointers.
"""

import ctypes

import journal.format

_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

_C_TYPES = {
    "void": None,
    "int": ctypes.c_int,
    "uint8_t": ctypes.c_uint8,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
}


def _c_function(name):
    capsule = journal.format.__pyx_capi__[name]
    signature = _name_of(capsule)
    result, _, arguments = signature.decode().partition(" (")
    types = [
        ctypes.c_void_p if "*" in argument else _C_TYPES[argument.strip()]
        for argument in arguments.rstrip(")").split(",")
    ]
    return ctypes.CFUNCTYPE(_C_TYPES[result], *types)(_pointer_of(capsule, signature))


_encode_header = _c_function("encode_header")
_encode_header_leader = _c_function("encode_header_leader")
_encode_record = _c_function("encode_record")
_encode_leader = _c_function("encode_leader")
_encode_mark = _c_function("encode_mark")
leader_padding = _c_function("leader_padding")
record_size = _c_function("record_size")

LEADER_SIZE = 9
MARK, END_MARK = 0xF2, 0xF4


def header(file_id, user_version=0, file_size=0):
    """A header with its leader, 25 bytes."""
    out = (ctypes.c_uint8 * 25)()
    _encode_header(out, user_version, file_id)
    _encode_header_leader(out, file_size)
    return bytes(out)


def record(kind, file_id, *, tx_id=0, record_id=0, user_type=0, body=b"", records_in_file=0):
    """A record as Artemis writes it: no leader."""
    out = (ctypes.c_uint8 * record_size(kind, len(body)))()
    _encode_record(
        out, kind, file_id, 0, tx_id, record_id, user_type, body, len(body), records_in_file
    )
    return bytes(out)


def led_record(kind, file_id, ordinal, **fields):
    """The same behind its leader."""
    plain = record(kind, file_id, **fields)
    out = (ctypes.c_uint8 * (LEADER_SIZE + len(plain))).from_buffer_copy(bytes(LEADER_SIZE) + plain)
    _encode_leader(ctypes.addressof(out) + LEADER_SIZE, file_id, ordinal, len(plain))
    return bytes(out)


def mark(marker, file_id, ordinal):
    """A mark or an end mark, nine bytes."""
    out = (ctypes.c_uint8 * LEADER_SIZE)()
    _encode_mark(out, marker, file_id, ordinal)
    return bytes(out)
