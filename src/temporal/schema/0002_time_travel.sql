-- From an instant, a source time or a position to a tx. The answers never change, which is what
-- lets tx_at() be IMMUTABLE and thus a constant at plan time. How an instant newer than the newest
-- visible basis is answered is told in docs/design/0003-immutable-instants.md.

-- Taken exclusively by the last step of a publish, shared by readers that wait one out.
CREATE FUNCTION tidemark.publish_lock() RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT 6071219443104215632 $$;

-- Returns when every publish that was in flight has ended. Holds nothing afterwards.
CREATE FUNCTION tidemark.settle() RETURNS void
LANGUAGE plpgsql VOLATILE SET lock_timeout = '30s' AS $$
BEGIN
  PERFORM pg_catalog.pg_advisory_lock_shared(tidemark.publish_lock());
  PERFORM pg_catalog.pg_advisory_unlock_shared(tidemark.publish_lock());
END
$$;

CREATE FUNCTION tidemark.dataset_of(relation regclass) RETURNS tidemark.dataset
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  d tidemark.dataset;
BEGIN
  SELECT * INTO d FROM tidemark.dataset WHERE relid = relation;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '42809',
      MESSAGE = pg_catalog.format('relation "%s" is not system-versioned', relation);
  END IF;
  RETURN d;
END
$$;

-- Refuses a tx that the dataset cannot answer for, and returns it otherwise.
CREATE FUNCTION tidemark.checked_tx(d tidemark.dataset, x bigint, asked text) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  since timestamptz;
BEGIN
  IF x IS NULL OR x < d.tx_first THEN
    SELECT b.system_time INTO since FROM tidemark.basis_journal b
    WHERE b.journal = d.journal AND b.tx_last >= d.tx_first ORDER BY b.tx_last LIMIT 1;
    RAISE EXCEPTION USING ERRCODE = '22008',
      MESSAGE = pg_catalog.format('%s precedes the first captured state of "%s"', asked,
                                  d.table_name),
      DETAIL = pg_catalog.format('It has been captured since %s.', since);
  END IF;
  IF x < d.tx_retained THEN
    RAISE EXCEPTION USING ERRCODE = '72000',
      MESSAGE = pg_catalog.format('snapshot too old: %s is older than the retained history of "%s"',
                                  asked, d.table_name);
  END IF;
  IF x >= d.tx_dropped THEN
    RAISE EXCEPTION USING ERRCODE = '42P01',
      MESSAGE = pg_catalog.format('relation "%s" did not exist at %s', d.table_name, asked);
  END IF;
  RETURN x;
END
$$;

-- VOLATILE on purpose: in READ COMMITTED its query takes a snapshot of its own.
CREATE FUNCTION tidemark.newest_tx_now(journal_id integer, instant timestamptz) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (SELECT b.tx_last FROM tidemark.basis_journal b
          WHERE b.journal = journal_id AND b.system_time <= instant
          ORDER BY b.system_time DESC LIMIT 1);
END
$$;

-- The newest tx of a journal published by `instant`; NULL if there was none yet.
CREATE FUNCTION tidemark.journal_tx_at(journal_id integer, instant timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$
DECLARE
  newest timestamptz;
  newest_any timestamptz;
BEGIN
  SELECT b.system_time INTO newest FROM tidemark.basis_journal b
  WHERE b.journal = journal_id ORDER BY b.system_time DESC LIMIT 1;
  IF instant > newest OR newest IS NULL THEN
    IF instant > pg_catalog.clock_timestamp() THEN
      RAISE EXCEPTION USING ERRCODE = '22008',
        MESSAGE = pg_catalog.format('instant %s is in the future', instant);
    END IF;
    -- A publish may be under way whose system time is not later than the instant.
    PERFORM tidemark.settle();
    IF pg_catalog.current_setting('transaction_isolation') IN ('read committed',
                                                               'read uncommitted') THEN
      RETURN tidemark.newest_tx_now(journal_id, instant);
    END IF;
    SELECT b.system_time INTO newest_any FROM tidemark.basis b
    ORDER BY b.system_time DESC LIMIT 1;
    IF (SELECT last_value FROM tidemark.published_time)
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

-- The newest tx published by an instant of system time.
CREATE FUNCTION tidemark.tx_at(relation regclass, instant timestamptz) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
DECLARE
  d tidemark.dataset;
BEGIN
  IF instant IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '22004',
      MESSAGE = 'FOR SYSTEM_TIME instant must not be null';
  END IF;
  d := tidemark.dataset_of(relation);
  RETURN tidemark.checked_tx(d, tidemark.journal_tx_at(d.journal, instant),
                             'instant ' || instant::text);
END
$$;

-- The newest tx of [from_tx, to_tx) whose commit ended at or before a position, or whose source time is
-- not later than an instant (exactly one of the two is given); NULL if there is none.
CREATE FUNCTION tidemark.tx_by_halving(journal_id integer, up_to_lsn pg_lsn, up_to_time timestamptz,
                                       from_tx bigint DEFAULT 0,
                                       to_tx bigint DEFAULT 9223372036854775807) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  low bigint;   -- every tx below it is in
  high bigint;  -- no tx from here on is in
  middle bigint;
  found tidemark.tx;
BEGIN
  SELECT t.tx INTO low FROM tidemark.tx t
  WHERE t.journal = journal_id AND t.tx >= from_tx ORDER BY t.tx LIMIT 1;
  SELECT t.tx + 1 INTO high FROM tidemark.tx t
  WHERE t.journal = journal_id AND t.tx < to_tx ORDER BY t.tx DESC LIMIT 1;
  WHILE low < high LOOP
    middle := low + (high - low) / 2;
    SELECT * INTO found FROM tidemark.tx t
    WHERE t.journal = journal_id AND t.tx >= middle ORDER BY t.tx LIMIT 1;
    IF found.end_lsn <= up_to_lsn OR found.source_time <= up_to_time THEN
      low := found.tx + 1;
    ELSE
      high := middle;
    END IF;
  END LOOP;
  RETURN (SELECT t.tx FROM tidemark.tx t
          WHERE t.journal = journal_id AND t.tx >= from_tx AND t.tx < low
          ORDER BY t.tx DESC LIMIT 1);
END
$$;

-- The newest tx up to a position, on the branch of the source's log that the position is of
-- (tidemark.log_branch); NULL if there is none.
CREATE FUNCTION tidemark.tx_by_position(journal_id integer, up_to pg_lsn) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  b record;
  found bigint;
  to_tx bigint := 9223372036854775807;
BEGIN
  FOR b IN
    SELECT l.tx_first, l.starts_at, l.common_to FROM tidemark.log_branch l
    WHERE l.journal = journal_id ORDER BY l.tx_first DESC
  LOOP
    found := tidemark.tx_by_halving(journal_id, up_to, NULL, b.tx_first, to_tx);
    IF up_to >= b.starts_at AND found IS NOT NULL THEN
      RETURN found;
    ELSIF b.common_to IS NULL THEN
      RAISE EXCEPTION USING ERRCODE = '72000',
        MESSAGE = pg_catalog.format('position %s is older than what the mirror has of the log that it '
                                    'follows now', up_to),
        DETAIL = pg_catalog.format('The mirror follows another log of the source since tx %s, from %s '
                                   'on: positions before it may be of either.',
                                   b.tx_first, b.starts_at),
        HINT = 'Ask by FOR SYSTEM_TIME or FOR SOURCE_TIME.';
    END IF;
    up_to := least(up_to, b.common_to);
    to_tx := b.tx_first;
  END LOOP;
  RETURN tidemark.tx_by_halving(journal_id, up_to, NULL, 0, to_tx);
END
$$;

-- The newest tx whose source time is not later than an instant of the source's clock.
CREATE FUNCTION tidemark.tx_at_source(relation regclass, instant timestamptz) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  d tidemark.dataset;
  received timestamptz;
BEGIN
  IF instant IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '22004',
      MESSAGE = 'FOR SOURCE_TIME instant must not be null';
  END IF;
  d := tidemark.dataset_of(relation);
  SELECT r.received_time INTO received FROM tidemark.resume r WHERE r.journal = d.journal;
  IF instant > received THEN
    RAISE EXCEPTION USING ERRCODE = '55000',
      MESSAGE = pg_catalog.format('"%s" has been received only up to %s', d.table_name, received),
      HINT = 'Wait until that source time has been received, or ask for an earlier one.';
  END IF;
  RETURN tidemark.checked_tx(
    d,
    tidemark.tx_by_halving(d.journal, NULL, instant),
    'instant ' || instant::text);
END
$$;

-- The newest tx whose commit ended at or before a position of the source's log.
CREATE FUNCTION tidemark.tx_at_position(relation regclass, "position" pg_lsn) RETURNS bigint
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

-- A tx that was found outside the running statement's snapshot must lie inside it, or rows that
-- belong to the answer would be missing.
CREATE FUNCTION tidemark.visible_tx(relation regclass, x bigint) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  newest bigint;
BEGIN
  SELECT b.tx_last INTO newest
  FROM tidemark.dataset d JOIN tidemark.basis_journal b ON b.journal = d.journal
  WHERE d.relid = relation ORDER BY b.system_time DESC LIMIT 1;
  IF x > newest THEN
    RAISE EXCEPTION USING ERRCODE = '40001',
      MESSAGE = 'instant is newer than the snapshot of this statement',
      HINT = 'Retry the statement, or ask for an earlier instant.';
  END IF;
  RETURN x;
END
$$;

-- The range forms as bounds on tx_from and tx_to (both ends included; an open end counts as the
-- largest bigint). `skip_empty`: versions that began and ended inside one basis are left out.
CREATE FUNCTION tidemark.version_window(relation regclass, axis text, form text,
                                        a timestamptz, b timestamptz,
                                        OUT from_least bigint, OUT from_most bigint,
                                        OUT to_least bigint, OUT to_most bigint,
                                        OUT skip_empty boolean)
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$
DECLARE
  d tidemark.dataset;
  lo timestamptz := a;
  hi timestamptz := b;
  tick CONSTANT interval := interval '1 microsecond';
  least_tx CONSTANT bigint := 0;
  most_tx CONSTANT bigint := 9223372036854775807;
BEGIN
  d := tidemark.dataset_of(relation);
  from_least := least_tx;
  from_most := most_tx;
  to_least := least_tx;
  to_most := most_tx;
  skip_empty := axis = 'system' AND form <> 'all';
  IF form = 'all' THEN
    RETURN;
  END IF;
  IF a IS NULL OR b IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '22004',
      MESSAGE = pg_catalog.format('FOR %s_TIME instant must not be null', upper(axis));
  END IF;
  IF form = 'symmetric' THEN
    lo := least(a, b);
    hi := greatest(a, b);
  END IF;
  IF lo > hi OR (lo = hi AND form = 'from_to') THEN
    from_most := least_tx - 1;
    RETURN;
  END IF;
  IF form = 'contained' THEN
    -- s >= lo and e <= hi
    from_least := tidemark.range_tx(relation, d.journal, axis, lo - tick) + 1;
    to_most := tidemark.range_tx(relation, d.journal, axis, hi);
    IF hi = 'infinity' THEN
      to_most := most_tx;
    END IF;
  ELSE
    -- s < hi (FROM … TO) or s <= hi (BETWEEN), and e > lo
    from_most := tidemark.range_tx(relation, d.journal, axis,
                                   CASE WHEN form = 'from_to' THEN hi - tick ELSE hi END);
    to_least := tidemark.range_tx(relation, d.journal, axis, lo) + 1;
  END IF;
END
$$;

-- The newest tx by an instant on either axis, 0 before the first. The future counts as what the
-- statement sees; up to now the answer must be one that stays, as for AS OF.
CREATE FUNCTION tidemark.range_tx(relation regclass, journal_id integer, axis text,
                                  instant timestamptz)
RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$
BEGIN
  IF axis = 'source' THEN
    RETURN coalesce(tidemark.tx_by_halving(journal_id, NULL, instant), 0);
  END IF;
  IF instant > pg_catalog.clock_timestamp() THEN
    RETURN (SELECT b.tx_last FROM tidemark.basis_journal b
            WHERE b.journal = journal_id ORDER BY b.system_time DESC LIMIT 1);
  END IF;
  RETURN tidemark.visible_tx(relation, coalesce(tidemark.journal_tx_at(journal_id, instant), 0));
END
$$;

-- What the gateway asks about the names in a statement. `functions[i]` is the text of an array:
-- the functions called in the instants of reference i.
CREATE FUNCTION tidemark.resolve(names text[], functions text[])
RETURNS TABLE (ord integer, kind text, schema_name text, relation_name text,
               volatile_function text)
-- Not in SQL: planning it anew costs more than the statements that it is asked for.
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT wanted.ord::integer,
         CASE WHEN c.oid IS NULL THEN 'missing'
              WHEN d.id IS NOT NULL THEN 'versioned'
              WHEN c.relkind IN ('v', 'm') THEN 'view'
              ELSE 'plain' END,
         n.nspname::text, c.relname::text,
         (SELECT f.name
          FROM pg_catalog.unnest(wanted.functions::text[]) AS f(name)
          CROSS JOIN LATERAL (SELECT pg_catalog.parse_ident(f.name) AS parts) i
          JOIN pg_catalog.pg_proc p ON p.proname = i.parts[pg_catalog.cardinality(i.parts)]
          JOIN pg_catalog.pg_namespace pn ON pn.oid = p.pronamespace
          WHERE p.provolatile = 'v'
            AND CASE WHEN pg_catalog.cardinality(i.parts) > 1 THEN pn.nspname = i.parts[1]
                     ELSE pg_catalog.pg_function_is_visible(p.oid) END
          LIMIT 1)
  FROM ROWS FROM (pg_catalog.unnest(resolve.names), pg_catalog.unnest(resolve.functions))
         WITH ORDINALITY AS wanted(name, functions, ord)
  LEFT JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(wanted.name)
  LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN tidemark.dataset d ON d.relid = c.oid AND d.tx_first IS NOT NULL
  ORDER BY wanted.ord;
END
$$;
