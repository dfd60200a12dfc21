# All else is for cimport (format.pxd).
def header_block(
    file_id: int,
    user_version: int = 0,
    *,
    file_size: int = 0,
    leader: bool = True,
    alignment: int = 1,
) -> bytes: ...
