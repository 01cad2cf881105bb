#include "temporal/snapshot_horizon.h"

namespace tidemark::temporal {

namespace {

// The transaction gets its number after the statement's snapshot was taken: whatever the statement
// sees has a lower one.
constexpr const char* kNewer = R"sql(
SELECT pg_catalog.pg_current_xact_id()::xid, j.id, n.tx_last
FROM tidemark.journal j
CROSS JOIN LATERAL (SELECT b.tx_last FROM tidemark.basis_journal b WHERE b.journal = j.id
                    ORDER BY b.system_time DESC LIMIT 1) n
WHERE n.tx_last > j.tx_seen_by_all
)sql";

// Below relfrozenxid nothing is left that a snapshot may not see. (Of what follows the number, age()
// is the lower, the newer a transaction is.)
constexpr const char* kPassed = R"sql(
SELECT pg_catalog.age(c.relfrozenxid) < pg_catalog.age($1::xid)
FROM pg_catalog.pg_class c WHERE c.oid = 'tidemark.snapshot_horizon'::regclass
)sql";

}  // namespace

void SnapshotHorizon::LookForNewer(pg::Connection& store) {
  const auto rows = store.Execute(kNewer);
  for (int i = 0; i < rows.rows(); ++i) {
    transaction_ = rows.str(i, 0);
    newer_[rows.str(i, 1)] = rows.str(i, 2);
  }
}

bool SnapshotHorizon::Passed(pg::Connection& store) {
  store.Execute("VACUUM (FREEZE) tidemark.snapshot_horizon");
  return store.Execute(kPassed, {transaction_}).boolean(0, 0);
}

void SnapshotHorizon::Advance(pg::Connection& store) {
  if (newer_.empty()) LookForNewer(store);
  if (newer_.empty() || !Passed(store)) return;
  for (const auto& [journal, tx] : newer_) {
    store.Execute("UPDATE tidemark.journal SET tx_seen_by_all = greatest(tx_seen_by_all, $2) "
                  "WHERE id = $1",
                  {journal, tx});
  }
  newer_.clear();
}

}  // namespace tidemark::temporal
