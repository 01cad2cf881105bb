-- Mirrors whose source goes on with another log: another server, one that was restored to an earlier
-- point, or a standby that had not received all.

-- From which tx on a journal's positions are of another log than before.
CREATE TABLE tidemark.log_branch (
  journal integer NOT NULL REFERENCES tidemark.journal,
  tx_first bigint NOT NULL,
  system_identifier text NOT NULL,
  timeline integer NOT NULL,
  starts_at pg_lsn NOT NULL,   -- where the mirror began to follow it
  common_to pg_lsn,            -- up to here it is the log that was followed before; NULL: not known
  reason text NOT NULL,
  noted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (journal, tx_first)
);
GRANT SELECT ON tidemark.log_branch TO tidemark_reader;

-- From the journal's next tx on, its positions are of a log that is followed from `start` on; every table
-- is to be read whole again. On another server no table has the OID that is known: each gets one that
-- no published table has, and is found by its name.
CREATE FUNCTION tidemark.follow_log(
  journal_id integer, identifier text, timeline_now integer, history text, start pg_lsn,
  common pg_lsn, why text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  next_tx bigint;
BEGIN
  UPDATE tidemark.resume r SET lsn = start, received_lsn = start
  WHERE r.journal = journal_id RETURNING r.tx_last + 1 INTO STRICT next_tx;
  INSERT INTO tidemark.log_branch AS l (journal, tx_first, system_identifier, timeline, starts_at,
                                        common_to, reason)
  VALUES (journal_id, next_tx, identifier, timeline_now, start, common, why)
  ON CONFLICT (journal, tx_first) DO UPDATE  -- nothing was published from the one before
  SET system_identifier = excluded.system_identifier, timeline = excluded.timeline,
      starts_at = excluded.starts_at, reason = excluded.reason, noted_at = excluded.noted_at,
      common_to = CASE WHEN l.common_to IS NOT NULL AND excluded.common_to IS NOT NULL
                       THEN least(l.common_to, excluded.common_to) END;
  PERFORM tidemark.request_resync(d.id, why) FROM tidemark.dataset d
  WHERE d.journal = journal_id AND d.tx_first IS NOT NULL AND d.tx_dropped IS NULL;
  IF EXISTS (SELECT FROM tidemark.journal j JOIN tidemark.source s ON s.id = j.source
             WHERE j.id = journal_id AND s.system_identifier <> identifier) THEN
    UPDATE tidemark.dataset d SET source_oid = n.oid
    FROM (SELECT x.id, pg_catalog.row_number() OVER (ORDER BY x.id)::integer::oid AS oid
          FROM tidemark.dataset x WHERE x.journal = journal_id) AS n
    WHERE d.id = n.id;
  END IF;
  UPDATE tidemark.source s
  SET system_identifier = identifier, timeline = timeline_now, timeline_history = history
  FROM tidemark.journal j WHERE j.id = journal_id AND s.id = j.source;
END
$$;

-- The source went on with a new timeline, from a place that the mirror has not passed.
CREATE FUNCTION tidemark.follow_timeline(journal_id integer, timeline_now integer, history text,
                                         left_at pg_lsn) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE tidemark.resume r SET received_lsn = least(r.received_lsn, left_at)
  WHERE r.journal = journal_id;
  UPDATE tidemark.source s SET timeline = timeline_now, timeline_history = history
  FROM tidemark.journal j WHERE j.id = journal_id AND s.id = j.source;
END
$$;

REVOKE EXECUTE ON FUNCTION tidemark.follow_log, tidemark.follow_timeline FROM PUBLIC;
