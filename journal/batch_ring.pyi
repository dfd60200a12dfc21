# All else is for cimport (batch_ring.pxd).
from typing import Self

from typing_extensions import disjoint_base

from journal.files.base import BackEnd

@disjoint_base
class BatchRing:
    def __new__(
        cls,
        back_end: BackEnd,
        *,
        capacity: int,
        timeout_ns: int,
        datasync: bool,
        leaders: bool,
    ) -> Self: ...
