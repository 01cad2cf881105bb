// Session, what the gateway itself says to the store: an inquiry's questions, the settling before a
// Bind, and what becomes of the held statement. The client sees none of the answers.
#include "gateway/session.h"

namespace tidemark::gateway {
namespace {

using Kind = Expectation::Kind;
using Asker = Expectation::Asker;

// A statement that the server refuses as a syntax error, whatever state the transaction is in.
constexpr std::string_view kRefusedText = "tidemark refuses this statement";

}  // namespace

// The inquiry has its next question, or is over.
void Session::Advance(std::string& to_backend) {
  if (!inquiry_->sql().empty()) return SendInquiry(to_backend);
  Inquiry over = std::move(*inquiry_);
  inquiry_.reset();
  store_ = over.store();
  if (over.refusal()) return SendRefusal(*over.refusal(), to_backend);
  if (over.rewritten()) return SendRewritten(std::move(*over.rewritten()), to_backend);
  SendHeld(to_backend);
}

void Session::SendInquiry(std::string& to_backend) {
  if (inquiry_->protocol() == Inquiry::Protocol::kSimple) {
    wire::Query{inquiry_->sql()}.Write(to_backend);
    expected_.Sent({.kind = Kind::kQuery, .asker = Asker::kInquiry, .last = true});
    return;
  }
  SendHidden(to_backend, "tidemark$resolve", inquiry_->sql(), Asker::kInquiry);
  wire::WriteMessage(to_backend, wire::kFlush);
}

// Runs `sql` in the extended protocol without a Sync, so within the client's implicit transaction.
// The first Close removes what an error may have left of an earlier time.
void Session::SendHidden(std::string& out, std::string_view name, std::string_view sql,
                         Expectation::Asker asker) {
  wire::Naming{'S', name}.WriteClose(out);
  wire::Parse{name, sql, {}}.Write(out);
  wire::Bind{name, name, {}}.Write(out);
  wire::Execute{name, 0}.Write(out);
  wire::Naming{'P', name}.WriteClose(out);
  wire::Naming{'S', name}.WriteClose(out);
  for (const Kind kind : {Kind::kClose, Kind::kParse, Kind::kBind, Kind::kExecute, Kind::kClose}) {
    expected_.Sent({.kind = kind, .asker = asker});
  }
  expected_.Sent({.kind = Kind::kClose, .asker = asker, .last = true});
}

void Session::SendHeld(std::string& to_backend) {
  OnTextPassed(held_);
  to_backend += held_;
  held_ = {};
}

void Session::SendRewritten(rewrite::Rewritten rewritten, std::string& to_backend) {
  const std::string held = std::move(held_);
  held_.clear();
  const std::string_view body = std::string_view(held).substr(wire::MessageHeader::kBytes);
  prepared_in_sql_ = prepared_in_sql_ || rewritten.prepares_settling;
  scope_.executes = scope_.executes || rewritten.prepares_settling;
  auto statement = std::make_shared<const RewrittenStatement>(RewrittenStatement{
      .positions = std::move(rewritten.positions),
      .settles = rewritten.settles,
      .hidden_results = std::move(rewritten.hidden_results),
      .instant_position = rewritten.instant_position,
  });
  if (held[0] == wire::Query::kType) {
    wire::Query{rewritten.sql}.Write(to_backend);
    prepared_.OnQuery();
    expected_.Sent({.kind = Kind::kQuery, .statement = std::move(statement)});
    return;
  }
  wire::Parse parse = wire::Parse::Read(body);
  auto change = prepared_.OnParse(parse.statement, statement);
  // SQL's EXECUTE reaches it too.
  scope_.executes = scope_.executes || (statement->settles && !parse.statement.empty());
  parse.text = rewritten.sql;
  parse.Write(to_backend);
  expected_.Sent(
      {.kind = Kind::kParse, .statement = std::move(statement), .change = std::move(change)});
}

// The failure happens at the server, so that the transaction, and in the extended protocol what
// follows up to the Sync, fares as after any other error; the client is shown ours in its place.
void Session::SendRefusal(const base::Error& error, std::string& to_backend) {
  const std::string held = std::move(held_);
  held_.clear();
  auto refusal = std::make_shared<const wire::ErrorFields>(wire::ErrorFields::From(error, "ERROR"));
  const bool simple = held[0] == wire::Query::kType;
  if (simple) {
    wire::Query{kRefusedText}.Write(to_backend);
    prepared_.OnQuery();
  } else {
    const std::string_view body = std::string_view(held).substr(wire::MessageHeader::kBytes);
    wire::Parse{wire::Parse::Read(body).statement, kRefusedText, {}}.Write(to_backend);
  }
  expected_.Sent({.kind = simple ? Kind::kQuery : Kind::kParse,
                  .asker = Asker::kRefusal,
                  .refusal = std::move(refusal)});
}

}  // namespace tidemark::gateway
