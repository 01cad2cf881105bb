-- Temporal clauses and what they mean, said by hand. {1} is the instant of version 1 as a literal,
-- {p1} its position, {s1} its source time.

SELECT * FROM t FOR SYSTEM_TIME AS OF {1} ORDER BY id
==
SELECT * FROM tidemark.as_of(NULL::t, {1}) ORDER BY id

SELECT x.n, x.note FROM t FOR SYSTEM_TIME AS OF {2} AS x WHERE x.id = 1
==
SELECT x.n, x.note FROM tidemark.as_of(NULL::t, {2}) AS x WHERE x.id = 1

SELECT x.* FROM t AS x (a, b) FOR SYSTEM_TIME AS OF {2} ORDER BY a
==
SELECT x.* FROM tidemark.as_of(NULL::t, {2}) AS x (a, b) ORDER BY a

SELECT * FROM t FOR SOURCE_POSITION AS OF {p1} ORDER BY id
==
SELECT * FROM tidemark.as_of_position(NULL::t, {p1}) ORDER BY id

SELECT * FROM t FOR SOURCE_TIME AS OF {s1} ORDER BY id
==
SELECT * FROM tidemark.as_of_source(NULL::t, {s1}) ORDER BY id

SELECT * FROM t FOR SYSTEM_TIME ALL ORDER BY id, tx_from
==
SELECT * FROM public_history.t ORDER BY id, tx_from

SELECT * FROM t FOR ALL SYSTEM_TIME ORDER BY id, tx_from
==
SELECT * FROM public_history.t ORDER BY id, tx_from

SELECT n FROM t FOR SYSTEM_TIME FROM {1} TO {3} WHERE id = 1 ORDER BY n
==
SELECT n FROM public_history.t WHERE system_from < {3} AND system_to > {1} AND id = 1 ORDER BY n

SELECT n FROM t FOR SYSTEM_TIME BETWEEN {1} AND {3} WHERE id = 1 ORDER BY n
==
SELECT n FROM public_history.t WHERE system_from <= {3} AND system_to > {1} AND id = 1 ORDER BY n

SELECT n FROM t FOR SYSTEM_TIME BETWEEN SYMMETRIC {3} AND {1} WHERE id = 1 ORDER BY n
==
SELECT n FROM public_history.t WHERE system_from <= {3} AND system_to > {1} AND id = 1 ORDER BY n

SELECT n FROM t FOR SYSTEM_TIME CONTAINED IN ({1}, {3}) WHERE id = 1 ORDER BY n
==
SELECT n FROM public_history.t WHERE system_from >= {1} AND system_to <= {3} AND id = 1 ORDER BY n

SELECT n FROM t FOR SOURCE_TIME FROM {s1} TO {s3} WHERE id = 1 ORDER BY n
==
SELECT n FROM public_history.t WHERE source_from < {s3} AND source_to > {s1} AND id = 1 ORDER BY n

SELECT a.n, b.n FROM t FOR SYSTEM_TIME AS OF {1} a JOIN t FOR SYSTEM_TIME AS OF {3} b USING (id) ORDER BY id
==
SELECT a.n, b.n FROM tidemark.as_of(NULL::t, {1}) a JOIN tidemark.as_of(NULL::t, {3}) b USING (id) ORDER BY id

WITH w AS (SELECT n FROM t FOR SYSTEM_TIME AS OF {0} WHERE id = 1) SELECT w.n, t.n FROM w, t WHERE id = 1
==
WITH w AS (SELECT n FROM tidemark.as_of(NULL::t, {0}) t WHERE id = 1) SELECT w.n, t.n FROM w, t WHERE id = 1

SELECT (SELECT n FROM t FOR SYSTEM_TIME AS OF {1} WHERE id = 1) UNION ALL SELECT n FROM t WHERE id = 1
==
SELECT (SELECT n FROM tidemark.as_of(NULL::t, {1}) t WHERE id = 1) UNION ALL SELECT n FROM t WHERE id = 1

COPY (SELECT * FROM t FOR SYSTEM_TIME AS OF {1} ORDER BY id) TO STDOUT
==
COPY (SELECT * FROM tidemark.as_of(NULL::t, {1}) ORDER BY id) TO STDOUT

COPY t TO STDOUT
==
COPY (SELECT * FROM t) TO STDOUT

COPY t (note, id) TO STDOUT (FORMAT csv, HEADER)
==
COPY (SELECT note, id FROM t) TO STDOUT (FORMAT csv, HEADER)

CREATE TEMP TABLE earlier AS SELECT * FROM t FOR SYSTEM_TIME AS OF {1}
==
CREATE TEMP TABLE earlier AS SELECT * FROM tidemark.as_of(NULL::t, {1})

TABLE earlier ORDER BY id

BEGIN
==
BEGIN

DECLARE c CURSOR FOR SELECT n FROM t FOR SYSTEM_TIME AS OF {2} ORDER BY id
==
DECLARE c CURSOR FOR SELECT n FROM tidemark.as_of(NULL::t, {2}) t ORDER BY id

FETCH ALL c

COMMIT

PREPARE p AS SELECT n FROM t FOR SYSTEM_TIME AS OF $1 WHERE id = 1
==
PREPARE p AS SELECT n FROM tidemark.as_of(NULL::t, $1) t WHERE id = 1

EXECUTE p ({1})

EXECUTE p ({2})

DEALLOCATE p

-- parameters: 1
SELECT n FROM t FOR SYSTEM_TIME AS OF {1} WHERE id = $1
==
SELECT n FROM tidemark.as_of(NULL::t, {1}) t WHERE id = $1

SELECT * FROM other.t FOR SYSTEM_TIME AS OF {0}
==
SELECT * FROM tidemark.as_of(NULL::other.t, {0})

SELECT * FROM "Größe, ""S"""."Täble, ""1"" €" FOR SYSTEM_TIME AS OF {0}
==
SELECT * FROM tidemark.as_of(NULL::"Größe, ""S"""."Täble, ""1"" €", {0})

SELECT n FROM t FOR SYSTEM_TIME AS OF timestamptz {3} - interval '1 microsecond' WHERE id = 1
==
SELECT n FROM tidemark.as_of(NULL::t, {3}::timestamptz - interval '1 microsecond') t WHERE id = 1

SELECT i.id, h.n FROM instants i, t FOR SYSTEM_TIME AS OF i.at h WHERE h.id = 1 ORDER BY i.id
==
SELECT i.id, h.n FROM instants i, LATERAL tidemark.as_of(NULL::t, i.at) h WHERE h.id = 1 ORDER BY i.id
