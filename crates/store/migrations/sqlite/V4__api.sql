-- What a request was answered, where it can't be rendered again from what it made.
ALTER TABLE idempotency ADD COLUMN answer TEXT;

-- Which nodes take requests now: they share the limits on them. 0 for a node that has gone.
ALTER TABLE nodes ADD COLUMN asked_at INTEGER NOT NULL DEFAULT 0;
