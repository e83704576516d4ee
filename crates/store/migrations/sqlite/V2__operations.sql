-- Figures for operators: carrier status and hourly counters.

-- The last saved status of each node's binds to each carrier.
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

-- Hourly counters for the dashboard's charts. `measure` names what is counted. Maintenance folds the hours of a day
-- into the first one when they are some days old.
CREATE TABLE stats (
  account INTEGER NOT NULL,
  mode    INTEGER NOT NULL,
  hour    INTEGER NOT NULL,
  measure INTEGER NOT NULL,
  total   INTEGER NOT NULL,
  PRIMARY KEY (account, mode, hour, measure)
) STRICT, WITHOUT ROWID;
