-- The last step of a publish, in the transaction that wrote the rows. One round trip.

-- What changed in one dataset since its last publish.
CREATE TYPE tidemark.member AS (
  dataset integer,
  puts bigint,
  deletions bigint,
  rows_added bigint,
  extracted_from timestamptz,
  extracted_to timestamptz
);

CREATE FUNCTION tidemark.publish(
  journal_id integer, lease_name text, lease_fence bigint, capture_id bigint,
  tx_newest bigint, "position" pg_lsn, received pg_lsn, source_time timestamptz,
  members tidemark.member[],
  OUT basis_number bigint, OUT basis_time timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
  m tidemark.member;
  v tidemark.version;
  newest timestamptz;
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock(tidemark.publish_lock());
  PERFORM FROM tidemark.lease l WHERE l.name = lease_name AND l.fence = lease_fence FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '55000',
      MESSAGE = 'another process has taken over this capture';
  END IF;
  SELECT b.system_time INTO newest FROM tidemark.basis b ORDER BY b.system_time DESC LIMIT 1;
  basis_time := greatest(pg_catalog.clock_timestamp(), newest + interval '1 microsecond');
  basis_number := pg_catalog.nextval('tidemark.basis_number');
  PERFORM pg_catalog.setval(
    'tidemark.published_time',
    (extract(epoch FROM basis_time - '2000-01-01 00:00+00') * 1000000)::bigint);

  INSERT INTO tidemark.basis (number, system_time, capture)
  VALUES (basis_number, basis_time, capture_id);
  INSERT INTO tidemark.basis_journal (journal, system_time, basis, tx_last)
  VALUES (journal_id, basis_time, basis_number, tx_newest);

  FOREACH m IN ARRAY members LOOP
    SELECT * INTO v FROM tidemark.version x WHERE x.dataset = m.dataset;
    v.hash := pg_catalog.sha256(
      coalesce(v.hash, ''::bytea)
      || pg_catalog.int4send(m.dataset) || pg_catalog.int8send(tx_newest)
      || pg_catalog.pg_lsn_send("position") || pg_catalog.int8send(m.puts)
      || pg_catalog.int8send(m.deletions)
      || pg_catalog.int8send(coalesce(v.live_rows, 0) + m.rows_added));
    v.live_rows := coalesce(v.live_rows, 0) + m.rows_added;
    INSERT INTO tidemark.version AS x (dataset, hash, tx, live_rows)
    VALUES (m.dataset, v.hash, tx_newest, v.live_rows)
    ON CONFLICT (dataset) DO UPDATE
    SET hash = excluded.hash, tx = excluded.tx, live_rows = excluded.live_rows;
    INSERT INTO tidemark.basis_member
    VALUES (basis_number, m.dataset, "position", m.extracted_from, m.extracted_to, v.hash,
            tx_newest, basis_time, v.live_rows, m.puts, m.deletions);
  END LOOP;

  INSERT INTO tidemark.resume AS r
  VALUES (journal_id, "position", received, source_time, tx_newest, basis_number, basis_time)
  ON CONFLICT (journal) DO UPDATE
  SET lsn = excluded.lsn, received_lsn = excluded.received_lsn,
      received_time = greatest(r.received_time, excluded.received_time),
      tx_last = excluded.tx_last, basis = excluded.basis, updated_at = excluded.updated_at;
END
$$;

-- A keep-alive on an idle stream: nothing up to here is missing.
CREATE FUNCTION tidemark.receive(journal_id integer, lease_name text, lease_fence bigint,
                                 received pg_lsn, source_time timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM tidemark.lease l WHERE l.name = lease_name AND l.fence = lease_fence FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '55000',
      MESSAGE = 'another process has taken over this capture';
  END IF;
  UPDATE tidemark.resume r
  SET received_lsn = greatest(r.received_lsn, received),
      received_time = greatest(r.received_time, source_time),
      updated_at = pg_catalog.clock_timestamp()
  WHERE r.journal = journal_id;
END
$$;

REVOKE EXECUTE ON FUNCTION tidemark.publish, tidemark.receive FROM PUBLIC;
