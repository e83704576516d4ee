-- Figures for operators: carrier status and hourly counters.

-- The last saved status of each node's binds to each carrier.
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

-- Hourly counters for the dashboard's charts. `measure` names what is counted. Maintenance folds the hours of a day
-- into the first one when they are some days old.
CREATE TABLE stats (
  account bigint NOT NULL,
  mode    smallint NOT NULL,
  hour    integer NOT NULL,
  measure smallint NOT NULL,
  total   bigint NOT NULL,
  PRIMARY KEY (account, mode, hour, measure)
);
