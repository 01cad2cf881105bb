-- Queries of every shape, on the mirrored table and on none.

SELECT 1

SELECT

;

-- only a comment follows
/* nothing at all */

SELECT * FROM t ORDER BY id

TABLE t

VALUES (1, 'a'), (2, NULL), (3, '')

SELECT id, n, note FROM t WHERE id = 2

SELECT t FROM t ORDER BY id

SELECT t.*, o.n AS other_n FROM t JOIN other.t o USING (id) ORDER BY 1

SELECT count(*), sum(n), avg(n), max(note), string_agg(note, ',' ORDER BY id) FROM t

SELECT id, row_number() OVER w, lag(n) OVER w FROM t WINDOW w AS (ORDER BY id DESC) ORDER BY 1

WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 7) SELECT * FROM r

WITH t AS (SELECT 42 AS id) SELECT * FROM t

SELECT * FROM t a FULL JOIN t b ON a.id = b.id + 1 ORDER BY a.id, b.id

SELECT id FROM t UNION ALL SELECT id FROM other.t INTERSECT SELECT 1 EXCEPT SELECT 7

SELECT * FROM t, LATERAL (SELECT t.id * 10 AS ten) x ORDER BY id

SELECT EXISTS (SELECT FROM t WHERE n = 7), ARRAY(SELECT id FROM t ORDER BY 1)

SELECT DISTINCT ON (n % 2) id, n FROM t ORDER BY n % 2, id

SELECT n, count(*) FROM t GROUP BY GROUPING SETS ((n), ()) ORDER BY 1

SELECT * FROM t ORDER BY id OFFSET 1 FETCH FIRST ROW ONLY

SELECT * FROM t TABLESAMPLE BERNOULLI (100) ORDER BY id

SELECT * FROM "Größe, ""S"""."Täble, ""1"" €"

SELECT * FROM aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff123

SELECT system_from, tx_to FROM periods

SELECT * FROM public_history.t ORDER BY id, tx_from

SELECT * FROM a_view ORDER BY id

SELECT generate_series(1, 5) AS g, 'x' AS "Spalte mit Leerzeichen"

SELECT * FROM generate_series(1, 100) g WHERE g % 33 = 0

SELECT 'FOR SYSTEM_TIME AS OF now()' AS text, "FOR SYSTEM_TIME" FROM (SELECT 1 AS "FOR SYSTEM_TIME") q

SELECT 1 /* FOR SYSTEM_TIME AS OF now() */ AS a -- FOR SYSTEM_TIME

SELECT $$FOR SYSTEM_TIME AS OF$$, E'it''s \'FOR\' SYSTEM_TIME', U&'\0441\043B\043E\043D'

SELECT of.id FROM t AS of ORDER BY of.id

SELECT substring('abcdef' FROM 2 FOR 3), overlay('abcdef' PLACING 'x' FROM 2 FOR 2)

SELECT position('c' IN 'abc'), extract(year FROM date '2020-02-29'), trim(both 'x' FROM 'xax')

EXPLAIN (COSTS off) SELECT * FROM t WHERE id = 1

EXPLAIN (COSTS off, FORMAT json) SELECT count(*) FROM t

EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, BUFFERS off) SELECT 1

SELECT relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1

SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, ordinal_position

SHOW server_version
