-- Replies and opt-outs: whose a number is, what people sent, and who wants nothing more.

-- Addresses are texts here: a short code may begin with zeros, and a sender may be a name.
CREATE TABLE numbers (
  number  text NOT NULL PRIMARY KEY,
  account bigint NOT NULL REFERENCES accounts (id)
);

-- What people sent. Account 0 keeps what was written to a number that nobody has, for who gets it.
CREATE TABLE inbound_messages (
  account     bigint NOT NULL,
  id          uuid NOT NULL,
  mode        smallint NOT NULL,
  carrier     smallint NOT NULL,
  sender      text NOT NULL,
  recipient   text NOT NULL,
  text        text NOT NULL,
  received_at bigint NOT NULL,
  in_reply_to uuid,
  keyword     smallint,
  complete    smallint NOT NULL,
  PRIMARY KEY (account, id)
);

-- Parts of messages that have not all come, and for a day those of messages that have: they may come twice.
CREATE TABLE inbound_parts (
  carrier   smallint NOT NULL,
  sender    text NOT NULL,
  recipient text NOT NULL,
  reference integer NOT NULL,
  total     smallint NOT NULL,
  sequence  smallint NOT NULL,
  text      text NOT NULL,
  label     bigint,
  done      smallint NOT NULL,
  at        bigint NOT NULL,
  PRIMARY KEY (carrier, sender, recipient, reference, total, sequence)
);
CREATE INDEX inbound_parts_age ON inbound_parts (at);
CREATE INDEX inbound_parts_open ON inbound_parts (carrier, sender, recipient, reference, total, at) WHERE done = 0;

-- Each account has, in each mode, one list that is its default from the beginning and for good.
CREATE TABLE optout_lists (
  account    bigint NOT NULL REFERENCES accounts (id),
  id         uuid NOT NULL,
  mode       smallint NOT NULL,
  name       text NOT NULL,
  standard   smallint NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (account, id)
);
CREATE UNIQUE INDEX optout_lists_standard ON optout_lists (account, mode) WHERE standard = 1;

-- Who wants nothing more, and the evidence for it.
CREATE TABLE optouts (
  list       uuid NOT NULL,
  number     bigint NOT NULL,
  source     smallint NOT NULL,
  message    uuid,
  originator text,
  note       text,
  created_at bigint NOT NULL,
  PRIMARY KEY (list, number)
);
