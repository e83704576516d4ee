-- Replies and opt-outs: whose a number is, what people sent, and who wants nothing more.

-- Addresses are texts here: a short code may begin with zeros, and a sender may be a name.
CREATE TABLE numbers (
  number  TEXT NOT NULL PRIMARY KEY,
  account INTEGER NOT NULL REFERENCES accounts (id)
) STRICT, WITHOUT ROWID;

-- What people sent. Account 0 keeps what was written to a number that nobody has, for who gets it.
CREATE TABLE inbound_messages (
  account     INTEGER NOT NULL,
  id          BLOB NOT NULL,
  mode        INTEGER NOT NULL,
  carrier     INTEGER NOT NULL,
  sender      TEXT NOT NULL,
  recipient   TEXT NOT NULL,
  text        TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  in_reply_to BLOB,
  keyword     INTEGER,
  complete    INTEGER NOT NULL,
  PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;

-- Parts of messages that have not all come, and for a day those of messages that have: they may come twice.
CREATE TABLE inbound_parts (
  carrier   INTEGER NOT NULL,
  sender    TEXT NOT NULL,
  recipient TEXT NOT NULL,
  reference INTEGER NOT NULL,
  total     INTEGER NOT NULL,
  sequence  INTEGER NOT NULL,
  text      TEXT NOT NULL,
  label     INTEGER,
  done      INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  PRIMARY KEY (carrier, sender, recipient, reference, total, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbound_parts_age ON inbound_parts (at);
CREATE INDEX inbound_parts_open ON inbound_parts (carrier, sender, recipient, reference, total, at) WHERE done = 0;

-- Each account has, in each mode, one list that is its default from the beginning and for good.
CREATE TABLE optout_lists (
  account    INTEGER NOT NULL REFERENCES accounts (id),
  id         BLOB NOT NULL,
  mode       INTEGER NOT NULL,
  name       TEXT NOT NULL,
  standard   INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX optout_lists_standard ON optout_lists (account, mode) WHERE standard = 1;

-- Who wants nothing more, and the evidence for it.
CREATE TABLE optouts (
  list       BLOB NOT NULL,
  number     INTEGER NOT NULL,
  source     INTEGER NOT NULL,
  message    BLOB,
  originator TEXT,
  note       TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (list, number)
) STRICT, WITHOUT ROWID;
