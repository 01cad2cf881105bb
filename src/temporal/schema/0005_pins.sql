-- Session pins: tidemark.as_of and tidemark.snapshot (temporal-sql.md, section 2), as the gateway
-- asks for them before it rewrites a statement; and views, whose definitions it puts in their place.

-- What the session is pinned to: an instant, a basis that caps everything, both, or neither.
CREATE TYPE tidemark.pin AS (as_of timestamptz, basis bigint, basis_time timestamptz);

CREATE FUNCTION tidemark.session_pin() RETURNS tidemark.pin
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  p tidemark.pin;
  t tidemark.token;
  given text := tidemark.setting('as_of');
BEGIN
  BEGIN
    p.as_of := nullif(given, '')::timestamptz;
  EXCEPTION WHEN data_exception THEN
    RAISE EXCEPTION USING ERRCODE = '22007',
      MESSAGE = pg_catalog.format('invalid value for parameter "tidemark.as_of": "%s"', given),
      DETAIL = SQLERRM, HINT = 'RESET tidemark.as_of, or set it to an instant.';
  END;
  given := tidemark.setting('snapshot');
  IF given <> '' THEN
    t := tidemark.read_token(given, 's');
    IF NOT tidemark.has_basis(t) THEN
      RAISE EXCEPTION USING ERRCODE = '0B000',
        MESSAGE = 'snapshot token is ahead of this store',
        DETAIL = pg_catalog.format('This store does not have basis %s yet.', t.basis),
        HINT = 'Set tidemark.await to an await token taken with it, or try again later.';
    END IF;
    p.basis := t.basis;
    p.basis_time := t.system_time;
  END IF;
  RETURN p;
END
$$;

-- Two statements read the same if their pins' texts are equal. Empty: not pinned.
CREATE FUNCTION tidemark.pin_text(p tidemark.pin) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN (p).as_of IS NULL AND (p).basis IS NULL THEN ''
              ELSE coalesce(pg_catalog.encode(pg_catalog.timestamptz_send((p).as_of), 'hex'), '')
                   || '/' || coalesce((p).basis::text, '') END
$$;

-- The tx of a dataset that a basis reaches.
CREATE FUNCTION tidemark.basis_tx(d tidemark.dataset, p tidemark.pin) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN tidemark.checked_tx(
    d,
    (SELECT b.tx_last FROM tidemark.basis_journal b
     WHERE b.journal = d.journal AND b.system_time <= p.basis_time
     ORDER BY b.system_time DESC LIMIT 1),
    pg_catalog.format('basis %s', p.basis));
END
$$;

-- At which tx a session so pinned reads a dataset, and past which no clause may go. NULL: no such,
-- as for no dataset.
CREATE FUNCTION tidemark.pinned_dataset(d tidemark.dataset, p tidemark.pin,
                                        OUT tx bigint, OUT cap bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF d.id IS NULL THEN
    RETURN;
  END IF;
  IF p.basis IS NOT NULL THEN
    cap := tidemark.basis_tx(d, p);
    tx := cap;
  END IF;
  IF p.as_of IS NOT NULL THEN
    tx := least(cap, tidemark.checked_tx(d, tidemark.journal_tx_at(d.journal, p.as_of),
                                         'instant ' || p.as_of::text));
  END IF;
END
$$;

-- The same at execution, for statements whose pin may change after they are written. The largest
-- bigint reads the latest.
CREATE FUNCTION tidemark.pinned_tx(relation regclass) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce(
    (SELECT x.tx FROM tidemark.pinned_dataset(tidemark.dataset_of(relation),
                                              tidemark.session_pin()) x),
    9223372036854775807);
END
$$;

-- A tx that was found outside the running statement's snapshot must lie inside it, or rows that
-- belong to the answer would be missing. The largest bigint means what the snapshot shows.
CREATE OR REPLACE FUNCTION tidemark.visible_tx(relation regclass, x bigint) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  newest bigint;
BEGIN
  SELECT b.tx_last INTO newest
  FROM tidemark.dataset d JOIN tidemark.basis_journal b ON b.journal = d.journal
  WHERE d.relid = relation ORDER BY b.system_time DESC LIMIT 1;
  IF x > newest AND x < 9223372036854775807 THEN
    RAISE EXCEPTION USING ERRCODE = '40001',
      MESSAGE = 'instant is newer than the snapshot of this statement',
      HINT = 'Retry the statement, or ask for an earlier instant.';
  END IF;
  RETURN x;
END
$$;

CREATE FUNCTION tidemark.capped_tx(relation regclass) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce(
    (SELECT x.cap FROM tidemark.pinned_dataset(tidemark.dataset_of(relation),
                                               tidemark.session_pin()) x),
    9223372036854775807);
END
$$;

-- Runs before a statement whose pin is known only then. `write`: the command, if it writes;
-- `unpinnable`: why it cannot be read at an instant, if it cannot.
CREATE FUNCTION tidemark.obey(write text, unpinnable text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM tidemark.await();
  IF tidemark.pin_text(tidemark.session_pin()) <> '' THEN
    IF write <> '' THEN
      RAISE EXCEPTION USING ERRCODE = '25006',
        MESSAGE = pg_catalog.format('cannot execute %s in a session pinned to the past', write),
        HINT = 'RESET tidemark.as_of and tidemark.snapshot first.';
    ELSIF unpinnable <> '' THEN
      RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = unpinnable;
    END IF;
  END IF;
  PERFORM tidemark.settle();
END
$$;

-- Sampling by rows, for TABLESAMPLE on what is no table any more. Every row is in with the same
-- probability; with a seed, the same rows each time.
CREATE FUNCTION tidemark.sampled(percentage double precision, seed double precision, image text)
RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF percentage IS NULL OR seed IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = CASE WHEN seed IS NULL THEN '2202G' ELSE '2202H' END,
      MESSAGE = pg_catalog.format('TABLESAMPLE %s cannot be null',
        CASE WHEN seed IS NULL THEN 'REPEATABLE parameter' ELSE 'parameter' END);
  END IF;
  IF percentage < 0 OR percentage > 100 OR percentage = 'NaN' THEN
    RAISE EXCEPTION USING ERRCODE = '2202H',
      MESSAGE = 'sample percentage must be between 0 and 100';
  END IF;
  RETURN (pg_catalog.hashtextextended(image, pg_catalog.hashfloat8extended(seed, 0))::numeric
          + 9223372036854775808) * 100 < percentage::numeric * 18446744073709551616;
END
$$;

-- What a relation is to the rewriter.
CREATE FUNCTION tidemark.kind_of(relation oid) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT CASE WHEN d.id IS NOT NULL THEN 'versioned'
                WHEN n.nspname IN ('tidemark_current', 'tidemark_history') THEN 'plane'
                WHEN c.relkind = 'v' AND EXISTS (
                  SELECT FROM tidemark.dataset h
                  WHERE h.relid IS NOT NULL AND h.schema_name || '_history' = n.nspname
                    AND h.table_name = c.relname) THEN 'history'
                WHEN c.relkind = 'v' AND n.nspname NOT IN ('pg_catalog', 'information_schema',
                                                           'tidemark') THEN 'view'
                WHEN c.relkind = 'm' THEN 'materialized'
                ELSE 'plain' END
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN tidemark.dataset d ON d.relid = c.oid AND d.tx_first IS NOT NULL
    WHERE c.oid = relation);
END
$$;

-- The dataset whose rows a relation of kind versioned or history shows.
CREATE FUNCTION tidemark.dataset_shown_by(relation oid) RETURNS tidemark.dataset
LANGUAGE plpgsql STABLE AS $$
DECLARE
  d tidemark.dataset;
BEGIN
  SELECT h.* INTO d FROM tidemark.dataset h WHERE h.relid = relation;
  IF NOT FOUND THEN
    SELECT h.* INTO d
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN tidemark.dataset h ON h.schema_name || '_history' = n.nspname
                            AND h.table_name = c.relname
    WHERE c.oid = relation;
  END IF;
  RETURN d;
END
$$;

-- Whether a function might read a versioned table where no rewriter reaches: one that is not the
-- server's own nor immutable, and the server's own that run a query given as text.
CREATE FUNCTION tidemark.may_read_tables(p pg_catalog.pg_proc) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN (p).pronamespace = 'pg_catalog'::regnamespace THEN
      (p).proname ~ '^(query|cursor|table|schema|database)_to_xml' OR (p).proname = 'ts_stat'
    WHEN (p).pronamespace = 'information_schema'::regnamespace THEN false
    WHEN (p).pronamespace = 'tidemark'::regnamespace THEN
      (p).proname ~ '^(as_of|versions|diff)' AND tidemark.setting('snapshot') <> ''
    ELSE (p).provolatile <> 'i' END
$$;

-- What tidemark.resolve() says, and: row 0, whose relation_name is the pin's text and whose
-- volatile_function is a function among `calls` that cannot be pinned; the pinned tx and cap of each
-- versioned table. Waits for tidemark.await first.
CREATE FUNCTION tidemark.resolve_pinned(names text[], functions text[], calls text[])
RETURNS TABLE (ord integer, kind text, schema_name text, relation_name text,
               volatile_function text, pinned_tx bigint, cap_tx bigint)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
  p tidemark.pin;
  refused text;
BEGIN
  PERFORM tidemark.await();
  p := tidemark.session_pin();
  IF tidemark.pin_text(p) <> '' THEN
    SELECT f.name INTO refused
    FROM pg_catalog.unnest(calls) AS f(name)
    CROSS JOIN LATERAL (SELECT pg_catalog.parse_ident(f.name) AS parts) i
    JOIN pg_catalog.pg_proc fn ON fn.proname = i.parts[pg_catalog.cardinality(i.parts)]
    JOIN pg_catalog.pg_namespace fs ON fs.oid = fn.pronamespace
    WHERE tidemark.may_read_tables(fn)
      AND CASE WHEN pg_catalog.cardinality(i.parts) > 1 THEN fs.nspname = i.parts[1]
               ELSE pg_catalog.pg_function_is_visible(fn.oid) END
    LIMIT 1;
  END IF;
  RETURN QUERY SELECT 0, '', '', tidemark.pin_text(p), coalesce(refused, ''), NULL::bigint,
                      NULL::bigint;
  RETURN QUERY
  SELECT r.ord, r.kind, r.schema_name, r.relation_name, r.volatile_function, x.tx, x.cap
  FROM tidemark.resolve(names, functions) r
  LEFT JOIN LATERAL tidemark.pinned_dataset(
    tidemark.dataset_shown_by(
      CASE WHEN r.kind IN ('versioned', 'history')
           THEN pg_catalog.to_regclass(
                  pg_catalog.format('%I.%I', r.schema_name, r.relation_name)) END), p) x
    ON true
  ORDER BY r.ord;
END
$$;

-- The pin's text, once what tidemark.await names is here.
CREATE FUNCTION tidemark.await_pin() RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM tidemark.await();
  RETURN tidemark.pin_text(tidemark.session_pin());
END
$$;

-- Every relation that the named views read, views within views included: definitions for views, for
-- the others what the rewriter needs to know of them. Names in definitions are qualified but for
-- those of pg_catalog. `refused`: a function of the view that cannot be pinned.
CREATE FUNCTION tidemark.views(names text[])
RETURNS TABLE (kind text, schema_name text, relation_name text, definition text, refused text,
               pinned_tx bigint, cap_tx bigint)
LANGUAGE plpgsql VOLATILE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
  p tidemark.pin := tidemark.session_pin();
BEGIN
  RETURN QUERY
  WITH RECURSIVE reached AS (
    SELECT pg_catalog.to_regclass(n.name)::oid AS id FROM pg_catalog.unnest(names) n(name)
    UNION
    SELECT d.refobjid
    FROM reached v
    JOIN pg_catalog.pg_class c ON c.oid = v.id AND c.relkind = 'v'
    JOIN pg_catalog.pg_rewrite w ON w.ev_class = v.id
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass
      AND d.objid = w.oid AND d.refclassid = 'pg_catalog.pg_class'::regclass
      AND d.refobjid <> v.id
    WHERE tidemark.kind_of(v.id) = 'view'
  ), known AS (
    SELECT r.id, tidemark.kind_of(r.id) AS kind, n.nspname, c.relname
    FROM reached r
    JOIN pg_catalog.pg_class c ON c.oid = r.id
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  )
  SELECT k.kind, k.nspname::text, k.relname::text,
         CASE WHEN k.kind = 'view' THEN pg_catalog.pg_get_viewdef(k.id) ELSE '' END,
         coalesce(
           (SELECT fn.oid::regprocedure::text
            FROM pg_catalog.pg_rewrite w
            JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass
              AND d.objid = w.oid
            LEFT JOIN pg_catalog.pg_operator o
              ON d.refclassid = 'pg_catalog.pg_operator'::regclass AND o.oid = d.refobjid
            JOIN pg_catalog.pg_proc fn
              ON fn.oid = CASE WHEN d.refclassid = 'pg_catalog.pg_proc'::regclass THEN d.refobjid
                               ELSE o.oprcode END
            WHERE w.ev_class = k.id AND k.kind = 'view' AND tidemark.may_read_tables(fn)
            LIMIT 1), ''),
         x.tx, x.cap
  FROM known k
  LEFT JOIN LATERAL tidemark.pinned_dataset(tidemark.dataset_shown_by(k.id), p) x ON true;
END
$$;

-- What the gateway asks about the names in a statement. `functions[i]` is the text of an array:
-- the functions called in the instants of reference i.
CREATE OR REPLACE FUNCTION tidemark.resolve(names text[], functions text[])
RETURNS TABLE (ord integer, kind text, schema_name text, relation_name text,
               volatile_function text)
-- Not in SQL: planning it anew costs more than the statements that it is asked for.
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT wanted.ord::integer,
         CASE WHEN c.oid IS NULL THEN 'missing' ELSE tidemark.kind_of(c.oid) END,
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
  ORDER BY wanted.ord;
END
$$;

-- So that SHOW and RESET know the settings from a session's start.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['as_of', 'snapshot', 'await', 'await_timeout'] LOOP
    PERFORM pg_catalog.set_config('tidemark.' || name, '', true);
    EXECUTE pg_catalog.format('ALTER DATABASE %I SET tidemark.%I TO %L',
                              pg_catalog.current_database(), name,
                              CASE name WHEN 'await_timeout' THEN '10s' ELSE '' END);
  END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'settings tidemark.* have no defaults in this database: %', SQLERRM;
END
$$;
