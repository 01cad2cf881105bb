-- Mirrors whose source changes under them: columns that keep their identity, what the source's catalog
-- said when a table was last read whole, and tables that are to be read whole again.

-- The column's number at the source, where it is not its number here: a column that had to begin anew.
ALTER TABLE tidemark.dataset_column ADD source_number integer;
-- Added with a default that older rows read from then on: at an instant before this tx they read NULL.
ALTER TABLE tidemark.dataset_column ADD null_before bigint;

ALTER TABLE tidemark.dataset
  ADD source_state text;       -- what would change without the stream telling

-- A complete re-capture of one table: asked for by a person, or found to be needed.
CREATE TABLE tidemark.resync (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dataset integer NOT NULL,    -- no foreign key: its lock would meet a publish that renames
  reason text NOT NULL,
  requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz,
  capture bigint,              -- whose basis has its result
  puts bigint,
  deletions bigint,
  sqlstate text,               -- why the last try failed
  error text
);
CREATE INDEX resync_open ON tidemark.resync (dataset) WHERE ended_at IS NULL;
GRANT SELECT ON tidemark.resync TO tidemark_reader;

-- Asks for it, unless it has been asked for already. Returns the request.
CREATE FUNCTION tidemark.request_resync(dataset_id integer, why text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  request bigint;
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock(
    pg_catalog.hashtextextended('tidemark resync ' || dataset_id, 0));
  SELECT r.id INTO request FROM tidemark.resync r
  WHERE r.dataset = dataset_id AND r.ended_at IS NULL ORDER BY r.id DESC LIMIT 1;
  IF NOT FOUND THEN
    INSERT INTO tidemark.resync (dataset, reason) VALUES (dataset_id, why) RETURNING id INTO request;
  END IF;
  RETURN request;
END
$$;
REVOKE EXECUTE ON FUNCTION tidemark.request_resync FROM PUBLIC;
