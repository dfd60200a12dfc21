"""Address settings: defaults, ranges, merging; Artemis's AddressSettingsTests."""

import json
from pathlib import Path

import pytest

from broker.model.routing_type import RoutingType
from broker.settings.policies import (
    AddressFullPolicy,
    DeletionPolicy,
    PageFullPolicy,
    SlowConsumerPolicy,
    SlowConsumerUnit,
)
from broker.settings.settings import SETTINGS, AddressSettings
from broker.settings.settings_repository import SettingsRepository
from tests.unpack import unpack

GOLDEN = Path(__file__).resolve().parents[1] / "golden"

# Element, default: AddressSettings and ActiveMQDefaultConfiguration of Artemis.
DEFAULTS = {
    "dead-letter-address": None,
    "auto-create-dead-letter-resources": False,
    "dead-letter-queue-prefix": "DLQ.",
    "dead-letter-queue-suffix": "",
    "expiry-address": None,
    "auto-create-expiry-resources": False,
    "expiry-queue-prefix": "EXP.",
    "expiry-queue-suffix": "",
    "expiry-delay": -1,
    "min-expiry-delay": -1,
    "max-expiry-delay": -1,
    "no-expiry": False,
    "redelivery-delay": 0,
    "redelivery-delay-multiplier": 1.0,
    "redelivery-collision-avoidance-factor": 0.0,
    "max-redelivery-delay": 0,
    "max-delivery-attempts": 10,
    "max-size-bytes": -1,
    "max-size-messages": -1,
    "max-size-bytes-reject-threshold": -1,
    "address-full-policy": AddressFullPolicy.PAGE,
    "page-size-bytes": 10485760,
    "page-max-cache-size": 5,
    "max-read-page-bytes": 20971520,
    "max-read-page-messages": -1,
    "prefetch-page-bytes": 20971520,
    "prefetch-page-messages": -1,
    "page-limit-bytes": None,
    "page-limit-messages": None,
    "page-full-policy": None,
    "disk-full-policy": None,
    "message-counter-history-day-limit": 0,
    "default-last-value-queue": False,
    "default-last-value-key": None,
    "default-non-destructive": False,
    "default-exclusive-queue": False,
    "default-group-rebalance": False,
    "default-group-rebalance-pause-dispatch": False,
    "default-group-buckets": -1,
    "default-group-first-key": None,
    "default-consumers-before-dispatch": 0,
    "default-delay-before-dispatch": -1,
    "default-purge-on-no-consumers": False,
    "default-max-consumers": -1,
    "default-queue-routing-type": RoutingType.MULTICAST,
    "default-address-routing-type": RoutingType.MULTICAST,
    "default-consumer-window-size": 1048576,
    "default-ring-size": -1,
    "redistribution-delay": -1,
    "send-to-dla-on-no-route": False,
    "slow-consumer-threshold": -1,
    "slow-consumer-threshold-measurement-unit": SlowConsumerUnit.MESSAGES_PER_SECOND,
    "slow-consumer-check-period": 5,
    "slow-consumer-policy": SlowConsumerPolicy.NOTIFY,
    "auto-create-jms-queues": True,
    "auto-delete-jms-queues": True,
    "auto-create-jms-topics": True,
    "auto-delete-jms-topics": True,
    "auto-create-queues": True,
    "auto-delete-queues": True,
    "auto-delete-created-queues": False,
    "auto-delete-queues-delay": 0,
    "auto-delete-queues-message-count": 0,
    "auto-delete-queues-skip-usage-check": False,
    "auto-create-addresses": True,
    "auto-delete-addresses": True,
    "auto-delete-addresses-delay": 0,
    "auto-delete-addresses-skip-usage-check": False,
    "config-delete-queues": DeletionPolicy.OFF,
    "config-delete-addresses": DeletionPolicy.OFF,
    "config-delete-diverts": DeletionPolicy.OFF,
    "management-browse-page-size": 200,
    "management-message-attribute-size-limit": 256,
    "retroactive-message-count": 0,
    "id-cache-size": None,
    "initial-queue-buffer-size": 8192,
    "enable-metrics": True,
    "enable-ingress-timestamp": False,
}


def test_every_setting_has_artemis_default():
    settings = AddressSettings()

    assert {item.elements[0]: getattr(settings, item.attribute) for item in SETTINGS} == DEFAULTS
    assert settings.given == {}


def test_some_defaults_follow_others():
    settings = AddressSettings(
        redelivery_delay_ms=7, page_size_bytes=1000, max_read_page_messages=3
    )

    assert settings.max_redelivery_delay_ms == 70
    assert settings.max_read_page_bytes == settings.prefetch_page_bytes == 2000
    assert settings.prefetch_page_messages == 3
    assert AddressSettings(max_read_page_bytes=5).prefetch_page_bytes == 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("redelivery_collision_avoidance_factor", 1.5),
        ("page_size_bytes", 0),
        ("page_size_bytes", 2**31),
        ("max_read_page_bytes", 0),
        ("page_limit_messages", -2),
        ("slow_consumer_threshold", 0),
        ("slow_consumer_check_period_s", 0),
        ("auto_delete_queues_delay_ms", -1),
        ("auto_delete_queues_message_count", -2),
        ("id_cache_size", -1),
        ("initial_queue_buffer_size", 12),
    ],
)
def test_a_value_out_of_range_is_refused(name, value):
    with pytest.raises(ValueError, match="out of range"):
        AddressSettings(**{name: value})


def test_a_name_that_is_no_setting_is_refused():
    with pytest.raises(TypeError, match="no setting is called 'max_size'"):
        AddressSettings(max_size=1)


def test_settings_are_frozen_and_compare_by_what_was_given():
    settings = AddressSettings(no_expiry=False)

    assert settings == AddressSettings(no_expiry=False, expiry_address=None)
    assert settings != AddressSettings()
    assert len({settings, AddressSettings(no_expiry=False)}) == 1
    with pytest.raises(AttributeError):
        settings.no_expiry = True


def test_a_merge_fills_only_what_was_not_given():
    near = AddressSettings(dead_letter_address="near", max_size_bytes=5, no_expiry=False)
    far = AddressSettings(dead_letter_address="far", expiry_address="far", no_expiry=True)

    merged = near.merged(far, AddressSettings(expiry_address="farther", max_delivery_attempts=3))

    assert merged.dead_letter_address == "near"
    assert merged.expiry_address == "far"
    assert merged.max_delivery_attempts == 3
    assert merged.max_size_bytes == 5
    assert merged.no_expiry is False
    assert merged.page_size_bytes == 10485760


def test_the_nearest_dead_letter_address_of_three_levels():
    settings = SettingsRepository()
    settings.add("#", AddressSettings(dead_letter_address="top", max_delivery_attempts=1))
    settings.add("prefix.#", AddressSettings(dead_letter_address="middle"))
    settings.add("prefix.test", AddressSettings(max_delivery_attempts=2))

    assert settings.match("prefix.test").dead_letter_address == "middle"
    assert settings.match("prefix.test").max_delivery_attempts == 2
    assert settings.match("prefix").dead_letter_address == "middle"
    assert settings.match("other").dead_letter_address == "top"
    assert settings.match("prefix.test::queue").max_delivery_attempts == 2


def test_without_a_match_the_defaults_hold():
    settings = SettingsRepository()
    settings.add("a.#", AddressSettings(no_expiry=True))

    assert settings.match("b") == AddressSettings()


def test_looking_up_does_not_change_what_is_looked_up():
    settings = SettingsRepository()
    settings.add("foo.*", AddressSettings(max_redelivery_delay_ms=10000))
    for name, value in (("foo.0.#", 20000), ("foo.1.#", 30000)):
        settings.add(
            name, AddressSettings(max_redelivery_delay_ms=value, max_expiry_delay_ms=value)
        )

    for _ in range(2):
        assert settings.match("foo.x").max_expiry_delay_ms == -1
        assert settings.match("foo.0").max_redelivery_delay_ms == 10000
        assert settings.match("foo.0").max_expiry_delay_ms == 20000
        assert settings.match("foo.1").max_expiry_delay_ms == 30000


def test_a_look_up_is_made_once_and_again_after_a_change():
    settings = SettingsRepository()
    settings.add("#", AddressSettings(no_expiry=True))
    settings.add("a.#", AddressSettings(max_size_bytes=1))

    found = settings.match("a.b")
    assert settings.match("a.b") is found
    assert settings.match("a.c") is found

    settings.add("#", AddressSettings(no_expiry=False))
    assert settings.match("a.b").no_expiry is False
    settings.replace_all([("#", AddressSettings(expiry_address="e"))])
    assert settings.match("a.b").given == {"expiry_address": "e"}
    assert settings.remove("#")
    assert settings.match("a.b").given == {}


def test_json_has_what_was_given():
    settings = AddressSettings(
        address_full_policy=AddressFullPolicy.DROP,
        page_full_policy=PageFullPolicy.FAIL,
        max_size_bytes=100,
        redelivery_delay_multiplier=1.5,
        default_queue_routing_type=RoutingType.ANYCAST,
        no_expiry=False,
        expiry_address="exp",
    )

    assert settings.to_json() == {
        "addressFullMessagePolicy": "DROP",
        "maxSizeBytes": 100,
        "pageFullMessagePolicy": "FAIL",
        "redeliveryMultiplier": 1.5,
        "expiryAddress": "exp",
        "noExpiry": False,
        "defaultQueueRoutingType": "ANYCAST",
    }
    assert AddressSettings.from_json(settings.to_json()) == settings


def test_json_null_and_unknown_names_are_passed_over():
    found = {"maxSizeBytes": None, "ofTheFuture": 1, "noExpiry": "true", "maxSizeMessages": "7"}

    assert AddressSettings.from_json(found).given == {"no_expiry": True, "max_size_messages": 7}


@pytest.mark.parametrize(
    ("name", "value"), [("maxSizeBytes", "many"), ("noExpiry", 1), ("slowConsumerPolicy", "STOP")]
)
def test_a_wrong_value_in_json_is_named(name, value):
    with pytest.raises(ValueError, match=f"^{name}: "):
        AddressSettings.from_json({name: value})


def stored_settings(tmp_path, folder):
    """The JSON of every address setting in a folder of Artemis."""
    unpack(GOLDEN / folder / "broker.tar.gz", tmp_path)
    text = b"".join(path.read_bytes() for path in (tmp_path / "bindings").iterdir())
    start = '{"'.encode("utf-16-le")
    end = "}".encode("utf-16-le")
    for piece in text.split(start)[1:]:
        found = json.loads((start + piece.split(end)[0] + end).decode("utf-16-le"))
        if "addressFullMessagePolicy" in found:
            yield found


def test_what_artemis_stored_is_read_and_written_alike(tmp_path):
    stored = list(stored_settings(tmp_path, "broker_config"))

    assert stored
    known = {item.json_name for item in SETTINGS}
    for found in stored:
        # Artemis stored `DLA`, which it then passed over itself when it printed the record.
        expected = {name: value for name, value in found.items() if name in known}
        assert set(found) - known <= {"DLA"}
        assert AddressSettings.from_json(found).to_json() == expected
