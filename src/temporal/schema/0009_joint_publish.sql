-- Mirrors that are captured on a cadence: what was drained from a slot is published in one basis with
-- other members. Publishing in steps, of which publish() is one use.

-- Throws when the lease has been taken over; keeps it from being taken until the transaction ends.
CREATE FUNCTION tidemark.check_lease(lease_name text, lease_fence bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM tidemark.lease l WHERE l.name = lease_name AND l.fence = lease_fence FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '55000',
      MESSAGE = 'another process has taken over this capture';
  END IF;
END
$$;

-- The last step of a capture, in the transaction that wrote the rows: takes the publish lock, checks
-- the lease and makes the basis, whose members publish_member() then adds one by one.
CREATE FUNCTION tidemark.begin_publish(
  lease_name text, lease_fence bigint, capture_id bigint,
  OUT basis_number bigint, OUT basis_time timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
  newest timestamptz;
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock(tidemark.publish_lock());
  PERFORM tidemark.check_lease(lease_name, lease_fence);
  SELECT b.system_time INTO newest FROM tidemark.basis b ORDER BY b.system_time DESC LIMIT 1;
  basis_time := greatest(pg_catalog.clock_timestamp(), newest + interval '1 microsecond');
  basis_number := pg_catalog.nextval('tidemark.basis_number');
  PERFORM pg_catalog.setval(
    'tidemark.published_time',
    (extract(epoch FROM basis_time - '2000-01-01 00:00+00') * 1000000)::bigint);
  INSERT INTO tidemark.basis (number, system_time, capture)
  VALUES (basis_number, basis_time, capture_id);
END
$$;

-- A mirror's part of a basis: its commits up to `tx_newest` are stored already. `unchanged` are admitted
-- again under their versions.
CREATE FUNCTION tidemark.publish_journal(
  basis_number bigint, basis_time timestamptz, journal_id integer,
  tx_newest bigint, "position" pg_lsn, received pg_lsn, source_time timestamptz,
  members tidemark.member[], unchanged tidemark.member[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  m tidemark.member;
  v record;
BEGIN
  INSERT INTO tidemark.basis_journal (journal, system_time, basis, tx_last)
  VALUES (journal_id, basis_time, basis_number, tx_newest);

  FOREACH m IN ARRAY members LOOP
    SELECT x.hash, x.live_rows, d.schema_name || '.' || d.table_name AS relation, j.name AS journal,
           j.single
    INTO v
    FROM tidemark.dataset d
    JOIN tidemark.journal j ON j.id = d.journal
    LEFT JOIN tidemark.version x ON x.dataset = d.id
    WHERE d.id = m.dataset;
    v.hash := pg_catalog.sha256(
      coalesce(v.hash, ''::bytea)
      || pg_catalog.int4send(m.dataset) || pg_catalog.int8send(tx_newest)
      || pg_catalog.pg_lsn_send("position") || pg_catalog.int8send(m.puts)
      || pg_catalog.int8send(m.deletions)
      || pg_catalog.int8send(coalesce(v.live_rows, 0) + m.rows_added));
    v.live_rows := coalesce(v.live_rows, 0) + m.rows_added;
    INSERT INTO tidemark.version AS x (dataset, hash, tx, live_rows, puts, deletions)
    VALUES (m.dataset, v.hash, tx_newest, v.live_rows, m.puts, m.deletions)
    ON CONFLICT (dataset) DO UPDATE
    SET hash = excluded.hash, tx = excluded.tx, live_rows = excluded.live_rows,
        puts = x.puts + excluded.puts, deletions = x.deletions + excluded.deletions;
    INSERT INTO tidemark.basis_member (basis, dataset, source_position, extracted_from,
                                       extracted_to, version, tx, accepted_at, live_rows, puts,
                                       deletions)
    VALUES (basis_number, m.dataset, "position", m.extracted_from, m.extracted_to, v.hash,
            tx_newest, basis_time, v.live_rows, m.puts, m.deletions);
    PERFORM tidemark.announce(
      tidemark.event_text(basis_number, m.dataset,
                          CASE WHEN v.single THEN v.journal ELSE v.relation END, v.relation,
                          v.journal, basis_time, v.hash, tx_newest, v.live_rows, m.puts,
                          m.deletions, pg_catalog.jsonb_build_object('lsn', "position")),
      basis_number, m.dataset);
  END LOOP;
  INSERT INTO tidemark.basis_member (basis, dataset, source_position, extracted_from, extracted_to,
                                     version, tx, accepted_at, live_rows, puts, deletions, changed)
  SELECT basis_number, x.dataset, received, u.extracted_from, u.extracted_to, x.hash, x.tx,
         basis_time, x.live_rows, 0, 0, false
  FROM pg_catalog.unnest(unchanged) AS u
  JOIN tidemark.version x ON x.dataset = u.dataset;

  INSERT INTO tidemark.resume AS r (journal, lsn, received_lsn, received_time, tx_last, basis,
                                    updated_at)
  VALUES (journal_id, "position", received, source_time, tx_newest, basis_number, basis_time)
  ON CONFLICT (journal) DO UPDATE
  SET lsn = excluded.lsn, received_lsn = excluded.received_lsn,
      received_time = greatest(r.received_time, excluded.received_time),
      tx_last = excluded.tx_last, basis = excluded.basis, updated_at = excluded.updated_at;
END
$$;

-- A mirror that is followed live, by itself, in one round trip.
CREATE OR REPLACE FUNCTION tidemark.publish(
  journal_id integer, lease_name text, lease_fence bigint, capture_id bigint,
  tx_newest bigint, "position" pg_lsn, received pg_lsn, source_time timestamptz,
  members tidemark.member[],
  OUT basis_number bigint, OUT basis_time timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT b.basis_number, b.basis_time INTO STRICT basis_number, basis_time
  FROM tidemark.begin_publish(lease_name, lease_fence, capture_id) b;
  PERFORM tidemark.publish_journal(basis_number, basis_time, journal_id, tx_newest, "position",
                                   received, source_time, members, '{}');
END
$$;

REVOKE EXECUTE ON FUNCTION tidemark.check_lease, tidemark.begin_publish, tidemark.publish_journal
FROM PUBLIC;
