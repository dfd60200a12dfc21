"""The fragments of docs/guide/address-settings.md are valid, and mean what the page says."""

from broker.config.load import load
from broker.options.from_config import broker_options
from tests.pages import DOCS, fences

PAGE = DOCS / "guide/address-settings.md"


def fragments():
    """Texts of <address-setting> that the page shows."""
    texts = ["\n".join(one.lines) for one in fences(PAGE) if one.language == "xml"]
    return [text for text in texts if text.startswith("<address-setting ")]


def test_every_setting_is_read(tmp_path):
    path = tmp_path / "broker.xml"
    found = fragments()
    path.write_text(
        "<configuration><core><address-settings>"
        + "".join(found)
        + "</address-settings></core></configuration>"
    )

    config = load(path)

    assert len(config.addressing.address_settings) == len(found) > 5
    settings = broker_options(config).settings
    orders, tried = settings.match("orders.eu"), settings.match("tried.it")
    assert (orders.max_delivery_attempts, orders.redelivery_delay_ms) == (5, 1000)
    assert (tried.max_size_bytes, tried.address_full_policy.name) == (102_400, "FAIL")
