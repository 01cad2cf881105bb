#include "capture/streamed_transactions.h"

#include <utility>

#include "base/error.h"
#include "wire/bytes.h"

namespace tidemark::capture {

namespace {

constexpr char kStreamStop = 'E';
// The one message that bears no xid inside a block either.
constexpr char kOrigin = 'O';

}  // namespace

std::optional<StreamedTransactions::Changes::Change> StreamedTransactions::Changes::Next() {
  const auto message = spool_.Read();
  if (!message) return std::nullopt;
  return Change{message->payload, rolled_back_.contains(message->xid)};
}

void StreamedTransactions::Start(Xid xid) {
  auto& changes = running_[xid];
  if (!changes) changes = std::make_unique<Changes>();
  block_ = changes.get();
}

void StreamedTransactions::Stop() { block_ = nullptr; }

bool StreamedTransactions::Take(std::string_view payload) {
  if (block_ == nullptr || payload.starts_with(kStreamStop)) return false;
  if (payload.starts_with(kOrigin)) {
    block_->spool_.Write({base::Lsn(), 0, payload});
    return true;
  }
  constexpr size_t kXidEnd = 1 + sizeof(Xid);
  if (payload.size() < kXidEnd) {
    throw base::Error(base::kProtocolViolation, "a message of a streamed transaction is too short");
  }
  const auto xid = wire::LoadBigEndian<Xid>(payload.data() + 1);
  std::string plain;
  plain.reserve(payload.size() - sizeof(Xid));
  plain += payload[0];
  plain += payload.substr(kXidEnd);
  block_->spool_.Write({base::Lsn(), xid, plain});
  return true;
}

void StreamedTransactions::Abort(Xid xid, Xid subtransaction) {
  const auto found = running_.find(xid);
  if (found == running_.end()) return;
  if (subtransaction == xid) {
    running_.erase(found);
  } else {
    found->second->rolled_back_.insert(subtransaction);
  }
}

std::unique_ptr<StreamedTransactions::Changes> StreamedTransactions::Commit(Xid xid) {
  auto node = running_.extract(xid);
  return node.empty() ? std::make_unique<Changes>() : std::move(node.mapped());
}

}  // namespace tidemark::capture
