"""JSON as Artemis's JsonUtil has it: arguments in a request, one result in an answer.

Both stand in a message's body as a nullable string: an array of the arguments, or an array of the
one result. Null stands for an empty list of arguments, or for a null result. Bytes are arrays of
signed numbers.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from broker.management.errors import ManagementError
from broker.model.encoding import BodyReader, BodyWriter, RecordFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["arguments_of", "json_text", "read_object", "result_body"]


def arguments_of(body: memoryview) -> list[object]:
    """Give the arguments of a request.

    Raises:
        ManagementError: the body is not a JSON array.
    """
    if not len(body):
        return []
    try:
        text = BodyReader(body).read_nullable(BodyReader.read_simple_string)
    except RecordFormatError as error:
        raise ManagementError(f"the request's body is not a string: {error}") from error
    if text is None:
        return []
    found = _read(text)
    if not isinstance(found, list):
        raise ManagementError(f"the request's body is not a JSON array: {text[:100]}")
    return found


def read_object(text: str) -> dict[str, object]:
    """Give a JSON object.

    Raises:
        ManagementError: it is none.
    """
    found = _read(text)
    if not isinstance(found, dict):
        raise ManagementError(f"not a JSON object: {text[:100]}")
    return found


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ManagementError(f"not valid JSON: {error}: {text[:100]}") from error


def result_body(result: object) -> bytes:
    """Give the body of an answer."""
    writer = BodyWriter()
    text = None if result is None else json_text([result])
    writer.write_nullable(BodyWriter.write_simple_string, text)
    return writer.getvalue()


def json_text(value: object) -> str:
    r"""Give compact JSON.

    >>> json_text({"bytes": b"\xff\x01", "a": (1, None)})
    '{"bytes":[-1,1],"a":[1,null]}'
    """
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _plain(value: object) -> object:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        # Not numbers in JSON; Java's library refuses them too.
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return [one - 256 if one > 127 else one for one in bytes(value)]
    if isinstance(value, dict):
        return _plain_object(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return str(value)


def _plain_object(value: Mapping[object, object]) -> dict[str, object]:
    return {str(name): _plain(one) for name, one in value.items()}
