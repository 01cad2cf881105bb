// One client's conversation with the store: bytes in, steps out. Holds no socket and never waits.
// Everything passes unchanged, authentication included, except statements with temporal clauses:
// those are held while hidden messages on the same session learn what their names mean, and go on
// rewritten. The ReadyForQuery that ends start-up is held back until the session has been probed.
// One thread. Manual: "Message Flow".
//
//               Query/Parse that may concern us              inquiry over: the statement goes on
//   passing ──────────────────────────────────► inquiring ─────────────────────────────────►
//   passing     (also a Bind, once the session may be pinned; and after start-up, to probe)
//      │                                            │ error for a hidden message: it becomes the
//      │ bytes that are not protocol 3              │ answer to the client's statement
//      ▼                                            │ error for an earlier message: the server
//   opaque (bytes pass uncut, for good)             ▼ skips; the statement goes on as it came
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "gateway/expectation.h"
#include "gateway/inquiry.h"
#include "gateway/message_cutter.h"
#include "gateway/prepared.h"

namespace tidemark::gateway {

/// What the owner of the sockets has to do: send both, in any order.
struct Steps {
  std::string to_backend;
  std::string to_client;
};

class Session {
 public:
  struct Options {
    /// Query and Parse messages up to this size are held whole and may be rewritten. Longer ones
    /// stream through as they are: their temporal clauses get PostgreSQL's syntax error.
    size_t text_bytes_max = size_t{64} << 20;
    /// Whether the store's superusers are served; refused with 28000 otherwise.
    bool superusers = true;
  };
  Session() : Session(Options()) {}
  explicit Session(const Options& options) : options_(options) {}

  /// The client's StartupMessage; comes first.
  Steps OnStartup(std::string_view packet);
  /// What the client sent. Steps are as long as `bytes` at most, but for statements held whole.
  Steps OnFrontendBytes(std::string_view bytes);
  /// What the store sent.
  Steps OnBackendBytes(std::string_view bytes);
  /// Says farewell to both sides where their streams stand between two messages; they are then to
  /// be closed.
  Steps OnStop(const base::Error& reason);

  /// False while a statement is held and enough of what follows it has been kept: stop reading
  /// from the client until steps of OnBackendBytes make it true again.
  bool wants_frontend() const { return !inquiry_ || frontend_.kept_bytes() < kHeldBytesMax; }

  /// True once one side has said that it ends the session.
  bool parted() const { return parted_ || opaque_; }

  /// True while a statement is held: bytes of the client are yet to go to the store.
  bool holds() const { return inquiry_.has_value(); }

 private:
  static constexpr size_t kHeldBytesMax = 64 * 1024;
  using Piece = MessageCutter::Piece;

  // session_frontend.cc: what the client sends
  void CutFrontend(std::string_view bytes, std::string& to_backend);
  size_t FrontendNeed(const wire::MessageHeader& header) const;
  void OnFrontendMessage(const Piece& piece, Run& to_backend);
  void Dispatch(const Piece& piece, Run& to_backend);
  void OnNames(const Piece& piece);
  bool OnBind(const Piece& piece, Run& to_backend);
  void SendBind(std::string_view message, std::string& to_backend);
  bool Inquire(const Piece& piece, std::string& to_backend);
  void NotePins(std::string_view text, const wire::Parse* parse);
  void OnTextPassed(std::string_view message, const std::string* pin = nullptr);

  // session_hidden.cc: what the gateway itself says to the store
  void Advance(std::string& to_backend);
  void SendInquiry(std::string& to_backend);
  void SendHidden(std::string& out, std::string_view name, std::string_view sql,
                  Expectation::Asker asker);
  void Probe(std::string& to_backend);
  void BeginInquiry(Inquiry inquiry, std::string& to_backend);
  void OnProbed(const Inquiry& over, std::string& to_client, std::string& to_backend);
  void LearnPin(const Inquiry& over);
  void SendHeld(const Inquiry& over, std::string& to_backend);
  void SendHeldBind(Inquiry& over, std::string& to_backend);
  void SendRewritten(Inquiry& over, std::string& to_backend);
  void SendRefusal(wire::ErrorFields error, std::string& to_backend);
  void DropHeld();

  // session_backend.cc: what the store answers
  void CutBackend(std::string_view bytes, Steps& steps);
  size_t BackendNeed(const wire::MessageHeader& header);
  void OnBackendMessage(const Piece& piece, Run& to_client, std::string& to_backend);
  bool Show(const Piece& piece, const Expectation* head, Run& to_client) const;
  bool IsHiddenError(const Piece& piece, const Expectation& head) const;
  bool ShowError(const Piece& piece, const Expectation* head, Run& to_client) const;
  void GoOpaque(Steps& steps);

  Options options_;
  MessageCutter frontend_, backend_;
  ExpectationQueue expected_;
  Prepared prepared_;
  Inquiry::Store store_ = Inquiry::Store::kUnknown;
  rewrite::Scope scope_;
  SqlPreparedNames prepared_names_;
  bool prepared_in_sql_ = false;  // SQL's PREPARE may have named a statement that settles
  std::set<std::string, std::less<>> pinning_statements_;  // prepared ones that may pin, by name
  bool is_reader_ = false;        // its role may only read
  bool pipeline_open_ = false;    // messages of the extended protocol wait for their Sync
  bool keeps_asking_ = false;     // RESET returns to a pin, or SQL's EXECUTE may set one
  bool idle_when_asked_ = false;  // no transaction was open, and nothing under way
  std::optional<std::string> fresh_pin_;  // known, and nothing has run since it was asked
  char status_ = 'I';             // of the last ReadyForQuery
  std::string unnamed_parse_;     // the unnamed statement as the client wrote it, if it passed
  std::optional<Inquiry> inquiry_;
  bool inquiry_syncs_ = false;  // its questions end with a Sync of their own
  std::optional<wire::ErrorFields> inquiry_error_;  // and one of them failed: to be said after it
  std::string held_;           // the message that the inquiry is about
  bool drops_frontend_ = false;  // the rest of the client's message at hand goes nowhere
  bool shows_backend_ = true;  // whether the rest of the store's message at hand goes to the client
  bool opaque_ = false;
  bool parted_ = false;
};

}  // namespace tidemark::gateway
