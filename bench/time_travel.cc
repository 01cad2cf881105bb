// What a query AS OF an instant costs beside the same query on plain tables with the same rows: one
// row by key, a count, a grouped sum and a join of two tables, at 10, 50 and 90 % of the history,
// a few versions ago and now, with a literal instant and with a parameter; after a quarter of the
// history and after all of it. Then a range of instants beside all row versions in a plain table,
// and a row by key through the gateway.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "base/identifier.h"
#include "bench/bounded_run.h"
#include "bench/command_line.h"
#include "bench/durable_cluster.h"
#include "bench/gateway_process.h"
#include "bench/ledger.h"
#include "bench/mirror_process.h"
#include "bench/polling.h"
#include "bench/report.h"

namespace tidemark::bench {
namespace {

constexpr std::chrono::minutes kDrainMax{45};
constexpr std::chrono::minutes kSealMax{10};
constexpr std::chrono::seconds kGatewayMax{15};
constexpr int kAccountShare = 4;  // of the ledger's rows, so many have an account

// `{ledger}` and `{account}` stand for what is read.
struct Query {
  std::string name, text, to_reach;
};

std::string Replaced(std::string text, const std::string& name, const std::string& by) {
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + by.size())) {
    text.replace(at, name.size(), by);
  }
  return text;
}

// `pattern` with {} as the table's name.
std::string On(const Query& query, const std::string& pattern) {
  const auto text = Replaced(query.text, "{ledger}", Replaced(pattern, "{}", "ledger"));
  return Replaced(text, "{account}", Replaced(pattern, "{}", "account"));
}

struct Plan {
  size_t partitions = 0;  // of history that it reads
  bool parallel = false;
};

Plan PlanOf(pg::Connection& store, const std::string& sql) {
  const auto rows = store.Execute("EXPLAIN (COSTS off) " + sql);
  static const std::regex partition(" d[0-9]+_(p[0-9]+|open)");
  std::set<std::string> partitions;
  Plan plan;
  for (int i = 0; i < rows.rows(); ++i) {
    const auto line = rows.str(i, 0);
    plan.parallel = plan.parallel || line.find("Workers Planned") != std::string::npos;
    std::smatch found;
    if (std::regex_search(line, found, partition)) partitions.insert(found.str());
  }
  plan.partitions = partitions.size();
  return plan;
}

using Parameters = std::vector<pg::Parameter>;

struct Asked {
  pg::Connection* on;
  std::string sql;
  Parameters parameters;
};

double MillisecondsOf(const Asked& asked) {
  const Stopwatch watch;
  asked.on->Execute(asked.sql, asked.parameters);
  return watch.seconds() * 1000;
}

// The medians of several rounds after one that warms up; all take turns, so that what else the
// machine does meets each of them.
std::vector<double> Medians(const std::vector<Asked>& all, int runs) {
  std::vector<std::vector<double>> taken(all.size());
  for (int run = 0; run <= runs; ++run) {
    for (size_t i = 0; i < all.size(); ++i) {
      const double milliseconds = MillisecondsOf(all[i]);
      if (run > 0) taken[i].push_back(milliseconds);
    }
  }
  std::vector<double> medians;
  for (auto& one : taken) medians.push_back(Median(std::move(one)));
  return medians;
}

double PlanningMillisecondsOf(pg::Connection& store, const std::string& sql, int runs) {
  std::vector<double> milliseconds;
  for (int run = 0; run <= runs; ++run) {
    const auto rows = store.Execute("EXPLAIN (SUMMARY) " + sql);
    for (int i = 0; i < rows.rows(); ++i) {
      std::smatch found;
      const auto line = rows.str(i, 0);
      static const std::regex planning("Planning Time: ([0-9.]+) ms");
      if (run > 0 && std::regex_search(line, found, planning)) {
        milliseconds.push_back(std::stod(found[1].str()));
      }
    }
  }
  return Median(milliseconds);
}

// How many times as often a query is asked that takes a millisecond.
constexpr int kQuickRuns = 40;

constexpr const char* kLiteral = "literal";
constexpr const char* kNearNow = "near now";
constexpr int kNearNowShare = 20;  // of the live rows, so many have changed since then

struct Instant {
  std::string name, time;  // no time: the latest
  std::vector<std::string> forms = {kLiteral, "$1"};
};

std::string InstantOfTx(pg::Connection& store, int64_t tx) {
  return store.Value(
      "SELECT b.system_time FROM tidemark.basis_journal b WHERE b.tx_last >= $1::bigint "
      "ORDER BY b.tx_last LIMIT 1",
      {std::to_string(tx)});
}

std::vector<Instant> Instants(pg::Connection& store, const Backlog& backlog) {
  const auto newest = std::stoll(store.Value("SELECT max(tx_last) FROM tidemark.basis_journal"));
  std::vector<Instant> instants;
  for (const int percent : {10, 50, 90}) {
    instants.push_back(
        {fmt::format("{} %", percent), InstantOfTx(store, newest * percent / 100)});
  }
  const auto since = std::max<int64_t>(1, backlog.rows / kNearNowShare / backlog.bulk_rows);
  instants.push_back({kNearNow, InstantOfTx(store, newest - since), {kLiteral}});
  instants.push_back({"latest", "", {kLiteral}});
  return instants;
}

// A scan of more than a quarter of the shared buffers goes around them. Of two tables of about one
// size that must not be one and not the other.
std::vector<std::string> WithAllInMemory(std::vector<std::string> settings) {
  settings.insert(settings.begin(), "shared_buffers = 2GB");
  return settings;
}

class TimeTravel {
 public:
  TimeTravel(BoundedRun& run, const CommandLine& line, Backlog backlog)
      : backlog_(backlog),
        runs_(line.quick ? 3 : 7),
        program_(line.tidemark),
        source_cluster_(run, {"wal_level = logical"}),
        store_cluster_(run, WithAllInMemory(line.store_settings)),
        source_(source_cluster_.Connect()),
        store_(store_cluster_.Connect()),
        mirror_({.program = line.tidemark,
                 .source_dsn = source_cluster_.Dsn(),
                 .store_dsn = store_cluster_.Dsn(),
                 .log = store_cluster_.directory() / "tidemark.log"}) {
    source_.SetLimits(std::chrono::minutes(30), {});
    store_.SetLimits(std::chrono::minutes(10), {});
  }

  /// Updates `versions` rows through the mirror, and waits until what is full of them has been
  /// sealed.
  void WriteVersions(int64_t versions);
  /// The plain tables with the rows of now, which lie as in a table that lived the same;
  /// statistics and visibility as after some hours of life.
  void Settle();
  void Measure(const std::string& part, Report& report, std::map<std::string, double>& taken);
  /// What was there at any time between two instants, beside a plain table of all row versions.
  void Ranges(Report& report);
  /// One row by key, as clients ask for it.
  void ThroughGateway(Report& report);
  void Size(Report& report);

  pg::Connection& store() { return store_; }

 private:
  Backlog backlog_;
  int runs_;  // of each query
  std::filesystem::path program_;
  DurableCluster source_cluster_, store_cluster_;
  pg::Connection source_, store_;
  struct Filled {
    Filled(pg::Connection& source, const Backlog& backlog);
  };
  Filled filled_{source_, backlog_};
  MirrorProcess mirror_;
  int64_t marker_ = 0;
};

TimeTravel::Filled::Filled(pg::Connection& source, const Backlog& backlog) {
  Say("filling the source");
  CreateLedger(source, /*keyed=*/true);
  FillLedger(source, backlog.rows);
  source.Execute(fmt::format(
      R"sql(
CREATE TABLE public.account (id bigint PRIMARY KEY, branch integer, owner text);
INSERT INTO public.account SELECT i, i % 50, 'owner ' || i FROM generate_series(1, {}) AS i;
ALTER PUBLICATION tidemark ADD TABLE public.account
)sql",
      backlog.rows / kAccountShare));
}

void TimeTravel::WriteVersions(int64_t versions) {
  AwaitFirstCopy(mirror_, store_, kDrainMax);
  Backlog part = backlog_;
  part.bulk = versions / part.bulk_rows;
  Say(fmt::format("writing {} versions in {} transactions", part.bulk_changes(), part.bulk));
  WriteBulk(source_, part, ++marker_);
  source_.Execute("UPDATE public.account SET owner = owner || '.' WHERE id % 10 = 0");
  WriteMarker(source_, marker_);
  Say("waiting for the mirror");
  PollUntil("the history", kDrainMax, [&] {
    mirror_.RequireRunning();
    return MarkerReached(store_, marker_);
  });
  Say("waiting for the sealing");
  const auto sealed = [&] {
    mirror_.RequireRunning();
    return store_.Value("SELECT count(*) FROM tidemark.history_partition WHERE NOT sealed "
                        "AND tx_to IS NOT NULL OR rewritten_by IS NOT NULL") == "0";
  };
  PollUntil("the sealing", kSealMax, sealed);
}

void TimeTravel::Settle() {
  Say("plain tables");
  store_.Execute("DROP TABLE IF EXISTS public.plain_ledger, public.plain_account");
  for (const std::string table : {"ledger", "account"}) {
    store_.Execute(fmt::format("CREATE TABLE public.plain_{0} AS SELECT * FROM public.{0}", table));
    store_.Execute(fmt::format("ALTER TABLE public.plain_{} ADD PRIMARY KEY (id)", table));
  }
  store_.Execute("VACUUM (ANALYZE)");
}

void TimeTravel::Measure(const std::string& part, Report& report,
                         std::map<std::string, double>& taken) {
  const std::vector<Query> queries = {
      {"one row by key",
       fmt::format("SELECT * FROM {{ledger}} AS l WHERE l.id = {}", backlog_.rows / 3), "1 ms"},
      {"count", "SELECT count(*) FROM {ledger} AS l", "4 x"},
      {"grouped sum", "SELECT l.a % 16, sum(l.d), max(l.e) FROM {ledger} AS l GROUP BY 1", "1.7 x"},
      {"join",
       "SELECT o.branch, count(*), sum(l.d) FROM {ledger} AS l JOIN {account} AS o ON o.id = l.id "
       "GROUP BY 1",
       "1.7 x"},
      {"filtered sum", "SELECT sum(l.d) FROM {ledger} AS l WHERE l.a < 300", "1.7 x"}};
  const auto instants = Instants(store_, backlog_);
  for (const auto& query : queries) {
    Say(fmt::format("{}: {}", part, query.name));
    std::vector<Asked> asked = {{&store_, On(query, "public.plain_{}"), {}}};
    std::vector<std::string> planned = {asked[0].sql};
    for (const auto& instant : instants) {
      const std::string as_of = "tidemark.as_of(NULL::public.{}, ";
      const auto literal = On(query, instant.time.empty() ? "public.{}"
                                                          : as_of + "'" + instant.time + "')");
      for (const auto& form : instant.forms) {
        if (form == kLiteral) {
          asked.push_back({&store_, literal, {}});
        } else {
          asked.push_back({&store_, On(query, as_of + "$1)"), {instant.time}});
        }
        planned.push_back(literal);
      }
    }
    const bool quick = query.to_reach == "1 ms";  // so many that they take a second, not a moment
    const int runs = quick ? runs_ * kQuickRuns : runs_;
    const auto medians = Medians(asked, runs);
    std::map<std::string, std::string> planning;
    size_t at = 0;
    for (const auto& instant : instants) {
      for (const auto& how : instant.forms) {
        ++at;
        const auto plan = PlanOf(store_, planned[at]);
        report.Add({part, query.name, instant.name, instant.time.empty() ? "" : how,
                    {medians[at], 2}, {medians[0], 2}, {medians[at] / medians[0], 2},
                    {static_cast<double>(plan.partitions), 0}, plan.parallel ? "yes" : "no"});
        taken[part + query.name + instant.name + how] = medians[at] / medians[0];
        planning[instant.name] = planned[at];
        if (part != "all") continue;
        const auto what = fmt::format("{}, {}{}", query.name, instant.time.empty() ? "" : "as of ",
                                      instant.name + (instant.time.empty() ? "" : fmt::format(" by {}", how)));
        if (instant.time.empty()) {
          report.Figure(what + ": plain / Tidemark", {medians[0] / medians[at], 2}, "0.95");
        } else if (quick) {
          report.Figure(what + ": ms", {medians[at], 2}, "1");
        } else {
          report.Figure(what + ": Tidemark / plain", {medians[at] / medians[0], 2}, query.to_reach);
        }
      }
    }
    if (quick) {
      for (const auto& instant : instants) {
        if (instant.time.empty()) continue;
        report.Figure(fmt::format("{} history, planning one row by key as of {}: ms", part,
                                  instant.name),
                      {PlanningMillisecondsOf(store_, planning.at(instant.name), runs), 2}, "2");
      }
    }
  }
}

void TimeTravel::Ranges(Report& report) {
  Say("all: ranges");
  const auto id = store_.Value("SELECT id FROM tidemark.dataset WHERE table_name = 'ledger'");
  store_.Execute("CREATE TABLE public.plain_versions AS SELECT * FROM tidemark_versions.d" + id);
  store_.Execute("VACUUM (ANALYZE) public.plain_versions");
  const auto instants = Instants(store_, backlog_);
  const auto from = base::QuoteLiteral(instants[0].time), to = base::QuoteLiteral(instants[1].time);
  const auto tx_at = [&](const std::string& instant) {
    return store_.Value("SELECT tidemark.tx_at('public.ledger', " + instant + ")");
  };
  const auto medians = Medians(
      {{&store_, fmt::format("SELECT count(*) FROM public.plain_versions WHERE _from < {} AND _to > {}",
                             tx_at(to), tx_at(from)), {}},
       {&store_, fmt::format("SELECT count(*) FROM tidemark.versions(NULL::public.ledger, 'system', "
                             "'from_to', {}, {})", from, to), {}}},
      runs_);
  report.Figure("count of the versions from 10 % to 50 %: ms", {medians[1], 0}, "");
  report.Figure("count of the versions from 10 % to 50 %: Tidemark / plain",
                {medians[1] / medians[0], 2}, "");
  store_.Execute("DROP TABLE public.plain_versions");
}

void TimeTravel::ThroughGateway(Report& report) {
  Say("through the gateway");
  const GatewayProcess gateway({.program = program_,
                                .store_dsn = store_cluster_.Dsn(),
                                .log = store_cluster_.directory() / "gateway.log"});
  auto client = pg::Connection::Open(
      {.dsn = fmt::format("host={} port={} user=postgres dbname=postgres sslmode=disable",
                          GatewayProcess::kHost, gateway.port())},
      base::Deadline::After(kGatewayMax));
  const auto key = fmt::format(" WHERE l.id = {}", backlog_.rows / 3);
  const auto instant = base::QuoteLiteral(Instants(store_, backlog_)[1].time);
  const auto medians = Medians(
      {{&store_, "SELECT * FROM tidemark.as_of(NULL::public.ledger, " + instant + ") l" + key, {}},
       {&client, "SELECT * FROM public.ledger FOR SYSTEM_TIME AS OF " + instant + " AS l" + key, {}},
       {&store_, "SELECT * FROM public.ledger l" + key, {}},
       {&client, "SELECT * FROM public.ledger l" + key, {}}},
      runs_ * kQuickRuns);
  report.Figure("one row by key as of 50 % through the gateway: ms", {medians[1], 2}, "");
  report.Figure("one row by key as of 50 %: gateway / direct", {medians[1] / medians[0], 2}, "");
  report.Figure("one row by key, latest: gateway / direct", {medians[3] / medians[2], 2}, "");
}

void TimeTravel::Size(Report& report) {
  const auto id = store_.Value("SELECT id FROM tidemark.dataset WHERE table_name = 'ledger'");
  const auto sizes = store_.Execute(fmt::format(R"sql(
SELECT sum(pg_table_size(c.oid)), sum(pg_indexes_size(c.oid)),
       (SELECT sum(pg_column_size(v.*)) FROM tidemark_versions.d{0} AS v
        WHERE v._to < 9223372036854775807)
FROM tidemark.dataset d
JOIN pg_inherits i ON i.inhparent = 'tidemark_history.d{0}'::regclass
JOIN pg_class c ON c.oid = i.inhrelid
WHERE d.id = {0}
)sql", id));
  report.Figure("history of the ledger: heap / raw tuples",
                {std::stod(sizes.str(0, 0)) / std::stod(sizes.str(0, 2)), 2}, "1.2");
  report.Figure("history of the ledger: indexes / raw tuples",
                {std::stod(sizes.str(0, 1)) / std::stod(sizes.str(0, 2)), 2}, "");
}

void Run(int argc, char** argv) {
  CommandLine line("Measures queries AS OF an instant beside the same on plain tables.");
  Backlog backlog{.rows = 1'000'000, .bulk_rows = 20};
  int64_t versions = 5'000'000;
  line.Add("--rows", backlog.rows, "live rows");
  line.Add("--versions", versions, "closed row versions");
  line.Add("--per-transaction", backlog.bulk_rows, "rows that one transaction updates");
  line.Read(argc, argv);
  if (line.quick) {
    backlog.rows = 50'000;
    versions = 130'000;
  }

  BoundedRun run(line.limit());
  TimeTravel travel(run, line, backlog);
  Report report("time travel", {"history", "query", "as of", "instant", "ms", "plain ms", "ratio",
                                "partitions read", "parallel"});
  std::map<std::string, double> taken;
  travel.WriteVersions(versions / 4);
  travel.Settle();
  travel.Measure("quarter", report, taken);
  travel.WriteVersions(versions - versions / 4);
  travel.Settle();
  travel.Measure("all", report, taken);
  travel.Ranges(report);
  travel.ThroughGateway(report);
  for (const std::string query : {"count", "grouped sum"}) {
    // Since 90 % four times as many versions were written where there are four times as many.
    for (const auto& [instant, to_reach] : std::map<std::string, std::string>{
             {"50 %", "1.3"}, {"90 %", ""}, {kNearNow, "1.1"}}) {
      report.Figure(fmt::format("{} as of {}, beside plain: 4 x the history / history", query,
                                instant),
                    {taken["all" + query + instant + kLiteral] /
                         taken["quarter" + query + instant + kLiteral],
                     2},
                    to_reach);
    }
  }
  travel.Size(report);
  auto& store = travel.store();
  report.Note("live rows", {static_cast<double>(backlog.rows), 0});
  report.Note("closed versions",
              {std::stod(store.Value("SELECT count(*) FROM public_history.ledger "
                                     "WHERE tx_to IS NOT NULL")),
               0});
  report.Note("partitions",
              {std::stod(store.Value("SELECT count(*) FROM tidemark.history_partition")), 0});
  report.Note("sealed", {std::stod(store.Value("SELECT count(*) FROM tidemark.history_partition "
                                               "WHERE sealed")),
                         0});
  report.Publish(line.json_file);
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  return tidemark::bench::BoundedRun::Main([&] { tidemark::bench::Run(argc, argv); });
}
