-- The dashboard: people and how they sign in, what they did, the virtual handsets, and figures to look at.
-- Whatever lets somebody in (a session, a one-time link, a recovery code) is stored as its SHA-256 alone.

-- `password` is an argon2id hash in PHC form; `totp_secret` is sealed, and `totp_step` is the last time step that
-- was used, so that no code works twice. A secret without a step is one that has not been confirmed yet.
ALTER TABLE users ADD COLUMN name TEXT;
ALTER TABLE users ADD COLUMN password TEXT;
ALTER TABLE users ADD COLUMN totp_secret TEXT;
ALTER TABLE users ADD COLUMN totp_step INTEGER;

ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER;

CREATE TABLE recovery_codes (
  member BLOB NOT NULL REFERENCES users (id),
  hash   BLOB NOT NULL,
  PRIMARY KEY (member, hash)
) STRICT, WITHOUT ROWID;

-- Who is signed in, where they look at the moment (account and mode), and what they signed in with.
CREATE TABLE sessions (
  hash       BLOB    PRIMARY KEY,
  id         BLOB    NOT NULL,
  member     BLOB    NOT NULL REFERENCES users (id),
  account    INTEGER NOT NULL REFERENCES accounts (id),
  mode       INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL,
  address    TEXT    NOT NULL,
  agent      TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_member ON sessions (member, id);

-- Links that work once: to sign in, or to set a new password.
CREATE TABLE one_time_links (
  hash       BLOB    PRIMARY KEY,
  member     BLOB    NOT NULL REFERENCES users (id),
  kind       INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX one_time_links_member ON one_time_links (member);

-- People who were asked to join an account; they become users when they accept.
CREATE TABLE invitations (
  hash       BLOB    PRIMARY KEY,
  id         BLOB    NOT NULL,
  account    INTEGER NOT NULL REFERENCES accounts (id),
  email      TEXT    NOT NULL,
  role       INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX invitations_account ON invitations (account, id);

-- What people did. Rows are never changed, and none is taken away. `actor` is empty for the command line.
CREATE TABLE audit (
  account INTEGER NOT NULL,
  id      BLOB    NOT NULL,
  actor   BLOB,
  action  TEXT    NOT NULL,
  detail  TEXT    NOT NULL,
  address TEXT    NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;

-- Mail that has not gone out yet; `content` is sealed, since it may hold a link that lets somebody in.
CREATE TABLE mails (
  id        BLOB    PRIMARY KEY,
  recipient TEXT    NOT NULL,
  content   TEXT    NOT NULL,
  due_at    INTEGER NOT NULL,
  tries     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was typed on a virtual handset and is still to be handed to the simulated SMSC.
CREATE TABLE handset_replies (
  id         BLOB    PRIMARY KEY,
  account    INTEGER NOT NULL,
  handset    INTEGER NOT NULL,
  originator TEXT    NOT NULL,
  text       TEXT    NOT NULL,
  at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who belongs to an account.
CREATE INDEX memberships_account ON memberships (account);

-- An account's test messages, which may be few among many live ones: what the virtual handsets show.
CREATE INDEX messages_test ON messages (account, id) WHERE mode = 1;

-- Conversations: what one person wrote.
CREATE INDEX inbound_messages_sender ON inbound_messages (account, sender, id);
-- Who wrote last in test mode, which may be few among many live messages.
CREATE INDEX inbound_messages_test ON inbound_messages (account, id) WHERE mode = 1;

-- How each node's line to each carrier is, as it was when it was last written down.
CREATE TABLE bind_status (
  node          INTEGER NOT NULL,
  carrier       INTEGER NOT NULL,
  binds         INTEGER NOT NULL,
  bound         INTEGER NOT NULL,
  window_size   INTEGER NOT NULL,
  unanswered    INTEGER NOT NULL,
  throttled     INTEGER NOT NULL,
  last_error    TEXT,
  last_error_at INTEGER,
  at            INTEGER NOT NULL,
  PRIMARY KEY (node, carrier)
) STRICT, WITHOUT ROWID;

-- Counters for pictures: how much of what happened in an hour. `measure` is what was counted. The janitor puts the
-- hours of a day together at its first one when they are some days old.
CREATE TABLE stats (
  account INTEGER NOT NULL,
  mode    INTEGER NOT NULL,
  hour    INTEGER NOT NULL,
  measure INTEGER NOT NULL,
  total   INTEGER NOT NULL,
  PRIMARY KEY (account, mode, hour, measure)
) STRICT, WITHOUT ROWID;

-- Small values that belong to the installation, by name.
CREATE TABLE installation (
  name  TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
