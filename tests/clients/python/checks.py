"""How the Python programs report, and what all of them know of the shop."""

import asyncio
import datetime
import decimal
import os
import sys
import traceback

FIRST = datetime.datetime.fromisoformat(os.environ["SHOP_FIRST"])
SECOND = datetime.datetime.fromisoformat(os.environ["SHOP_SECOND"])

ORDERS = "SELECT count(*), sum(total) FROM orders"
ORDERS_FIRST = (10, decimal.Decimal("550.00"))
ORDERS_SECOND = (12, decimal.Decimal("773.23"))
ORDERS_NOW = (11, decimal.Decimal("651.11"))
READINGS_FIRST, READINGS_SECOND, READINGS_NOW = 5000, 6000, 7

ORDER_1 = {
    "id": 1, "region": "süd", "number": 1, "state": "paid", "total": decimal.Decimal("10.00"),
    "placed_at": datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, datetime.timezone.utc),
    "tags": ["gift", "b c"], "profile": {"note": "süß €", "tier": 2}, "seal": b"\x00\xff\x10",
}

# Plans that the server made for prepared statements that read orders.
PLANS = """SELECT sum(generic_plans)::int, sum(custom_plans)::int FROM pg_prepared_statements
           WHERE statement LIKE 'SELECT count%orders%'"""

_checks = {}


def check(name):
    """Marks a function, plain or async, as the check of that name."""
    def mark(function):
        _checks[name] = function
        return function
    return mark


def run_checks():
    """Runs each check and says how it went, one line each for `run`; then ends the program."""
    failed = False
    for name, function in _checks.items():
        try:
            answer = function()
            if asyncio.iscoroutine(answer):
                asyncio.run(answer)
        except Exception as error:  # any failure of a check is its result
            failed = True
            traceback.print_exc(file=sys.stdout)
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"failed {name}: {reason}", flush=True)
        else:
            print("ok", name, flush=True)
    sys.exit(1 if failed else 0)


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def at_least(found, least):
    if found is None or found < least:
        raise AssertionError(f"found {found!r}, expected at least {least!r}")


def contains(text, part):
    if part not in text:
        raise AssertionError(f"found {text!r}, expected it to contain {part!r}")
