-- Whether a row version began and ended inside one basis, without looking both up for each version:
-- what lasts for as many transactions as any basis has cannot. docs/design/0015-reading-the-past.md.

-- How many transactions the largest basis of a journal has.
ALTER TABLE tidemark.journal ADD tx_span bigint NOT NULL DEFAULT 1;
UPDATE tidemark.journal j SET tx_span = s.span
FROM (SELECT b.journal, max(b.tx_last - b.tx_before) AS span
      FROM (SELECT x.journal, x.tx_last,
                   pg_catalog.lag(x.tx_last, 1, 0::bigint)
                     OVER (PARTITION BY x.journal ORDER BY x.system_time) AS tx_before
            FROM tidemark.basis_journal x) b
      GROUP BY b.journal) s
WHERE s.journal = j.id AND s.span > j.tx_span;

CREATE FUNCTION tidemark.note_span() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  span bigint := NEW.tx_last - coalesce(
    (SELECT b.tx_last FROM tidemark.basis_journal b WHERE b.journal = NEW.journal
     ORDER BY b.system_time DESC LIMIT 1), 0);
BEGIN
  UPDATE tidemark.journal j SET tx_span = span WHERE j.id = NEW.journal AND j.tx_span < span;
  RETURN NEW;
END
$$;
REVOKE EXECUTE ON FUNCTION tidemark.note_span FROM PUBLIC;
CREATE TRIGGER note_span BEFORE INSERT ON tidemark.basis_journal
FOR EACH ROW EXECUTE FUNCTION tidemark.note_span();
ALTER TABLE tidemark.basis_journal ENABLE ALWAYS TRIGGER note_span;

-- The functions of the tables that are there compared the instants of a version's two bases.
DO $$
DECLARE
  f record;
BEGIN
  FOR f IN
    SELECT pg_catalog.pg_get_functiondef(p.oid) AS text,
           (pg_catalog.regexp_match(p.prosrc, 'WHERE (v\.\S+) BETWEEN'))[1] AS tx_from,
           (pg_catalog.regexp_match(p.prosrc, '(?:coalesce\(|CASE WHEN )(v\.[^ ,]+)'))[1] AS tx_to,
           d.journal
    FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_type t ON t.oid = p.proargtypes[0]
    JOIN tidemark.dataset d ON d.relid = t.typrelid
    WHERE p.pronamespace = 'tidemark'::regnamespace AND p.proname IN ('versions', 'versions_until')
  LOOP
    EXECUTE pg_catalog.regexp_replace(
      f.text, '\(NOT w\.skip_empty OR v\.\S+ < v\.[^)]+\)',
      pg_catalog.format('(NOT w.skip_empty OR coalesce(%2$s - %1$s >= (SELECT j.tx_span '
                        'FROM tidemark.journal j WHERE j.id = %3$s), true) OR EXISTS ('
                        'SELECT FROM tidemark.basis_journal b WHERE b.journal = %3$s '
                        'AND b.tx_last >= %1$s AND b.tx_last < %2$s))',
                        f.tx_from, f.tx_to, f.journal));
  END LOOP;
END
$$;
