-- The initial schema. Times are milliseconds since 1970 in UTC, amounts are millionths of the account's
-- currency, ids are UUIDv7, phone numbers are E.164 digits as an integer, booleans are 0 and 1. Enumerations are
-- stored by the code that their type in crates/domain defines.

-- AUTOINCREMENT here and in other tables whose rows can be deleted: an id is never used again, so leftovers of a
-- deleted row are never attributed to a newer one.
-- `self_registered` marks accounts that were opened by signing up; some limits are only for them. `two_factor`
-- is 1 where members need two-factor authentication.
CREATE TABLE accounts (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  name            TEXT NOT NULL,
  currency        TEXT NOT NULL,
  available       INTEGER NOT NULL DEFAULT 0 CHECK (available >= 0),
  reserved        INTEGER NOT NULL DEFAULT 0 CHECK (reserved >= 0),
  created_at      INTEGER NOT NULL,
  self_registered INTEGER NOT NULL DEFAULT 0,
  two_factor      INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The limits that the operator has set for single accounts; all others have the defaults of the configuration.
CREATE TABLE account_limits (
  account INTEGER NOT NULL REFERENCES accounts (id),
  name    TEXT NOT NULL,
  value   INTEGER NOT NULL,
  PRIMARY KEY (account, name)
) STRICT, WITHOUT ROWID;

-- People who can sign in. `confirmed_at` is when the person first proved that they read the mail of the address, or
-- when the operator vouched for it. `password_hash` is argon2id in PHC form. `totp_secret` is sealed. `totp_step` is
-- the last time step that was used, so that no code works twice; it is NULL until the first code confirms the secret,
-- which only the session `totp_session` can do, soon after `totp_begun_at`. `code_failures` counts the two-factor codes
-- since the last right one, and none is accepted before `codes_after`.
CREATE TABLE users (
  id            BLOB PRIMARY KEY,
  email         TEXT NOT NULL UNIQUE,
  operator      INTEGER NOT NULL DEFAULT 0,
  created_at    INTEGER NOT NULL,
  confirmed_at  INTEGER,
  name          TEXT,
  password_hash TEXT,
  totp_secret   TEXT,
  totp_step     INTEGER,
  totp_session  BLOB,
  totp_begun_at INTEGER,
  code_failures INTEGER NOT NULL DEFAULT 0,
  codes_after   INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE memberships (
  account INTEGER NOT NULL REFERENCES accounts (id),
  user_id BLOB NOT NULL REFERENCES users (id),
  role    INTEGER NOT NULL,
  PRIMARY KEY (user_id, account)
) STRICT, WITHOUT ROWID;
CREATE INDEX memberships_account ON memberships (account);

CREATE TABLE api_keys (
  id           BLOB PRIMARY KEY,
  account      INTEGER NOT NULL REFERENCES accounts (id),
  mode         INTEGER NOT NULL,
  scopes       INTEGER NOT NULL,
  name         TEXT NOT NULL,
  prefix       TEXT NOT NULL,
  hash         BLOB NOT NULL UNIQUE,
  created_at   INTEGER NOT NULL,
  revoked_at   INTEGER,
  last_used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_account ON api_keys (account, id);

-- The ledger: every balance change that is not caused by a message, such as a top-up or a correction, and the
-- captured amounts of messages that retention has deleted. Rows are immutable.
CREATE TABLE ledger (
  account    INTEGER NOT NULL REFERENCES accounts (id),
  id         BLOB NOT NULL,
  kind       INTEGER NOT NULL,
  amount     INTEGER NOT NULL,
  note       TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;

-- Carrier names are replaced by small ids, which keeps the rows of the hot tables narrow.
CREATE TABLE carriers (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- `identity` survives restarts. `serving_at` is when the node last reported that it takes requests, 0 after it has
-- left: the nodes that serve share the rate limits. `heartbeat` counts while the node holds leases, and is 0 after it
-- has left, or after another node has released its leases.
CREATE TABLE nodes (
  id         INTEGER PRIMARY KEY,
  identity   BLOB NOT NULL UNIQUE,
  started_at INTEGER NOT NULL,
  serving_at INTEGER NOT NULL DEFAULT 0,
  committed_at INTEGER NOT NULL DEFAULT 0,
  heartbeat    INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The primary key starts with the account, so one index serves both a lookup by id and an account's list.
CREATE TABLE messages (
  account         INTEGER NOT NULL,
  id              BLOB NOT NULL,
  mode            INTEGER NOT NULL,
  api_key         BLOB,
  sent_by         BLOB,
  campaign        BLOB,
  recipient       INTEGER NOT NULL,
  originator      TEXT NOT NULL,
  text            TEXT NOT NULL,
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
-- The recipient comes first although every query names the account: with the account first, PostgreSQL prefers this
-- index to the primary key while a new table has no statistics, and reads all entries of the account.
CREATE INDEX messages_recipient ON messages (recipient, account, id);
CREATE INDEX messages_reference ON messages (account, reference, id) WHERE reference IS NOT NULL;
CREATE INDEX messages_campaign  ON messages (account, campaign, id) WHERE campaign IS NOT NULL;
-- Failed messages. The index is not on `status`, because PostgreSQL cannot update an indexed column with a
-- heap-only tuple (HOT).
CREATE INDEX messages_failed    ON messages (account, mode, id) WHERE failure IS NOT NULL;
-- The test messages of an account, which may be few among many live ones; the virtual handsets show them.
CREATE INDEX messages_test ON messages (account, id) WHERE mode = 1;

-- The parts (segments) that a carrier has accepted, and whether each was delivered. Messages of one part have no rows.
CREATE TABLE parts (
  account   INTEGER NOT NULL,
  message   BLOB NOT NULL,
  part      INTEGER NOT NULL,
  delivered INTEGER NOT NULL,
  PRIMARY KEY (account, message, part)
) STRICT, WITHOUT ROWID;

-- The submission queue. Rows are narrow and are deleted when their message is settled. `attempt` counts leases and is
-- the fencing token, `tries` counts temporary rejections by the carrier, `doubts` counts lost responses. A lease that
-- is never released leaves `lease_until` set, which marks the message as in doubt.
CREATE TABLE queue (
  carrier     INTEGER NOT NULL,
  lane        INTEGER NOT NULL,
  due_at      INTEGER NOT NULL,
  id          BLOB NOT NULL,
  account     INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  owner       INTEGER,
  lease_until INTEGER,
  attempt     INTEGER NOT NULL,
  tries       INTEGER NOT NULL,
  doubts      INTEGER NOT NULL,
  PRIMARY KEY (carrier, lane, due_at, id)
) STRICT, WITHOUT ROWID;

-- Matches submit responses to delivery receipts by the carrier's message id. Either can arrive first, so either half
-- of a row may be empty; a row with both halves is deleted. `part` is 0 for a message of one part, and 255 if the id
-- stands for all parts of a message. `reuse` is 0, except for parts whose id the carrier has given to a newer message to
-- the same recipient: they have 1, 2, and so on, in the order of their submission.
CREATE TABLE carrier_refs (
  carrier      INTEGER NOT NULL,
  smsc_id      TEXT NOT NULL,
  account      INTEGER,
  message      BLOB,
  part         INTEGER,
  recipient    INTEGER NOT NULL,
  receipt      INTEGER,
  receipt_code TEXT,
  at           INTEGER NOT NULL,
  reuse        INTEGER NOT NULL,
  PRIMARY KEY (carrier, smsc_id, recipient, reuse)
) STRICT, WITHOUT ROWID;
CREATE INDEX carrier_refs_unmatched ON carrier_refs (at) WHERE message IS NULL;
CREATE INDEX carrier_refs_reused ON carrier_refs (carrier) WHERE reuse > 0;

-- Idempotency keys. `resource` is the id of what the request created. `response` is the stored answer, where it
-- cannot be rendered again from the resource.
CREATE TABLE idempotency (
  account     INTEGER NOT NULL,
  mode        INTEGER NOT NULL,
  route       INTEGER NOT NULL,
  key         TEXT NOT NULL,
  fingerprint BLOB NOT NULL,
  resource    BLOB NOT NULL,
  created_at  INTEGER NOT NULL,
  response    TEXT,
  PRIMARY KEY (account, mode, route, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_age ON idempotency (created_at);

-- Webhook endpoints. `kinds` is a bit set of event kinds. `failing_since` is set by the first failed delivery and
-- cleared by the next success. A disabled endpoint keeps its row, with the reason. `local` marks an endpoint that
-- `heliograph listen` registered. Both secrets are sealed.
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
  disabled_at      INTEGER,
  disabled_reason  INTEGER
) STRICT;
CREATE INDEX endpoints_account ON endpoints (account, id);
-- One URL is one endpoint in each mode, or an event would be sent there several times.
CREATE UNIQUE INDEX endpoints_url ON endpoints (account, mode, url) WHERE local = 0;

-- Webhook events. `endpoint` is the first subscribed endpoint; the result of its first delivery attempt is stored
-- here, so an event that is delivered at once needs no row in `attempts`. `subject` is the id of the message or inbound
-- message. `test` marks a test delivery. `outcome` is the HTTP status, 0 without one; `duration` is in milliseconds.
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

-- Pending webhook deliveries: a row is written in the transaction that causes the event and deleted when the delivery
-- is settled. `attempt` counts leases and is the fencing token, `tries` counts delivery attempts.
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

-- Delivery attempts that failed, and successes that have no place in `events`. `outcome` is the HTTP status, 0 without
-- one; `duration` is in milliseconds; `body` is the beginning of the response.
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

-- The accounts that own inbound numbers. Addresses of inbound messages are text: a short code may begin with zeros,
-- and a sender may be alphanumeric.
CREATE TABLE numbers (
  number  TEXT NOT NULL PRIMARY KEY,
  account INTEGER NOT NULL REFERENCES accounts (id)
) STRICT, WITHOUT ROWID;

-- Inbound messages. Account 0 holds messages to numbers that are not assigned yet; they move to the account that the
-- number is assigned to.
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

-- Parts of inbound messages that are not complete, and for a day those of messages that were assembled, because
-- carriers may deliver a part twice.
CREATE TABLE inbound_parts (
  carrier   INTEGER NOT NULL,
  sender    TEXT NOT NULL,
  recipient TEXT NOT NULL,
  reference INTEGER NOT NULL,
  total     INTEGER NOT NULL,
  sequence  INTEGER NOT NULL,
  text      TEXT NOT NULL,
  label     INTEGER,
  assembled INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  PRIMARY KEY (carrier, sender, recipient, reference, total, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbound_parts_age ON inbound_parts (at);
CREATE INDEX inbound_parts_open ON inbound_parts (carrier, sender, recipient, reference, total, at) WHERE assembled = 0;

-- Opt-out lists. Each account has one default list per mode, which is created with the account and never changes.
CREATE TABLE optout_lists (
  account    INTEGER NOT NULL REFERENCES accounts (id),
  id         BLOB NOT NULL,
  mode       INTEGER NOT NULL,
  name       TEXT NOT NULL,
  is_default INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX optout_lists_name ON optout_lists (account, mode, name);
CREATE UNIQUE INDEX optout_lists_default ON optout_lists (account, mode) WHERE is_default = 1;

-- The numbers on opt-out lists, with the evidence.
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

CREATE TABLE recovery_codes (
  user_id BLOB NOT NULL REFERENCES users (id),
  hash    BLOB NOT NULL,
  PRIMARY KEY (user_id, hash)
) STRICT, WITHOUT ROWID;

-- Dashboard sessions, with the account and mode that each shows. Session tokens, magic-link tokens, invitation tokens
-- and recovery codes are stored only as SHA-256 hashes. `by_operator` marks a session that began with a sign-in link
-- which an operator created, and such a link.
CREATE TABLE sessions (
  hash        BLOB PRIMARY KEY,
  id          BLOB NOT NULL,
  user_id     BLOB NOT NULL REFERENCES users (id),
  account     INTEGER NOT NULL REFERENCES accounts (id),
  mode        INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  seen_at     INTEGER NOT NULL,
  address     TEXT NOT NULL,
  agent       TEXT NOT NULL,
  by_operator INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_user ON sessions (user_id, id);
CREATE INDEX sessions_account ON sessions (account);

-- Links that work once: to sign in, to reset a password, or to enter the second factor after the password.
CREATE TABLE magic_links (
  hash        BLOB PRIMARY KEY,
  user_id     BLOB NOT NULL REFERENCES users (id),
  kind        INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  by_operator INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX magic_links_user ON magic_links (user_id);

-- Pending invitations to an account. The invited person becomes a user on acceptance, if `invited_by` may still invite.
-- `mailed` marks a link that only the mailbox of the person received.
CREATE TABLE invitations (
  hash       BLOB PRIMARY KEY,
  id         BLOB NOT NULL,
  account    INTEGER NOT NULL REFERENCES accounts (id),
  email      TEXT NOT NULL,
  mailed     INTEGER NOT NULL,
  role       INTEGER NOT NULL,
  invited_by BLOB NOT NULL REFERENCES users (id),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX invitations_account ON invitations (account, id);

-- The audit log. Rows are immutable and never deleted. `actor` is NULL for the command line.
CREATE TABLE audit (
  account INTEGER NOT NULL,
  id      BLOB NOT NULL,
  actor   BLOB,
  action  TEXT NOT NULL,
  detail  TEXT NOT NULL,
  address TEXT NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;

-- The outbox of email. `content` is sealed, because it may contain a magic link.
CREATE TABLE mails (
  id        BLOB PRIMARY KEY,
  recipient TEXT NOT NULL,
  content   TEXT NOT NULL,
  due_at    INTEGER NOT NULL,
  tries     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The number of emails of each kind to each recipient, and of invitations of each account, on a day since 1970 in UTC.
CREATE TABLE mail_counts (
  day     INTEGER NOT NULL,
  subject TEXT NOT NULL,
  sent    INTEGER NOT NULL,
  PRIMARY KEY (day, subject)
) STRICT, WITHOUT ROWID;

-- Replies typed on virtual handsets, waiting for the simulated SMSC.
CREATE TABLE handset_replies (
  id         BLOB PRIMARY KEY,
  account    INTEGER NOT NULL,
  handset    INTEGER NOT NULL,
  originator TEXT NOT NULL,
  text       TEXT NOT NULL,
  at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- When a keyword was last answered, for each person and number: a keyword is answered once an hour. Maintenance deletes
-- older rows.
CREATE TABLE keyword_replies (
  account INTEGER NOT NULL,
  mode    INTEGER NOT NULL,
  number  TEXT NOT NULL,
  person  INTEGER NOT NULL,
  keyword INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (account, mode, number, person, keyword)
) STRICT, WITHOUT ROWID;

-- Conversations: the people who wrote to an account, with their newest message, and the newest one that a member has
-- read.
CREATE TABLE conversations (
  account      INTEGER NOT NULL,
  mode         INTEGER NOT NULL,
  person       INTEGER NOT NULL,
  last_inbound BLOB NOT NULL,
  read_up_to   BLOB NOT NULL,
  PRIMARY KEY (account, mode, person)
) STRICT, WITHOUT ROWID;
CREATE INDEX conversations_latest ON conversations (account, mode, last_inbound);

-- Conversations: the messages of one sender.
CREATE INDEX inbound_messages_sender ON inbound_messages (account, sender, id);
-- The newest inbound messages in test mode, which may be few among many live ones.
CREATE INDEX inbound_messages_test ON inbound_messages (account, id) WHERE mode = 1;

-- Values of the installation as a whole, by name.
CREATE TABLE installation (
  name  TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
