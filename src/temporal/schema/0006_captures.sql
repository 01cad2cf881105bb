-- Datasets outside a mirror: their captures, private stages, positions that are no log positions,
-- versions whose parts an outsider can recompute (docs/formats/version.md), and one publish for many
-- datasets.

-- One capture's rows before they are compared. No reader may look.
CREATE SCHEMA tidemark_stage;
REVOKE ALL ON SCHEMA tidemark_stage FROM PUBLIC;
COMMENT ON SCHEMA tidemark_stage IS 'Tidemark: rows of captures under way; private, erased afterwards';

-- A capture of several datasets belongs to no one journal; it is dead when its fence is no longer
-- its lease's.
ALTER TABLE tidemark.capture
  ALTER journal DROP NOT NULL,
  ADD lease text,
  ADD fence bigint,
  DROP CONSTRAINT capture_kind_check,
  ADD CONSTRAINT capture_kind_check
    CHECK (kind IN ('copy', 'stream', 'complete', 'cursor', 'datasets'));
CREATE INDEX basis_capture ON tidemark.basis (capture) WHERE capture IS NOT NULL;

-- Which datasets of a capture failed, by their declared names, and why.
CREATE TABLE tidemark.capture_failure (
  capture bigint NOT NULL REFERENCES tidemark.capture,
  dataset text NOT NULL,
  sqlstate text NOT NULL,
  message text NOT NULL,
  detail text,
  hint text,
  failed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (capture, dataset)
);

-- What the source says of itself, in its own terms: an object of facts.
ALTER TABLE tidemark.basis_member ADD "position" jsonb;
CREATE INDEX basis_member_dataset ON tidemark.basis_member (dataset, basis);

-- A source without a log has no log position; a cursor resumes at exact text.
ALTER TABLE tidemark.resume
  ALTER lsn DROP NOT NULL,
  ALTER received_lsn DROP NOT NULL,
  ADD "position" jsonb;
ALTER TABLE tidemark.tx ALTER end_lsn DROP NOT NULL;

-- Place in the key, from 1; NULL for other columns.
ALTER TABLE tidemark.dataset_column ADD key_position integer;
UPDATE tidemark.dataset_column c
SET key_position = pg_catalog.array_position(d.key_columns, c.name)
FROM tidemark.dataset d WHERE d.id = c.dataset;

GRANT SELECT ON tidemark.capture_failure TO tidemark_reader;

-- The newest tx whose commit ended at or before a position of the source's log.
CREATE OR REPLACE FUNCTION tidemark.tx_at_position(relation regclass, "position" pg_lsn)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  d tidemark.dataset;
  received pg_lsn;
BEGIN
  IF "position" IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '22004',
      MESSAGE = 'FOR SOURCE_POSITION position must not be null';
  END IF;
  d := tidemark.dataset_of(relation);
  SELECT r.received_lsn INTO received FROM tidemark.resume r WHERE r.journal = d.journal;
  IF received IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '0A000',
      MESSAGE = pg_catalog.format('"%s" has no source positions', d.table_name),
      DETAIL = 'It is captured now and then, and what its source was in between is not known.',
      HINT = 'Use FOR SYSTEM_TIME or FOR SOURCE_TIME.';
  END IF;
  IF "position" > received THEN
    RAISE EXCEPTION USING ERRCODE = '55000',
      MESSAGE = pg_catalog.format('"%s" has been received only up to %s', d.table_name, received),
      HINT = 'Wait with "tidemark wait --lsn", or ask for an earlier position.';
  END IF;
  RETURN tidemark.checked_tx(
    d,
    tidemark.tx_by_position(d.journal, "position"),
    'position ' || "position"::text);
END
$$;

-- docs/formats/version.md.
CREATE FUNCTION tidemark.dataset_version(parent bytea, digest bytea, live_rows bigint, puts bigint,
                                         deletions bigint) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT pg_catalog.sha256(
    coalesce(parent, ''::bytea) || digest || pg_catalog.int8send(live_rows)
    || pg_catalog.int8send(puts) || pg_catalog.int8send(deletions))
$$;
