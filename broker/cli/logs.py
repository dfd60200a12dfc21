"""The log of a broker, as text or JSON: one line an event on standard error.

    text    2026-11-21 11:10:09,223 WARNING [broker] AMQ222216: Security problem …
    json    {"time":"2026-11-21T11:10:09.223Z","level":"WARNING","logger":"broker",
             "code":"AMQ222216","message":"Security problem …"}

Codes are Artemis's, where it has one for the event; with a fault its traceback is in `error`.
"""

from __future__ import annotations

import json
import logging
import re
import time
from typing import Final

__all__ = ["FORMATS", "JsonFormatter", "set_up"]

TEXT_FORMAT: Final = "%(asctime)s %(levelname)s [%(name)s] %(message)s"
FORMATS: Final = ("text", "json")
_CODED: Final = re.compile(r"(AMQ\d{6}): ", re.ASCII)


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Give the line."""
        message = record.getMessage()
        coded = _CODED.match(message)
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        found = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            **({"code": coded[1]} if coded else {}),
            "message": message[coded.end() :] if coded else message,
        }
        if record.exc_info:
            found["error"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=False)


def set_up(how: str, *, verbose: bool) -> None:
    """Log to standard error from now on.

    Args:
        how: one of FORMATS.
        verbose: debug lines too.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if how == "json" else logging.Formatter(TEXT_FORMAT))
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO, handlers=[handler], force=True
    )
    # The broker tells all that the web server would tell of its start and stop.
    logging.getLogger("uvicorn").setLevel(logging.DEBUG if verbose else logging.WARNING)
