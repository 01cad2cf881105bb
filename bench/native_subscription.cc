#include "bench/native_subscription.h"

#include "base/identifier.h"
#include "bench/polling.h"

namespace tidemark::bench {

NativeSubscription::NativeSubscription(const std::string& source_dsn,
                                       const std::string& publication, pg::Connection& subscriber,
                                       std::chrono::minutes limit)
    : source_(pg::Connection::Open({.dsn = source_dsn},
                                   base::Deadline::After(std::chrono::seconds(20)))),
      subscriber_(&subscriber) {
  subscriber_->Execute("CREATE SUBSCRIPTION native CONNECTION " + base::QuoteLiteral(source_dsn) +
                       " PUBLICATION " + base::QuoteIdentifier(publication) +
                       " WITH (binary = true)");
  PollUntil("the subscription's copy", limit, [&] {
    return subscriber_->Value("SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'") ==
           "0";
  });
}

void NativeSubscription::Enable() { subscriber_->Execute("ALTER SUBSCRIPTION native ENABLE"); }

void NativeSubscription::Disable() {
  subscriber_->Execute("ALTER SUBSCRIPTION native DISABLE");
  PollUntil("the subscription's worker to leave", std::chrono::minutes(2), [&] {
    return source_.Value("SELECT active FROM pg_replication_slots WHERE slot_name = 'native'") ==
           "f";
  });
}

}  // namespace tidemark::bench
