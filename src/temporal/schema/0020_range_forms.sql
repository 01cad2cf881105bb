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

-- The range forms as bounds on tx_from and tx_to (both ends included; an open end counts as the
-- largest bigint). `skip_empty`: versions that began and ended inside one basis are left out, which
-- none has that lasted for `span` transactions.
DROP FUNCTION tidemark.version_window(regclass, text, text, timestamptz, timestamptz);
CREATE FUNCTION tidemark.version_window(relation regclass, axis text, form text,
                                        a timestamptz, b timestamptz,
                                        OUT from_least bigint, OUT from_most bigint,
                                        OUT to_least bigint, OUT to_most bigint,
                                        OUT skip_empty boolean, OUT journal integer,
                                        OUT span bigint)
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
  journal := d.journal;
  span := (SELECT j.tx_span FROM tidemark.journal j WHERE j.id = d.journal);
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

-- The functions of the tables that are there compared the instants of a version's two bases.
DO $$
DECLARE
  f record;
BEGIN
  FOR f IN
    SELECT pg_catalog.pg_get_functiondef(p.oid) AS text,
           (pg_catalog.regexp_match(p.prosrc, 'WHERE (v\.\S+) BETWEEN'))[1] AS tx_from,
           (pg_catalog.regexp_match(p.prosrc, '(?:coalesce\(|CASE WHEN )(v\.[^ ,]+)'))[1] AS tx_to
    FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = 'tidemark'::regnamespace AND p.proname IN ('versions', 'versions_until')
  LOOP
    EXECUTE pg_catalog.regexp_replace(
      f.text, '\(NOT w\.skip_empty OR v\.\S+ < v\.[^)]+\)',
      pg_catalog.format('(NOT w.skip_empty OR coalesce(%2$s - %1$s >= w.span, true) OR EXISTS ('
                        'SELECT FROM tidemark.basis_journal b WHERE b.journal = w.journal '
                        'AND b.tx_last >= %1$s AND b.tx_last < %2$s))', f.tx_from, f.tx_to));
  END LOOP;
END
$$;
