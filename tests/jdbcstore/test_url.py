import pytest

from jdbcstore import DatabaseStoreOptions, sqlalchemy_url
from jdbcstore.url import connection_url
from journal.errors import OptionError
from journal.masking import mask


def shown(url):
    return url.render_as_string(hide_password=False)


@pytest.mark.parametrize(
    ("jdbc", "url"),
    [
        ("postgresql://db/artemis", "postgresql+psycopg://db:5432/artemis"),
        ("postgresql://db:5433/artemis", "postgresql+psycopg://db:5433/artemis"),
        ("postgresql://[::1]:5433/artemis", "postgresql+psycopg://[::1]:5433/artemis"),
        ("postgresql:artemis", "postgresql+psycopg://localhost:5432/artemis"),
        ("postgresql://db/?user=me", "postgresql+psycopg://me@db:5432/me"),
        (
            "postgresql://a:1,b,c:3/x?loadBalanceHosts=true",
            "postgresql+psycopg:///x?host=a%3A1&host=b%3A5432&host=c%3A3&load_balance_hosts=random",
        ),
        (
            "postgresql://db/x?user=me&password=p%26q&ssl=true&sslrootcert=%2Fca.pem",
            "postgresql+psycopg://me:p%26q@db:5432/x?sslmode=verify-full&sslrootcert=%2Fca.pem",
        ),
        (
            "postgresql://db/x?currentSchema=a,b&connectTimeout=3",
            "postgresql+psycopg://db:5432/x?connect_timeout=3&options=-c+search_path%3Da%2Cb",
        ),
        ("mysql://db/artemis", "mysql+pymysql://db:3306/artemis"),
        (
            "mysql://db:3307/a?user=me&useSSL=false&autoReconnect=true",
            "mysql+pymysql://me@db:3307/a?ssl_disabled=true",
        ),
        (
            "mysql://me:secret@db/a?sslMode=VERIFY_CA&serverSslCert=/ca.pem",
            "mysql+pymysql://me:secret@db:3306/a?ssl_ca=%2Fca.pem&ssl_verify_cert=true",
        ),
        ("mariadb://db/a?connectTimeout=1500", "mariadb+pymysql://db:3306/a?connect_timeout=2"),
        ("oracle:thin:@db:1521:XE", "oracle+oracledb://db:1521/XE"),
        ("oracle:thin:@//db:1522/orders", "oracle+oracledb://db:1522?service_name=orders"),
        ("oracle:thin:me/pw@db/orders", "oracle+oracledb://me:pw@db:1521?service_name=orders"),
        ("db2://db:50001/SAMPLE", "db2+ibm_db://db:50001/SAMPLE"),
        (
            "db2://db/SAMPLE:user=me;password=pw;sslConnection=true;",
            "db2+ibm_db://me:pw@db:50000/SAMPLE?Security=SSL",
        ),
        ("sqlserver://db;databaseName=a", "mssql+mssqlpython://db:1433/a"),
        (
            "sqlserver://db:1434;database=a;user=me;password={p;}}q};encrypt=false",
            "mssql+mssqlpython://me:p%3B%7Dq@db:1434/a?Encrypt=no",
        ),
        (r"sqlserver://db\inst;databaseName=a", r"mssql+mssqlpython://db\inst/a"),
        (r"sqlserver://db\inst:99;databaseName=a", "mssql+mssqlpython://db:99/a"),
        ("sqlserver://;serverName=db;portNumber=7;database=a", "mssql+mssqlpython://db:7/a"),
        ("jtds:sqlserver://db/a;user=me", "mssql+mssqlpython://me@db:1433/a"),
        ("derby:data/x;create=true", "derby+embedded:///data/x?create=true"),
        ("derby:/abs/x;user=me;password=pw", "derby+embedded://me:pw@//abs/x"),
        ("derby:directory:x", "derby+embedded:///x"),
        ("derby://db:1528/x;create=true", "derby+network://db:1528/x?create=true"),
        ("sqlite:/data/x.db", "sqlite+pysqlite:////data/x.db"),
    ],
)
def test_jdbc_urls_of_every_vendor_are_understood(jdbc, url):
    assert shown(sqlalchemy_url(f"jdbc:{jdbc}")) == url


def test_an_oracle_description_goes_through_as_it_is():
    description = "(DESCRIPTION=(ADDRESS=(PROTOCOL=TCP)(HOST=h)(PORT=1))(CONNECT_DATA=(SID=x)))"

    assert sqlalchemy_url(f"jdbc:oracle:thin:@{description}").host == description


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("postgresql://db/x", "postgresql+psycopg://db/x"),
        ("postgresql+psycopg2://db/x", "postgresql+psycopg2://db/x"),
        ("mysql://db/x", "mysql+pymysql://db/x"),
        ("oracle://db/x", "oracle+oracledb://db/x"),
        ("mssql://db/x", "mssql+mssqlpython://db/x"),
        ("derby:///x", "derby+embedded:///x"),
        ("sqlite:///x.db", "sqlite+pysqlite:///x.db"),
    ],
)
def test_sqlalchemy_urls_get_our_driver_unless_they_name_one(text, url):
    assert shown(sqlalchemy_url(text)) == url


@pytest.mark.parametrize(
    "text",
    [
        "jdbc:",
        "jdbc:postgres",
        "jdbc:postgersql://db/x",
        "jdbc:postgresql://db/x?sslmod=require&password=swordfish",
        "jdbc:postgresql://db:port/x",
        "jdbc:postgresql://db/x?targetServerType=best",
        "jdbc:mysql:x",
        "jdbc:mysql://a,b/x",
        "jdbc:mysql://db/x?useSSL=perhaps",
        "jdbc:mysql://db/x?sslMode=strong",
        "jdbc:mysql://db/x?connectTimeout=soon",
        "jdbc:oracle:oci:@x",
        "jdbc:oracle:thin:x",
        "jdbc:db2:SAMPLE",
        "jdbc:db2://db/SAMPLE:securityMechanism=99;",
        "jdbc:sqlserver:db",
        "jdbc:sqlserver://db;=x",
        "jdbc:derby:",
        "jdbc:derby:memory:x",
        "jdbc:derby://db",
        "jdbc:derby:x;creat=true",
        "no url",
        "jdbc:postgresql://me:swordfish@db/x",
        "postgresql://swordfish@db:x:y/z",
    ],
)
def test_what_is_not_understood_is_refused_in_one_line(text):
    with pytest.raises(OptionError) as caught:
        sqlalchemy_url(text)

    assert "\n" not in str(caught.value)
    assert "swordfish" not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("targetServerType=preferSecondary", {"target_session_attrs": "prefer-standby"}),
        ("ApplicationName=n", {"application_name": "n"}),
        ("ssl=false", {}),
        ("tcpKeepAlive=true", {"keepalives": "1"}),
    ],
)
def test_properties_of_postgresql_become_libpqs(asked, answer):
    assert sqlalchemy_url(f"jdbc:postgresql://db/x?{asked}").query == answer


def test_verify_identity_checks_the_certificate_too():
    url = sqlalchemy_url("jdbc:mysql://db/x?sslMode=VERIFY_IDENTITY")

    assert url.query == {"ssl_verify_cert": "true", "ssl_verify_identity": "true"}


def test_an_unknown_property_names_the_nearest():
    with pytest.raises(OptionError, match="'sslmode'"):
        sqlalchemy_url("jdbc:postgresql://db/x?sslmod=require")


def test_a_name_that_is_near_none_gets_no_hint():
    with pytest.raises(OptionError, match=r"'xyzzy' that is known here$"):
        sqlalchemy_url("jdbc:postgresql://db/x?xyzzy=1")
    with pytest.raises(OptionError, match="called 'xyzzy'; known are db2, derby,"):
        sqlalchemy_url("jdbc:xyzzy://db/x")


def options(**changes):
    given = {"connection_url": "jdbc:postgresql://db/x?user=him&password=no"} | changes
    return DatabaseStoreOptions(**given)


def test_user_and_password_of_their_own_win_over_the_urls():
    url = connection_url(options(user="her", password="swordfish"))

    assert (url.username, url.password) == ("her", "swordfish")


def test_every_secret_may_be_masked():
    url = connection_url(
        options(
            connection_url=mask("jdbc:postgresql://db/x"),
            user=mask("her"),
            password=mask("swordfish"),
        )
    )

    assert shown(url) == "postgresql+psycopg://her:swordfish@db:5432/x"


def test_the_pools_own_words_win():
    properties = {
        "url": "jdbc:mysql://db/x",
        "username": "pool",
        "password": mask("swordfish"),
        "driverClassName": "com.mysql.cj.jdbc.Driver",
    }

    url = connection_url(options(user="her", data_source_properties=properties))

    assert shown(url) == "mysql+pymysql://pool:swordfish@db:3306/x"


@pytest.mark.parametrize(
    ("driver", "url"),
    [
        ("org.apache.derby.jdbc.EmbeddedDriver", "jdbc:derby:x;create=true"),
        ("org.apache.derby.jdbc.ClientDriver", "jdbc:derby://db/x"),
        ("org.postgresql.Driver", "postgresql://db/x"),
        ("com.mysql.jdbc.Driver", "jdbc:mariadb://db/x"),
        ("org.mariadb.jdbc.Driver", "jdbc:mysql://db/x"),
        ("oracle.jdbc.driver.OracleDriver", "jdbc:oracle:thin:@db:1:x"),
        ("com.ibm.db2.jcc.DB2Driver", "jdbc:db2://db/x"),
        ("com.microsoft.sqlserver.jdbc.SQLServerDriver", "jdbc:sqlserver://db"),
        ("org.sqlite.JDBC", "sqlite:///x"),
    ],
)
def test_a_driver_class_fits_its_urls(driver, url):
    connection_url(options(driver_class_name=driver, connection_url=url))


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        ("org.apache.derby.jdbc.EmbeddedDriver", "does not fit"),
        ("org.postgresql.Drive", "'org.postgresql.Driver'"),
    ],
)
def test_a_driver_class_that_does_not_fit_is_refused(driver, words):
    with pytest.raises(OptionError, match=words):
        connection_url(options(driver_class_name=driver))


def test_no_url_at_all_is_refused():
    with pytest.raises(OptionError, match="missing"):
        connection_url(options(connection_url=""))


@pytest.mark.parametrize("changes", [{"user": "me"}, {"password": "secret"}])
def test_a_user_of_sqlite_is_refused_in_one_line(changes):
    with pytest.raises(OptionError, match="SQLite has no users: leave jdbc-user") as refused:
        connection_url(options(connection_url="sqlite:///a.db", **changes))

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite://me:pw@/a.db", "SQLite has no users"),
        ("sqlite:///a.db?user=me", "SQLite has no users"),
        ("sqlite://a.db", "SQLite has no host: 'a.db'"),
    ],
)
def test_a_sqlite_url_has_a_path_alone(url, words):
    with pytest.raises(OptionError, match=words):
        connection_url(options(connection_url=url))
