"""Messages that are stored before a bench begins: all of one account, delivered long ago for the most part.

They are written behind the service's back while it does not run, since ten million through its door would take
their time; `heliograph check` looks at them afterwards like at all others.
"""

import sqlite3
import subprocess
import uuid

import rig

# One message every 200 ms, the newest a day before the bench: 23 days for ten million.
STEP_MS = 200
DAY_MS = 86_400_000
# Every so manieth failed, has a reference, was a test.
FAILED, REFERENCE, TEST = 50, 10, 100
TEXT = "Your parcel is on its way and will be with you tomorrow between nine and eleven."
PRICE = round(rig.PRICE * 1_000_000)
COLUMNS = (
    "account, id, mode, recipient, country, originator, text, reference, encoding, parts, part_price, carrier,"
    " accepted_at, expires_at, status, parts_accepted, parts_delivered, reserved, captured, sent_at, done_at,"
    " failure, flags"
)


class Stored:
    """So many messages, numbered from 0, the oldest first. What each looks like follows from its number."""

    def __init__(self, count, newest_ms):
        self.count = count
        self.first_ms = newest_ms - DAY_MS - count * STEP_MS

    def at(self, n):
        return self.first_ms + n * STEP_MS

    def id(self, n):
        return uuid.UUID(int=self.at(n) << 80 | 7 << 76 | 2 << 62 | n)

    def recipient(self, n):
        # A multiplication that never meets itself: looks random, and can be asked for.
        return 447_000_000_000 + n * 387_420_489 % 1_000_000_007

    def reference(self, n):
        return f"order {n}" if n % REFERENCE == 0 else None

    def row(self, account, n):
        failed, test = n % FAILED == 1, n % TEST == 2
        price = 0 if test else PRICE
        at = self.at(n)
        return (
            account, self.id(n).bytes, int(test), self.recipient(n), "GB", "Shop", TEXT,
            self.reference(n), 0, 1, price, 1, at, at + 2 * DAY_MS, 3 if failed else 2, 1, int(not failed), 0, price,
            at + 20, at + 900, 2 if failed else None, 0,
        )  # fmt: skip

    def spent(self):
        """What they have cost, in millionths."""
        return (self.count - len(range(2, self.count, TEST))) * PRICE


def fill(r, engine, count, newest_ms):
    """Stores messages, and takes what they cost from the account's balance."""
    stored = Stored(count, newest_ms)
    if not count:
        return stored
    rig.say(f"storing {count:,} messages")
    money = f"UPDATE accounts SET available = available - {stored.spent()} WHERE name = '{rig.EMAIL}'"
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
    [account] = db.execute("SELECT id FROM accounts WHERE name = ?", [rig.EMAIL]).fetchone()
    marks = ", ".join("?" * len(COLUMNS.split(",")))
    rows = (stored.row(account, n) for n in range(stored.count))
    db.executemany(f"INSERT INTO messages ({COLUMNS}) VALUES ({marks})", rows)
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
        FROM accounts a, generate_series(0::bigint, {stored.count - 1}) AS n WHERE a.name = '{rig.EMAIL}';
        {money};
        COMMIT;
        VACUUM ANALYZE messages;
        CHECKPOINT;
    """
    bindir = r.postgres_script("bindir")
    command = [f"{bindir}/psql", "-qX", "-v", "ON_ERROR_STOP=1", r.database_url]
    subprocess.run(command, input=sql, text=True, check=True)

