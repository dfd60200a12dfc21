# All of it is for cimport (waiters.pxd).
from typing import Self

from typing_extensions import disjoint_base

@disjoint_base
class Waiters:
    def __new__(cls) -> Self: ...
