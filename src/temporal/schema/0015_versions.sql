-- One relation over all row versions of a table: tidemark_versions.d<id>, an empty parent of the
-- current table and of the history. The planner knows statistics of it, which it does not of a UNION ALL.
-- docs/design/0015-reading-the-past.md.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_class
             WHERE relnamespace = 'tidemark_history'::regnamespace AND relkind = 'p') THEN
    RAISE EXCEPTION USING ERRCODE = '0A000',
      MESSAGE = 'the history tables of this store are partitioned, as they were before the first release',
      HINT = 'Mirror into a new store.';
  END IF;
END
$$;

CREATE SCHEMA tidemark_versions;
COMMENT ON SCHEMA tidemark_versions IS
  'Tidemark: every row version by its transactions; read the tables themselves instead';
GRANT USAGE ON SCHEMA tidemark_versions TO tidemark_reader;

-- Several neighbours may be rewritten as one: the first of those that `number` is the last of.
ALTER TABLE tidemark.history_partition ADD COLUMN rewritten_from integer;
