"""A broker's log, a JSON object a line."""

import io
import json
import logging

from broker.cli.logs import JsonFormatter


def test_an_event_is_an_object_with_artemis_code():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    log = logging.Logger("broker")
    log.addHandler(handler)

    log.warning("AMQ222216: Security problem while authenticating %r", "grüße\n")
    log.info("plain: AMQ222216: no code here")
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        log.exception("a fault")

    first, second, third = map(json.loads, stream.getvalue().splitlines())
    assert (first["code"], first["level"], first["logger"]) == ("AMQ222216", "WARNING", "broker")
    assert first["message"] == "Security problem while authenticating 'grüße\\n'"
    assert first["time"].endswith("Z")
    assert "code" not in second
    assert "ZeroDivisionError" in third["error"]
