-- Webhooks: whom to tell, what happened, what is still to be told, and what went wrong in telling.

-- `kinds` are bits. `failing_since` is set by the first failure and cleared by the next success; an endpoint that
-- is off keeps its row, and with it the reason.
CREATE TABLE endpoints (
  id               integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account          bigint NOT NULL REFERENCES accounts (id),
  mode             smallint NOT NULL,
  url              text NOT NULL,
  kinds            smallint NOT NULL,
  secret           text NOT NULL,
  old_secret       text,
  old_secret_until bigint,
  local            smallint NOT NULL,
  created_at       bigint NOT NULL,
  expires_at       bigint,
  failing_since    bigint,
  off_since        bigint,
  off_reason       smallint
);
CREATE INDEX endpoints_account ON endpoints (account, id);

-- What a client is told. `endpoint` is the first of those that wanted it; how it answered the first attempt
-- stands here, so that an event for which all goes well needs no other row.
CREATE TABLE events (
  account     bigint NOT NULL,
  id          uuid NOT NULL,
  mode        smallint NOT NULL,
  kind        smallint NOT NULL,
  test        smallint NOT NULL,
  subject     uuid,
  at          bigint NOT NULL,
  endpoint    integer NOT NULL,
  outcome     smallint,
  duration    integer,
  answered_at bigint,
  PRIMARY KEY (account, id)
) WITH (fillfactor = 80);

-- What is still to be told, to whom: written in the transaction that causes the event, deleted when it is done.
-- `attempt` counts leases and fences them, `tries` counts POSTs.
CREATE TABLE deliveries (
  endpoint    integer NOT NULL,
  due_at      bigint NOT NULL,
  event       uuid NOT NULL,
  account     bigint NOT NULL,
  owner       integer,
  lease_until bigint,
  attempt     smallint NOT NULL,
  tries       smallint NOT NULL,
  PRIMARY KEY (endpoint, due_at, event)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000);

-- Attempts that failed, and successes that `events` has no place for. `outcome` is the HTTP status, 0 without one.
CREATE TABLE attempts (
  account  bigint NOT NULL,
  event    uuid NOT NULL,
  endpoint integer NOT NULL,
  at       bigint NOT NULL,
  outcome  smallint NOT NULL,
  duration integer NOT NULL,
  detail   text,
  body     text,
  PRIMARY KEY (account, event, endpoint, at)
);
CREATE INDEX attempts_endpoint ON attempts (endpoint, at);
