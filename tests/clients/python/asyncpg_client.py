"""asyncpg: every statement prepared, every value binary, pins as start-up parameters by name."""

import asyncio
import io
import json
import os

import asyncpg

from checks import (FIRST, ORDER_1, ORDERS, ORDERS_FIRST, ORDERS_NOW, ORDERS_SECOND, PLANS,
                    READINGS_FIRST, READINGS_NOW, READINGS_SECOND, SECOND, at_least, check,
                    contains, equal, run_checks)

AS_OF = ORDERS + " FOR SYSTEM_TIME AS OF $1"


class Session:
    """`async with Session(…) as session`: one connection, closed at the end."""

    def __init__(self, **options):
        self.options = options

    async def __aenter__(self):
        self.connection = await asyncpg.connect(**self.options)
        return self.connection

    async def __aexit__(self, *_):
        await self.connection.close(timeout=10)


async def expect(error_class, awaitable):
    try:
        await awaitable
    except error_class as error:
        return error
    raise AssertionError(f"no {error_class.__name__}")


async def orders(session):
    return tuple(await session.fetchrow(ORDERS))


@check("connect")
async def check_connect():
    async with Session() as session:
        equal(session._transport.get_extra_info("ssl_object") is not None, True)
        equal(tuple(await session.fetchrow("SELECT current_user::text, current_database()::text")),
              ("reader", "shop"))


@check("direct TLS")
async def check_direct_tls():
    async with Session(direct_tls=True) as session:
        equal(session._transport.get_extra_info("ssl_object").selected_alpn_protocol(),
              "postgresql")
        equal(await orders(session), ORDERS_NOW)


@check("refused")
async def check_refused():
    await expect(asyncpg.InvalidPasswordError, asyncpg.connect(password="wrong"))
    async with Session() as session:
        await expect(asyncpg.ReadOnlySQLTransactionError, session.execute("DELETE FROM orders"))
        equal(await orders(session), ORDERS_NOW)


@check("reflect")
async def check_reflect():
    async with Session() as session:
        statement = await session.prepare("SELECT * FROM orders FOR SYSTEM_TIME AS OF $1")
        equal([kind.name for kind in statement.get_parameters()], ["timestamptz"])
        equal([(one.name, one.type.name) for one in statement.get_attributes()],
              [("id", "int8"), ("region", "text"), ("number", "int4"), ("state", "order_state"),
               ("total", "numeric"), ("placed_at", "timestamptz"), ("tags", "text[]"),
               ("profile", "jsonb"), ("seal", "bytea")])
        key = await session.fetchval(
            """SELECT array_agg(attname::text ORDER BY ordinality)
               FROM pg_index, unnest(indkey) WITH ORDINALITY AS key(number, ordinality)
               JOIN pg_attribute ON attnum = key.number
               WHERE indrelid = 'order_lines'::regclass AND attrelid = indrelid AND indisprimary""")
        equal(key, ["order_id", "line"])


@check("query")
async def check_query():
    async with Session() as session:
        await session.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps,
                                     decoder=json.loads)
        row = await session.fetchrow("SELECT * FROM orders FOR SYSTEM_TIME AS OF $1 WHERE id = $2",
                                     FIRST, 1)
        equal(dict(row), ORDER_1)
        equal(await session.fetchval("SELECT state FROM orders WHERE id = 1"), "shipped")


@check("mistake")
async def check_mistake():
    text = "SELECT 'ü', * FROM pg_class FOR SYSTEM_TIME AS OF now()"
    async with Session() as session:
        async with session.transaction():
            async def refused():
                async with session.transaction():  # a savepoint
                    await session.fetch(text)
            error = await expect(asyncpg.WrongObjectTypeError, refused())
            contains(error.message, '"pg_class" is not system-versioned')
            equal(text[int(error.position) - 1:].split()[0] in ("pg_class", "FOR"), True)
            equal(await orders(session), ORDERS_NOW)


async def alternate(statement):
    for _ in range(5):
        equal(tuple(await statement.fetchrow(FIRST)), ORDERS_FIRST)
        equal(tuple(await statement.fetchrow(SECOND)), ORDERS_SECOND)


@check("prepared")
async def check_prepared():
    async with Session() as session:
        statement = await session.prepare(AS_OF)  # closed when it goes
        await alternate(statement)
        at_least(sum(await session.fetchrow(PLANS)), 10)
        # The driver's own cache of statements, and its pipelined executemany.
        for _ in range(4):
            equal(tuple(await session.fetchrow(AS_OF, FIRST)), ORDERS_FIRST)
        answers = await session.fetchmany(AS_OF, [(FIRST,), (SECOND,)] * 5)
        equal([tuple(row) for row in answers], [ORDERS_FIRST, ORDERS_SECOND] * 5)


@check("generic plan")
async def check_generic_plan():
    async with Session(server_settings={"plan_cache_mode": "force_generic_plan"}) as session:
        statement = await session.prepare(AS_OF)  # closed when it goes
        await alternate(statement)
        at_least((await session.fetchrow(PLANS))[0], 10)


@check("cursor")
async def check_cursor():
    async with Session() as session:
        async with session.transaction():
            found = [row["id"] async for row in session.cursor(
                "SELECT id FROM readings FOR SYSTEM_TIME AS OF $1 ORDER BY id", FIRST,
                prefetch=700)]
            equal(found, list(range(1, READINGS_FIRST + 1)))
            cursor = await session.cursor("SELECT id FROM readings ORDER BY id")
            equal(len(await cursor.fetch(5)), 5)
            equal(await cursor.forward(1), 1)
            equal([row["id"] for row in await cursor.fetch(5)], [READINGS_NOW])


@check("copy")
async def check_copy():
    async with Session() as session:
        target = io.BytesIO()
        equal(await session.copy_from_table("readings", output=target), f"COPY {READINGS_NOW}")
        equal(len(target.getvalue().splitlines()), READINGS_NOW)
        target = io.BytesIO()
        equal(await session.copy_from_query(
            "SELECT id, value FROM readings FOR SYSTEM_TIME AS OF $1", SECOND, output=target,
            format="binary"), f"COPY {READINGS_SECOND}")
        # Header, trailer, and a row: its number of fields, two lengths, int4 and float8.
        equal(len(target.getvalue()), 19 + 2 + READINGS_SECOND * (2 + 4 + 4 + 4 + 8))


@check("cancel")
async def check_cancel():
    async with Session() as session:
        await expect(asyncio.TimeoutError, session.execute("SELECT pg_sleep(60)", timeout=0.3))
        equal(await orders(session), ORDERS_NOW)
        sleep = asyncio.create_task(session.fetch("SELECT pg_sleep($1)", 60))
        await asyncio.sleep(0.3)
        sleep.cancel()
        await expect(asyncio.CancelledError, sleep)
        equal(await orders(session), ORDERS_NOW)


async def pin(session, instant, local=False):
    await session.execute(f"SET {'LOCAL' if local else ''} tidemark.as_of = '{instant}'")


@check("pin")
async def check_pin():
    async with Session() as session:
        await pin(session, FIRST)
        equal(await orders(session), ORDERS_FIRST)
        equal(tuple(await session.fetchrow(AS_OF, SECOND)), ORDERS_SECOND)
        rollback = session.transaction()
        await rollback.start()
        await pin(session, SECOND)
        equal(await orders(session), ORDERS_SECOND)
        await rollback.rollback()
        equal(await orders(session), ORDERS_FIRST)
        async with session.transaction():
            await pin(session, SECOND, local=True)
            equal(await orders(session), ORDERS_SECOND)
        equal(await orders(session), ORDERS_FIRST)
        await session.execute("RESET tidemark.as_of")
        equal(await orders(session), ORDERS_NOW)


@check("pin prepared")
async def check_pin_prepared():
    async with Session() as session:
        statement = await session.prepare(ORDERS + " WHERE id > $1")
        for instant, expected in ((None, ORDERS_NOW), (FIRST, ORDERS_FIRST),
                                  (SECOND, ORDERS_SECOND), (None, ORDERS_NOW)):
            if instant is None:
                await session.execute("RESET tidemark.as_of")
            else:
                await pin(session, instant)
            for _ in range(8):
                equal(tuple(await statement.fetchrow(0)), expected)


@check("pin cursor")
async def check_pin_cursor():
    async with Session() as session:
        async with session.transaction():
            await pin(session, FIRST)
            cursor = await session.cursor("SELECT id FROM readings")
            equal(len(await cursor.fetch(100)), 100)
            await pin(session, SECOND)
            equal(await session.fetchval("SELECT count(*) FROM readings"), READINGS_SECOND)
            equal(len(await cursor.fetch(10000)), READINGS_FIRST - 100)


@check("pin at start-up")
async def check_pin_at_start_up():
    async with Session(server_settings={"tidemark.as_of": os.environ["SHOP_FIRST"]}) as session:
        equal(await orders(session), ORDERS_FIRST)
        await pin(session, SECOND)
        equal(await orders(session), ORDERS_SECOND)
        await session.execute("RESET ALL")  # what a pool does between two users
        equal(await orders(session), ORDERS_FIRST)


run_checks()
