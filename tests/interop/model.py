"""What a load should give for a list of records, by the rules of Artemis, in plain Python."""

import hashlib

HEX_SIZE_MAX = 256


def body_view(body):
    """A body as expected.json shows it."""
    if len(body) <= HEX_SIZE_MAX:
        return {"len": len(body), "hex": body.hex()}
    digest = hashlib.sha256(body).hexdigest()
    return {"len": len(body), "sha256": digest, "head_hex": body[:16].hex()}


def record_view(record):
    """An add or update as expected.json shows it."""
    return {
        "id": record.id,
        "user_type": (record.user_type + 128) % 256 - 128,
        "update": record.kind.startswith("update"),
        "compact_count": record.compact_count,
        **body_view(record.body),
    }


def load_view(records):
    """`committed`, `prepared` and `failed_transactions` after loading undamaged records."""
    committed, transactions, prepared, deleted = [], {}, {}, set()
    for record in records:
        match record.kind:
            case "add" | "update":
                committed.append(record)
            case "delete":
                deleted.add(record.id)
            case "add_tx" | "update_tx" | "delete_tx":
                transactions.setdefault(record.tx, []).append(record)
            case "prepare":
                transactions.setdefault(record.tx, [])
                prepared[record.tx] = record
            case "commit":
                for part in transactions.pop(record.tx, []):
                    if part.kind == "delete_tx":
                        deleted.add(part.id)
                    else:
                        committed.append(part)
                prepared.pop(record.tx, None)
            case "rollback":
                transactions.pop(record.tx, None)
                prepared.pop(record.tx, None)
    return {
        "committed": [record_view(record) for record in committed if record.id not in deleted],
        "prepared": [
            {
                "tx": tx,
                "extra_data": body_view(prepared[tx].body),
                "records": [record_view(part) for part in parts if part.kind != "delete_tx"],
                "records_to_delete": [
                    {"id": part.id, **body_view(part.body)}
                    for part in parts
                    if part.kind == "delete_tx"
                ],
            }
            for tx, parts in transactions.items()
            if tx in prepared
        ],
        "failed_transactions": [
            {
                "tx": tx,
                "records": [record_view(part) for part in parts if part.kind != "delete_tx"],
                "deletes": [part.id for part in parts if part.kind == "delete_tx"],
            }
            for tx, parts in transactions.items()
            if tx not in prepared
        ],
    }


def sorted_view(view):
    """A load's view with what comes in no fixed order sorted."""
    return {
        "committed": view["committed"],
        "prepared": sorted(view["prepared"], key=lambda tx: tx["tx"]),
        "failed_transactions": sorted(view["failed_transactions"], key=lambda tx: tx["tx"]),
    }


def contents(view):
    """What a load gives, but for how often it was compacted and in which order."""
    records = [{**record, "compact_count": 0} for record in view["committed"]]
    return {
        "committed": sorted(records, key=str),
        "prepared": [
            {**tx, "records": [{**record, "compact_count": 0} for record in tx["records"]]}
            for tx in sorted_view(view)["prepared"]
        ],
    }
