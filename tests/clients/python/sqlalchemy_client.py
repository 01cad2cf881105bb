"""SQLAlchemy with psycopg: its reflection, its pool, and clauses in text and in a selectable."""

import threading

import sqlalchemy as sa
from sqlalchemy import exc

from checks import (FIRST, ORDER_1, ORDERS, ORDERS_FIRST, ORDERS_NOW, ORDERS_SECOND, PLANS,
                    READINGS_FIRST, READINGS_NOW, READINGS_SECOND, SECOND, at_least, check,
                    contains, equal, run_checks)

AS_OF = sa.text(ORDERS + " FOR SYSTEM_TIME AS OF :instant")


def make_engine(**options):
    """libpq reads the rest of the connection from PG* variables."""
    return sa.create_engine("postgresql+psycopg://", connect_args=options, pool_size=1,
                            max_overflow=0)


engine = make_engine()


def expect(code, call):
    try:
        call()
    except exc.DBAPIError as error:
        equal(error.orig.sqlstate, code)
        return error
    raise AssertionError(f"no {code}")


def orders(session):
    return tuple(session.execute(sa.text(ORDERS)).one())


@check("connect")
def check_connect():
    with engine.connect() as session:
        equal(session.connection.driver_connection.pgconn.ssl_in_use, True)
        equal(tuple(session.execute(sa.text("SELECT current_user, current_database()")).one()),
              ("reader", "shop"))


@check("direct TLS")
def check_direct_tls():
    with make_engine(sslnegotiation="direct").connect() as session:
        equal(orders(session), ORDERS_NOW)


@check("refused")
def check_refused():
    try:
        make_engine(password="wrong").connect()
    except exc.OperationalError as error:
        contains(str(error), "password authentication failed")
    else:
        raise AssertionError("a wrong password was accepted")
    with engine.connect() as session:
        orders_table = sa.Table("orders", sa.MetaData(), autoload_with=session)
        expect("25006", lambda: session.execute(orders_table.delete()))
        session.rollback()
        equal(orders(session), ORDERS_NOW)


@check("reflect")
def check_reflect():
    inspector = sa.inspect(engine)
    equal(sorted(inspector.get_table_names()), ["customers", "order_lines", "orders", "readings"])
    equal(inspector.get_pk_constraint("order_lines")["constrained_columns"], ["order_id", "line"])
    equal(inspector.get_pk_constraint("customers")["constrained_columns"], ["region", "number"])
    key, = inspector.get_foreign_keys("orders")
    equal([key["constrained_columns"], key["referred_table"], key["referred_columns"]],
          [["region", "number"], "customers", ["region", "number"]])
    key, = inspector.get_foreign_keys("order_lines")
    equal([key["constrained_columns"], key["referred_table"]], [["order_id"], "orders"])
    equal(inspector.get_table_comment("customers")["text"], "who buys")
    metadata = sa.MetaData()
    metadata.reflect(engine)
    table = metadata.tables["orders"]
    equal([type(column.type).__name__ for column in table.columns],
          ["BIGINT", "TEXT", "INTEGER", "ENUM", "NUMERIC", "TIMESTAMP", "ARRAY", "JSONB", "BYTEA"])
    equal((table.c.total.type.precision, table.c.total.type.scale), (12, 2))
    equal(table.c.placed_at.type.timezone, True)
    equal(table.c.state.type.enums, ["new", "paid", "shipped"])
    equal([column.name for column in table.columns if column.nullable], ["seal"])


@check("query")
def check_query():
    metadata = sa.MetaData()
    now = sa.Table("orders", metadata, autoload_with=engine)
    # The clause goes between the table's name and its alias, so a selectable can carry it.
    before = sa.text("SELECT * FROM orders FOR SYSTEM_TIME AS OF :instant").bindparams(
        instant=FIRST).columns(*now.columns).subquery("before")
    with engine.connect() as session:
        row = session.execute(sa.select(before).where(before.c.id == 1)).mappings().one()
        equal(dict(row), ORDER_1)
        changed = session.execute(
            sa.select(now.c.id).join(before, before.c.id == now.c.id)
            .where(now.c.total != before.c.total).order_by(now.c.id)).scalars().all()
        equal(changed, [1, 2])


@check("mistake")
def check_mistake():
    with engine.connect() as session:
        def refused():
            with session.begin_nested():
                session.execute(sa.text("SELECT * FROM pg_class FOR SYSTEM_TIME AS OF now()"))
        error = expect("42809", refused)
        contains(str(error.orig), '"pg_class" is not system-versioned')
        equal(orders(session), ORDERS_NOW)


def alternate(session):
    for _ in range(5):
        equal(tuple(session.execute(AS_OF, {"instant": FIRST}).one()), ORDERS_FIRST)
        equal(tuple(session.execute(AS_OF, {"instant": SECOND}).one()), ORDERS_SECOND)


@check("prepared")
def check_prepared():
    with engine.connect() as session:
        alternate(session)
        at_least(sum(session.execute(sa.text(PLANS)).one()), 5)


@check("generic plan")
def check_generic_plan():
    forced = make_engine(options="-c plan_cache_mode=force_generic_plan", prepare_threshold=0)
    with forced.connect() as session:
        alternate(session)
        at_least(session.execute(sa.text(PLANS)).one()[0], 9)


@check("cursor")
def check_cursor():
    with engine.connect() as session:
        rows = session.execution_options(yield_per=700).execute(
            sa.text("SELECT id FROM readings FOR SYSTEM_TIME AS OF :instant ORDER BY id"),
            {"instant": FIRST})
        equal(rows.context._is_server_side, True)
        equal(list(rows.scalars()), list(range(1, READINGS_FIRST + 1)))


def copied(session, statement):
    with session.connection.cursor() as cursor, cursor.copy(statement) as copy:
        return len(list(copy.rows()))


@check("copy")
def check_copy():
    with engine.connect() as session:
        equal(copied(session, "COPY readings TO STDOUT"), READINGS_NOW)
        equal(copied(session, f"COPY (SELECT * FROM readings FOR SYSTEM_TIME AS OF '{SECOND}') "
                              "TO STDOUT"), READINGS_SECOND)


@check("cancel")
def check_cancel():
    with engine.connect() as session:
        later = threading.Timer(0.3, session.connection.driver_connection.cancel_safe)
        later.start()
        expect("57014", lambda: session.execute(sa.text("SELECT pg_sleep(60)")))
        later.join()
        session.rollback()
        equal(orders(session), ORDERS_NOW)


def pin(session, instant, local=False):
    session.execute(sa.select(sa.func.set_config("tidemark.as_of", instant.isoformat(), local)))


@check("pin")
def check_pin():
    pinned = make_engine()
    with pinned.connect() as session:
        pin(session, FIRST)
        session.commit()
        equal(orders(session), ORDERS_FIRST)
        equal(tuple(session.execute(AS_OF, {"instant": SECOND}).one()), ORDERS_SECOND)
        pin(session, SECOND)
        equal(orders(session), ORDERS_SECOND)
        session.rollback()
        equal(orders(session), ORDERS_FIRST)
        pin(session, SECOND, local=True)
        equal(orders(session), ORDERS_SECOND)
        session.commit()
        equal(orders(session), ORDERS_FIRST)
        # What reflects a pinned session reads the catalog, not the past.
        equal(sa.inspect(session).get_pk_constraint("orders")["constrained_columns"], ["id"])
        session.execute(sa.text("RESET tidemark.as_of"))
        equal(orders(session), ORDERS_NOW)


@check("pin prepared")
def check_pin_prepared():
    with make_engine(prepare_threshold=0).connect() as session:
        for instant, expected in ((None, ORDERS_NOW), (FIRST, ORDERS_FIRST),
                                  (SECOND, ORDERS_SECOND), (None, ORDERS_NOW)):
            if instant is None:
                session.execute(sa.text("RESET tidemark.as_of"))
            else:
                pin(session, instant)
            for _ in range(8):
                equal(tuple(session.execute(sa.text(ORDERS + " WHERE id > :least"),
                                            {"least": 0}).one()), expected)


@check("pin cursor")
def check_pin_cursor():
    with engine.connect() as session:
        pin(session, FIRST, local=True)
        rows = session.execute(sa.text("SELECT id FROM readings"),
                               execution_options={"yield_per": 100})
        equal(len(rows.fetchmany(100)), 100)
        pin(session, SECOND, local=True)
        equal(session.scalar(sa.text("SELECT count(*) FROM readings")), READINGS_SECOND)
        equal(len(rows.fetchall()), READINGS_FIRST - 100)


@check("pin at start-up")
def check_pin_at_start_up():
    pinned = make_engine(options=f"-c tidemark.as_of={FIRST.isoformat()}")
    for _ in range(2):  # the second time from the pool
        with pinned.connect() as session:
            equal(orders(session), ORDERS_FIRST)
            pin(session, SECOND)
            equal(orders(session), ORDERS_SECOND)


run_checks()
