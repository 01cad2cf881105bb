-- What a reader may and may not do.

SELECT * FROM t ORDER BY id

SELECT * FROM public_history.t ORDER BY id, tx_from

SELECT * FROM tidemark.as_of_tx(NULL::t, 1) ORDER BY id

SELECT name FROM tidemark.journal

INSERT INTO t VALUES (1)

UPDATE t SET n = 1

DELETE FROM tidemark_current.d1

TRUNCATE t

CREATE TABLE x (id int)

CREATE TEMP TABLE x (id int)

DROP TABLE t

ALTER TABLE t ADD COLUMN x int

COPY t FROM STDIN
1	2	3
\.

SELECT nextval('tidemark.basis_number')

SELECT * FROM plain

SELECT rolpassword FROM pg_authid

SET ROLE postgres

LOCK TABLE t IN ACCESS SHARE MODE

BEGIN; LOCK TABLE t IN ACCESS SHARE MODE; COMMIT

INSERT INTO t VALUES (1)

CREATE TABLE x (id int)

SELECT tidemark.settle()

VACUUM t

CHECKPOINT

COPY (SELECT 1) TO PROGRAM 'true'

SELECT pg_read_file('postgresql.conf')
