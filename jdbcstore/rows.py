"""A row of a journal table as a tuple, and its record types.

Numbers are Artemis's (JournalRecord types as JDBCJournalRecord writes them). Columns that are
constant or follow from others are not in the tuple: compactCount and txCheckNoRecords are
always 0, variableSize and txDataSize are lengths.
"""

from __future__ import annotations

from typing import Final, TypeAlias

__all__ = [
    "ADD_RECORD",
    "ADD_RECORD_TX",
    "COMMIT_RECORD",
    "DELETE_RECORD_TX",
    "PREPARE_RECORD",
    "ROLLBACK_RECORD",
    "ROW_FIELDS_SIZE",
    "UPDATE_RECORD",
    "UPDATE_RECORD_TX",
    "Row",
    "signed_byte",
]

ADD_RECORD: Final = 11
UPDATE_RECORD: Final = 12
ADD_RECORD_TX: Final = 13
UPDATE_RECORD_TX: Final = 14
DELETE_RECORD_TX: Final = 15
PREPARE_RECORD: Final = 17
COMMIT_RECORD: Final = 18
ROLLBACK_RECORD: Final = 19

# id 8, recordType 2, compactCount 2, txId 8, userRecordType 2, variableSize 4, txDataSize 4,
# txCheckNoRecords 4, seq 8: what a row takes beside its two bodies, in bytes.
ROW_FIELDS_SIZE: Final = 42

# (record_id, record_type, user_type 0 … 255, body, tx_id, tx_data, seq)
Row: TypeAlias = "tuple[int, int, int, bytes, int, bytes, int]"


def signed_byte(user_type: int) -> int:
    """A user type as Artemis stores it: a Java byte in a SMALLINT column.

    >>> [signed_byte(number) for number in (0, 127, 128, 255)]
    [0, 127, -128, -1]
    """
    return user_type - 256 if user_type > 127 else user_type
