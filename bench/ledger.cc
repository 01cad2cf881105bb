#include "bench/ledger.h"

#include <fmt/format.h>

#include <optional>

namespace tidemark::bench {

void CreateLedger(pg::Connection& on, bool keyed) {
  on.Execute(fmt::format(
      R"sql(
CREATE TABLE public.ledger (id bigint{}, a integer, b bigint, c text, d numeric, e timestamptz)
)sql",
      keyed ? " PRIMARY KEY" : ""));
}

void FillLedger(pg::Connection& source, int64_t rows) {
  source.SetLimits(std::chrono::hours(2), {});
  source.Execute(
      R"sql(
INSERT INTO public.ledger
SELECT i, CASE WHEN i = 0 THEN 0 ELSE i % 1000 END, i * 7, substr(md5(i::text), 1, 20),
       (i % 100000) / 100.0, timestamptz '2026-01-01 00:00+00' + i * interval '1 second'
FROM generate_series(0, $1::bigint) AS i
)sql",
      {std::to_string(rows)});
  source.Execute("VACUUM (ANALYZE, FREEZE) public.ledger");
  source.Execute("CREATE PUBLICATION tidemark FOR TABLE public.ledger");
  source.Execute(R"sql(
CREATE PROCEDURE public.write_single(transactions bigint, rows bigint) LANGUAGE plpgsql AS $$
DECLARE
  chosen bigint;
BEGIN
  FOR i IN 1..transactions LOOP
    chosen := 1 + floor(random() * rows)::bigint;
    UPDATE public.ledger SET a = a + 1, b = b + i, d = d + 0.01, e = clock_timestamp()
    WHERE id = chosen;
    COMMIT;
  END LOOP;
END $$
)sql");
  source.Execute("CREATE SEQUENCE public.new_ids START " + std::to_string(rows + 1));
  source.Execute(R"sql(
CREATE PROCEDURE public.insert_rows(transactions bigint, size bigint) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..transactions LOOP
    INSERT INTO public.ledger
    SELECT n, n % 1000, n * 7, substr(md5(n::text), 1, 20), (n % 100000) / 100.0, clock_timestamp()
    FROM (SELECT nextval('public.new_ids') AS n FROM generate_series(1, size)) AS fresh;
    COMMIT;
  END LOOP;
END $$
)sql");
  // A step that is prime: the keys of one transaction differ and lie all over the table.
  source.Execute(R"sql(
CREATE PROCEDURE public.write_bulk(transactions bigint, size bigint, rows bigint)
LANGUAGE plpgsql AS $$
DECLARE
  first bigint;
BEGIN
  FOR i IN 1..transactions LOOP
    first := floor(random() * rows)::bigint;
    UPDATE public.ledger SET a = a + 1, b = b + i, d = d + 0.01, e = clock_timestamp()
    WHERE id = ANY (ARRAY(SELECT 1 + (first + k * 7919) % rows
                          FROM generate_series(0, size - 1) AS k));
    COMMIT;
  END LOOP;
END $$
)sql");
}

void CreateSides(pg::Connection& on, int64_t tables) {
  for (int64_t i = 0; i < tables; ++i) {
    on.Execute(fmt::format(
        "CREATE TABLE public.side_{} (id integer PRIMARY KEY, n bigint, note text)", i));
  }
}

void CreateTally(pg::Connection& on) {
  on.Execute("CREATE TABLE public.tally (value integer, note text)");
  on.Execute("ALTER TABLE public.tally REPLICA IDENTITY FULL");
}

void FillTally(pg::Connection& source, int64_t rows) {
  source.Execute(
      "INSERT INTO public.tally SELECT i % 10, 'as others' FROM generate_series(1, $1::bigint) AS i",
      {std::to_string(rows)});
  source.Execute("VACUUM (ANALYZE, FREEZE) public.tally");
  source.Execute("ALTER PUBLICATION tidemark ADD TABLE public.tally");
  source.Execute(R"sql(
CREATE PROCEDURE public.change_tally(transactions bigint, size bigint) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..transactions LOOP
    UPDATE public.tally SET value = (value + 1 + floor(random() * 9)::integer) % 10
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM public.tally ORDER BY random() LIMIT size));
    COMMIT;
  END LOOP;
END $$
)sql");
}

namespace {

void Call(pg::Connection& source, int64_t seed, const std::string& call) {
  source.SetLimits(std::chrono::hours(2), {});
  source.Execute("SET synchronous_commit = off");
  source.Execute(fmt::format("SELECT setseed({})", static_cast<double>(seed % 1000) / 1000));
  source.Execute(call);
  source.Execute("RESET synchronous_commit");
}

// Where all transactions have one procedure, whatever their size.
std::optional<std::string> CallOfAnySize(const Backlog& backlog, int64_t transactions,
                                         int64_t size) {
  if (backlog.inserts) return fmt::format("CALL public.insert_rows({}, {})", transactions, size);
  if (backlog.tally) return fmt::format("CALL public.change_tally({}, {})", transactions, size);
  return std::nullopt;
}

}  // namespace

void WriteSingle(pg::Connection& source, const Backlog& backlog, int64_t seed) {
  Call(source, seed,
       CallOfAnySize(backlog, backlog.single, 1)
           .value_or(fmt::format("CALL public.write_single({}, {})", backlog.single, backlog.rows)));
}

void WriteBulk(pg::Connection& source, const Backlog& backlog, int64_t seed) {
  Call(source, seed,
       CallOfAnySize(backlog, backlog.bulk, backlog.bulk_rows)
           .value_or(fmt::format("CALL public.write_bulk({}, {}, {})", backlog.bulk,
                                 backlog.bulk_rows, backlog.rows)));
}

base::Lsn WriteMarker(pg::Connection& source, int64_t value) {
  source.Execute("UPDATE public.ledger SET a = $1 WHERE id = 0", {std::to_string(value)});
  const auto end = base::Lsn::Parse(source.Value("SELECT pg_current_wal_insert_lsn()"));
  // Something after it, or a reader that waits for a position beyond the end would wait on.
  source.Execute("SELECT pg_logical_emit_message(true, 'bench', 'end')");
  return end;
}

bool MarkerReached(pg::Connection& on, int64_t value) {
  const auto row = on.ExecutePrepared("SELECT a FROM public.ledger WHERE id = 0", {});
  return row.rows() == 1 && row.int64(0, 0) == value;
}

namespace {

std::string ContentsOf(pg::Connection& on, const std::string& table) {
  on.SetLimits(std::chrono::hours(1), {});
  return on.Value(fmt::format(R"sql(
SELECT count(*) || ' rows, hash ' || coalesce(sum(hashtextextended(l::text, 0)::numeric), 0)
FROM public.{} AS l
)sql", table));
}

}  // namespace

std::string LedgerContents(pg::Connection& on) { return ContentsOf(on, "ledger"); }

std::string TallyContents(pg::Connection& on) { return ContentsOf(on, "tally"); }

}  // namespace tidemark::bench
