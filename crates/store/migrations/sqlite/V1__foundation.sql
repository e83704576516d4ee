-- The tables of the message road. Times are milliseconds since 1970 in UTC, money is millionths of the
-- account's currency, ids are 16-byte UUIDv7, numbers are E.164 digits as an integer.

-- AUTOINCREMENT, here and wherever rows may go: what is left of one must never be taken for its successor's.
CREATE TABLE accounts (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  name       TEXT    NOT NULL,
  currency   TEXT    NOT NULL,
  available  INTEGER NOT NULL DEFAULT 0 CHECK (available >= 0),
  reserved   INTEGER NOT NULL DEFAULT 0 CHECK (reserved >= 0),
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE users (
  id         BLOB    PRIMARY KEY,
  email      TEXT    NOT NULL UNIQUE,
  operator   INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE memberships (
  account INTEGER NOT NULL REFERENCES accounts (id),
  member  BLOB    NOT NULL REFERENCES users (id),
  role    INTEGER NOT NULL,
  PRIMARY KEY (member, account)
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
  id         BLOB    PRIMARY KEY,
  account    INTEGER NOT NULL REFERENCES accounts (id),
  mode       INTEGER NOT NULL,
  scopes     INTEGER NOT NULL,
  name       TEXT    NOT NULL,
  hash       BLOB    NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_account ON api_keys (account, id);

-- Every change of a balance that is not a message: top-ups, corrections, and the captured sum of
-- messages that retention deleted. Rows are never changed.
CREATE TABLE ledger (
  account    INTEGER NOT NULL REFERENCES accounts (id),
  id         BLOB    NOT NULL,
  kind       INTEGER NOT NULL,
  amount     INTEGER NOT NULL,
  note       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;

-- Small numbers for long names, so that the hot rows stay narrow.
CREATE TABLE carriers (
  id   INTEGER PRIMARY KEY,
  name TEXT    NOT NULL UNIQUE
) STRICT;

CREATE TABLE nodes (
  id         INTEGER PRIMARY KEY,
  identity   BLOB    NOT NULL UNIQUE,
  started_at INTEGER NOT NULL
) STRICT;

-- The account leads the key: it serves "one of mine" and "all of mine" with one index.
CREATE TABLE messages (
  account         INTEGER NOT NULL,
  id              BLOB    NOT NULL,
  mode            INTEGER NOT NULL,
  api_key         BLOB,
  campaign        BLOB,
  recipient       INTEGER NOT NULL,
  country         TEXT,
  originator      TEXT    NOT NULL,
  text            TEXT    NOT NULL,
  reference       TEXT,
  encoding        INTEGER NOT NULL,
  parts           INTEGER NOT NULL,
  part_price      INTEGER NOT NULL,
  carrier         INTEGER NOT NULL,
  optout_list     BLOB,
  accepted_at     INTEGER NOT NULL,
  scheduled_for   INTEGER,
  expires_at      INTEGER NOT NULL,
  status          INTEGER NOT NULL,
  parts_accepted  INTEGER NOT NULL,
  parts_delivered INTEGER NOT NULL,
  reserved        INTEGER NOT NULL,
  captured        INTEGER NOT NULL,
  sent_at         INTEGER,
  done_at         INTEGER,
  failure         INTEGER,
  carrier_code    TEXT,
  flags           INTEGER NOT NULL,
  PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;
-- The recipient leads, though each question names the account: with the account first, PostgreSQL takes this
-- index instead of the primary key while a new table has no statistics, and reads all of an account's entries.
CREATE INDEX messages_recipient ON messages (recipient, account, id);
CREATE INDEX messages_reference ON messages (account, reference, id) WHERE reference IS NOT NULL;
CREATE INDEX messages_campaign  ON messages (account, campaign, id) WHERE campaign IS NOT NULL;
-- FAILED, but not by its status: an update of an indexed column is never a light (HOT) one in PostgreSQL.
CREATE INDEX messages_failed    ON messages (account, mode, id) WHERE failure IS NOT NULL;

-- Only for messages of more than one part: which of them a carrier took, and which arrived.
CREATE TABLE parts (
  account   INTEGER NOT NULL,
  message   BLOB    NOT NULL,
  part      INTEGER NOT NULL,
  delivered INTEGER NOT NULL,
  PRIMARY KEY (account, message, part)
) STRICT, WITHOUT ROWID;

-- What is still to be submitted. Narrow; a row is deleted when its message is settled. `attempt` counts
-- leases and fences them, `tries` counts what the carrier put off, `doubts` counts lost responses. A lease
-- that is not given back leaves `lease_until` behind: that message is in doubt.
CREATE TABLE queue (
  carrier     INTEGER NOT NULL,
  lane        INTEGER NOT NULL,
  due_at      INTEGER NOT NULL,
  id          BLOB    NOT NULL,
  account     INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  owner       INTEGER,
  lease_until INTEGER,
  attempt     INTEGER NOT NULL,
  tries       INTEGER NOT NULL,
  doubts      INTEGER NOT NULL,
  PRIMARY KEY (carrier, lane, due_at, id)
) STRICT, WITHOUT ROWID;

-- Where the halves of a part meet: what the carrier called it (submit response) and what became of
-- it (receipt). Either may come first, so either half may be empty; both together are deleted.
CREATE TABLE carrier_refs (
  carrier      INTEGER NOT NULL,
  smsc_id      TEXT    NOT NULL,
  account      INTEGER,
  message      BLOB,
  part         INTEGER,
  recipient    INTEGER NOT NULL,
  receipt      INTEGER,
  receipt_code TEXT,
  at           INTEGER NOT NULL,
  PRIMARY KEY (carrier, smsc_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX carrier_refs_early ON carrier_refs (at) WHERE message IS NULL;

CREATE TABLE idempotency (
  account     INTEGER NOT NULL,
  mode        INTEGER NOT NULL,
  route       INTEGER NOT NULL,
  key         TEXT    NOT NULL,
  fingerprint BLOB    NOT NULL,
  made        BLOB    NOT NULL,
  created_at  INTEGER NOT NULL,
  PRIMARY KEY (account, mode, route, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_age ON idempotency (created_at);
