// What has to be asked of the store before one statement with temporal clauses can be rewritten,
// and what then becomes of it. Asked in-band on the client's own session, whose search_path,
// temporary tables and uncommitted state decide. Knows SQL and rows; the messages around them are
// the session's. One thread.
//
//   probe ──► resolve ──► evaluate ──► settle ──► done      (each only when needed)
//     └─ not a Tidemark database: done, the text stays as it came
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "rewrite/statement.h"
#include "wire/message.h"

namespace tidemark::gateway {

/// Lets a publish in flight finish. Runs before a statement whose instant is evaluated at execution
/// takes its snapshot, so that the answer to AS OF t never changes.
inline constexpr std::string_view kSettleSql = "SELECT tidemark.settle()";

class Inquiry {
 public:
  enum class Protocol { kSimple, kExtended };
  enum class Store { kUnknown, kForeign, kTidemark };

  /// nullopt when `text` passes as it is. An error of analysis is kept until the store is known
  /// to be Tidemark's.
  static std::optional<Inquiry> Open(std::string_view text, Protocol protocol, Store store,
                                     const rewrite::Scope& scope);

  /// What to ask next; empty when all is known.
  const std::string& sql() const { return sql_; }
  /// A row that sql() returned.
  void OnRow(const wire::DataRow& row);
  /// sql() has been answered; the next question is in sql().
  void OnAnswered();
  /// Makes the store's error for sql() the client's error for its statement.
  void Translate(wire::ErrorFields& error) const;

  /// Once sql() is empty: the new text, the error it must fail with, or neither: as it came.
  std::optional<rewrite::Rewritten>& rewritten() { return rewritten_; }
  const std::optional<base::Error>& refusal() const { return refusal_; }
  Store store() const { return store_; }
  Protocol protocol() const { return protocol_; }

 private:
  enum class Stage { kProbe, kResolve, kEvaluate, kSettle, kDone };

  Inquiry(std::string_view text, Protocol protocol, Store store)
      : text_(text), protocol_(protocol), store_(store) {}
  void Ask(Stage stage, std::string sql);
  void Begin();
  void OnResolved();
  void Render();
  void Settle();
  void Finish();
  std::string ResolveSql() const;
  std::string EvaluateSql();

  std::string text_;
  Protocol protocol_;
  Store store_;
  Stage stage_ = Stage::kDone;
  std::string sql_;
  std::optional<rewrite::Statement> statement_;
  std::vector<rewrite::Resolution> resolutions_;
  std::vector<std::string> evaluated_;
  std::vector<size_t> evaluated_at_;  // where each instant begins in the evaluating SQL, in bytes
  std::optional<rewrite::Rewritten> rewritten_;
  std::optional<base::Error> refusal_;
};

}  // namespace tidemark::gateway
