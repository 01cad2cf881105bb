-- One value of every kind, in text and in binary, empty, null and large.

SELECT true, false, NULL::boolean

SELECT 1::smallint, -2147483648::integer, 9223372036854775807::bigint, 1.5::real, -0.0::float8, 'NaN'::float8, 'Infinity'::float4

SELECT 0::numeric, -1.50::numeric(10, 2), 'NaN'::numeric, 1e300::numeric, 'Infinity'::numeric

SELECT ''::text, 'x'::char(5), 'y'::varchar(3), 'name'::name, E'a\tb\nc\\d', 'Größe €'

SELECT '\x00ff'::bytea, ''::bytea, 'a'::"char"

SELECT date '0001-01-01 BC', date 'infinity', time '24:00', timetz '12:34:56.789012+05:30'

SELECT timestamp '2000-01-01', timestamptz '2026-11-28 12:00+00', timestamptz '-infinity', interval '1 year -2 days 03:04:05.678'

SELECT '192.168.0.1/24'::inet, '10.0.0.0/8'::cidr, '08:00:2b:01:02:03'::macaddr, '::1'::inet

SELECT '{"a": [1, null, "x"]}'::json, '{"b": 1, "a": 2}'::jsonb, '$.a[*]'::jsonpath

SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, B'101'::bit(3), B'10'::varbit, '<a>1</a>'::xml

SELECT ARRAY[1, NULL, 3], ARRAY[[1, 2], [3, 4]], '{}'::text[], ARRAY['a,b', NULL, '"'], '[2:3]={1,2}'::int[]

SELECT int4range(1, 5), '[2020-01-01,infinity)'::daterange, 'empty'::numrange, '{[1,2),[5,6)}'::int4multirange

SELECT point(1, 2), box '(0,0),(1,1)', '<(0,0),1>'::circle, path '[(0,0),(1,1)]', polygon '((0,0),(0,1),(1,0))', lseg '[(0,0),(1,1)]', line '{1,2,3}'

SELECT 'fat & rat'::tsquery, 'a fat cat'::tsvector, '1/16B3748'::pg_lsn, 'pg_class'::regclass, 1::oid, '(0,1)'::tid

SELECT ROW(1, 'a', NULL), ROW(), (1, ROW(2, 3))

SELECT 12.34::money, '1 2'::int2vector, '1 2'::oidvector, 'int4'::regtype

SELECT repeat('x', 100000), length(repeat('y', 1000000))

SELECT repeat('€', 300000)

SELECT i, repeat(i::text, 10000) FROM generate_series(1, 40) i

SELECT array_agg(i) FROM generate_series(1, 50000) i

SELECT i FROM generate_series(1, 3000) i

SELECT repeat('x', 3000000)::bytea

SELECT NULL, NULL::int, NULL::text
