-- Tokens: opaque, versioned, checksummed text that names a basis (docs/formats/token.md). And what a
-- store that replays another (a hot standby) may answer.

-- The parts of a token of either kind. `kind`: 's' snapshot, 'a' await.
CREATE TYPE tidemark.token AS (
  kind text,
  basis bigint,
  system_time timestamptz,
  timeline integer,
  lsn pg_lsn
);

-- base64url without padding of: format, kind, store, basis, system time in microseconds since
-- 2000-01-01 UTC, timeline and log position (both 0 in a snapshot token), checksum.
CREATE FUNCTION tidemark.write_token(t tidemark.token) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
  bytes bytea;
BEGIN
  bytes := '\x01'::bytea || pg_catalog.convert_to(t.kind, 'UTF8')
    || (SELECT pg_catalog.uuid_send(s.id) FROM tidemark.store s)
    || pg_catalog.int8send(t.basis) || pg_catalog.timestamptz_send(t.system_time)
    || pg_catalog.int4send(coalesce(t.timeline, 0))
    || pg_catalog.pg_lsn_send(coalesce(t.lsn, '0/0'));
  bytes := bytes || pg_catalog.substr(pg_catalog.sha256(bytes), 1, 4);
  RETURN pg_catalog.rtrim(
    pg_catalog.translate(pg_catalog.encode(bytes, 'base64'), E'+/\n', '-_'), '=');
END
$$;

-- Throws 22023 for anything that write_token() of this store did not write.
CREATE FUNCTION tidemark.read_token(token text, wanted text) RETURNS tidemark.token
LANGUAGE plpgsql STABLE AS $$
DECLARE
  bytes bytea;
  t tidemark.token;
  word text := CASE wanted WHEN 's' THEN 'snapshot' ELSE 'await' END;
  micros bigint;
BEGIN
  BEGIN
    bytes := pg_catalog.decode(
      pg_catalog.rpad(pg_catalog.translate(token, '-_', '+/'),
                      ((pg_catalog.length(token) + 3) / 4) * 4, '='), 'base64');
  EXCEPTION WHEN data_exception THEN
    bytes := NULL;
  END;
  IF bytes IS NULL OR pg_catalog.length(bytes) <> 50
     OR pg_catalog.substr(bytes, 1, 1) <> '\x01'::bytea
     OR pg_catalog.substr(pg_catalog.sha256(pg_catalog.substr(bytes, 1, 46)), 1, 4)
        <> pg_catalog.substr(bytes, 47, 4) THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = pg_catalog.format('invalid %s token', word),
      DETAIL = 'It is damaged, or no token of this version of Tidemark.';
  END IF;
  t.kind := pg_catalog.convert_from(pg_catalog.substr(bytes, 2, 1), 'SQL_ASCII');
  IF t.kind <> wanted THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = pg_catalog.format('invalid %s token', word),
      DETAIL = pg_catalog.format('It is a token of the other kind, for tidemark.%s.',
                                 CASE t.kind WHEN 's' THEN 'snapshot' ELSE 'await' END);
  END IF;
  IF pg_catalog.substr(bytes, 3, 16) <> (SELECT pg_catalog.uuid_send(s.id) FROM tidemark.store s)
  THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = pg_catalog.format('invalid %s token', word),
      DETAIL = 'It is of another store.';
  END IF;
  t.basis := ('x' || pg_catalog.encode(pg_catalog.substr(bytes, 19, 8), 'hex'))::bit(64)::bigint;
  micros := ('x' || pg_catalog.encode(pg_catalog.substr(bytes, 27, 8), 'hex'))::bit(64)::bigint;
  t.system_time := timestamptz '2000-01-01 00:00+00'
    + pg_catalog.make_interval(secs => micros / 1000000)
    + (micros % 1000000) * interval '1 microsecond';
  t.timeline := ('x' || pg_catalog.encode(pg_catalog.substr(bytes, 35, 4), 'hex'))::bit(32)::integer;
  t.lsn := '0/0'::pg_lsn
    + ('x' || pg_catalog.encode(pg_catalog.substr(bytes, 39, 8), 'hex'))::bit(64)::bigint;
  RETURN t;
END
$$;

-- Where this server's log stands: what it has written, or replayed. The timeline is 0 where the role
-- may not ask for it.
CREATE FUNCTION tidemark.log_position(OUT timeline integer, OUT lsn pg_lsn)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  lsn := CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
              ELSE pg_catalog.pg_current_wal_insert_lsn() END;
  timeline := 0;
  IF pg_catalog.has_function_privilege('pg_catalog.pg_control_checkpoint()', 'EXECUTE') THEN
    timeline := (SELECT c.timeline_id FROM pg_catalog.pg_control_checkpoint() c);
  END IF;
END
$$;

-- Names the newest basis published by `instant`, or the newest of all.
CREATE FUNCTION tidemark.snapshot_token(instant timestamptz DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  t tidemark.token;
  newest timestamptz;
BEGIN
  SELECT b.system_time INTO newest FROM tidemark.basis b ORDER BY b.system_time DESC LIMIT 1;
  IF instant > newest THEN
    PERFORM tidemark.finish_publishes(instant);
  END IF;
  SELECT 's', b.number, b.system_time INTO t.kind, t.basis, t.system_time FROM tidemark.basis b
  WHERE instant IS NULL OR b.system_time <= instant ORDER BY b.system_time DESC LIMIT 1;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '22008',
      MESSAGE = coalesce('instant ' || instant::text || ' precedes the first basis of this store',
                         'nothing has been published yet');
  END IF;
  RETURN tidemark.write_token(t);
END
$$;

-- Names the newest basis that this session sees, for a reader elsewhere to wait for.
CREATE FUNCTION tidemark.await_token() RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
  t tidemark.token;
BEGIN
  SELECT 'a', b.number, b.system_time INTO t.kind, t.basis, t.system_time FROM tidemark.basis b
  ORDER BY b.system_time DESC LIMIT 1;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '22008', MESSAGE = 'nothing has been published yet';
  END IF;
  SELECT p.timeline, p.lsn INTO t.timeline, t.lsn FROM tidemark.log_position() p;
  RETURN tidemark.write_token(t);
END
$$;

-- A setting as text, empty when it is not set.
CREATE FUNCTION tidemark.setting(name text) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT pg_catalog.btrim(coalesce(pg_catalog.current_setting('tidemark.' || name, true), ''))
$$;

-- How long to wait for what a token or an instant needs: tidemark.await_timeout. A number without a
-- unit is in milliseconds, as in PostgreSQL's own timeouts.
CREATE FUNCTION tidemark.await_timeout() RETURNS interval
LANGUAGE plpgsql STABLE AS $$
DECLARE
  given text := tidemark.setting('await_timeout');
BEGIN
  IF given = '' THEN
    RETURN interval '10 seconds';
  END IF;
  IF given ~ '^[0-9]+$' THEN
    RETURN given::bigint * interval '1 millisecond';
  END IF;
  RETURN given::interval;
EXCEPTION WHEN data_exception THEN
  RAISE EXCEPTION USING ERRCODE = '22023',
    MESSAGE = pg_catalog.format('invalid value for parameter "tidemark.await_timeout": "%s"', given),
    HINT = 'Write it as an interval, such as 10s.';
END
$$;

-- VOLATILE on purpose, all three: in READ COMMITTED their queries take snapshots of their own.
CREATE FUNCTION tidemark.has_basis(t tidemark.token) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  here timestamptz;
BEGIN
  SELECT b.system_time INTO here FROM tidemark.basis b WHERE b.number = t.basis;
  IF here <> t.system_time THEN
    RAISE EXCEPTION USING ERRCODE = '22023',
      MESSAGE = pg_catalog.format('invalid %s token',
                                  CASE t.kind WHEN 's' THEN 'snapshot' ELSE 'await' END),
      DETAIL = 'The basis it names was published in another history of this store.';
  END IF;
  RETURN here IS NOT NULL
         OR t.basis < (SELECT b.number FROM tidemark.basis b ORDER BY b.system_time DESC LIMIT 1);
END
$$;

-- Waits until this store has what tidemark.await names.
CREATE FUNCTION tidemark.await() RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  token text := tidemark.setting('await');
  t tidemark.token;
  deadline timestamptz;
BEGIN
  IF token = '' THEN
    RETURN;
  END IF;
  t := tidemark.read_token(token, 'a');
  IF tidemark.has_basis(t) THEN
    RETURN;
  END IF;
  IF pg_catalog.current_setting('transaction_isolation') NOT IN ('read committed',
                                                                 'read uncommitted') THEN
    RAISE EXCEPTION USING ERRCODE = '40001',
      MESSAGE = 'await token is newer than the snapshot of this transaction',
      HINT = 'Retry the transaction, or set tidemark.await before it begins.';
  END IF;
  deadline := pg_catalog.clock_timestamp() + tidemark.await_timeout();
  LOOP
    PERFORM pg_catalog.pg_sleep(0.005);
    EXIT WHEN tidemark.has_basis(t);
    IF pg_catalog.clock_timestamp() > deadline THEN
      RAISE EXCEPTION USING ERRCODE = '57014',
        MESSAGE = 'canceling statement due to tidemark.await_timeout',
        DETAIL = pg_catalog.format('This store does not have basis %s yet.', t.basis);
    END IF;
  END LOOP;
END
$$;

-- Up to when this server knows of every publish: only a store that publishes itself knows up to now.
CREATE FUNCTION tidemark.replayed_time() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN greatest(
    (SELECT b.system_time FROM tidemark.basis b ORDER BY b.system_time DESC LIMIT 1),
    (SELECT max(r.updated_at) FROM tidemark.resume r));
END
$$;

-- Returns when every publish with a system time up to `instant` has ended and is visible to a new
-- snapshot. On a standby that is when the log has been replayed so far.
CREATE FUNCTION tidemark.finish_publishes(instant timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  deadline timestamptz;
BEGIN
  IF instant > pg_catalog.clock_timestamp() THEN
    RAISE EXCEPTION USING ERRCODE = '22008',
      MESSAGE = pg_catalog.format('instant %s is in the future', instant);
  END IF;
  IF NOT pg_catalog.pg_is_in_recovery() THEN
    PERFORM tidemark.settle();
    RETURN;
  END IF;
  deadline := pg_catalog.clock_timestamp() + tidemark.await_timeout();
  WHILE instant > tidemark.replayed_time() OR tidemark.replayed_time() IS NULL LOOP
    IF pg_catalog.clock_timestamp() > deadline
       OR pg_catalog.current_setting('transaction_isolation') NOT IN ('read committed',
                                                                      'read uncommitted') THEN
      RAISE EXCEPTION USING ERRCODE = '55000',
        MESSAGE = pg_catalog.format('this store has been replayed only up to %s',
                                    tidemark.replayed_time()),
        HINT = 'Ask for an earlier instant, or raise tidemark.await_timeout.';
    END IF;
    PERFORM pg_catalog.pg_sleep(0.005);
  END LOOP;
END
$$;

-- The newest tx of a journal published by `instant`; NULL if there was none yet.
CREATE OR REPLACE FUNCTION tidemark.journal_tx_at(journal_id integer, instant timestamptz)
RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$
DECLARE
  newest timestamptz;
  newest_any timestamptz;
BEGIN
  SELECT b.system_time INTO newest FROM tidemark.basis_journal b
  WHERE b.journal = journal_id ORDER BY b.system_time DESC LIMIT 1;
  IF instant > newest OR newest IS NULL THEN
    -- A publish may be under way whose system time is not later than the instant.
    PERFORM tidemark.finish_publishes(instant);
    IF pg_catalog.current_setting('transaction_isolation') IN ('read committed',
                                                               'read uncommitted') THEN
      RETURN tidemark.newest_tx_now(journal_id, instant);
    END IF;
    SELECT b.system_time INTO newest_any FROM tidemark.basis b
    ORDER BY b.system_time DESC LIMIT 1;
    -- On a standby, finish_publishes() has answered from this very snapshot.
    IF NOT pg_catalog.pg_is_in_recovery() AND (SELECT last_value FROM tidemark.published_time)
       > coalesce((extract(epoch FROM newest_any - '2000-01-01 00:00+00') * 1000000)::bigint, 0)
    THEN
      RAISE EXCEPTION USING ERRCODE = '40001',
        MESSAGE = 'instant is newer than the snapshot of this transaction',
        DETAIL = 'Something has been published since the transaction took its snapshot.',
        HINT = 'Retry the transaction, ask for an earlier instant, or use READ COMMITTED.';
    END IF;
  END IF;
  RETURN (SELECT b.tx_last FROM tidemark.basis_journal b
          WHERE b.journal = journal_id AND b.system_time <= instant
          ORDER BY b.system_time DESC LIMIT 1);
END
$$;

-- A keep-alive on an idle stream: nothing up to here is missing. The lock makes updated_at an instant
-- up to which every publish is known: none is in flight, and later ones get later times.
CREATE OR REPLACE FUNCTION tidemark.receive(journal_id integer, lease_name text, lease_fence bigint,
                                            received pg_lsn, source_time timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM tidemark.lease l WHERE l.name = lease_name AND l.fence = lease_fence FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '55000',
      MESSAGE = 'another process has taken over this capture';
  END IF;
  PERFORM pg_catalog.pg_advisory_xact_lock_shared(tidemark.publish_lock());
  UPDATE tidemark.resume r
  SET received_lsn = greatest(r.received_lsn, received),
      received_time = greatest(r.received_time, source_time),
      updated_at = greatest(r.updated_at, pg_catalog.clock_timestamp())
  WHERE r.journal = journal_id;
END
$$;
