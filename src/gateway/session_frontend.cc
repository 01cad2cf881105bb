// Session, what the client sends: everything passes; texts are looked at for temporal clauses, and
// each message that the store answers leaves its expectation.
#include "gateway/session.h"

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
        OnFrontendMessage(*piece, run);
      } else {
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
      if (store_ == Inquiry::Store::kForeign) return 0;
      return header.body_bytes <= options_.text_bytes_max ? header.body_bytes : 0;
    case wire::Bind::kType:
    case wire::Execute::kType:
    case 'D':
    case 'C':
      return prepared_.empty() && !prepared_in_sql_ ? 0 : kNamesBytesMax;
    default:
      return 0;
  }
}

void Session::OnFrontendMessage(const Piece& piece, Run& to_backend) {
  switch (piece.header.type) {
    case wire::Query::kType:
    case wire::Parse::kType:
      if (IsWhole(piece) && !expected_.deaf() && store_ != Inquiry::Store::kForeign &&
          Inquire(piece, to_backend.Write())) {
        return;
      }
      OnTextPassed(piece.bytes);
      break;
    case wire::Bind::kType:
    case wire::Execute::kType:
    case 'D':
    case 'C':
      OnNames(piece, to_backend);
      break;
    case wire::kSync:
      expected_.Sent({.kind = Kind::kSync});
      break;
    case wire::kFunctionCall:
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

void Session::OnNames(const Piece& piece, Run& to_backend) {
  const std::string_view body = piece.body();
  const bool known = (!prepared_.empty() || prepared_in_sql_) && !expected_.deaf();
  const char kind = body.empty() ? 'S' : body[0];
  const std::string_view name = FirstName(body.empty() ? body : body.substr(1));
  Prepared::Statement statement;
  Prepared::ChangePointer change;
  switch (piece.header.type) {
    case wire::Bind::kType: {
      const auto names = known ? wire::BindNames::Read(body) : std::nullopt;
      if (names) {
        statement = prepared_.FindStatement(names->statement);
        change = prepared_.OnBind(names->portal, names->statement);
      }
      // A name that SQL's PREPARE gave is unknown to us.
      const bool from_sql = names && !statement && prepared_in_sql_ && !names->statement.empty();
      if (from_sql || (statement && statement->settles)) {
        SendHidden(to_backend.Write(), "tidemark$settle", kSettleSql, Expectation::Asker::kSettle);
      }
      return expected_.Sent(
          {.kind = Kind::kBind, .statement = std::move(statement), .change = std::move(change)});
    }
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

// True when the message is held or has been dealt with.
bool Session::Inquire(const Piece& piece, std::string& to_backend) {
  try {
    const bool simple = piece.header.type == wire::Query::kType;
    const std::string_view text =
        simple ? wire::Query::Read(piece.body()).text : wire::Parse::Read(piece.body()).text;
    inquiry_ = Inquiry::Open(
        text, simple ? Inquiry::Protocol::kSimple : Inquiry::Protocol::kExtended, store_, scope_);
  } catch (const base::Error&) {
    return false;  // malformed: the server says so
  }
  if (!inquiry_) return false;
  held_ = piece.bytes;
  Advance(to_backend);
  return true;
}

// The beginning of a Query or Parse message that goes to the store unchanged.
void Session::OnTextPassed(std::string_view message) {
  const bool simple = message[0] == wire::Query::kType;
  Prepared::ChangePointer change;
  if (!prepared_.empty() && !expected_.deaf()) {
    if (simple) {
      prepared_.OnQuery();
    } else {
      change = prepared_.OnParse(FirstName(message.substr(wire::MessageHeader::kBytes)), nullptr);
    }
  }
  expected_.Sent({.kind = simple ? Kind::kQuery : Kind::kParse, .change = std::move(change)});
}

}  // namespace tidemark::gateway
