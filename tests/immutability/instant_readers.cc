#include "tests/immutability/instant_readers.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/identifier.h"
#include "tests/oracle/tables.h"

namespace tidemark::immutability {

using base::Error;
using base::QuoteLiteral;

namespace {

constexpr size_t kComplaintsMost = 20;
constexpr size_t kAnswersMost = 200'000;
constexpr std::chrono::milliseconds kRetryInterval{30};

std::string Question(const std::string& table, const std::string& from) {
  return "SELECT rows || ' rows, sum ' || sum FROM (" +
         oracle::DigestSql(*oracle::FindPublished(table), from) + ") d";
}
std::string AsOf(const std::string& function, const std::string& table,
                 const std::string& instant) {
  return Question(table, fmt::format("tidemark.{}(NULL::public.{}, {})", function, table, instant));
}

std::string Different(const std::string& table, const std::string& function,
                      const std::string& instant, const std::string& first,
                      const std::string& later) {
  return fmt::format("{} {} {}: first {}, later {}", table, function, instant, first, later);
}

}  // namespace

InstantReaders::InstantReaders(std::string store_dsn, std::vector<std::string> tables, int readers,
                               uint64_t seed)
    : store_dsn_(std::move(store_dsn)), tables_(std::move(tables)) {
  for (int i = 0; i < readers; ++i) {
    threads_.emplace_back([this, seed, i](std::stop_token stop) {
      Run(seed * 100 + static_cast<uint64_t>(i), stop);
    });
  }
}

InstantReaders::~InstantReaders() { Stop(); }

std::vector<std::string> InstantReaders::Stop() {
  for (auto& thread : threads_) thread.request_stop();
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  return wrong_;
}

void InstantReaders::Complain(std::string line) {
  const std::lock_guard lock(mutex_);
  if (wrong_.size() < kComplaintsMost) wrong_.push_back(std::move(line));
}

void InstantReaders::Keep(Answer answer) {
  const std::lock_guard lock(mutex_);
  if (answers_.size() < kAnswersMost) answers_.push_back(std::move(answer));
}

void InstantReaders::Run(uint64_t seed, const std::stop_token& stop) {
  std::mt19937_64 random(seed);
  std::optional<pg::Connection> store;
  while (!stop.stop_requested()) {
    try {
      if (!store) {
        store.emplace(pg::Connection::Open(
            {.dsn = store_dsn_, .settings = {{"TimeZone", "UTC"}, {"DateStyle", "ISO"}}},
            base::Deadline::After(std::chrono::seconds(5))));
      }
      const auto ready =
          store->Execute("SELECT count(*) FROM pg_class WHERE relname = $1", {tables_.back()});
      while (ready.int64(0, 0) > 0 && !stop.stop_requested()) {
        Ask(*store, random);
        LookForTheNewestBasis(*store);
      }
    } catch (const Error& error) {
      if (!error.IsConnectionLoss()) Complain(error.Full());
      store.reset();
    }
    std::this_thread::sleep_for(kRetryInterval);
  }
}

void InstantReaders::LookForTheNewestBasis(pg::Connection& store) {
  const int64_t seen_before = newest_basis_seen_;
  const auto row = store.Execute("SELECT number FROM tidemark.basis ORDER BY number DESC LIMIT 1");
  const int64_t sees = row.int64(0, 0);
  if (sees < seen_before) {
    Complain(
        fmt::format("basis {} had been seen, a later statement saw only {}", seen_before, sees));
  }
  int64_t newest = newest_basis_seen_;
  while (newest < sees && !newest_basis_seen_.compare_exchange_weak(newest, sees)) {
  }
}

void InstantReaders::Ask(pg::Connection& store, std::mt19937_64& random) {
  const size_t table = random() % tables_.size();
  const auto& name = tables_[table];
  // Now and then an old question again.
  if (random() % 4 == 0) {
    Answer old;
    {
      const std::lock_guard lock(mutex_);
      if (answers_.empty()) return;
      old = answers_[random() % answers_.size()];
    }
    const auto& asked = tables_[old.table];
    const auto again = store.Value(AsOf(old.function, asked, QuoteLiteral(old.instant)));
    ++asked_again_;
    if (again != old.digest) {
      Complain(Different(asked, old.function, old.instant, old.digest, again));
    }
    return;
  }
  const Form form = static_cast<Form>(random() % kForms);
  Counts& counts = counts_[static_cast<size_t>(form)];
  const bool repeatable = form == Form::kLiteralRepeatable || form == Form::kOnceRepeatable;
  if (repeatable) store.Execute("BEGIN ISOLATION LEVEL REPEATABLE READ");
  try {
    const auto back = std::to_string(random() % 5000);
    std::string function = "as_of", instant;
    if (form == Form::kSource) {
      function = "as_of_source";
      instant = store.Value(
          "SELECT greatest(r.received_time - $1::float8 * interval '1 us', t.source_time) FROM "
          "tidemark.resume r, tidemark.tx t WHERE t.tx = 1",
          {back});
    } else if (form == Form::kPosition) {
      function = "as_of_position";
      instant = store.Value(
          "SELECT greatest(r.received_lsn - $1::numeric, t.end_lsn) FROM tidemark.resume r, "
          "tidemark.tx t WHERE t.tx = 1",
          {back});
    } else {
      instant = store.Value("SELECT clock_timestamp() - $1::float8 * interval '1 us'", {back});
    }
    const auto ask = [&] {
      if (form != Form::kParameter && form != Form::kOnce && form != Form::kOnceRepeatable) {
        return store.Value(AsOf(function, name, QuoteLiteral(instant)));
      }
      const auto from =
          form == Form::kParameter
              ? fmt::format("tidemark.as_of_once(NULL::public.{}, $1::timestamptz)", name)
              : fmt::format(
                    "tidemark.as_of_tx_once(NULL::public.{0}, "
                    "tidemark.tx_at('public.{0}'::regclass, $1::timestamptz))",
                    name);
      return store.ExecutePrepared(Question(name, from), {instant}).str(0, 0);
    };
    const auto digest = ask();
    if (repeatable && ask() != digest) {
      Complain(fmt::format("{} as of {}: two answers in one transaction", name, instant));
    }
    if (repeatable) store.Execute("COMMIT");
    ++counts.answered;
    Keep({table, function, instant, digest});
  } catch (const Error& error) {
    const bool may_refuse =
        form != Form::kLiteral && form != Form::kSource && form != Form::kPosition;
    if (error.state() != base::kSerializationFailure || !may_refuse) throw;
    ++counts.refused;
    if (repeatable) store.Execute("ROLLBACK");
  }
}

std::vector<std::string> InstantReaders::AskAgain(pg::Connection& store, size_t most) {
  std::vector<std::string> different;
  std::vector<Answer> answers;
  {
    const std::lock_guard lock(mutex_);
    const size_t step = std::max<size_t>(1, answers_.size() / std::max<size_t>(1, most));
    for (size_t i = 0; i < answers_.size(); i += step) answers.push_back(answers_[i]);
  }
  store.Execute("SET TimeZone = 'UTC'");
  for (const auto& answer : answers) {
    const auto& name = tables_[answer.table];
    ++asked_again_;
    std::string again;
    try {
      again = store.Value(AsOf(answer.function, name, QuoteLiteral(answer.instant)));
    } catch (const Error& error) {
      again = error.Full();
    }
    if (again == answer.digest) continue;
    different.push_back(Different(name, answer.function, answer.instant, answer.digest, again));
    if (different.size() >= kComplaintsMost) break;
  }
  return different;
}

}  // namespace tidemark::immutability
