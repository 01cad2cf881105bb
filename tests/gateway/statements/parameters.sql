-- Parameters, whose types the server infers. In the simple protocol these are errors.

-- parameters: 1
SELECT $1::int + 1

-- parameters: 1|NULL|text
SELECT $1::int, $2::date, $3::text

-- parameters: 2
SELECT * FROM t WHERE id = $1

-- parameters: 1|2
SELECT * FROM t WHERE id IN ($2, $1) ORDER BY id

-- parameters: {1,2}
SELECT * FROM t WHERE id = ANY ($1) ORDER BY id

-- parameters: 2026-11-28 12:00+00
SELECT $1::timestamptz AT TIME ZONE 'UTC'

-- parameters: x
SELECT $1::int

-- parameters: 1
SELECT $1, $2

-- parameters: 1|2
SELECT $1::int

-- parameters: 7
SELECT $1::int FROM t FOR UPDATE

-- parameters: FOR SYSTEM_TIME AS OF
SELECT $1 || ' now()'

-- parameters: 3
SELECT generate_series(1, $1::int)

-- parameters: NULL
SELECT coalesce($1::text, 'none')

-- parameters: a
SELECT CASE WHEN $1 = 'a' THEN 1 ELSE 1 / 0 END

-- parameters: 0
SELECT 1 / $1::int

-- parameters: 5
SELECT * FROM generate_series(1, 10) LIMIT $1

-- parameters: plain
COPY (SELECT $1) TO STDOUT
