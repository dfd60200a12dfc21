from typing_extensions import disjoint_base

from journal.loaded import LoadedFile
from journal.replay import Replay

__all__ = ["HeaderCheck"]

@disjoint_base
class HeaderCheck:
    def __init__(self, replay: Replay, loaded: list[LoadedFile], user_version: int) -> None: ...
