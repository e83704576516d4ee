-- Webhooks: whom to tell, what happened, what is still to be told, and what went wrong in telling.

-- `kinds` are bits. `failing_since` is set by the first failure and cleared by the next success; an endpoint that
-- is off keeps its row, and with it the reason.
CREATE TABLE endpoints (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  account          INTEGER NOT NULL REFERENCES accounts (id),
  mode             INTEGER NOT NULL,
  url              TEXT NOT NULL,
  kinds            INTEGER NOT NULL,
  secret           TEXT NOT NULL,
  old_secret       TEXT,
  old_secret_until INTEGER,
  local            INTEGER NOT NULL,
  created_at       INTEGER NOT NULL,
  expires_at       INTEGER,
  failing_since    INTEGER,
  off_since        INTEGER,
  off_reason       INTEGER
) STRICT;
CREATE INDEX endpoints_account ON endpoints (account, id);

-- What a client is told. `endpoint` is the first of those that wanted it; how it answered the first attempt
-- stands here, so that an event for which all goes well needs no other row.
CREATE TABLE events (
  account     INTEGER NOT NULL,
  id          BLOB NOT NULL,
  mode        INTEGER NOT NULL,
  kind        INTEGER NOT NULL,
  test        INTEGER NOT NULL,
  subject     BLOB,
  at          INTEGER NOT NULL,
  endpoint    INTEGER NOT NULL,
  outcome     INTEGER,
  duration    INTEGER,
  answered_at INTEGER,
  PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;

-- What is still to be told, to whom: written in the transaction that causes the event, deleted when it is done.
-- `attempt` counts leases and fences them, `tries` counts POSTs.
CREATE TABLE deliveries (
  endpoint    INTEGER NOT NULL,
  due_at      INTEGER NOT NULL,
  event       BLOB NOT NULL,
  account     INTEGER NOT NULL,
  owner       INTEGER,
  lease_until INTEGER,
  attempt     INTEGER NOT NULL,
  tries       INTEGER NOT NULL,
  PRIMARY KEY (endpoint, due_at, event)
) STRICT, WITHOUT ROWID;

-- Attempts that failed, and successes that `events` has no place for. `outcome` is the HTTP status, 0 without one.
CREATE TABLE attempts (
  account  INTEGER NOT NULL,
  event    BLOB NOT NULL,
  endpoint INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  outcome  INTEGER NOT NULL,
  duration INTEGER NOT NULL,
  detail   TEXT,
  body     TEXT,
  PRIMARY KEY (account, event, endpoint, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempts_endpoint ON attempts (endpoint, at);
