"""The columns of every source: fixed, and documented here and in docs/guide/pipeline.md.

Times in milliseconds are those of the records, since 1970 in UTC; 0 stays 0. Each has a TIMESTAMP
beside it. That is null for 0, for times before 1970, and for times after the year 9998, which do
not fit a date in every time zone.
"""

from __future__ import annotations

from typing import Final

from pipeline.columns import Column

__all__ = ["BINDINGS", "BROKER", "JOURNAL", "MESSAGES", "RETENTION", "SENT"]

# Where a row comes from; first in every source.
_PLACE: Final = (
    Column("node", "string", "name of the instance, or of the folder or database"),
    Column("journal", "string", "folder of the journal, or database and table"),
)

_RECORD: Final = (
    Column("file", "string", "name of the file; of a database the table"),
    Column("file_id", "bigint", "what orders the files"),
    Column("offset", "bigint", "bytes from the start of the file; of a database the row's seq"),
    Column("size", "int", "bytes of the whole record; of a database of its body"),
    Column(
        "kind",
        "string",
        "event, add, update, add_tx, update_tx, delete_tx, delete, prepare, commit, rollback;"
        " or damage",
    ),
    Column("record_id", "bigint", "of the record; null where the kind has none"),
    Column("tx_id", "bigint", "of its transaction; null where it has none"),
    Column("user_type", "smallint", "0 to 255, the meaning of the body; null where it has none"),
    Column("compact_count", "int", "how often compaction has copied it"),
    Column("body", "binary", "of the record, or the extra data of a prepare"),
    Column("records_in_file", "int", "of a prepare or commit: operations in this file"),
    Column("checksum", "string", "ok, bad, or none: it was written without one"),
    Column("ordinal", "int", "number among the records with a checksum in this file"),
    Column(
        "verdict",
        "string",
        "live, damaged, torn, suspect; of live rows live, prepared or failed",
    ),
    Column("damage", "string", "of a row of kind damage: what is wrong there"),
)

JOURNAL: Final = (*_PLACE, *_RECORD)

RETENTION: Final = (
    *_PLACE,
    Column("copied", "timestamp_ntz", "local time of the broker when the file was copied"),
    *_RECORD,
)

MESSAGES: Final = (
    *_PLACE,
    Column("message_id", "bigint", "given by the broker"),
    Column(
        "state",
        "string",
        "live, scheduled, expired, acknowledged, unreferenced, prepared; null of a damaged place",
    ),
    Column("address", "string", "that it was sent to"),
    Column("protocol", "string", "how it is stored: CORE, AMQP_V1, AMQP_V2, AMQP_V3, AMQP_LARGE"),
    Column(
        "is_large",
        "boolean",
        "its body is a file, or rows, of its own; read with the option maxLargeBodyBytes",
    ),
    Column("type", "string", "of a Core message: DEFAULT, OBJECT, TEXT, BYTES, MAP, STREAM"),
    Column("durable", "boolean", "survives a restart where its queues do"),
    Column("priority", "int", "0 to 9"),
    Column("timestamp_ms", "bigint", "when it was sent, says the sender; 0 or null: unknown"),
    Column("timestamp", "timestamp", "the same as a time; null: unknown, or no date"),
    Column("expiration_ms", "bigint", "when it expires; 0: never"),
    Column("expiration", "timestamp", "the same as a time; null: never, or no date"),
    Column("user_id", "string", "the client's id of it"),
    Column("duplicate_id", "string", "by which a second copy is refused"),
    Column("properties", "map<string, string>", "application's and broker's; bytes as hex"),
    Column("property_types", "map<string, string>", "of a Core message: their types"),
    Column(
        "body",
        "binary",
        "of an AMQP message all of it, as it was sent; null where `text` holds all of it",
    ),
    Column(
        "body_size",
        "bigint",
        "bytes of the body; of a large message those of its file, null where none is found",
    ),
    Column("text", "string", "of a text message"),
    Column(
        "references",
        "array<struct<queue_id: bigint, state: string, delivery_count: int, scheduled_ms: bigint>>",
        "by queue: live, scheduled, acknowledged, prepared, acknowledging",
    ),
    Column("file", "string", "where its record is; of a message in a page folder and page"),
    Column("offset", "bigint", "bytes from the start of the file; of a database the row's seq"),
    Column("damage", "string", "why the record, or this place of the file, cannot be read"),
)

# Those of the journal's messages that a client is told, too, with the same names and meanings.
_TOLD: Final = (
    *("message_id", "address", "is_large", "type", "durable", "priority", "timestamp_ms"),
    *(
        "timestamp",
        "expiration_ms",
        "expiration",
        "user_id",
        "duplicate_id",
        "properties",
        "property_types",
        "body",
    ),
    *("body_size", "text"),
)

# What means something else there: no file is looked at.
_OF_A_CLIENT: Final = {"is_large": "it came in parts", "body_size": "bytes of the body"}

BROKER: Final = (
    Column("node", "string", "host and port of the broker"),
    Column("queue", "string", "that it is in"),
    *(
        column._replace(meaning=_OF_A_CLIENT.get(column.name, column.meaning))
        for name in _TOLD
        for column in MESSAGES
        if column.name == name
    ),
    Column("delivery_count", "int", "how often it was delivered, this time included"),
)

# What can be written into a broker; all of it may be left out, and null is as if it was.
SENT: Final = (
    Column("address", "string", "where it goes; else the option `address`"),
    Column("text", "string", "of a text message; with `type` TEXT a `body` comes before it"),
    Column("body", "binary", "of any other, or of a text message its encoded body"),
    Column("type", "string", "of a message with `body`: BYTES, or as `messages` has it"),
    Column("durable", "boolean", "survives a restart; else true"),
    Column("priority", "int", "0 to 9; else 4"),
    Column("timestamp_ms", "bigint", "when it was sent; else now"),
    Column("expiration_ms", "bigint", "when it expires; else never"),
    Column("scheduled_ms", "bigint", "before which it is not delivered"),
    Column("group_id", "string", "all messages of a group go to one consumer"),
    Column("correlation_id", "string", "what an answer has in common with its question"),
    Column("reply_to", "string", "where an answer is wanted"),
    Column("user_id", "string", "the client's id of it, a UUID"),
    Column("routing_type", "string", "ANYCAST, MULTICAST; else the option `routingType`"),
    Column("duplicate_id", "string", "by which a second copy is refused; else one is made"),
    Column("properties", "map<string, string>", "by name"),
    Column("property_types", "map<string, string>", "of those that are not strings"),
)

BINDINGS: Final = (
    *_PLACE,
    Column("record_id", "bigint", "of a queue or an address its id"),
    Column("user_type", "smallint", "of the record"),
    Column("record_type", "string", "QUEUE_BINDING_RECORD, ADDRESS_BINDING_RECORD, and so on"),
    Column("name", "string", "of the queue, address, divert, user, and so on"),
    Column("address", "string", "of a queue or divert: its address; of an address its name"),
    Column("routing_types", "array<string>", "ANYCAST, MULTICAST; of a divert STRIP and PASS too"),
    Column("filter", "string", "of a queue or divert"),
    Column("json", "string", "all of it, as `journal print-data --decode`; passwords left out"),
    Column("damage", "string", "why the record, or this place of the file, cannot be read"),
)
