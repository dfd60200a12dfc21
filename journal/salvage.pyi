from typing_extensions import Buffer

__all__ = ["file_generations"]

def file_generations(data: Buffer, *, version: int = 2) -> list[int]: ...
