"""Three known states of the shop; README.md has the figures that the programs expect."""


def make_history(plane):
    """Changes the shop twice. Returns the variables with the instants before each change."""
    first = _instant(plane)
    plane.sql("""
        BEGIN;
        UPDATE orders SET total = total + 100 WHERE id <= 2;
        INSERT INTO orders (id, region, number, total, placed_at)
          VALUES (11, 'north', 2, 11.11, '2026-02-03 00:00+00'),
                 (12, 'north', 2, 12.12, '2026-02-03 00:00+00');
        INSERT INTO order_lines VALUES (12, 1, 'sku 1', 12);
        INSERT INTO readings SELECT n, n / 4.0 FROM generate_series(5001, 6000) AS n;
        COMMIT;""")
    second = _instant(plane)
    plane.sql("""
        BEGIN;
        DELETE FROM order_lines WHERE order_id = 12;
        DELETE FROM orders WHERE id = 12;
        UPDATE orders SET total = 0, state = 'shipped' WHERE id = 1;
        TRUNCATE readings;
        INSERT INTO readings SELECT n, n FROM generate_series(1, 7) AS n;
        COMMIT;""")
    plane.await_everything()
    return {"SHOP_FIRST": first, "SHOP_SECOND": second}


def _instant(plane):
    """A moment of the store's clock by which all of the source so far has been published."""
    plane.await_everything()
    return plane.ask("""SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC',
                                       'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""")
