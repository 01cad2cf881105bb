-- Every statement that writes, in a schema of its own that goes at the end.

CREATE SCHEMA scratch

SET search_path = scratch, public

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')

CREATE DOMAIN positive AS int CHECK (VALUE > 0)

CREATE TYPE pair AS (a int, b text)

CREATE SEQUENCE s START 10 INCREMENT 5

CREATE TABLE a (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, m mood DEFAULT 'ok', p positive, x pair, twice int GENERATED ALWAYS AS (2 * p) STORED)

CREATE TABLE b (id int REFERENCES a ON DELETE CASCADE, note text NOT NULL, CONSTRAINT short CHECK (length(note) < 10), EXCLUDE USING btree (note WITH =))

COMMENT ON TABLE a IS 'a comment'

CREATE INDEX ON a (m, p DESC)

CREATE TABLE parts (k int, v text) PARTITION BY LIST (k)

CREATE TABLE part1 PARTITION OF parts FOR VALUES IN (1)

CREATE VIEW v AS SELECT id, m FROM a WITH CHECK OPTION

CREATE MATERIALIZED VIEW mv AS SELECT count(*) FROM a

CREATE RULE r AS ON DELETE TO part1 DO ALSO NOTIFY part1_deleted

CREATE FUNCTION f(i int) RETURNS SETOF int LANGUAGE sql AS 'SELECT generate_series(1, i)'

CREATE FUNCTION loud() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% on %', TG_OP, TG_TABLE_NAME; RETURN coalesce(NEW, OLD); END $$

CREATE TRIGGER loud BEFORE INSERT OR UPDATE OR DELETE ON b FOR EACH ROW EXECUTE FUNCTION loud()

CREATE PROCEDURE p(INOUT n int) LANGUAGE plpgsql AS $$ BEGIN n := n + 1; COMMIT; END $$

INSERT INTO a (m, p, x) VALUES ('sad', 1, (1, 'one')), (DEFAULT, 2, NULL), ('happy', 3, ROW(3, 'x')) RETURNING *

INSERT INTO a (p) SELECT generate_series(4, 9)

INSERT INTO a (p) VALUES (-1)

INSERT INTO a (id) VALUES (1)

INSERT INTO b VALUES (1, 'one'), (2, 'two')

INSERT INTO b VALUES (99, 'x')

INSERT INTO b VALUES (1, 'one')

INSERT INTO b VALUES (1, NULL)

INSERT INTO b VALUES (1, 'much too long')

INSERT INTO parts VALUES (1, 'x')

INSERT INTO parts VALUES (2, 'x')

INSERT INTO a OVERRIDING SYSTEM VALUE VALUES (1) ON CONFLICT (id) DO UPDATE SET p = a.p + 100 RETURNING id, p

UPDATE a SET m = 'happy' WHERE p < 3 RETURNING id, m, twice

UPDATE b SET note = note || '!' FROM a WHERE a.id = b.id

UPDATE a SET id = DEFAULT WHERE false

MERGE INTO parts USING (VALUES (1), (1)) AS s(k) ON parts.k = s.k AND false WHEN NOT MATCHED THEN INSERT VALUES (s.k, 'merged')

WITH d AS (DELETE FROM parts WHERE v = 'merged' RETURNING *) SELECT count(*) FROM d

DELETE FROM a WHERE id = 1

DELETE FROM part1

CALL p(1)

SELECT * FROM f(4)

SELECT nextval('s'), currval('s'), lastval()

SELECT * FROM a ORDER BY id

SELECT m, m::text, x FROM a ORDER BY id LIMIT 2

REFRESH MATERIALIZED VIEW mv

TABLE mv

CREATE TABLE c AS SELECT * FROM a

SELECT id INTO d FROM a

CREATE TEMP TABLE e ON COMMIT DROP AS SELECT 1

CREATE TABLE IF NOT EXISTS c (id int)

DROP TABLE IF EXISTS no_table, c

ALTER TABLE a ADD COLUMN extra text DEFAULT 'x', ALTER COLUMN m SET NOT NULL

ALTER TABLE a ADD CHECK (p < 3)

ALTER TYPE mood ADD VALUE 'ecstatic' AFTER 'happy'

ALTER TABLE d RENAME TO dd

TRUNCATE dd

ANALYZE a

VACUUM a

REINDEX TABLE a

CLUSTER a USING a_pkey

LOCK TABLE a

GRANT SELECT ON a TO gateway_reader

REVOKE ALL ON a FROM gateway_reader

SECURITY LABEL ON TABLE a IS 'x'

CREATE STATISTICS st ON m, p FROM a

DROP TABLE a

DO $$ BEGIN RAISE NOTICE 'a notice'; RAISE WARNING 'a warning' USING HINT = 'a hint'; RAISE INFO 'info'; RAISE DEBUG 'not shown'; END $$

SELECT pg_notify('nobody', 'hears')

DROP SCHEMA scratch CASCADE

RESET search_path
