"""The fragments of docs/guide/address-settings.md are read, and do what the page says."""

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
    assert broker_options(config)
