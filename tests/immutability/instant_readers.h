// Readers that ask for the present and the past few milliseconds all the time, in every form there
// is, keep each answer, and ask again: the answer to AS OF must never change. Some of them look at
// the newest basis as well: what one has seen, all others must see from then on.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "pg/connection.h"

namespace tidemark::immutability {

/// How an instant is asked for.
enum class Form {
  kLiteral,            // as_of(NULL::t, '…'), READ COMMITTED
  kLiteralRepeatable,  // the same in REPEATABLE READ, twice in one transaction
  kParameter,          // prepared, custom plan or generic as the server likes, with as_of_once
  kOnce,               // prepared, as_of_tx_once(NULL::t, tx_at('t', $1))
  kOnceRepeatable,     // the same in REPEATABLE READ
  kSource,             // as_of_source, up to the received source time
  kPosition,           // as_of_position, up to the received position
};
inline constexpr int kForms = 7;

struct Counts {
  std::atomic<int64_t> answered{0}, refused{0};  // refused: 40001
};

class InstantReaders {
 public:
  /// Starts `readers` threads that ask for `tables` (of oracle::PublishedTables), once they exist.
  InstantReaders(std::string store_dsn, std::vector<std::string> tables, int readers,
                 uint64_t seed);
  ~InstantReaders();
  InstantReaders(const InstantReaders&) = delete;
  InstantReaders& operator=(const InstantReaders&) = delete;

  /// Ends them; what was wrong, one line each (at most 20).
  std::vector<std::string> Stop();
  /// Asks for up to `most` of the kept answers once more; what differs, one line each.
  std::vector<std::string> AskAgain(pg::Connection& store, size_t most);
  const Counts& counts(Form form) const { return counts_[static_cast<size_t>(form)]; }
  int64_t asked_again() const { return asked_again_; }
  int64_t bases_seen() const { return newest_basis_seen_; }

 private:
  struct Answer {
    size_t table;
    std::string function, instant, digest;
  };
  void Run(uint64_t seed, const std::stop_token& stop);
  void Ask(pg::Connection& store, std::mt19937_64& random);
  void LookForTheNewestBasis(pg::Connection& store);
  void Keep(Answer answer);
  void Complain(std::string line);

  std::string store_dsn_;
  std::vector<std::string> tables_;
  std::array<Counts, kForms> counts_;
  std::atomic<int64_t> newest_basis_seen_{0}, asked_again_{0};
  std::mutex mutex_;
  std::vector<Answer> answers_;
  std::vector<std::string> wrong_;
  std::vector<std::jthread> threads_;
};

}  // namespace tidemark::immutability
