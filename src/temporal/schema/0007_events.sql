-- Events: that a dataset changed, told by the members of the bases themselves, which are numbered
-- under the publish lock and so in commit order. Counters for those who watch, in rows that a publish
-- writes anyway. docs/design/0008-events.md.

-- False where a version was only admitted again.
ALTER TABLE tidemark.basis_member ADD changed boolean NOT NULL DEFAULT true;
UPDATE tidemark.basis_member m SET changed = false
FROM (SELECT x.basis, x.dataset, x.tx = lag(x.tx) OVER (PARTITION BY x.dataset ORDER BY x.basis)
      FROM tidemark.basis_member x) AS p (basis, dataset, again)
WHERE p.again AND m.basis = p.basis AND m.dataset = p.dataset;

-- Of all publishes so far.
ALTER TABLE tidemark.version
  ADD puts bigint NOT NULL DEFAULT 0,
  ADD deletions bigint NOT NULL DEFAULT 0;
UPDATE tidemark.version v SET puts = m.puts, deletions = m.deletions
FROM (SELECT x.dataset, sum(x.puts), sum(x.deletions) FROM tidemark.basis_member x
      GROUP BY x.dataset) AS m (dataset, puts, deletions)
WHERE v.dataset = m.dataset;

-- Of a dataset outside mirrors: published captures, unchanged ones too, and how long they read.
ALTER TABLE tidemark.resume
  ADD captures bigint NOT NULL DEFAULT 0,
  ADD capture_seconds double precision NOT NULL DEFAULT 0;
UPDATE tidemark.resume r SET captures = m.captures, capture_seconds = m.seconds
FROM (SELECT d.journal, count(*), sum(extract(epoch FROM x.extracted_to - x.extracted_from))
      FROM tidemark.basis_member x
      JOIN tidemark.dataset d ON d.id = x.dataset
      JOIN tidemark.journal j ON j.id = d.journal
      WHERE j.publication IS NULL GROUP BY d.journal) AS m (journal, captures, seconds)
WHERE r.journal = m.journal;

-- How often following the mirror has failed.
ALTER TABLE tidemark.progress ADD failures bigint NOT NULL DEFAULT 0;

-- How often a capture of a dataset has failed; by its declared name, since a first capture that fails
-- leaves nothing else.
CREATE TABLE tidemark.failure_count (
  dataset text PRIMARY KEY,
  failures bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO tidemark.failure_count
SELECT f.dataset, count(*) FROM tidemark.capture_failure f GROUP BY f.dataset;
CREATE FUNCTION tidemark.count_failure() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO tidemark.failure_count AS c (dataset, failures) VALUES (NEW.dataset, 1)
  ON CONFLICT (dataset) DO UPDATE SET failures = c.failures + 1;
  RETURN NULL;
END
$$;
CREATE TRIGGER count_failure AFTER INSERT ON tidemark.capture_failure
FOR EACH ROW EXECUTE FUNCTION tidemark.count_failure();

-- Events up to this one may be gone. Raised by whatever deletes members.
CREATE TABLE tidemark.event_horizon (basis bigint NOT NULL, dataset integer NOT NULL);
INSERT INTO tidemark.event_horizon VALUES (0, 0);
CREATE FUNCTION tidemark.raise_event_horizon() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE tidemark.event_horizon h SET basis = newest.basis, dataset = newest.dataset
  FROM (SELECT g.basis, g.dataset FROM gone g
        ORDER BY g.basis DESC, g.dataset DESC LIMIT 1) AS newest
  WHERE (h.basis, h.dataset) < (newest.basis, newest.dataset);
  RETURN NULL;
END
$$;
CREATE TRIGGER raise_event_horizon AFTER DELETE ON tidemark.basis_member
REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION tidemark.raise_event_horizon();

-- Whether the journal is one declared dataset of strategy cdc, which bears the journal's name.
ALTER TABLE tidemark.journal ADD single boolean NOT NULL DEFAULT false;

-- One row for each dataset that a basis changed; ordered by (basis, dataset_id). A dataset outside
-- mirrors bears its declared name.
CREATE VIEW tidemark.event AS
SELECT m.basis || '-' || m.dataset AS id,
       m.basis,
       m.dataset AS dataset_id,
       'dataset.changed'::text AS kind,
       CASE WHEN j.publication IS NULL OR j.single THEN j.name
            ELSE d.schema_name || '.' || d.table_name END AS dataset,
       d.schema_name || '.' || d.table_name AS relation,
       j.name AS journal,
       m.accepted_at AS system_time,
       pg_catalog.encode(m.version, 'hex') AS version,
       m.tx,
       m.live_rows AS rows,
       m.puts,
       m.deletions,
       coalesce(m."position", CASE WHEN m.source_position IS NOT NULL
                THEN pg_catalog.jsonb_build_object('lsn', m.source_position) END) AS "position"
FROM tidemark.basis_member m
JOIN tidemark.dataset d ON d.id = m.dataset
JOIN tidemark.journal j ON j.id = d.journal
WHERE m.changed;
COMMENT ON VIEW tidemark.event IS 'Tidemark: which datasets each basis changed; LISTEN tidemark_events tells of new rows';

GRANT SELECT ON tidemark.event, tidemark.event_horizon, tidemark.failure_count TO tidemark_reader;

-- An event as JSON: the columns of tidemark.event. Inlined where it is called.
CREATE FUNCTION tidemark.event_text(
  basis bigint, dataset_id integer, dataset text, relation text, journal text,
  system_time timestamptz, version bytea, tx bigint, rows bigint, puts bigint, deletions bigint,
  "position" jsonb) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT pg_catalog.json_build_object(
    'id', basis || '-' || dataset_id, 'basis', basis, 'dataset_id', dataset_id,
    'kind', 'dataset.changed', 'dataset', dataset, 'relation', relation, 'journal', journal,
    'system_time', system_time, 'version', pg_catalog.encode(version, 'hex'), 'tx', tx,
    'rows', rows, 'puts', puts, 'deletions', deletions, 'position', "position")::text
$$;
CREATE FUNCTION tidemark.event_text(e tidemark.event) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT tidemark.event_text(e.basis, e.dataset_id, e.dataset, e.relation, e.journal,
                             e.system_time, pg_catalog.decode(e.version, 'hex'), e.tx, e.rows,
                             e.puts, e.deletions, e."position")
$$;

-- Wakes those who LISTEN tidemark_events when this transaction commits: with the event as JSON, or
-- with its id and kind where that is too long. Only a wake-up: the view is the truth. A listener that
-- never reads its notifications would fill PostgreSQL's queue, and a full queue fails whoever commits
-- a NOTIFY; so there is none while half of it is in use, and nobody can stop a publish.
CREATE FUNCTION tidemark.announce(event text, basis bigint, dataset_id integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF pg_catalog.pg_notification_queue_usage() > 0.5 THEN
    RETURN;
  END IF;
  IF pg_catalog.octet_length(event) > 7900 THEN
    event := pg_catalog.json_build_object('id', basis || '-' || dataset_id,
                                          'kind', 'dataset.changed');
  END IF;
  PERFORM pg_catalog.pg_notify('tidemark_events', event);
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
    INSERT INTO tidemark.version AS x (dataset, hash, tx, live_rows, puts, deletions)
    VALUES (dataset_id, hash, tx_newest, live_rows, put_count, deletion_count)
    ON CONFLICT (dataset) DO UPDATE
    SET hash = excluded.hash, tx = excluded.tx, live_rows = excluded.live_rows,
        puts = x.puts + excluded.puts, deletions = x.deletions + excluded.deletions;
  ELSE
    live_rows := v.live_rows;
    hash := v.hash;
  END IF;
  INSERT INTO tidemark.basis_journal (journal, system_time, basis, tx_last)
  VALUES (journal_id, basis_time, basis_number, tx_newest);
  INSERT INTO tidemark.basis_member (basis, dataset, source_position, extracted_from, extracted_to,
                                     version, tx, accepted_at, live_rows, puts, deletions,
                                     "position", changed)
  VALUES (basis_number, dataset_id, log_position, extracted_from, extracted_to, hash, tx_newest,
          basis_time, live_rows, put_count, deletion_count, facts, changed);
  INSERT INTO tidemark.resume AS r (journal, received_time, tx_last, basis, updated_at, "position",
                                    captures, capture_seconds)
  VALUES (journal_id, since, tx_newest, basis_number, basis_time, resume_at, 1,
          greatest(extract(epoch FROM extracted_to - extracted_from), 0))
  ON CONFLICT (journal) DO UPDATE
  SET received_time = excluded.received_time, tx_last = excluded.tx_last,
      basis = excluded.basis, updated_at = excluded.updated_at, "position" = excluded."position",
      captures = r.captures + 1,
      capture_seconds = r.capture_seconds + excluded.capture_seconds;
  IF changed THEN
    PERFORM tidemark.announce(tidemark.event_text(e), basis_number, e.dataset_id)
    FROM tidemark.event e
    WHERE e.basis = basis_number AND e.dataset_id = publish_member.dataset_id;
  END IF;
END
$$;

REVOKE EXECUTE ON FUNCTION tidemark.announce, tidemark.publish_member FROM PUBLIC;
