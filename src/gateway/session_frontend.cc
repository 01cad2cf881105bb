// Session, what the client sends: everything passes; texts are looked at for temporal clauses, and
// each message that the store answers leaves its expectation.
#include "gateway/session.h"
#include "rewrite/read_only.h"

namespace tidemark::gateway {
namespace {

using Kind = Expectation::Kind;

// Names of statements and portals stand within so many bytes, or are not known to us.
constexpr size_t kNamesBytesMax = 4096;

bool IsWhole(const MessageCutter::Piece& piece) {
  return piece.body().size() == piece.header.body_bytes;
}

/// The name at the beginning of a body that may go on.
std::string_view FirstName(std::string_view body) { return body.substr(0, body.find('\0')); }

}  // namespace

void Session::CutFrontend(std::string_view bytes, std::string& to_backend) {
  Run run(to_backend);
  frontend_.Feed(bytes);
  try {
    while (!inquiry_) {
      const auto piece = frontend_.Next(
          [this](const wire::MessageHeader& header) { return FrontendNeed(header); });
      if (!piece) break;
      if (piece->first) {
        drops_frontend_ = false;
        OnFrontendMessage(*piece, run);
      } else if (!drops_frontend_) {
        run.Pass(piece->bytes);
      }
    }
  } catch (const base::Error&) {
    // An impossible length: the server says so and ends the connection.
    opaque_ = true;
    run.Pass(frontend_.TakeAll());
  }
  run.Flush();
  frontend_.Keep();
}

size_t Session::FrontendNeed(const wire::MessageHeader& header) const {
  switch (header.type) {
    case wire::Query::kType:
    case wire::Parse::kType:
      // A pinned session must not pass unread what would read the latest.
      return header.body_bytes <= options_.text_bytes_max || scope_.pins ? header.body_bytes : 0;
    case wire::Bind::kType:
    case wire::Execute::kType:
    case 'D':
    case 'C':
      return prepared_.empty() && !prepared_in_sql_ && !scope_.pins && pinning_statements_.empty()
                 ? 0
                 : kNamesBytesMax;
    default:
      return 0;
  }
}

void Session::OnFrontendMessage(const Piece& piece, Run& to_backend) {
  const char type = piece.header.type;
  if (type != wire::Parse::kType && type != wire::Bind::kType && type != 'D') fresh_pin_.reset();
  Dispatch(piece, to_backend);
  const bool extended = type == wire::Parse::kType || type == wire::Bind::kType || type == 'D' ||
                        type == wire::Execute::kType || type == 'C';
  if (extended) pipeline_open_ = true;
  if (type == wire::kSync || type == wire::Query::kType) pipeline_open_ = false;
}

void Session::Dispatch(const Piece& piece, Run& to_backend) {
  switch (piece.header.type) {
    case wire::Query::kType:
    case wire::Parse::kType:
      if (IsWhole(piece) && !expected_.deaf() && Inquire(piece, to_backend.Write())) return;
      OnTextPassed(piece.bytes);
      break;
    case wire::Bind::kType:
      if (OnBind(piece, to_backend)) return;
      SendBind(piece.bytes, to_backend.Write());
      return;
    case wire::Execute::kType:
    case 'D':
    case 'C':
      OnNames(piece);
      break;
    case wire::kSync:
      expected_.Sent({.kind = Kind::kSync});
      break;
    case wire::kTerminate:
      parted_ = true;
      break;
    case wire::kFunctionCall:
      scope_.pins = scope_.pins || store_ != Inquiry::Store::kForeign;  // it may be set_config()
      expected_.Sent({.kind = Kind::kFunctionCall});
      break;
    case wire::kCopyDone:
    case wire::kCopyFail:
      expected_.Sent({.kind = Kind::kCopyEnd});
      break;
    default:
      break;
  }
  to_backend.Pass(piece.bytes);
}

void Session::OnNames(const Piece& piece) {
  const std::string_view body = piece.body();
  const bool known = (!prepared_.empty() || prepared_in_sql_) && !expected_.deaf();
  const char kind = body.empty() ? 'S' : body[0];
  const std::string_view name = FirstName(body.empty() ? body : body.substr(1));
  Prepared::Statement statement;
  Prepared::ChangePointer change;
  switch (piece.header.type) {
    case wire::Execute::kType:
      if (known) statement = prepared_.FindPortal(FirstName(body));
      return expected_.Sent({.kind = Kind::kExecute, .statement = std::move(statement)});
    case 'D':
      if (known) {
        statement = kind == 'S' ? prepared_.FindStatement(name) : prepared_.FindPortal(name);
      }
      return expected_.Sent({.kind = Kind::kDescribe, .statement = std::move(statement)});
    default:
      if (known) change = prepared_.OnClose(kind, name);
      return expected_.Sent({.kind = Kind::kClose, .change = std::move(change)});
  }
}

// True when the Bind is held: the session may be pinned to something else than when its statement
// was parsed.
bool Session::OnBind(const Piece& piece, Run& to_backend) {
  if (store_ == Inquiry::Store::kForeign || expected_.deaf()) return false;
  const auto names = wire::BindNames::Read(piece.body());
  if (!names) return false;  // malformed, or a name so long that the server cuts it short
  const Prepared::Statement statement = prepared_.FindStatement(names->statement);
  scope_.pins = scope_.pins || pinning_statements_.contains(names->statement);
  if (!scope_.pins && (!statement || statement->pin.empty())) return false;
  if (statement && fresh_pin_ == statement->pin) return false;
  std::string parse = statement ? statement->client_parse : std::string();
  if (!statement && names->statement.empty()) parse = unnamed_parse_;
  std::string text;
  if (!parse.empty()) {
    text = wire::Parse::Read(std::string_view(parse).substr(wire::MessageHeader::kBytes)).text;
  }
  held_ = piece.bytes;
  BeginInquiry(Inquiry::ForBind(names->statement, statement ? statement->pin : std::string(),
                                std::move(text),
                                {.protocol = Inquiry::Protocol::kExtended,
                                 .store = Inquiry::Store::kTidemark,
                                 .scope = {.executes = scope_.executes, .pins = true}}),
               to_backend.Write());
  return true;
}

// The Bind goes on, after a settling if what it runs needs one.
void Session::SendBind(std::string_view message, std::string& to_backend) {
  Prepared::Statement statement;
  Prepared::ChangePointer change;
  if ((!prepared_.empty() || prepared_in_sql_) && !expected_.deaf()) {
    const auto names = wire::BindNames::Read(message.substr(wire::MessageHeader::kBytes));
    if (names) {
      statement = prepared_.FindStatement(names->statement);
      change = prepared_.OnBind(names->portal, names->statement);
    }
    // A name that SQL's PREPARE gave is unknown to us.
    const bool from_sql = names && !statement && prepared_in_sql_ && !names->statement.empty();
    if (from_sql || (statement && statement->settles)) {
      SendHidden(to_backend, "tidemark$settle", kSettleSql, Expectation::Asker::kSettle);
    }
  }
  expected_.Sent(
      {.kind = Kind::kBind, .statement = std::move(statement), .change = std::move(change)});
  to_backend += message;
}

// True when the message is held or has been dealt with.
bool Session::Inquire(const Piece& piece, std::string& to_backend) {
  std::optional<Inquiry> inquiry;
  try {
    const bool simple = piece.header.type == wire::Query::kType;
    const wire::Parse parse = simple ? wire::Parse() : wire::Parse::Read(piece.body());
    const std::string_view text = simple ? wire::Query::Read(piece.body()).text : parse.text;
    // Sessions may be older than the schema tidemark.
    const bool asks_again = store_ == Inquiry::Store::kForeign && rewrite::NamesTemporal(text);
    if (asks_again) store_ = Inquiry::Store::kUnknown;
    if (store_ == Inquiry::Store::kForeign) return false;
    if (is_reader_) {
      if (const auto error = rewrite::LeavesReadOnly(text)) {
        held_ = piece.bytes;
        SendRefusal(wire::ErrorFields::From(*error, "ERROR"), to_backend);
        return true;
      }
    }
    NotePins(text, simple ? nullptr : &parse);
    inquiry = Inquiry::Open(
        text, {.protocol = simple ? Inquiry::Protocol::kSimple : Inquiry::Protocol::kExtended,
               .store = store_,
               .scope = scope_,
               .prepared = &prepared_names_});
  } catch (const base::Error&) {
    return false;  // malformed: the server says so
  }
  if (!inquiry) return false;
  held_ = piece.bytes;
  BeginInquiry(std::move(*inquiry), to_backend);
  return true;
}

// Running the text may pin the session: at once, or whenever it is executed again.
void Session::NotePins(std::string_view text, const wire::Parse* parse) {
  if (!rewrite::MayPin(text)) {
    if (parse && !pinning_statements_.empty()) pinning_statements_.erase(std::string(parse->statement));
    return;
  }
  scope_.pins = true;
  if (parse) pinning_statements_.emplace(parse->statement);
  keeps_asking_ = keeps_asking_ || !rewrite::PreparedNames(text).empty();
}

// The beginning of a Query or Parse message that goes to the store unchanged. `pin`: what the
// session is known to be pinned to, if that was asked.
void Session::OnTextPassed(std::string_view message, const std::string* pin) {
  const bool simple = message[0] == wire::Query::kType;
  Prepared::ChangePointer change;
  if (!expected_.deaf()) {
    if (simple) {
      if (!prepared_.empty()) prepared_.OnQuery();
      unnamed_parse_.clear();
    } else {
      const std::string_view name = FirstName(message.substr(wire::MessageHeader::kBytes));
      // One too long to be held is not kept either.
      const auto header = wire::ReadHeader(message);
      const bool is_whole = message.size() == wire::MessageHeader::kBytes + header->body_bytes;
      const std::string_view whole = is_whole ? message : std::string_view();
      Prepared::Statement statement;
      if (is_whole && scope_.pins && store_ == Inquiry::Store::kTidemark) {
        statement = std::make_shared<const RewrittenStatement>(RewrittenStatement{
            .pin = pin ? *pin : std::string(), .client_parse = std::string(whole)});
      }
      if (!prepared_.empty() || statement) change = prepared_.OnParse(name, std::move(statement));
      if (name.empty() && store_ != Inquiry::Store::kForeign) unnamed_parse_ = whole;
    }
  }
  expected_.Sent({.kind = simple ? Kind::kQuery : Kind::kParse, .change = std::move(change)});
}

}  // namespace tidemark::gateway
