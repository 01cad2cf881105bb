// PostgreSQL's own logical replication as the peer: a subscription in binary mode whose rows go
// into a plain table, without history. Manual: "Logical Replication", CREATE SUBSCRIPTION.
#pragma once

#include <chrono>
#include <string>

#include "pg/connection.h"

namespace tidemark::bench {

class NativeSubscription {
 public:
  /// The subscriber's tables must be there. Creates slot and subscription, copies the tables and
  /// waits until they are in step; it is enabled then.
  NativeSubscription(const std::string& source_dsn, const std::string& publication,
                     pg::Connection& subscriber, std::chrono::minutes limit);
  void Enable();
  /// Returns once its worker has left and the slot is free.
  void Disable();

 private:
  pg::Connection source_;
  pg::Connection* subscriber_;
};

}  // namespace tidemark::bench
