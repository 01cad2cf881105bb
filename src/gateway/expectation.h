// The answers that the store still owes, in the order in which it will give them: one expectation
// for each message sent that has an answer of its own. Follows what the server does after an error
// in the extended protocol (it ignores everything up to the next Sync) and during COPY FROM STDIN
// (it ignores Sync). Sees message types only. One thread.
// Manual: "Extended Query", "Pipelining", "COPY Operations".
//
//   Startup, Query, FunctionCall, Sync   end with ReadyForQuery, also after an error
//   Parse, Bind, Describe, Execute, Close   end with their own answer; an error ends them and all
//                                           others up to the next Sync
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "gateway/prepared.h"
#include "wire/message.h"

namespace tidemark::gateway {

struct Expectation {
  enum class Kind : uint8_t {
    kStartup,
    kQuery,
    kFunctionCall,
    kSync,
    kParse,
    kBind,
    kDescribe,
    kExecute,
    kClose,
    kCopyEnd,  // no answer: marks where the client's COPY data end
  };
  /// Whose message it was.
  enum class Asker : uint8_t {
    kClient,
    kInquiry,  // the names of a held statement are being looked up
    kSettle,   // a publish in flight is let finish; an error goes to the client
    kReparse,  // a statement is parsed anew before a Bind; an error goes to the client
    kRefusal,  // a statement that must fail: `refusal` is shown in place of its error
  };

  Kind kind;
  Asker asker = Asker::kClient;
  bool last = false;                                    // of the messages of one inquiry
  std::shared_ptr<const RewrittenStatement> statement;  // what it runs, if that was rewritten
  std::shared_ptr<const wire::ErrorFields> refusal;
  Prepared::ChangePointer change;  // what it does to the names of statements and portals
  size_t results = 0;              // of a Query, complete so far

  /// True while the result that comes is not the client's.
  bool HidesResult() const;
};

class ExpectationQueue {
 public:
  /// A message was sent to the store.
  void Sent(Expectation expectation);

  /// The one that a response of this type answers, or nullptr: nothing is owed.
  Expectation* Head();

  struct Received {
    bool inquiry_answered = false;  // the last message of an inquiry
    bool inquiry_dropped = false;   // the server skips an inquiry's messages
    std::vector<Prepared::ChangePointer> undone;  // refused or skipped, the newest first
  };
  /// A response came. Call it after Head() has been used.
  Received OnResponse(char type);

  /// True while the server will not run what is sent next: after an error it waits for a Sync,
  /// during COPY FROM STDIN for the end of the data.
  bool deaf() const { return skipping_ || copying_in_; }
  bool empty() const { return queue_.empty(); }

 private:
  Received OnError();
  void OnReady();
  void OnCopyIn();

  std::deque<Expectation> queue_;
  bool skipping_ = false;
  bool copying_in_ = false;  // the server reads COPY data and their end has not been sent
};

}  // namespace tidemark::gateway
