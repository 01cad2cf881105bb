"""psycopg 3, synchronous, as its manual uses it. libpq reads the connection from PG* variables."""

import threading

import psycopg
from psycopg import errors, sql

from checks import (FIRST, ORDER_1, ORDERS, ORDERS_FIRST, ORDERS_NOW, ORDERS_SECOND, PLANS,
                    READINGS_FIRST, READINGS_NOW, READINGS_SECOND, SECOND, at_least, check,
                    contains, equal, run_checks)


def connect(**options):
    return psycopg.connect(autocommit=True, **options)


def expect(error_class, call):
    """The error that the call must raise."""
    try:
        call()
    except error_class as error:
        return error
    raise AssertionError(f"no {error_class.__name__}")


@check("connect")
def check_connect():
    with connect(channel_binding="prefer", require_auth="scram-sha-256") as session:
        equal(session.pgconn.ssl_in_use, True)
        equal(session.execute("SELECT current_user, current_database()").fetchone(),
              ("reader", "shop"))
    # Protocol 3.2, where the store's server has it; an older one negotiates down to 3.0.
    with connect(max_protocol_version="latest") as session:
        equal(session.execute(ORDERS).fetchone(), ORDERS_NOW)


@check("direct TLS")
def check_direct_tls():
    with connect(sslnegotiation="direct") as session:
        equal(session.pgconn.ssl_in_use, True)
        equal(session.execute(ORDERS).fetchone(), ORDERS_NOW)


@check("refused")
def check_refused():
    # libpq tells no SQLSTATE of a refused connection.
    refusal = expect(psycopg.OperationalError, lambda: connect(password="wrong"))
    contains(str(refusal), "password authentication failed")
    with connect() as session:
        for write in ("DELETE FROM orders", "CREATE TABLE t ()"):
            expect(errors.ReadOnlySqlTransaction, lambda: session.execute(write))
        equal(session.execute(ORDERS).fetchone(), ORDERS_NOW)


@check("reflect")
def check_reflect():
    with connect() as session:
        columns = session.execute(
            """SELECT column_name, data_type, is_nullable FROM information_schema.columns
               WHERE table_schema = 'public' AND table_name = 'order_lines'
               ORDER BY ordinal_position""").fetchall()
        equal(columns, [("order_id", "bigint", "NO"), ("line", "integer", "NO"),
                        ("sku", "text", "NO"), ("quantity", "integer", "NO")])
        keys = session.execute(
            """SELECT pg_get_constraintdef(oid) FROM pg_constraint
               WHERE conrelid = 'orders'::regclass AND contype IN ('p', 'f')
               ORDER BY contype DESC""").fetchall()
        equal(keys[0], ("PRIMARY KEY (id)",))
        contains(keys[1][0], "(region, number) REFERENCES customers(region, number)")
        result = session.execute("SELECT * FROM orders LIMIT 0")
        equal([column.name for column in result.description], list(ORDER_1))


@check("query")
def check_query():
    with connect() as session:
        for binary in (False, True):
            cursor = session.cursor(row_factory=psycopg.rows.dict_row, binary=binary)
            row = cursor.execute("SELECT * FROM orders FOR SYSTEM_TIME AS OF %s WHERE id = %s",
                                 [FIRST, 1]).fetchone()
            if binary:  # an enum that the driver was not told of comes as bytes
                row["state"] = row["state"].decode()
            equal(row, ORDER_1)
        changed = session.execute(
            sql.SQL("""SELECT o.id, before.total, o.total FROM orders o
                       JOIN orders FOR SYSTEM_TIME AS OF {} before USING (id)
                       WHERE o.total <> before.total ORDER BY id""").format(FIRST)).fetchall()
        equal([(key, str(old), str(new)) for key, old, new in changed],
              [(1, "10.00", "0.00"), (2, "20.00", "120.00")])


@check("mistake")
def check_mistake():
    text = "SELECT 'ü', * FROM pg_class FOR SYSTEM_TIME AS OF now()"
    with connect() as session, session.transaction():
        def refused():
            with session.transaction():  # a savepoint
                session.execute(text)
        error = expect(errors.WrongObjectType, refused)
        contains(error.diag.message_primary, '"pg_class" is not system-versioned')
        equal(text[int(error.diag.statement_position) - 1:].split()[0] in ("pg_class", "FOR"), True)
        equal(session.execute(ORDERS).fetchone(), ORDERS_NOW)


def alternate(session, times=10):
    """Asks for both instants in turn; the driver prepares the statement at its fifth execution."""
    for turn in range(times):
        instant, expected = ((FIRST, ORDERS_FIRST), (SECOND, ORDERS_SECOND))[turn % 2]
        equal(session.execute(ORDERS + " FOR SYSTEM_TIME AS OF %s", [instant]).fetchone(), expected)


@check("prepared")
def check_prepared():
    with connect() as session:
        alternate(session)
        at_least(sum(session.execute(PLANS).fetchone()), 5)
        with session.pipeline():
            answers = [session.execute(ORDERS + " FOR SYSTEM_TIME AS OF %s", [instant])
                       for instant in (FIRST, SECOND) * 5]
            equal([answer.fetchone() for answer in answers], [ORDERS_FIRST, ORDERS_SECOND] * 5)


@check("generic plan")
def check_generic_plan():
    with connect(options="-c plan_cache_mode=force_generic_plan") as session:
        session.prepare_threshold = 0
        alternate(session)
        at_least(session.execute(PLANS).fetchone()[0], 9)


@check("cursor")
def check_cursor():
    with connect() as session, session.transaction():
        with session.cursor("pages", scrollable=True) as cursor:
            cursor.execute("SELECT id FROM readings FOR SYSTEM_TIME AS OF %s ORDER BY id", [FIRST])
            found = []
            while page := cursor.fetchmany(700):
                found += [key for key, in page]
            equal(found, list(range(1, READINGS_FIRST + 1)))
            cursor.scroll(0, "absolute")
            equal(cursor.fetchone(), (1,))


def copied(session, statement, parameters=None):
    with session.cursor() as cursor, cursor.copy(statement, parameters) as copy:
        return len(list(copy.rows()))


@check("copy")
def check_copy():
    with connect() as session:
        equal(copied(session, "COPY readings TO STDOUT"), READINGS_NOW)
        equal(copied(session, "COPY (SELECT * FROM readings FOR SYSTEM_TIME AS OF %s) TO STDOUT",
                     [FIRST]), READINGS_FIRST)
        with session.cursor().copy(sql.SQL("""COPY (SELECT id, value FROM readings
                FOR SYSTEM_TIME AS OF {}) TO STDOUT (FORMAT binary)""").format(SECOND)) as copy:
            copy.set_types(["int4", "float8"])
            equal(sum(value for _, value in copy.rows()),
                  sum(range(1, READINGS_SECOND + 1)) / 4)


@check("cancel")
def check_cancel():
    for version in ("3.0", "latest"):
        with connect(max_protocol_version=version) as session:
            for cancel in (session.cancel_safe, session.cancel):  # over TLS, and in the clear
                later = threading.Timer(0.3, cancel)
                later.start()
                expect(errors.QueryCanceled, lambda: session.execute("SELECT pg_sleep(60)"))
                later.join()
                equal(session.execute(ORDERS).fetchone(), ORDERS_NOW)


def pin(session, instant, local=False):
    session.execute("SELECT set_config('tidemark.as_of', %s, %s)", [instant.isoformat(), local])


@check("pin")
def check_pin():
    with connect() as session:
        session.execute(f"SET tidemark.as_of = '{FIRST}'")
        equal(session.execute(ORDERS).fetchone(), ORDERS_FIRST)
        equal(copied(session, "COPY readings TO STDOUT"), READINGS_FIRST)
        # A clause goes before the pin.
        equal(session.execute(ORDERS + " FOR SYSTEM_TIME AS OF %s", [SECOND]).fetchone(),
              ORDERS_SECOND)
        with session.transaction(force_rollback=True):
            pin(session, SECOND)
            equal(session.execute(ORDERS).fetchone(), ORDERS_SECOND)
        equal(session.execute(ORDERS).fetchone(), ORDERS_FIRST)
        with session.transaction():
            pin(session, SECOND, local=True)
            equal(session.execute(ORDERS).fetchone(), ORDERS_SECOND)
        equal(session.execute(ORDERS).fetchone(), ORDERS_FIRST)
        session.execute("RESET tidemark.as_of")
        equal(session.execute(ORDERS).fetchone(), ORDERS_NOW)


@check("pin prepared")
def check_pin_prepared():
    with connect() as session:
        for instant, expected in ((None, ORDERS_NOW), (FIRST, ORDERS_FIRST),
                                  (SECOND, ORDERS_SECOND), (None, ORDERS_NOW)):
            if instant is None:
                session.execute("RESET tidemark.as_of")
            else:
                pin(session, instant)
            for _ in range(8):
                equal(session.execute(ORDERS + " WHERE id > %s", [0]).fetchone(), expected)


@check("pin cursor")
def check_pin_cursor():
    with connect() as session, session.transaction():
        pin(session, FIRST)
        with session.cursor("pinned") as cursor:
            cursor.execute("SELECT id FROM readings")
            equal(len(cursor.fetchmany(100)), 100)
            pin(session, SECOND)
            equal(session.execute("SELECT count(*) FROM readings").fetchone(), (READINGS_SECOND,))
            equal(len(cursor.fetchall()), READINGS_FIRST - 100)


@check("pin at start-up")
def check_pin_at_start_up():
    spaced = str(FIRST).replace(" ", "\\ ")
    with connect(options=f"-c tidemark.as_of={spaced}") as session:
        equal(session.execute(ORDERS).fetchone(), ORDERS_FIRST)
        pin(session, SECOND)
        equal(session.execute(ORDERS).fetchone(), ORDERS_SECOND)
        session.execute("RESET tidemark.as_of")  # to what the session began with
        equal(session.execute(ORDERS).fetchone(), ORDERS_FIRST)


run_checks()
