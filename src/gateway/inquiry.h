// What has to be asked of the store before one statement can be rewritten, and what then becomes of
// it. Asked in-band on the client's own session, whose search_path, temporary tables, settings and
// uncommitted state decide. Knows SQL and rows; the messages around them are the session's. One
// thread.
//
//   probe ──► resolve ──► prepared ──► views ──► evaluate ──► settle ──► done   (each when needed)
//     │                                  ▲
//     │  pin ──► statement ──► resolve ──┘     a Bind in a session that may be pinned
//     └─ not a Tidemark database: done, the text stays as it came
#pragma once

#include <map>
#include <memory>
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

/// Statements prepared in SQL whose PREPARE was rewritten, by name as the catalog has it.
struct SqlPrepared {
  std::string server, client;  // the PREPARE as the store has it and as the client wrote it
};
using SqlPreparedNames = std::map<std::string, SqlPrepared, std::less<>>;

class Inquiry {
 public:
  enum class Protocol { kSimple, kExtended };
  enum class Store { kUnknown, kForeign, kTidemark };

  struct Context {
    Protocol protocol;
    Store store = Store::kUnknown;
    rewrite::Scope scope = {};
    const SqlPreparedNames* prepared = nullptr;  // outlives the inquiry
  };

  /// nullopt when `text` passes as it is. An error of analysis is kept until the store is known
  /// to be Tidemark's.
  static std::optional<Inquiry> Open(std::string_view text, const Context& context);

  /// Only asks what the store is, and how the session began.
  static Inquiry Probe();

  /// A Bind of a statement that was written for the pin `pin`. Only if the session's pin is another
  /// one, its text is asked for when `text` is empty, and rewritten.
  static Inquiry ForBind(std::string_view statement, std::string pin, std::string text,
                         const Context& context);

  /// What to ask next; empty when all is known.
  const std::string& sql() const { return inner_ ? inner_->sql() : sql_; }
  /// A row that sql() returned.
  void OnRow(const wire::DataRow& row);
  /// sql() has been answered; the next question is in sql().
  void OnAnswered();
  /// Makes the store's error for sql() the client's error for its statement.
  void Translate(wire::ErrorFields& error) const;

  /// Once sql() is empty: the new text, the error it must fail with, or neither: as it came.
  std::optional<rewrite::Rewritten>& rewritten() { return rewritten_; }
  const std::optional<base::Error>& refusal() const { return refusal_; }
  Store store() const { return context_.store; }
  Protocol protocol() const { return context_.protocol; }
  bool is_probe() const { return purpose_ == Purpose::kProbe; }

  /// Whether the session's pin was asked for, and its text: empty when there is none.
  bool knows_pin() const { return knows_pin_; }
  const std::string& pin() const { return pin_; }
  /// Of a probe: the session began with a pin, or with something to await.
  bool began_pinned() const { return began_pinned_; }
  /// Of a probe: the session's role may only read.
  bool is_reader() const { return is_reader_; }
  bool is_superuser() const { return is_superuser_; }
  /// The PREPAREs that rewritten() holds.
  SqlPreparedNames prepares() const;

  /// Of a Bind: the statement; true when its text must be parsed anew; then its text, and the types
  /// of its parameters if they had to be asked for.
  const std::string& name() const { return name_; }
  bool reparses() const { return reparses_; }
  const std::string& text() const { return text_; }
  const std::string& parameter_types() const { return parameter_types_; }

 private:
  enum class Purpose { kText, kProbe, kBind };
  enum class Stage {
    kProbe,
    kPin,
    kStatement,
    kResolve,
    kPrepared,
    kViews,
    kEvaluate,
    kSettle,
    kDone
  };

  Inquiry(std::string_view text, const Context& context) : text_(text), context_(context) {}
  void Ask(Stage stage, std::string sql);
  void Analyze();
  void Begin();
  void OnPin();
  void OnResolved();
  void OnInner();
  void NextInner();
  void AskForViews();
  void OnFacts();
  void Render();
  void Settle();
  void Finish();
  void OnResolution(const wire::DataRow& row);
  void OnView(const wire::DataRow& row);
  std::string ResolveSql() const;
  std::string EvaluateSql();

  std::string text_;
  Context context_;
  Purpose purpose_ = Purpose::kText;
  Stage stage_ = Stage::kDone;
  std::string sql_;
  std::optional<rewrite::Statement> statement_;
  std::vector<rewrite::Resolution> resolutions_;
  std::vector<rewrite::ViewRelation> view_relations_;
  std::vector<rewrite::ExecutedStatement> executed_;
  std::vector<std::string> evaluated_;
  std::vector<size_t> evaluated_at_;  // where each instant begins in the evaluating SQL, in bytes
  std::string pin_, refused_function_;
  bool knows_pin_ = false, began_pinned_ = false, is_reader_ = false, is_superuser_ = false;

  // A Bind.
  std::string name_, bound_pin_;
  bool reparses_ = false;
  std::string parameter_types_;  // count and OIDs as they stand in a Parse message

  // The statements that the text executes, one after the other.
  struct Prepared {
    std::string name, server;
    std::string client = {};  // what must be prepared anew, as the client wrote it
  };
  std::vector<Prepared> prepared_;
  std::unique_ptr<Inquiry> inner_;

  std::optional<rewrite::Rewritten> rewritten_;
  std::optional<base::Error> refusal_;
};

}  // namespace tidemark::gateway
