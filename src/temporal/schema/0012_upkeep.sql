-- For those who look after a mirror: what verify has compared, and how near a slot is to its end.

-- What the source may still write before it drops log that the slot needs; NULL: it is not limited.
ALTER TABLE tidemark.progress ADD slot_safe_bytes bigint;

-- What the newest `tidemark verify` of each mirrored table has compared, so that one that was cut
-- short goes on where it stopped.
CREATE SEQUENCE tidemark.verification_run;

CREATE TABLE tidemark.verification (
  dataset integer PRIMARY KEY, -- no foreign key: its lock would meet a publish that renames
  run bigint NOT NULL,
  key_columns text[],          -- by which it is cut into chunks; NULL: it is compared as a whole
  reached text[],              -- every key up to this one has been compared
  first_position pg_lsn,       -- where the source stood for the first chunk …
  "position" pg_lsn,           -- … and for the newest one
  segments integer NOT NULL DEFAULT 0,  -- at how many points of the source; 1: not interrupted
  chunks bigint NOT NULL DEFAULT 0,
  source_rows bigint NOT NULL DEFAULT 0,
  mirror_rows bigint NOT NULL DEFAULT 0,
  differing boolean NOT NULL DEFAULT false,
  differences jsonb NOT NULL DEFAULT '[]',
  not_compared text,
  started_at timestamptz,      -- NULL: its turn has not come yet
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz
) WITH (fillfactor = 50);
GRANT SELECT ON tidemark.verification TO tidemark_reader;
