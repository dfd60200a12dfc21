import logging
import threading

import pytest
import sqlalchemy

from jdbcstore import Database, DatabaseStoreOptions, Fault, classify
from jdbcstore.pool import PoolOptions
from journal.errors import OptionError
from journal.masking import mask


@pytest.mark.parametrize(
    ("properties", "arguments"),
    [
        ({}, {"pool_size": 8, "max_overflow": -1, "pool_timeout": None, "pool_recycle": -1}),
        ({"maxTotal": "20"}, {"pool_size": 8, "max_overflow": 12}),
        ({"maxTotal": "3"}, {"pool_size": 3, "max_overflow": 0}),
        ({"maxTotal": "20", "maxIdle": "5"}, {"pool_size": 5, "max_overflow": 15}),
        ({"maxIdle": "-1"}, {"pool_size": 0, "max_overflow": -1}),
        ({"maxIdle": "-1", "maxTotal": "4"}, {"pool_size": 4, "max_overflow": 0}),
        ({"maxIdle": "0"}, {"pool_size": 1, "max_overflow": -1}),
        ({"maxWaitMillis": "1500"}, {"pool_timeout": 1.5}),
        ({"maxConnLifetimeMillis": "60000"}, {"pool_recycle": 60}),
        ({"maxConnLifetimeMillis": "10"}, {"pool_recycle": 1}),
        ({"testOnBorrow": "FALSE"}, {"pool_pre_ping": False}),
        ({"lifo": "false"}, {"pool_use_lifo": False}),
        ({"poolPreparedStatements": "true", "validationQuery": "SELECT 1"}, {"pool_size": 8}),
        ({"maxTotal": mask("2")}, {"pool_size": 2}),
    ],
)
def test_dbcp_keys_set_up_the_pool(properties, arguments):
    made = PoolOptions.from_properties(properties).engine_arguments()

    assert made | arguments == made


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"maxTotl": "1"}, "'maxTotal'"),
        ({"maxtotal": "1"}, "'maxTotal'"),
        ({"swordfish": "1"}, "is not known$"),
        ({"maxtotl": "1"}, "did you mean 'maxTotal'"),
        ({"maxTotal": "many"}, "maxTotal"),
        ({"maxTotal": "0"}, "maxTotal"),
        ({"testOnBorrow": "perhaps"}, "testOnBorrow"),
    ],
)
def test_a_key_or_value_that_makes_no_sense_is_refused(properties, words):
    with pytest.raises(OptionError, match=words):
        PoolOptions.from_properties(properties)


@pytest.fixture
def open_database(tmp_path):
    opened = []

    def opening(**properties):
        options = DatabaseStoreOptions(
            connection_url=f"sqlite:///{tmp_path}/x.db", data_source_properties=properties
        )
        opened.append(Database(options))
        return opened[-1]

    yield opening
    for database in opened:
        database.close()


def test_the_first_statements_run_on_each_connection(open_database):
    database = open_database(connectionInitSqls="PRAGMA cache_size = 77; PRAGMA temp_store = 2")

    with database.connect() as connection:
        assert connection.execute(sqlalchemy.text("PRAGMA cache_size")).scalar_one() == 77
        assert connection.execute(sqlalchemy.text("PRAGMA temp_store")).scalar_one() == 2


def test_a_connection_that_has_ended_is_one_line_of_the_log(open_database, caplog):
    database = open_database()
    caplog.set_level(logging.INFO)
    with database.raw() as raw:
        raw.close()
    with database.raw() as raw:
        raw.cursor().execute("SELECT 1")

    (found,) = [one for one in caplog.records if one.levelno >= logging.INFO]
    assert found.getMessage().startswith("a connection to the database has ended: ")
    assert found.exc_info is None


def test_no_more_connections_than_allowed(open_database):
    database = open_database(maxTotal="2", maxWaitMillis="1")

    with database.raw(), database.raw(), pytest.raises(sqlalchemy.exc.TimeoutError):
        database.connect()


def test_a_pool_without_a_free_connection_names_the_parameter_to_raise(tmp_path):
    options = DatabaseStoreOptions(
        connection_url=f"sqlite:///{tmp_path}/a.db",
        data_source_properties={"maxTotal": "1", "maxWaitMillis": "0"},
    )
    database = Database(options)

    with (
        database.connect(),
        pytest.raises(sqlalchemy.exc.TimeoutError, match=r"raise .* maxTotal, or maxWaitMillis"),
    ):
        database.connect()

    assert classify(sqlalchemy.exc.TimeoutError(), database.dialect) is Fault.CONFLICT
    database.close()


def test_who_waits_for_a_connection_for_ever_is_told_once_which_parameter_to_raise(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr("jdbcstore.database._POOL_TIMEOUT_S", 0.01)
    options = DatabaseStoreOptions(
        connection_url=f"sqlite:///{tmp_path}/a.db", data_source_properties={"maxTotal": "1"}
    )
    database = Database(options)
    is_told, waits = threading.Event(), []

    def take():
        with database.connect():
            waits.append("served")

    held = database.connect()
    waiting = threading.Thread(target=take)
    taken = database.engine.pool._do_get
    rounds = []

    def counted():
        rounds.append(1)
        if len(rounds) > 3:
            is_told.set()
        return taken()

    monkeypatch.setattr(database.engine.pool, "_do_get", counted)
    waiting.start()
    assert is_told.wait(60)
    held.close()
    waiting.join(60)

    assert waits == ["served"]
    assert len([one for one in caplog.messages if "maxTotal" in one]) == 1
    database.close()
