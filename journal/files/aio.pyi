from typing_extensions import disjoint_base

from journal.files.base import BackEnd

@disjoint_base
class AioBackEnd(BackEnd):
    def __init__(self, name: str, alignment: int, direct: bool, depth: int) -> None: ...
