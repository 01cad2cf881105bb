#include "gateway/expectation.h"

#include <algorithm>
#include <utility>

namespace tidemark::gateway {
namespace {

using Kind = Expectation::Kind;

bool EndsWithReady(Kind kind) {
  return kind == Kind::kStartup || kind == Kind::kQuery || kind == Kind::kFunctionCall ||
         kind == Kind::kSync;
}

bool Ends(Kind kind, char response) {
  switch (kind) {
    case Kind::kParse:
      return response == '1';
    case Kind::kBind:
      return response == '2';
    case Kind::kClose:
      return response == '3';
    case Kind::kDescribe:
      return response == 'T' || response == 'n';
    case Kind::kExecute:
      return response == 'C' || response == 'I' || response == 's';
    default:
      return false;
  }
}

}  // namespace

bool Expectation::HidesResult() const {
  return kind == Kind::kQuery && statement &&
         std::ranges::find(statement->hidden_results, results) != statement->hidden_results.end();
}

void ExpectationQueue::Sent(Expectation expectation) {
  if (expectation.kind == Kind::kCopyEnd) {
    if (!std::exchange(copying_in_, false) && !queue_.empty()) {
      queue_.push_back(std::move(expectation));
    }
    return;
  }
  if (copying_in_) return;  // a Sync is ignored, anything else makes the COPY fail
  if (expectation.kind == Kind::kSync) skipping_ = false;
  if (!skipping_) queue_.push_back(std::move(expectation));
}

Expectation* ExpectationQueue::Head() {
  while (!queue_.empty() && queue_.front().kind == Kind::kCopyEnd) queue_.pop_front();
  return queue_.empty() ? nullptr : &queue_.front();
}

ExpectationQueue::Received ExpectationQueue::OnResponse(char type) {
  Expectation* head = Head();
  switch (type) {
    case 'E':
      return OnError();
    case 'Z': {
      const bool answered = head && head->asker == Expectation::Asker::kInquiry && head->last;
      OnReady();
      return {.inquiry_answered = answered};
    }
    case 'G':
    case 'W':
      OnCopyIn();
      return {};
    case 'C':
    case 'I':
      if (head) ++head->results;
      break;
    default:
      break;
  }
  if (!head || !Ends(head->kind, type)) return {};
  const bool answered = head->asker == Expectation::Asker::kInquiry && head->last;
  queue_.pop_front();
  return {.inquiry_answered = answered};
}

ExpectationQueue::Received ExpectationQueue::OnError() {
  copying_in_ = false;
  Received received;
  if (queue_.empty() || EndsWithReady(queue_.front().kind)) return received;
  while (!queue_.empty() && queue_.front().kind != Kind::kSync) {
    received.inquiry_dropped |= queue_.front().asker == Expectation::Asker::kInquiry;
    if (queue_.front().change) received.undone.push_back(std::move(queue_.front().change));
    queue_.pop_front();
  }
  std::ranges::reverse(received.undone);
  skipping_ = queue_.empty();
  return received;
}

void ExpectationQueue::OnReady() {
  copying_in_ = false;
  const auto ready = std::find_if(queue_.begin(), queue_.end(),
                                  [](const Expectation& e) { return EndsWithReady(e.kind); });
  if (ready == queue_.end()) {
    skipping_ = false;
    return;
  }
  queue_.erase(queue_.begin(), ready + 1);
}

// The server reads on until the end of the COPY data; a Sync before that end is ignored, anything
// else but data makes the COPY fail.
void ExpectationQueue::OnCopyIn() {
  if (queue_.empty()) return;
  auto end = std::find_if(queue_.begin(), queue_.end(),
                          [](const Expectation& e) { return e.kind == Kind::kCopyEnd; });
  copying_in_ = end == queue_.end();
  if (!copying_in_) end = queue_.erase(end);
  const auto kept = std::remove_if(queue_.begin() + 1, end,
                                   [](const Expectation& e) { return e.kind == Kind::kSync; });
  queue_.erase(kept, end);
}

}  // namespace tidemark::gateway
