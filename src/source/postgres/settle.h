// Which transactions are running, and waiting until they have ended: what makes an upper bound
// final. A row with a lower cursor value may be committed later only by a transaction that was
// running when the bound was read, even one that has no xid yet, so virtual transactions count.
// Manual: "pg_locks", lock type virtualxid.
#pragma once

#include <string>
#include <vector>

#include "pg/connection.h"
#include "source/reader.h"

namespace tidemark::source {

/// The transactions of the connection's database that run now, without its own and without those of
/// autovacuum, and those that are prepared. One round trip, in its own snapshot.
std::vector<std::string> RunningTransactions(pg::Connection& connection);

/// True once none of `transactions` is running any more; false when some still are after `span`.
bool WaitUntilEnded(pg::Connection& connection, const std::vector<std::string>& transactions,
                    std::chrono::milliseconds span, const Limit& limit);

}  // namespace tidemark::source
