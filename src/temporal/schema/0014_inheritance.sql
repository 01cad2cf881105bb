-- Tables that inherit from others (INHERITS, no partitions): a parent shows the rows of its heirs, too.
-- docs/design/0014-inheritance.md.

-- Over which txs a table inherited from another: an open row is a link of the tables themselves here
-- (ALTER TABLE … INHERIT), too. A source's link through a table that is not mirrored is one here.
CREATE TABLE tidemark.inheritance (
  child integer NOT NULL REFERENCES tidemark.dataset ON DELETE CASCADE,
  parent integer NOT NULL REFERENCES tidemark.dataset ON DELETE CASCADE,
  tx_from bigint NOT NULL,
  tx_to bigint,
  PRIMARY KEY (child, parent, tx_from)
);
CREATE INDEX inheritance_parent ON tidemark.inheritance (parent);
GRANT SELECT ON tidemark.inheritance TO tidemark_reader;

-- Every table whose rows a dataset shows or has shown, by whatever way, and over which txs: for each
-- heir without overlaps. tx_to is NULL while it does.
CREATE FUNCTION tidemark.heirs_of(dataset_id integer)
RETURNS TABLE (heir integer, tx_from bigint, tx_to bigint)
LANGUAGE sql STABLE AS $$
  WITH RECURSIVE reached AS (
    SELECT i.child, pg_catalog.int8range(i.tx_from, i.tx_to) AS during
    FROM tidemark.inheritance i WHERE i.parent = dataset_id
    UNION
    SELECT i.child, r.during * pg_catalog.int8range(i.tx_from, i.tx_to)
    FROM reached r
    JOIN tidemark.inheritance i
      ON i.parent = r.child AND r.during && pg_catalog.int8range(i.tx_from, i.tx_to)
  ), together AS (
    SELECT r.child, pg_catalog.unnest(pg_catalog.range_agg(r.during)) AS during
    FROM reached r GROUP BY r.child
  )
  SELECT t.child, pg_catalog.lower(t.during), pg_catalog.upper(t.during)
  FROM together t ORDER BY t.child, 2
$$;

-- Every dataset that has shown, or shows, the rows of this one.
CREATE FUNCTION tidemark.ancestors_of(dataset_id integer) RETURNS SETOF integer
LANGUAGE sql STABLE AS $$
  WITH RECURSIVE reached AS (
    SELECT i.parent FROM tidemark.inheritance i WHERE i.child = dataset_id
    UNION
    SELECT i.parent FROM reached r JOIN tidemark.inheritance i ON i.child = r.parent
  )
  SELECT r.parent FROM reached r ORDER BY 1
$$;

-- Refuses a tx that the dataset cannot answer for, and returns it otherwise.
CREATE OR REPLACE FUNCTION tidemark.checked_tx(d tidemark.dataset, x bigint, asked text) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  since timestamptz;
  pruned text;
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
    pruned := d.table_name;
  ELSIF EXISTS (SELECT FROM tidemark.inheritance i WHERE i.parent = d.id) THEN
    SELECT t.table_name INTO pruned
    FROM tidemark.heirs_of(d.id) h JOIN tidemark.dataset t ON t.id = h.heir
    WHERE x < t.tx_retained AND x >= h.tx_from AND (h.tx_to IS NULL OR x < h.tx_to) LIMIT 1;
  END IF;
  IF pruned IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = '72000',
      MESSAGE = pg_catalog.format('snapshot too old: %s is older than the retained history of "%s"',
                                  asked, pruned);
  END IF;
  IF x >= d.tx_dropped THEN
    RAISE EXCEPTION USING ERRCODE = '42P01',
      MESSAGE = pg_catalog.format('relation "%s" did not exist at %s', d.table_name, asked);
  END IF;
  RETURN x;
END
$$;

-- What a relation is to the rewriter. A parent is a versioned table that shows, or has shown, rows of
-- others, so that ONLY means something.
CREATE OR REPLACE FUNCTION tidemark.kind_of(relation oid) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT CASE WHEN EXISTS (SELECT FROM tidemark.inheritance i WHERE i.parent = d.id) THEN 'parent'
                WHEN d.id IS NOT NULL THEN 'versioned'
                WHEN n.nspname IN ('tidemark_current', 'tidemark_history',
                                    'tidemark_versions') THEN 'plane'
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

-- Whether a function might read a versioned table where no rewriter reaches: one that is not the
-- server's own nor immutable, and the server's own that run a query given as text.
CREATE OR REPLACE FUNCTION tidemark.may_read_tables(p pg_catalog.pg_proc) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN (p).pronamespace = 'pg_catalog'::regnamespace THEN
      (p).proname ~ '^(query|cursor|table|schema|database)_to_xml' OR (p).proname = 'ts_stat'
    WHEN (p).pronamespace = 'information_schema'::regnamespace THEN false
    WHEN (p).pronamespace = 'tidemark'::regnamespace THEN
      (p).proname = 'only_rows'
      OR (p).proname ~ '^(only_)?(as_of|versions|diff)' AND tidemark.setting('snapshot') <> ''
    ELSE (p).provolatile <> 'i' END
$$;

-- What tidemark.resolve() says, and: row 0, whose relation_name is the pin's text and whose
-- volatile_function is a function among `calls` that cannot be pinned; the pinned tx and cap of each
-- versioned table. Waits for tidemark.await first.
CREATE OR REPLACE FUNCTION tidemark.resolve_pinned(names text[], functions text[], calls text[])
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
      CASE WHEN r.kind IN ('versioned', 'parent', 'history')
           THEN pg_catalog.to_regclass(
                  pg_catalog.format('%I.%I', r.schema_name, r.relation_name)) END), p) x
    ON true
  ORDER BY r.ord;
END
$$;

-- A tx that was found outside the running statement's snapshot must lie inside it, or rows that
-- belong to the answer would be missing. The largest bigint means what the snapshot shows: just below
-- it, since that is where the current rows are said to end.
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
  RETURN least(x, 9223372036854775806);
END
$$;
