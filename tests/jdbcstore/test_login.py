"""What no waiting would mend, such as a wrong password, is one clear error at once."""

import pytest
import sqlalchemy

from jdbcstore import Database, DatabaseStoreOptions, Fault, classify, sqlalchemy_url
from jdbcstore.blobs import SqlFiles
from jdbcstore.store import SqlStore
from journal.errors import JournalIOError

# A client that retried would wait for ten minutes, and for ever for the lease.
RIDE_OUT_MS = 600_000
MAKE_USER = {
    "postgresql": "CREATE ROLE guarded LOGIN PASSWORD 'right'",
    "mysql": "CREATE USER IF NOT EXISTS guarded@'127.0.0.1' IDENTIFIED BY 'right'",
}
GRANT = {
    "postgresql": "GRANT ALL ON SCHEMA public TO guarded",
    "mysql": "GRANT ALL ON *.* TO guarded@'127.0.0.1'",
}


def opens(url):
    """Whether one can log in so."""
    database = Database(
        DatabaseStoreOptions(connection_url=url.render_as_string(hide_password=False))
    )
    try:
        database.connect().close()
    except sqlalchemy.exc.DBAPIError:
        return False
    else:
        return True
    finally:
        database.close()


@pytest.fixture
def guarded_url(database, request):
    """The database's URL for a user who has a password, which is `right`."""
    opened = Database(DatabaseStoreOptions(connection_url=database.url))
    kind = opened.dialect.name
    with opened.connect() as connection:
        try:
            connection.exec_driver_sql(MAKE_USER[kind])
        except sqlalchemy.exc.DBAPIError as error:
            if "exists" not in str(error):  # Of an earlier test on this server.
                raise
            connection.rollback()
        connection.exec_driver_sql(GRANT[kind])
        connection.commit()
    opened.close()
    url = sqlalchemy_url(database.url).set(username="guarded", password="right")
    # Ours asks him; one that was given may trust everybody.
    if request.config.getoption("--database-url") and opens(url.set(password="wrong")):
        pytest.skip("the given server takes any password")
    return url


def refused(url):
    """How a store, files, and the engine take this URL: the error of the store."""
    text = url.render_as_string(hide_password=False)
    options = DatabaseStoreOptions(connection_url=text, ride_out_ms=RIDE_OUT_MS)
    database = Database(options)
    with pytest.raises(sqlalchemy.exc.DBAPIError) as caught:
        database.connect()
    assert classify(caught.value, database.dialect) is Fault.FATAL
    with pytest.raises(JournalIOError):
        SqlFiles(database, "LARGE_MESSAGES").start()
    database.close()
    with pytest.raises(JournalIOError) as failure:
        SqlStore(options).open()
    return str(failure.value)


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_the_right_password_opens(guarded_url):
    text = guarded_url.render_as_string(hide_password=False)

    with SqlStore(DatabaseStoreOptions(connection_url=text)) as store:
        store.load()


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_a_wrong_password_is_refused_at_once(guarded_url):
    said = refused(guarded_url.set(password="wrong"))

    assert "guarded" in said
    assert "wrong" not in said
    assert "\n" not in said


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_an_unknown_user_is_refused_at_once(database):
    assert "nosuch" in refused(sqlalchemy_url(database.url).set(username="nosuch", password="x"))


@pytest.mark.parametrize("database", ["postgresql", "mariadb", "derby"], indirect=True)
def test_an_unknown_database_is_refused_at_once(database):
    assert "nosuch" in refused(sqlalchemy_url(database.url).set(database="nosuch", query={}))
