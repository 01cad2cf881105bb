-- The source of the client tests, as it stands at SHOP_FIRST.
CREATE TYPE order_state AS ENUM ('new', 'paid', 'shipped');

CREATE TABLE customers (
  region text,
  number integer,
  name text NOT NULL,
  PRIMARY KEY (region, number)
);
COMMENT ON TABLE customers IS 'who buys';

CREATE TABLE orders (
  id bigint PRIMARY KEY,
  region text NOT NULL,
  number integer NOT NULL,
  state order_state NOT NULL DEFAULT 'new',
  total numeric(12, 2) NOT NULL,
  placed_at timestamptz NOT NULL,
  tags text[] NOT NULL DEFAULT '{}',
  profile jsonb NOT NULL DEFAULT '{}',
  seal bytea,
  CONSTRAINT orders_customer FOREIGN KEY (region, number) REFERENCES customers
);

CREATE TABLE order_lines (
  order_id bigint REFERENCES orders ON DELETE CASCADE,
  line integer,
  sku text NOT NULL,
  quantity integer NOT NULL,
  PRIMARY KEY (order_id, line)
);

CREATE TABLE readings (
  id integer PRIMARY KEY,
  value double precision NOT NULL
);

INSERT INTO customers VALUES ('north', 1, 'Ada'), ('north', 2, 'Grace'), ('süd', 1, 'Zoë');
INSERT INTO orders (id, region, number, total, placed_at)
SELECT n, (ARRAY['north', 'süd'])[1 + n % 2], 1, 10 * n, '2026-01-02 03:04:05.678901+00'
FROM generate_series(1, 10) AS n;
UPDATE orders SET state = 'paid', tags = '{gift,"b c"}', seal = '\x00ff10',
  profile = '{"note": "süß €", "tier": 2}' WHERE id = 1;
INSERT INTO order_lines SELECT o, l, 'sku ' || l, o * l
FROM generate_series(1, 10) AS o, generate_series(1, 3) AS l;
INSERT INTO readings SELECT n, n / 4.0 FROM generate_series(1, 5000) AS n;
