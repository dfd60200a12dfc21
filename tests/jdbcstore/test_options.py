from collections.abc import Mapping
from typing import get_type_hints

import pytest

from jdbcstore import DatabaseStoreOptions
from jdbcstore.options import DatabaseStoreChanges
from journal.errors import OptionError

URL = "sqlite:///unused"


def options(**changes):
    return DatabaseStoreOptions(connection_url=URL, **changes)


def test_defaults_are_artemis():
    given = options()

    assert (given.bindings_table_name, given.message_table_name) == ("BINDINGS", "MESSAGES")
    assert given.large_message_table_name == "LARGE_MESSAGES"
    assert given.page_store_table_name == "PAGE_STORE"
    assert given.node_manager_store_table_name == "NODE_MANAGER_STORE"
    assert (given.network_timeout_ms, given.lock_expiration_ms) == (20_000, 20_000)
    assert (given.lock_renew_period_ms, given.lock_acquisition_timeout_ms) == (4_000, -1)
    assert (given.journal_sync_period_ms, given.allowed_time_diff_ms) == (5, 250)
    assert given.max_page_size_bytes == 102_400


@pytest.mark.parametrize(
    ("changes", "element"),
    [
        ({"message_table_name": "x; drop table y"}, "message-table-name"),
        ({"message_table_name": 'a"b'}, "message-table-name"),
        ({"message_table_name": ""}, "message-table-name"),
        ({"message_table_name": "1st"}, "message-table-name"),
        ({"message_table_name": "x" * 64}, "message-table-name"),
        ({"message_table_name": "MESSAGES\n"}, "message-table-name"),
        ({"message_table_name": "NACHRÍCHT"}, "message-table-name"),
        ({"page_store_table_name": "PAGE_STORE1"}, "page-store-table-name"),
        ({"network_timeout_ms": -2}, "jdbc-network-timeout"),
        ({"lock_expiration_ms": 0}, "jdbc-lock-expiration"),
        ({"lock_renew_period_ms": 20_000}, "jdbc-lock-renew-period"),
        ({"journal_sync_period_ms": -1}, "jdbc-journal-sync-period"),
        ({"allowed_time_diff_ms": True}, "jdbc-allowed-time-diff"),
        ({"max_page_size_bytes": 0}, "jdbc-max-page-size-bytes"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_the_element(changes, element):
    with pytest.raises(OptionError, match=element) as caught:
        options(**changes)

    assert "\n" not in str(caught.value)


def test_elements_become_options():
    given = DatabaseStoreOptions.from_elements(
        {
            "jdbc-connection-url": " sqlite:///a ",
            "jdbc-user": "me",
            "jdbc-lock-expiration": "30000",
            "jdbc-max-page-size-bytes": "1M",
            "page-store-table-name": "PAGES",
        }
    )

    assert given.connection_url == "sqlite:///a"
    assert (given.user, given.lock_expiration_ms) == ("me", 30_000)
    assert (given.max_page_size_bytes, given.page_store_table_name) == (1 << 20, "PAGES")


@pytest.mark.parametrize(
    "elements",
    [
        {"jdbc-user": "me"},
        {"jdbc-connection-url": URL, "jdbc-network-timeout": "soon"},
        {"jdbc-connection-url": URL, "jdbc-connection-uri": URL},
    ],
)
def test_elements_that_make_no_sense_are_refused(elements):
    with pytest.raises(OptionError):
        DatabaseStoreOptions.from_elements(elements)


def test_secrets_are_not_shown():
    shown = repr(options(user="me", password="swordfish", data_source_properties={"password": "x"}))

    assert "swordfish" not in shown
    assert "sqlite" not in shown


def test_an_unknown_change_is_refused():
    with pytest.raises(OptionError):
        options().replace(nonsense=1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bindings_table_name": "messages"}, "message-table-name is 'MESSAGES', as bindings-"),
        ({"large_message_table_name": "PAGE_STORE"}, "page-store-table-name is 'PAGE_STORE', as l"),
        ({"message_table_name": "page_store17"}, "as a table of pages may be called"),
    ],
)
def test_two_tables_of_one_name_are_refused(changes, said):
    with pytest.raises(OptionError, match=said):
        options(**changes).check_tables()


def test_tables_with_names_of_their_own_are_taken():
    options(message_table_name="PAGE_STORE_M1", bindings_table_name="b17").check_tables()


def test_type_checkers_see_the_same_options():
    names = {"Mapping": Mapping}

    assert get_type_hints(DatabaseStoreChanges, localns=names) == get_type_hints(
        DatabaseStoreOptions, localns=names
    )
