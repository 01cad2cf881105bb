// Session, what the store answers: everything passes but the answers to hidden messages; errors of
// rewritten statements are said of the client's own text.
#include "gateway/client_error.h"
#include "gateway/session.h"

namespace tidemark::gateway {
namespace {

using Kind = Expectation::Kind;
using Asker = Expectation::Asker;

// Longer errors and notices stream through unchanged.
constexpr size_t kErrorBytesMax = size_t{1} << 20;

// Come at any time, as the answer to nothing: NoticeResponse, NotificationResponse,
// ParameterStatus.
bool IsAsynchronous(char type) { return type == 'N' || type == 'A' || type == 'S'; }

bool IsWhole(const MessageCutter::Piece& piece) {
  return piece.body().size() == piece.header.body_bytes;
}

/// False also for what cannot be read: the client may make of it what it can.
bool EndsConnection(std::string_view error) {
  try {
    return wire::ErrorFields::Read(error).EndsConnection();
  } catch (const base::Error&) {
    return false;
  }
}

}  // namespace

void Session::CutBackend(std::string_view bytes, Steps& steps) {
  Run run(steps.to_client);
  backend_.Feed(bytes);
  try {
    for (;;) {
      const Expectation* head = expected_.Head();
      if (!head || (head->asker == Asker::kClient && !head->HidesResult())) {
        run.Pass(backend_.TakeRun('D'));
        run.Pass(backend_.TakeRun('d'));
      }
      const auto piece =
          backend_.Next([this](const wire::MessageHeader& header) { return BackendNeed(header); });
      if (!piece) break;
      if (piece->first) {
        OnBackendMessage(*piece, run, steps.to_backend);
      } else if (shows_backend_) {
        run.Pass(piece->bytes);
      }
    }
  } catch (const base::Error&) {
    run.Flush();
    GoOpaque(steps);
  }
  run.Flush();
  backend_.Keep();
}

size_t Session::BackendNeed(const wire::MessageHeader& header) {
  if (header.type == wire::ReadyForQuery::kType) return header.body_bytes;
  const Expectation* head = expected_.Head();
  const bool whole = header.type == wire::ErrorFields::kErrorType ||
                     (header.type == wire::ErrorFields::kNoticeType && head && head->statement);
  if (whole) return header.body_bytes <= kErrorBytesMax ? header.body_bytes : 0;
  const bool row = header.type == wire::DataRow::kType && head && head->asker == Asker::kInquiry;
  return row ? header.body_bytes : 0;
}

void Session::OnBackendMessage(const Piece& piece, Run& to_client, std::string& to_backend) {
  const char type = piece.header.type;
  Expectation* head = expected_.Head();
  const bool started = type == wire::ReadyForQuery::kType && head && head->kind == Kind::kStartup;
  shows_backend_ = !started && Show(piece, head, to_client);
  if (IsAsynchronous(type)) return;

  const bool asked = inquiry_ && head && head->asker == Asker::kInquiry;
  if (type == wire::ErrorFields::kErrorType && IsWhole(piece)) {
    parted_ = parted_ || EndsConnection(piece.body());
  }
  if (type == wire::ReadyForQuery::kType) status_ = wire::ReadyForQuery::Read(piece.body()).status;
  if (asked && type == wire::DataRow::kType) inquiry_->OnRow(wire::DataRow::Read(piece.body()));
  if (asked && type == wire::ErrorFields::kErrorType && inquiry_syncs_) {
    inquiry_error_ = wire::ErrorFields::Read(piece.body());
    inquiry_->Translate(*inquiry_error_);
  } else if (asked && type == wire::ErrorFields::kErrorType && !inquiry_->is_probe()) {
    // The client's statement has its answer; so the ReadyForQuery after it is the client's too.
    head->asker = Asker::kClient;
    inquiry_.reset();
    DropHeld();
  }
  const auto received = expected_.OnResponse(type);
  for (const auto& change : received.undone) prepared_.Undo(*change);
  if (started) return Probe(to_backend);
  if (!inquiry_) return;
  if (received.inquiry_answered) {
    if (inquiry_error_) {
      inquiry_.reset();
      SendRefusal(*std::exchange(inquiry_error_, std::nullopt), to_backend);
      return;
    }
    inquiry_->OnAnswered();
    if (inquiry_->is_probe()) {
      const Inquiry over = std::move(*inquiry_);
      inquiry_.reset();
      return OnProbed(over, to_client.Write(), to_backend);
    }
    Advance(to_backend);
  } else if (received.inquiry_dropped && !inquiry_error_) {
    const Inquiry dropped = std::move(*inquiry_);
    inquiry_.reset();
    SendHeld(dropped, to_backend);
  }
}

// True when the piece was passed, and so the rest of its message is to be.
bool Session::Show(const Piece& piece, const Expectation* head, Run& to_client) const {
  const char type = piece.header.type;
  const bool error =
      type == wire::ErrorFields::kErrorType || type == wire::ErrorFields::kNoticeType;
  if (error && head && IsHiddenError(piece, *head)) return false;
  if (error && head && IsWhole(piece) && ShowError(piece, head, to_client)) return true;
  const bool ours = head && (head->asker == Asker::kInquiry || head->asker == Asker::kSettle ||
                             head->asker == Asker::kReparse ||
                             (head->HidesResult() && type != wire::ReadyForQuery::kType));
  const bool hidden = ours && !IsAsynchronous(type) && type != wire::ErrorFields::kErrorType;
  if (!hidden) to_client.Pass(piece.bytes);
  return !hidden;
}

// Of a probe: what the store is will be asked again. Of an inquiry with a Sync of its own: it is
// said later. A connection that ends is the client's business.
bool Session::IsHiddenError(const Piece& piece, const Expectation& head) const {
  const bool later = inquiry_ && (inquiry_->is_probe() || inquiry_syncs_);
  if (!later || head.asker != Asker::kInquiry || !IsWhole(piece)) return false;
  return !EndsConnection(piece.body());
}

// False when it goes to the client as it came.
bool Session::ShowError(const Piece& piece, const Expectation* head, Run& to_client) const {
  const char type = piece.header.type;
  if (head->asker == Asker::kSettle) return false;
  const bool rewritten = head->statement && head->statement->positions;
  if (!rewritten && (head->asker == Asker::kClient || head->asker == Asker::kReparse)) return false;
  wire::ErrorFields fields;
  try {
    fields = wire::ErrorFields::Read(piece.body());
  } catch (const base::Error&) {
    return false;  // malformed: the client may make of it what it can
  }
  if (rewritten) {
    TranslateForClient(fields, *head->statement);
  } else if (type == wire::ErrorFields::kNoticeType || fields.EndsConnection()) {
    return false;
  } else if (head->asker == Asker::kRefusal) {
    fields = *head->refusal;
  } else if (inquiry_) {
    inquiry_->Translate(fields);
  }
  fields.Write(to_client.Write(), type);
  return true;
}

}  // namespace tidemark::gateway
