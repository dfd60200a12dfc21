"""The worked example of docs/format/records.md; run as a module it prints it.

python -m tests.broker.storage.format_example
"""

MESSAGE = bytes.fromhex(
    "01 000000000000004d 01 00000004 6100 6200 00000044"
    "00000016 01 00000004 6800 6900"
    "000000000000004d 01 00000004 6100 6200 00 03 01 00000000000007d0 00000000000003e8 04"
    "01 00000001 00000002 6b00 0a 00000002 7600"
)
FIELDS = (
    ("persister: Core", 1),
    ("messageId 77", 8),
    ("address: not null, 4 bytes,", 5),
    ('"ab"', 4),
    ("size of the Core buffer: 68", 4),
    ("end of body: 13 + 9", 4),
    ("body: not null, 4 bytes,", 5),
    ('"hi"', 4),
    ("messageId", 8),
    ("address", 9),
    ("userId: none", 1),
    ("type: text", 1),
    ("durable", 1),
    ("expiration 2000", 8),
    ("timestamp 1000", 8),
    ("priority 4", 1),
    ("properties: there are, 1", 5),
    ('name "k"', 6),
    ("tag: string", 1),
    ('value "v"', 6),
)


def text():
    """The example as the document shows it: offset, bytes, meaning, a line a field."""
    lines, offset = [], 0
    for meaning, size in FIELDS:
        part = MESSAGE[offset : offset + size]
        lines.append(f"{offset:4}  {part.hex(' '):26}  {meaning}")
        offset += size
    assert offset == len(MESSAGE)
    return "\n".join(lines)


if __name__ == "__main__":
    print(text())
