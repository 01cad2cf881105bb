-- COPY in both directions, in every format, whole and failing.

CREATE TEMP TABLE c (id int, note text, at date)

COPY c FROM STDIN
1	one	2026-01-01
2	\N	\N
3	tab\tnew\nline \\	2026-12-31
\.

SELECT * FROM c ORDER BY id

COPY c (id, note) FROM STDIN (FORMAT csv, NULL 'none', HEADER)
id,note
4,"a, ""quoted"" value"
5,none
\.

COPY c FROM STDIN
6	too few
\.

COPY c FROM STDIN
x	not a number	2026-01-01
\.

COPY c FROM STDIN
7	unfinished	2026-01-01
\f

COPY c FROM STDIN
\.

COPY c (nothing) FROM STDIN
1
\.

COPY c FROM STDIN WHERE id > 100
8	skipped	2026-01-01
\.

COPY c TO STDOUT

COPY c TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE *)

COPY c TO STDOUT (FORMAT binary)

COPY (SELECT id, 'FOR SYSTEM_TIME' FROM c ORDER BY id) TO STDOUT (DELIMITER '|')

COPY (SELECT * FROM t ORDER BY id) TO STDOUT

COPY (SELECT i, repeat(md5(i::text), 50) FROM generate_series(1, 3000) i) TO STDOUT

COPY (SELECT 1 / (3 - i) FROM generate_series(1, 5) i) TO STDOUT

COPY (SELECT 1 WHERE false) TO STDOUT

COPY (SELECT) TO STDOUT

COPY c TO STDOUT; SELECT 1; COPY c TO STDOUT

BEGIN

COPY c FROM STDIN
bad
\.

COPY c TO STDOUT

ROLLBACK

SELECT count(*) FROM c

DROP TABLE c
