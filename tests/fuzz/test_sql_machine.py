"""A store in a table against plain lists and dicts: the machine of the file journal, over SQL."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.store import SqlStore
from tests.crash.model import open_and_load
from tests.fuzz.test_journal_machine import JournalMachine
from tests.jdbcstore.reading import read_table_view


def agree(view, expected):
    """Whether two views are the same: records in order, transactions in any.

    A transaction's rows are written together, when it is prepared or at a close, so those that came
    first may stand behind those that were prepared first.
    """
    (records, *ours), (should_records, *theirs) = view, expected
    return records == should_records and list(map(sorted, ours)) == list(map(sorted, theirs))


class SqlMachine(JournalMachine):
    """Every rule but those about files. Each example has a table of its own."""

    url = ""
    tables = 0

    @initialize(sync_period_ms=st.sampled_from([0, 5]))
    def start(self, sync_period_ms):
        type(self).tables += 1
        self.options = DatabaseStoreOptions(
            connection_url=self.url,
            message_table_name=f"M{self.tables}",
            node_manager_store_table_name=f"N{self.tables}",
            journal_sync_period_ms=sync_period_ms,
        )
        self.open()

    def open(self):
        self.journal = SqlStore(self.options)
        view, _ = open_and_load(self.journal)
        assert agree(view, self.model.view())
        self.model.reopen()
        self.busy = {tx: ids for tx, ids in self.busy.items() if tx in self.model.open}

    def stored(self):
        return read_table_view(self.url, self.options.message_table_name)

    @rule()
    def reclaim(self):
        """Files only."""

    @rule()
    def crash_after_sync(self):
        """The table as it is now: what is open in memory would be gone."""
        self.journal.sync()
        # What open transactions hold is written when they are ended, or at the latest at a close.
        assert agree(self.stored()[:2], self.model.view()[:2])

    def teardown(self):
        if self.journal is not None:
            self.calls.close(self.journal)
            assert agree(self.stored(), self.model.view())
        self.place.cleanup()


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql", "mariadb"], indirect=True)
def test_a_store_behaves_as_its_model(database, effort):
    """10,000 operations at full length: 200 examples of 50 steps."""

    class Machine(SqlMachine):
        url = database.url

    Machine.ran = Counter()
    full = 200
    Machine.TestCase.settings = settings(
        max_examples=effort(full, least=4),
        derandomize=effort(full) != full,
        stateful_step_count=50,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    Machine.TestCase("runTest").runTest()
