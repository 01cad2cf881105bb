-- Row versions that an update of a current table ends go to history from the update itself, which has
-- them at hand, instead of being looked up a second time. docs/design/0016-draining.md.

-- Runs what the setting tidemark.keep_ended holds, once: a statement that reads the rows as they were
-- from `ended`. How many rows it wrote is left in tidemark.kept_ended. Whoever else updates a current
-- table has not set it.
CREATE FUNCTION tidemark.keep_ended() RETURNS trigger
LANGUAGE plpgsql
-- The session that applies changes has them off, for its own statements.
SET enable_hashjoin = on SET enable_mergejoin = on SET enable_material = on SET enable_seqscan = on
AS $$
DECLARE
  statement text := pg_catalog.current_setting('tidemark.keep_ended', true);
  kept bigint;
BEGIN
  IF statement <> '' THEN
    PERFORM pg_catalog.set_config('tidemark.keep_ended', '', true);
    EXECUTE statement;
    GET DIAGNOSTICS kept = ROW_COUNT;
    PERFORM pg_catalog.set_config('tidemark.kept_ended', kept::text, true);
  END IF;
  RETURN NULL;
END
$$;

CREATE FUNCTION tidemark.keep_ended_of(current_table regclass) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE pg_catalog.format(
    'CREATE TRIGGER keep_ended AFTER UPDATE ON %1$s REFERENCING OLD TABLE AS ended '
    'FOR EACH STATEMENT EXECUTE FUNCTION tidemark.keep_ended(); '
    'ALTER TABLE %1$s ENABLE ALWAYS TRIGGER keep_ended', current_table);
END
$$;
REVOKE EXECUTE ON FUNCTION tidemark.keep_ended, tidemark.keep_ended_of FROM PUBLIC;

SELECT tidemark.keep_ended_of(c.oid) FROM pg_catalog.pg_class c
WHERE c.relnamespace = 'tidemark_current'::regnamespace AND c.relkind = 'r';
