"""The fields of a message; what they mean, and who may change them: message_form.py.

Not beside them, since `no_gc` is said in Cython alone: a .pxd says it in vain of a Python source.
"""

cimport cython

__all__ = ["MessageFields", "Parts"]


cdef class Parts:
    """What is not in a message's bytes yet, or was made of them, or is kept elsewhere.

    Attributes:
        body: until it is among the bytes.
        user_id: 16 bytes or None; True where it is among the bytes.
        timestamp: in ms since 1970; None where it is among the bytes.
        properties: as objects; None until they are asked for.
        large: the body, where it is kept outside of the message.
    """

    def __cinit__(self):
        self.body = None
        self.user_id = True
        self.timestamp = None
        self.properties = None
        self.large = None


@cython.no_gc
cdef class MessageFields:
    """What every message has, and nothing that it does."""
