def of_long(value: int) -> bytes: ...
def of_position(queue_id: int, page: int, number: int) -> bytes: ...
def with_long(data: bytes, start: int, end: int, at: int, value: int) -> bytes: ...
def with_headers(
    data: bytes,
    headers_at: int,
    properties_at: int,
    message_id: int,
    address: bytes | None,
    user_id: bytes | None,
    type: int,
    durable: int,
    expiration: int,
    timestamp: int,
    priority: int,
    name: bytes | None,
    value: bytes | None,
) -> bytes: ...
def record(persister: int, message_id: int, address: bytes | None, data: bytes) -> bytes: ...
def stands_at(data: bytes, at: int, wanted: bytes) -> bool: ...
