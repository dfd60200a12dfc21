"""Has a database say "done, no rows" to a statement, as MariaDB does to one that is cancelled."""

import sqlalchemy.event

KINDS = ("SELECT", "UPDATE")


class Cancelling:
    """In a `with` block: one statement on a table is run so that it finds nothing, and says so.

    A count without a LIMIT is never the one: MariaDB has not been seen to answer it wrongly.

    Args:
        engine: SQLAlchemy's; its users get the false answer.
        table: name of the table.
        kind: of the statements that count.
        nth: which of them, from 0.
        text: only those that have this in them,
        but: and not this.

    Attributes:
        hits: how many were run so: 1 or 0.
    """

    def __init__(self, engine, table, kind, *, nth=0, text="", but=None):
        assert kind in KINDS
        self.engine, self.table, self.kind = engine, table.lower(), kind
        self.nth, self.text, self.but = nth, text, but
        self.hits = 0
        self._seen = -1

    def __enter__(self):
        sqlalchemy.event.listen(self.engine, "before_cursor_execute", self._change, retval=True)
        return self

    def __exit__(self, *exception):
        sqlalchemy.event.remove(self.engine, "before_cursor_execute", self._change)

    def _change(self, connection, cursor, statement, parameters, context, executemany):
        if self._is_meant(statement):
            self._seen += 1
            if self._seen == self.nth:
                self.hits += 1
                return self._without_rows(statement), parameters
        return statement, parameters

    def _is_meant(self, statement):
        is_plain_count = "count(" in statement and "LIMIT" not in statement
        return (
            statement.startswith(self.kind)
            and self.table in statement.lower()
            and self.text in statement
            and (self.but is None or self.but not in statement)
            and not is_plain_count
        )

    def _without_rows(self, statement):
        if self.kind == "UPDATE":
            return f"{statement} AND 1 = 0"
        if "count(" in statement:
            return f"{statement} WHERE 1 = 0"  # Behind the subquery: one row all the same.
        return f"SELECT * FROM ({statement}) AS cancelled WHERE 1 = 0"
