-- Where history ends on purpose.

-- Values of a key were taken out of all history: that it happened, not what they were.
CREATE TABLE tidemark.erasure (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dataset integer NOT NULL,
  key_columns text[] NOT NULL,
  versions bigint NOT NULL,    -- how many were removed
  erased_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
GRANT SELECT ON tidemark.erasure TO tidemark_reader;
