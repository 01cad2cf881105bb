-- The control tables of a Tidemark store. Every instant is the store's own clock at publish; every
-- tx is a number within its journal. Readers may read all of it: nothing here is a secret.
CREATE SCHEMA tidemark;
CREATE SCHEMA tidemark_current;
CREATE SCHEMA tidemark_history;

COMMENT ON SCHEMA tidemark IS 'Tidemark: control tables and time-travel functions';
COMMENT ON SCHEMA tidemark_current IS 'Tidemark: the newest version of every row; read the tables themselves instead';
COMMENT ON SCHEMA tidemark_history IS 'Tidemark: closed row versions; read the views <schema>_history.<table> instead';

CREATE TABLE tidemark.store (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  schema_version integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO tidemark.store (schema_version) VALUES (0);

-- A system that data is captured from. Never its password.
CREATE TABLE tidemark.source (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  kind text NOT NULL DEFAULT 'postgres',
  system_identifier text,
  timeline integer,
  database_name text,
  timeline_history text,       -- as the server tells it; empty on the first timeline
  server_version integer,
  encoding text,
  UNIQUE (system_identifier, database_name, name)
);

-- What is ordered by one sequence of transactions: a mirror, or a dataset outside one.
CREATE TABLE tidemark.journal (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  source integer NOT NULL REFERENCES tidemark.source,
  publication text,
  slot text
);

CREATE TABLE tidemark.dataset (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  journal integer NOT NULL REFERENCES tidemark.journal,
  schema_name text NOT NULL,
  table_name text NOT NULL,
  strategy text NOT NULL CHECK (strategy IN ('snapshot', 'cursor', 'cdc')),
  keying text NOT NULL CHECK (keying IN ('key', 'multiset', 'append')),
  key_columns text[] NOT NULL,
  source_oid oid,              -- the upstream's pg_class.oid
  relid oid UNIQUE,            -- the parent table here; NULL until attached
  row_filter text,             -- the publication's, as the upstream shows it
  tx_first bigint,             -- the tx of its first captured state; NULL until attached
  tx_retained bigint NOT NULL DEFAULT 0,  -- instants before this tx have been pruned
  tx_dropped bigint,           -- the tx at which it was dropped upstream
  UNIQUE (schema_name, table_name)
);

-- Column identity across renames: which name a column had over which txs.
CREATE TABLE tidemark.dataset_column (
  dataset integer NOT NULL REFERENCES tidemark.dataset ON DELETE CASCADE,
  number integer NOT NULL,     -- pg_attribute.attnum upstream
  tx_from bigint NOT NULL,
  tx_to bigint,
  name text NOT NULL,
  position integer NOT NULL,   -- place in the images, from 1
  type_sql text NOT NULL,
  source_type oid NOT NULL,
  type_modifier integer NOT NULL,
  PRIMARY KEY (dataset, number, tx_from)
);

-- One run of a reader over a journal's datasets.
CREATE TABLE tidemark.capture (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  journal integer NOT NULL REFERENCES tidemark.journal,
  kind text NOT NULL CHECK (kind IN ('copy', 'stream', 'complete', 'cursor')),
  state text NOT NULL CHECK (state IN ('running', 'published', 'abandoned')),
  slot text,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz,
  reason text
);

-- One atomic publish.
CREATE SEQUENCE tidemark.basis_number;
CREATE TABLE tidemark.basis (
  number bigint PRIMARY KEY,
  system_time timestamptz NOT NULL UNIQUE,
  capture bigint REFERENCES tidemark.capture
);

-- What tx_at() reads: up to which tx of a journal each publish reaches.
CREATE TABLE tidemark.basis_journal (
  journal integer NOT NULL,
  system_time timestamptz NOT NULL,
  basis bigint NOT NULL,
  tx_last bigint NOT NULL,
  PRIMARY KEY (journal, system_time)
);
CREATE UNIQUE INDEX basis_journal_tx ON tidemark.basis_journal (journal, tx_last, system_time);

-- The newest system time that was ever allotted, in microseconds since 2000-01-01 UTC. A sequence,
-- because it must be readable past the reader's snapshot.
CREATE SEQUENCE tidemark.published_time AS bigint MINVALUE 0 START 0;

-- One narrow row per upstream commit. Its basis is the first of its journal with tx_last >= tx.
-- Positions and source times grow with tx, so they are found by halving, without indexes of their
-- own: writing this row is a large part of what a small commit costs.
CREATE TABLE tidemark.tx (
  journal integer NOT NULL,
  xid xid,
  tx bigint NOT NULL,
  end_lsn pg_lsn NOT NULL,
  source_time timestamptz NOT NULL,   -- non-decreasing within the journal
  commit_time timestamptz,            -- the upstream's own, only where it differs
  origin text,                        -- replication origin, only where there is one
  PRIMARY KEY (journal, tx)
);

-- The state of each dataset after its newest publish.
CREATE TABLE tidemark.version (
  dataset integer PRIMARY KEY REFERENCES tidemark.dataset ON DELETE CASCADE,
  hash bytea NOT NULL,
  tx bigint NOT NULL,
  live_rows bigint NOT NULL
) WITH (fillfactor = 50);

-- The five facts of each member of a basis, kept apart.
CREATE TABLE tidemark.basis_member (
  basis bigint NOT NULL,
  dataset integer NOT NULL,
  source_position pg_lsn,             -- 1. where the source stood
  extracted_from timestamptz,         -- 2. when it was read: begin …
  extracted_to timestamptz,           --    … and end, by the clock of the capturing process
  version bytea NOT NULL,             -- 3. the dataset version
  tx bigint NOT NULL,                 -- 4. the temporal basis
  accepted_at timestamptz NOT NULL,   -- 5. when the store accepted it
  live_rows bigint NOT NULL,
  puts bigint NOT NULL,
  deletions bigint NOT NULL,
  PRIMARY KEY (basis, dataset)
);

-- Where a journal's source resumes: written in the same transaction as the rows.
CREATE TABLE tidemark.resume (
  journal integer PRIMARY KEY REFERENCES tidemark.journal,
  lsn pg_lsn NOT NULL,                -- the end of the newest stored commit
  received_lsn pg_lsn NOT NULL,       -- nothing up to here is missing (keep-alives count)
  received_time timestamptz NOT NULL, -- the same in source time
  tx_last bigint NOT NULL,
  basis bigint NOT NULL,
  updated_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- What the capturing process last said of itself; for people, never for correctness.
CREATE TABLE tidemark.progress (
  journal integer PRIMARY KEY REFERENCES tidemark.journal,
  state text NOT NULL,                -- starting, copying, streaming, stopped, failed
  heartbeat timestamptz NOT NULL,
  source_lsn pg_lsn,                  -- the source's write position as last heard
  copied_rows bigint,
  copy_rows_expected bigint,
  copied_bytes bigint,
  retained_bytes bigint,              -- write-ahead log the slot holds back
  problems jsonb NOT NULL DEFAULT '[]'
) WITH (fillfactor = 50);

-- Who captures. The fence grows with every take-over; a publish with an old one is refused.
CREATE TABLE tidemark.lease (
  name text PRIMARY KEY,
  fence bigint NOT NULL,
  holder text NOT NULL,
  taken_at timestamptz NOT NULL
);

-- Partitions of history by _to: which txs [tx_from, tx_to) each holds, and whether it is sealed.
CREATE TABLE tidemark.history_partition (
  dataset integer NOT NULL REFERENCES tidemark.dataset ON DELETE CASCADE,
  number integer NOT NULL,
  tx_from bigint NOT NULL,
  tx_to bigint,                -- NULL: the open one, to which rows are added
  sealed boolean NOT NULL DEFAULT false,
  rewritten_by xid8,           -- the transaction that rewrote it in _from order, not yet swapped in
  PRIMARY KEY (dataset, number)
);

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'tidemark_reader') THEN
    CREATE ROLE tidemark_reader NOLOGIN;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
  NULL;  -- another database of the cluster is being set up at the same time
END
$$;
GRANT USAGE ON SCHEMA tidemark, tidemark_current, tidemark_history TO tidemark_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA tidemark TO tidemark_reader;
GRANT SELECT ON SEQUENCE tidemark.published_time TO tidemark_reader;
