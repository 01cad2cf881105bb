// Session, what the gateway itself says to the store: an inquiry's questions, the settling before a
// Bind, and what becomes of the held statement. The client sees none of the answers.
#include <utility>

#include "gateway/session.h"

namespace tidemark::gateway {
namespace {

using Kind = Expectation::Kind;
using Asker = Expectation::Asker;

// A statement that the server refuses as a syntax error, whatever state the transaction is in.
constexpr std::string_view kRefusedText = "tidemark refuses this statement";

}  // namespace

// After start-up: what the store is, and whether the session begins with a pin.
void Session::Probe(std::string& to_backend) { BeginInquiry(Inquiry::Probe(), to_backend); }

// Between two pipelines its questions end with a Sync of their own: what follows may need to be the
// first of its transaction. A transaction block stays open all the same.
void Session::BeginInquiry(Inquiry inquiry, std::string& to_backend) {
  idle_when_asked_ = status_ == 'I' && expected_.empty() && !pipeline_open_;
  inquiry_syncs_ = inquiry.protocol() == Inquiry::Protocol::kExtended && !pipeline_open_;
  inquiry_ = std::move(inquiry);
  Advance(to_backend);
}

// The inquiry has its next question, or is over.
void Session::Advance(std::string& to_backend) {
  if (!inquiry_->sql().empty()) return SendInquiry(to_backend);
  Inquiry over = std::move(*inquiry_);
  inquiry_.reset();
  store_ = over.store();
  LearnPin(over);
  if (over.refusal()) {
    return SendRefusal(wire::ErrorFields::From(*over.refusal(), "ERROR"), to_backend);
  }
  if (held_[0] == wire::Bind::kType) return SendHeldBind(over, to_backend);
  if (over.rewritten()) return SendRewritten(over, to_backend);
  SendHeld(over, to_backend);
}

// The start-up is over: the client hears so now, unless its role is not served.
void Session::OnProbed(const Inquiry& over, std::string& to_client, std::string& to_backend) {
  store_ = over.store();
  LearnPin(over);
  if (!over.is_superuser() || options_.superusers) {
    return wire::ReadyForQuery{status_}.Write(to_client);
  }
  wire::ErrorFields::From(
      base::Error(base::kInvalidAuthorization, "superusers are not served here")
          .Hint("Connect to the store itself, or set superusers: true for the gateway."),
      "FATAL")
      .Write(to_client);
  wire::WriteMessage(to_backend, wire::kTerminate);
}

// A session that is not pinned while it is idle stays so until a statement may pin it.
void Session::LearnPin(const Inquiry& over) {
  fresh_pin_ = over.knows_pin() ? std::optional(over.pin()) : std::nullopt;
  is_reader_ = is_reader_ || over.is_reader();
  keeps_asking_ = keeps_asking_ || over.began_pinned();
  if (store_ == Inquiry::Store::kForeign) {
    scope_.pins = false;
  } else if (keeps_asking_ || (over.is_probe() && store_ == Inquiry::Store::kUnknown)) {
    scope_.pins = true;
  } else if (over.knows_pin() && over.pin().empty() && idle_when_asked_) {
    scope_.pins = held_.starts_with(wire::Bind::kType) ? pinning_statements_.contains(over.name())
                                                       : rewrite::MayPin(over.text());
  }
}

void Session::SendInquiry(std::string& to_backend) {
  if (inquiry_->protocol() == Inquiry::Protocol::kSimple) {
    wire::Query{inquiry_->sql()}.Write(to_backend);
    expected_.Sent({.kind = Kind::kQuery, .asker = Asker::kInquiry, .last = true});
    return;
  }
  SendHidden(to_backend, "tidemark$resolve", inquiry_->sql(), Asker::kInquiry);
  wire::WriteMessage(to_backend, inquiry_syncs_ ? wire::kSync : wire::kFlush);
  if (inquiry_syncs_) {
    expected_.Sent({.kind = Kind::kSync, .asker = Asker::kInquiry, .last = true});
  }
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
  const bool last = asker != Asker::kInquiry || !inquiry_syncs_;
  expected_.Sent({.kind = Kind::kClose, .asker = asker, .last = last});
}

// The held message goes on as it came.
void Session::SendHeld(const Inquiry& over, std::string& to_backend) {
  const std::string held = std::exchange(held_, {});
  if (held[0] == wire::Bind::kType) return SendBind(held, to_backend);
  OnTextPassed(held, over.knows_pin() ? &over.pin() : nullptr);
  if (held[0] == wire::Query::kType) fresh_pin_.reset();
  to_backend += held;
}

// The statement that the Bind names was parsed for another pin: it is parsed anew before it.
// Portals that were bound before keep what they had.
void Session::SendHeldBind(Inquiry& over, std::string& to_backend) {
  const auto names =
      *wire::BindNames::Read(std::string_view(held_).substr(wire::MessageHeader::kBytes));
  const Prepared::Statement before = prepared_.FindStatement(names.statement);
  auto& rewritten = over.rewritten();
  const bool as_it_was = (!rewritten || rewritten->sql == over.text()) && !(before && before->positions);
  if (!over.reparses() || as_it_was) {
    const std::string held = std::exchange(held_, {});
    return SendBind(held, to_backend);
  }
  RewrittenStatement parsed{.pin = over.pin()};
  if (before && !before->client_parse.empty()) {
    parsed.client_parse = before->client_parse;
  } else if (names.statement.empty()) {
    parsed.client_parse = unnamed_parse_;
  } else {
    wire::Parse{names.statement, over.text(), over.parameter_types()}.Write(parsed.client_parse);
  }
  wire::Parse parse = wire::Parse::Read(
      std::string_view(parsed.client_parse).substr(wire::MessageHeader::kBytes));
  if (rewritten) {
    parse.text = rewritten->sql;
    parsed.positions = rewritten->positions;
    parsed.settles = rewritten->settles;
    parsed.instant_position = rewritten->instant_position;
  }
  wire::Naming{'S', names.statement}.WriteClose(to_backend);
  parse.Write(to_backend);
  // Should the store refuse it, it has no such statement, and the next Bind tries again.
  prepared_.OnParse(names.statement,
                    std::make_shared<const RewrittenStatement>(RewrittenStatement{
                        .pin = "lost", .client_parse = parsed.client_parse}));
  auto statement = std::make_shared<const RewrittenStatement>(std::move(parsed));
  expected_.Sent({.kind = Kind::kClose, .asker = Asker::kReparse});
  expected_.Sent({.kind = Kind::kParse,
                  .asker = Asker::kReparse,
                  .statement = statement,
                  .change = prepared_.OnParse(names.statement, statement)});
  const std::string held = std::exchange(held_, {});
  SendBind(held, to_backend);
}

void Session::SendRewritten(Inquiry& over, std::string& to_backend) {
  rewrite::Rewritten& rewritten = *over.rewritten();
  const std::string held = std::exchange(held_, {});
  const std::string_view body = std::string_view(held).substr(wire::MessageHeader::kBytes);
  prepared_in_sql_ = prepared_in_sql_ || rewritten.prepares_settling;
  scope_.executes = scope_.executes || rewritten.prepares_settling;
  for (auto& [name, prepared] : over.prepares()) prepared_names_[name] = prepared;
  RewrittenStatement kept{
      .positions = std::move(rewritten.positions),
      .settles = rewritten.settles,
      .hidden_results = std::move(rewritten.hidden_results),
      .instant_position = rewritten.instant_position,
      .pin = over.pin(),
  };
  if (held[0] == wire::Query::kType) {
    fresh_pin_.reset();
    wire::Query{rewritten.sql}.Write(to_backend);
    prepared_.OnQuery();
    unnamed_parse_.clear();
    expected_.Sent({.kind = Kind::kQuery,
                    .statement = std::make_shared<const RewrittenStatement>(std::move(kept))});
    return;
  }
  kept.client_parse = held;
  auto statement = std::make_shared<const RewrittenStatement>(std::move(kept));
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
void Session::SendRefusal(wire::ErrorFields error, std::string& to_backend) {
  auto refusal = std::make_shared<const wire::ErrorFields>(std::move(error));
  const bool simple = held_[0] == wire::Query::kType;
  if (simple) {
    wire::Query{kRefusedText}.Write(to_backend);
    prepared_.OnQuery();
  } else if (held_[0] == wire::Bind::kType) {
    wire::Parse{"tidemark$refused", kRefusedText, {}}.Write(to_backend);
  } else {
    const std::string_view body = std::string_view(held_).substr(wire::MessageHeader::kBytes);
    wire::Parse{wire::Parse::Read(body).statement, kRefusedText, {}}.Write(to_backend);
  }
  DropHeld();
  expected_.Sent({.kind = simple ? Kind::kQuery : Kind::kParse,
                  .asker = Asker::kRefusal,
                  .refusal = std::move(refusal)});
}

// Of a long Bind, only the beginning is held: the rest is yet to come.
void Session::DropHeld() {
  if (held_.empty()) return;
  const auto header = wire::ReadHeader(held_);
  drops_frontend_ = held_.size() < wire::MessageHeader::kBytes + header->body_bytes;
  held_ = {};
}

}  // namespace tidemark::gateway
