-- Up to which tx every snapshot there is sees everything, so that plans whose instant is older need
-- not ask at each of their scans. docs/design/0015-reading-the-past.md.

-- The least that it can be; only ever grows. 0: not known.
ALTER TABLE tidemark.journal ADD tx_seen_by_all bigint NOT NULL DEFAULT 0;

-- Holds nothing. What VACUUM (FREEZE) makes its relfrozenxid is a transaction before which all have
-- ended for every snapshot.
CREATE TABLE tidemark.snapshot_horizon ();

-- IMMUTABLE on purpose: folded while a statement is planned, and what was true once stays true. A
-- standby may have older snapshots than the server that found it to be so.
CREATE FUNCTION tidemark.seen_by_all(relation regclass, x bigint) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN x <= (SELECT j.tx_seen_by_all FROM tidemark.journal j
               WHERE j.id = (SELECT d.journal FROM tidemark.dataset d WHERE d.relid = relation))
         AND NOT pg_catalog.pg_is_in_recovery();
END
$$;

-- A tx that was found outside the running statement's snapshot must lie inside it, or rows that
-- belong to the answer would be missing. The largest bigint means what the snapshot shows: just below
-- it, since that is where the current rows are said to end.
CREATE FUNCTION tidemark.checked_visible_tx(relation regclass, x bigint) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
  -- Not a join: the newest basis must come from the end of its index, however many there are.
  IF x > (SELECT b.tx_last FROM tidemark.basis_journal b
          WHERE b.journal = (SELECT d.journal FROM tidemark.dataset d WHERE d.relid = relation)
          ORDER BY b.system_time DESC LIMIT 1)
     AND x < 9223372036854775807 THEN
    RAISE EXCEPTION USING ERRCODE = '40001',
      MESSAGE = 'instant is newer than the snapshot of this statement',
      HINT = 'Retry the statement, or ask for an earlier instant.';
  END IF;
  RETURN least(x, 9223372036854775806);
END
$$;

-- Inlined by the planner, which then drops the check of a tx that all see.
CREATE OR REPLACE FUNCTION tidemark.visible_tx(relation regclass, x bigint) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN tidemark.seen_by_all(relation, x) THEN x
              ELSE tidemark.checked_visible_tx(relation, x) END
$$;
