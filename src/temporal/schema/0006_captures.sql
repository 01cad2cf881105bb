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
    tidemark.tx_by_halving(d.journal, "position", NULL),
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

-- The last step of a capture, in the transaction that wrote the rows: takes the publish lock, checks
-- the lease and makes the basis, whose members publish_member() then adds one by one.
CREATE FUNCTION tidemark.begin_publish(lease_name text, lease_fence bigint, capture_id bigint,
                                       OUT basis_number bigint, OUT basis_time timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
  newest timestamptz;
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock(tidemark.publish_lock());
  PERFORM FROM tidemark.lease l WHERE l.name = lease_name AND l.fence = lease_fence FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '55000',
      MESSAGE = 'another process has taken over this capture';
  END IF;
  SELECT b.system_time INTO newest FROM tidemark.basis b ORDER BY b.system_time DESC LIMIT 1;
  basis_time := greatest(pg_catalog.clock_timestamp(), newest + interval '1 microsecond');
  basis_number := pg_catalog.nextval('tidemark.basis_number');
  PERFORM pg_catalog.setval(
    'tidemark.published_time',
    (extract(epoch FROM basis_time - '2000-01-01 00:00+00') * 1000000)::bigint);
  INSERT INTO tidemark.basis (number, system_time, capture)
  VALUES (basis_number, basis_time, capture_id);
END
$$;

-- One dataset that is a journal of its own. `changed`: its transition is not empty, and `tx` is its
-- number; otherwise `tx` is the newest one, and the version is admitted again.
CREATE FUNCTION tidemark.publish_member(
  basis_number bigint, basis_time timestamptz, dataset_id integer, changed boolean,
  tx_newest bigint, digest bytea, put_count bigint, deletion_count bigint, rows_added bigint,
  extracted_from timestamptz, extracted_to timestamptz, facts jsonb, log_position pg_lsn,
  resume_at jsonb, OUT hash bytea, OUT live_rows bigint)
LANGUAGE plpgsql AS $$
DECLARE
  journal_id integer;
  v tidemark.version;
  since timestamptz;
BEGIN
  SELECT d.journal INTO STRICT journal_id FROM tidemark.dataset d WHERE d.id = dataset_id;
  SELECT r.received_time INTO since FROM tidemark.resume r WHERE r.journal = journal_id;
  since := greatest(since, extracted_from);
  SELECT * INTO v FROM tidemark.version x WHERE x.dataset = dataset_id;
  IF changed THEN
    live_rows := coalesce(v.live_rows, 0) + rows_added;
    hash := tidemark.dataset_version(v.hash, digest, live_rows, put_count, deletion_count);
    INSERT INTO tidemark.tx (journal, tx, source_time) VALUES (journal_id, tx_newest, since);
    INSERT INTO tidemark.version AS x (dataset, hash, tx, live_rows)
    VALUES (dataset_id, hash, tx_newest, live_rows)
    ON CONFLICT (dataset) DO UPDATE
    SET hash = excluded.hash, tx = excluded.tx, live_rows = excluded.live_rows;
  ELSE
    live_rows := v.live_rows;
    hash := v.hash;
  END IF;
  INSERT INTO tidemark.basis_journal (journal, system_time, basis, tx_last)
  VALUES (journal_id, basis_time, basis_number, tx_newest);
  INSERT INTO tidemark.basis_member (basis, dataset, source_position, extracted_from, extracted_to,
                                     version, tx, accepted_at, live_rows, puts, deletions,
                                     "position")
  VALUES (basis_number, dataset_id, log_position, extracted_from, extracted_to, hash, tx_newest,
          basis_time, live_rows, put_count, deletion_count, facts);
  INSERT INTO tidemark.resume AS r (journal, received_time, tx_last, basis, updated_at, "position")
  VALUES (journal_id, since, tx_newest, basis_number, basis_time, resume_at)
  ON CONFLICT (journal) DO UPDATE
  SET received_time = excluded.received_time, tx_last = excluded.tx_last,
      basis = excluded.basis, updated_at = excluded.updated_at, "position" = excluded."position";
END
$$;

REVOKE EXECUTE ON FUNCTION tidemark.begin_publish, tidemark.publish_member FROM PUBLIC;
