# All else is for cimport (buffer.pxd).
from typing import Self

from typing_extensions import disjoint_base

from journal.batch_ring import BatchRing
from journal.files.base import BackEnd

@disjoint_base
class GroupBuffer(BatchRing):
    def __new__(
        cls,
        back_end: BackEnd,
        *,
        capacity: int,
        timeout_ns: int,
        datasync: bool,
        leaders: bool,
    ) -> Self: ...
    def close(self) -> None: ...
