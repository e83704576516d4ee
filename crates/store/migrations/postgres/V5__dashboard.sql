-- The dashboard: people and how they sign in, what they did, the virtual handsets, and figures to look at.
-- Whatever lets somebody in (a session, a one-time link, a recovery code) is stored as its SHA-256 alone.

-- `password` is an argon2id hash in PHC form; `totp_secret` is sealed, and `totp_step` is the last time step that
-- was used, so that no code works twice. A secret without a step is one that has not been confirmed yet.
ALTER TABLE users ADD COLUMN name text;
ALTER TABLE users ADD COLUMN password text;
ALTER TABLE users ADD COLUMN totp_secret text;
ALTER TABLE users ADD COLUMN totp_step bigint;

ALTER TABLE api_keys ADD COLUMN last_used_at bigint;

CREATE TABLE recovery_codes (
  member uuid NOT NULL REFERENCES users (id),
  hash   bytea NOT NULL,
  PRIMARY KEY (member, hash)
);

-- Who is signed in, where they look at the moment (account and mode), and what they signed in with.
CREATE TABLE sessions (
  hash       bytea PRIMARY KEY,
  id         uuid NOT NULL,
  member     uuid NOT NULL REFERENCES users (id),
  account    bigint NOT NULL REFERENCES accounts (id),
  mode       smallint NOT NULL,
  created_at bigint NOT NULL,
  seen_at    bigint NOT NULL,
  address    text NOT NULL,
  agent      text NOT NULL
);
CREATE INDEX sessions_member ON sessions (member, id);

-- Links that work once: to sign in, or to set a new password.
CREATE TABLE one_time_links (
  hash       bytea PRIMARY KEY,
  member     uuid NOT NULL REFERENCES users (id),
  kind       smallint NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX one_time_links_member ON one_time_links (member);

-- People who were asked to join an account; they become users when they accept.
CREATE TABLE invitations (
  hash       bytea PRIMARY KEY,
  id         uuid NOT NULL,
  account    bigint NOT NULL REFERENCES accounts (id),
  email      text NOT NULL,
  role       smallint NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX invitations_account ON invitations (account, id);

-- What people did. Rows are never changed, and none is taken away. `actor` is empty for the command line.
CREATE TABLE audit (
  account bigint NOT NULL,
  id      uuid NOT NULL,
  actor   uuid,
  action  text NOT NULL,
  detail  text NOT NULL,
  address text NOT NULL,
  at      bigint NOT NULL,
  PRIMARY KEY (account, id)
);

-- Mail that has not gone out yet; `content` is sealed, since it may hold a link that lets somebody in.
CREATE TABLE mails (
  id        uuid PRIMARY KEY,
  recipient text NOT NULL,
  content   text NOT NULL,
  due_at    bigint NOT NULL,
  tries     smallint NOT NULL
);

-- What was typed on a virtual handset and is still to be handed to the simulated SMSC.
CREATE TABLE handset_replies (
  id         uuid PRIMARY KEY,
  account    bigint NOT NULL,
  handset    bigint NOT NULL,
  originator text NOT NULL,
  text       text NOT NULL,
  at         bigint NOT NULL
);

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
  node          integer NOT NULL,
  carrier       smallint NOT NULL,
  binds         integer NOT NULL,
  bound         smallint NOT NULL,
  window_size   integer NOT NULL,
  unanswered    integer NOT NULL,
  throttled     smallint NOT NULL,
  last_error    text,
  last_error_at bigint,
  at            bigint NOT NULL,
  PRIMARY KEY (node, carrier)
);

-- Counters for pictures: how much of what happened in an hour. `measure` is what was counted. The janitor puts the
-- hours of a day together at its first one when they are some days old.
CREATE TABLE stats (
  account bigint NOT NULL,
  mode    smallint NOT NULL,
  hour    integer NOT NULL,
  measure smallint NOT NULL,
  total   bigint NOT NULL,
  PRIMARY KEY (account, mode, hour, measure)
);

-- Small values that belong to the installation, by name.
CREATE TABLE installation (
  name  text NOT NULL PRIMARY KEY,
  value text NOT NULL
);
