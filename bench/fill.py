"""Inserts messages before a benchmark starts: all of one account, most of them delivered long ago.

The rows are written directly to the database while the service is stopped, since sending ten million messages
through the API would take too long. `heliograph check` verifies them afterwards like all others.
"""

import sqlite3
import subprocess
import uuid

import harness

# One message every 200 ms, the newest a day before the bench: 23 days for ten million.
STEP_MS = 200
DAY_MS = 86_400_000
# Every Nth message failed, has a reference, is a test message.
FAILED, REFERENCE, TEST = 50, 10, 100
TEXT = "Your parcel is on its way and will be with you tomorrow between nine and eleven."
PRICE = round(harness.PRICE * 1_000_000)
COLUMNS = (
    "account, id, mode, recipient, originator, text, reference, encoding, parts, part_price, carrier,"
    " accepted_at, expires_at, status, parts_accepted, parts_delivered, reserved, captured, sent_at, done_at,"
    " failure, flags"
)


class Stored:
    """The stored messages, numbered from 0, oldest first. All fields of a message are derived from its number."""

    def __init__(self, count, newest_ms):
        self.count = count
        self.first_ms = newest_ms - DAY_MS - count * STEP_MS

    def at(self, n):
        return self.first_ms + n * STEP_MS

    def id(self, n):
        return uuid.UUID(int=self.at(n) << 80 | 7 << 76 | 2 << 62 | n)

    def recipient(self, n):
        # A multiplicative permutation without collisions: looks random, but can be computed for a query.
        return 447_000_000_000 + n * 387_420_489 % 1_000_000_007

    def reference(self, n):
        return f"order {n}" if n % REFERENCE == 0 else None

    def row(self, account, n):
        failed, test = n % FAILED == 1, n % TEST == 2
        price = 0 if test else PRICE
        at = self.at(n)
        return (
            account, self.id(n).bytes, int(test), self.recipient(n), "Shop", TEXT,
            self.reference(n), 0, 1, price, 1, at, at + 2 * DAY_MS, 3 if failed else 2, 1, int(not failed), 0, price,
            at + 20, at + 900, 2 if failed else None, 0,
        )  # fmt: skip

    def spent(self):
        """Returns the total cost of the messages, in millionths."""
        return (self.count - len(range(2, self.count, TEST))) * PRICE


def fill(r, engine, count, newest_ms):
    """Stores messages and deducts their cost from the balance of the account."""
    stored = Stored(count, newest_ms)
    if not count:
        return stored
    harness.say(f"storing {count:,} messages")
    money = f"UPDATE accounts SET available = available - {stored.spent()} WHERE name = '{harness.EMAIL}'"
    if engine == "postgres":
        postgres(r, stored, money)
    else:
        sqlite(r, stored, money)
    return stored


def sqlite(r, stored, money):
    db = sqlite3.connect(r.folder / "data" / "heliograph.db")
    for pragma in ["journal_mode = DELETE", "synchronous = OFF", "cache_size = -1000000"]:
        db.execute(f"PRAGMA {pragma}")
    indexes = db.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'messages' AND sql IS NOT NULL"
    ).fetchall()
    for name, _ in indexes:
        db.execute(f"DROP INDEX {name}")
    [account] = db.execute("SELECT id FROM accounts WHERE name = ?", [harness.EMAIL]).fetchone()
    placeholders = ", ".join("?" * len(COLUMNS.split(",")))
    rows = (stored.row(account, n) for n in range(stored.count))
    db.executemany(f"INSERT INTO messages ({COLUMNS}) VALUES ({placeholders})", rows)
    for _, sql in indexes:
        db.execute(sql)
    db.execute(money)
    db.commit()
    db.execute("PRAGMA journal_mode = WAL")
    db.close()


def postgres(r, stored, money):
    first, step, day = stored.first_ms, STEP_MS, DAY_MS
    at = f"({first} + n * {step})"
    price = f"CASE WHEN n % {TEST} = 2 THEN 0 ELSE {PRICE} END"
    sql = f"""
        BEGIN;
        INSERT INTO messages ({COLUMNS})
        SELECT a.id,
          (lpad(to_hex({at}), 12, '0') || '7000' || '8000' || lpad(to_hex(n), 12, '0'))::uuid,
          CASE WHEN n % {TEST} = 2 THEN 1 ELSE 0 END,
          447000000000 + n * 387420489 % 1000000007, 'GB', 'Shop', '{TEXT}',
          CASE WHEN n % {REFERENCE} = 0 THEN 'order ' || n END, 0, 1, {price}, 1, {at}, {at} + {2 * day},
          CASE WHEN n % {FAILED} = 1 THEN 3 ELSE 2 END, 1, CASE WHEN n % {FAILED} = 1 THEN 0 ELSE 1 END, 0, {price},
          {at} + 20, {at} + 900, CASE WHEN n % {FAILED} = 1 THEN 2 END, 0
        FROM accounts a, generate_series(0::bigint, {stored.count - 1}) AS n WHERE a.name = '{harness.EMAIL}';
        {money};
        COMMIT;
        VACUUM ANALYZE messages;
        CHECKPOINT;
    """
    bindir = r.postgres_script("bindir")
    command = [f"{bindir}/psql", "-qX", "-v", "ON_ERROR_STOP=1", r.database_url]
    subprocess.run(command, input=sql, text=True, check=True)

