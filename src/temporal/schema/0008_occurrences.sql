-- Calls from outside and calls to outside. An occurrence asks for a fresh capture of one dataset; a
-- webhook is told of each change. Both tables are bounded, and nothing in them is a secret.

-- One verified occurrence. The primary key is what refuses a replay.
--
--   queued ──claim──► running ──► done
--     ▲                 │  └────► failed     for good: only a person can help
--     └─────────────────┘ what may pass, or its process died
CREATE TABLE tidemark.occurrence (
  dataset text NOT NULL,              -- its declared name
  message_id text NOT NULL,           -- what the sender signed, by name or by digest
  signed_at timestamptz,              -- NULL where the signature covers no time
  received_at timestamptz NOT NULL,
  kept_until timestamptz NOT NULL,    -- until then a replay is recognised
  state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed')),
  due_at timestamptz NOT NULL,        -- queued: not before
  claim bigint,                       -- whose turn took it last
  attempts integer NOT NULL DEFAULT 0,
  ended_at timestamptz,
  capture bigint,                     -- done: the capture that was taken for it
  sqlstate text,                      -- why the last attempt failed
  error text,
  PRIMARY KEY (dataset, message_id)
);
CREATE INDEX occurrence_received ON tidemark.occurrence (dataset, received_at);
CREATE INDEX occurrence_kept ON tidemark.occurrence (dataset, kept_until);
CREATE INDEX occurrence_open ON tidemark.occurrence (dataset, received_at)
  WHERE state IN ('queued', 'running');
CREATE SEQUENCE tidemark.occurrence_claim;

-- Keeps a verified occurrence, or says why not: 'accepted', 'replayed', 'limited' (retry_seconds: when
-- there is room again), 'unknown' (one of a mirror's tables, which are captured together). Calls for one dataset
-- wait for each other, so that of a hundred equal ones one is accepted and the limit is exact.
CREATE FUNCTION tidemark.accept_occurrence(
  dataset_name text, id text, signed timestamptz, per_minute integer,
  OUT outcome text, OUT received timestamptz, OUT retry_seconds integer)
LANGUAGE plpgsql AS $$
DECLARE
  room_since timestamptz;
BEGIN
  IF EXISTS (SELECT FROM tidemark.dataset d JOIN tidemark.journal j ON j.id = d.journal
             WHERE d.schema_name || '.' || d.table_name = dataset_name
               AND j.publication IS NOT NULL AND j.name <> dataset_name)
  THEN
    outcome := 'unknown';
    RETURN;
  END IF;
  PERFORM pg_catalog.pg_advisory_xact_lock(
    pg_catalog.hashtextextended('tidemark occurrence received ' || dataset_name, 0));
  received := pg_catalog.clock_timestamp();
  IF EXISTS (SELECT FROM tidemark.occurrence o
             WHERE o.dataset = dataset_name AND o.message_id = id)
  THEN
    outcome := 'replayed';
    RETURN;
  END IF;
  SELECT o.received_at + interval '1 minute' INTO room_since
  FROM tidemark.occurrence o
  WHERE o.dataset = dataset_name AND o.received_at > received - interval '1 minute'
  ORDER BY o.received_at DESC OFFSET per_minute - 1 LIMIT 1;
  IF FOUND THEN
    outcome := 'limited';
    retry_seconds := greatest(1, ceil(extract(epoch FROM room_since - received)));
    RETURN;
  END IF;
  -- A signed time ends the window by itself, and no window is longer than a day. Without one the
  -- sender's own repetitions must be over: GitHub offers them for three days.
  INSERT INTO tidemark.occurrence (dataset, message_id, signed_at, received_at, kept_until, due_at)
  VALUES (dataset_name, id, signed, received,
          received + CASE WHEN signed IS NULL THEN interval '7 days' ELSE interval '1 day' END,
          received);
  -- The new one is captured later than all that are still queued, so those may go, too.
  DELETE FROM tidemark.occurrence o
  WHERE o.dataset = dataset_name
    AND o.message_id IN (
      SELECT x.message_id FROM tidemark.occurrence x
      WHERE x.dataset = dataset_name AND x.kept_until < received AND x.state <> 'running'
      ORDER BY x.kept_until LIMIT 100);
  -- Only a wake-up, so none while a listener that does not read has half filled PostgreSQL's queue.
  IF pg_catalog.pg_notification_queue_usage() <= 0.5 THEN
    PERFORM pg_catalog.pg_notify('tidemark_occurrences', '');
  END IF;
  outcome := 'accepted';
END
$$;

-- The session lock that the process holds which captures for the occurrences of a dataset. It goes with
-- its session, so that what a dead process was running can be told from what is running.
CREATE FUNCTION tidemark.occurrence_lock(dataset_name text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT pg_catalog.hashtextextended('tidemark occurrence running ' || dataset_name, 0)
$$;

-- Takes all that are queued of each dataset, those on which another process died included: they are one
-- capture's. Nothing of a dataset for which another session is capturing. Whoever claims gives each
-- dataset's lock back when its occurrences have been settled.
CREATE FUNCTION tidemark.claim_occurrences(datasets text[])
RETURNS TABLE (claimed_dataset text, claim_number bigint, occurrences bigint)
LANGUAGE plpgsql AS $$
BEGIN
  FOR claimed_dataset IN
    SELECT DISTINCT o.dataset FROM tidemark.occurrence o
    WHERE o.dataset = ANY (datasets) AND o.state IN ('queued', 'running')
  LOOP
    CONTINUE WHEN NOT pg_catalog.pg_try_advisory_lock(tidemark.occurrence_lock(claimed_dataset));
    claim_number := pg_catalog.nextval('tidemark.occurrence_claim');
    UPDATE tidemark.occurrence o
    SET state = 'running', claim = claim_number, attempts = o.attempts + 1
    WHERE o.dataset = claimed_dataset AND o.state IN ('queued', 'running');
    GET DIAGNOSTICS occurrences = ROW_COUNT;
    IF occurrences > 0 THEN
      RETURN NEXT;
    ELSE
      PERFORM pg_catalog.pg_advisory_unlock(tidemark.occurrence_lock(claimed_dataset));
    END IF;
  END LOOP;
END
$$;

-- Where each outgoing webhook stands: the last event that its receiver has acknowledged, or after which
-- it began.
CREATE TABLE tidemark.webhook (
  name text PRIMARY KEY,
  basis bigint NOT NULL,
  dataset integer NOT NULL,
  delivered bigint NOT NULL DEFAULT 0,   -- how many it has acknowledged
  delivered_at timestamptz,
  attempted_at timestamptz,
  failures integer NOT NULL DEFAULT 0,   -- attempts in a row that failed
  error text,                            -- of the last one
  disabled_at timestamptz                -- the receiver answered 410; NULL again delivers on
) WITH (fillfactor = 50);

GRANT SELECT ON tidemark.occurrence, tidemark.webhook TO tidemark_reader;
REVOKE EXECUTE ON FUNCTION tidemark.accept_occurrence, tidemark.claim_occurrences,
  tidemark.occurrence_lock FROM PUBLIC;
