-- Errors of every stage, with every field: position, detail, hint, context, constraint, internal query.

SELEC 1

SELECT * FROM nowhere

SELECT nothing FROM t

SELECT idd FROM t

SELECT 'Größe €', oops FROM t

SELECT * FROM t FOR

SELECT * FROM t WHERE id = 'x'

SELECT 1 / 0

SELECT '2020-02-30'::date

SELECT no_such_function(1)

SELECT sum(sum(n)) FROM t

SELECT id FROM t GROUP BY n

SELECT (SELECT id FROM t)

SELECT 1; SELECT 1 / 0; SELECT 2

SELECT 'unterminated

SELECT "unterminated

SELECT $tag$ unterminated

SELECT /* unterminated

DO $$ BEGIN RAISE EXCEPTION 'own' USING ERRCODE = 'TM001', DETAIL = 'detail', HINT = 'hint', COLUMN = 'c', CONSTRAINT = 'k', DATATYPE = 'd', TABLE = 't', SCHEMA = 's'; END $$

DO $$ BEGIN EXECUTE 'SELECT 1 +'; END $$

DO $$ BEGIN PERFORM 1 / 0; END $$

SELECT pg_catalog.set_config('search_path', 'nowhere', false), current_schemas(false)

RESET search_path

SET no_such_setting = 1

SET statement_timeout = 'soon'

SET LOCAL work_mem = '1MB'

COMMIT

ROLLBACK

SAVEPOINT s

EXECUTE nothing

DEALLOCATE nothing

FETCH nothing

CLOSE nothing

DECLARE c CURSOR FOR SELECT 1

COPY nowhere TO STDOUT

COPY t TO '/no/such/folder/file'

COPY nowhere FROM STDIN
1	2
\.

CREATE TABLE t (id int)

CREATE TABLE pg_catalog.x (id int)

DROP TABLE nowhere

ALTER TABLE nowhere ADD COLUMN x int

CREATE VIEW v AS SELECT * FROM nowhere

CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT ''x'''

CREATE EXTENSION no_such_extension

LISTEN

VACUUM nowhere

SET ROLE nobody

LOCK TABLE t

SELECT * FROM t FOR UPDATE NOWAIT FOR SHARE

INSERT INTO plain VALUES ('x')

INSERT INTO plain (id, id) VALUES (1, 2)

UPDATE plain SET nothing = 1

DELETE FROM plain USING nowhere

MERGE INTO plain USING nowhere ON true WHEN MATCHED THEN DELETE

CALL nothing()

PREPARE TRANSACTION ''
