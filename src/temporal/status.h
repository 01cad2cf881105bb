// What the store says of itself and of what it holds, as JSON text: for `tidemark status`, `bases`
// and `evidence`, and for the http server. Reads the control tables only; never a source. One
// thread (the connection's); one round trip each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/lsn.h"
#include "pg/connection.h"

namespace tidemark::temporal {

/// {store: {id, database, server_version, schema_version, fsync, full_page_writes}, apply,
///  last_basis: {number, system_time} | null,
///  mirrors: [{id, name, source, publication, slot, state, heartbeat, heartbeat_age_seconds, position,
///             received, received_time, source_position, lag_bytes, lag_seconds, retained_bytes,
///             copied_rows, copy_rows_expected, copied_bytes, last_basis, readable, problems,
///             datasets: [{name, strategy, keying, key, rows, version, readable, dropped,
///                         resync: {reason, requested_at, sqlstate, error} | null}]}],
///  datasets: [{declared, name, source, strategy, key, state, rows, version, readable, last_basis,
///              extracted, accepted, last_failure: {capture, sqlstate, message, detail, hint,
///              failed_at} | null, occurrences: {open, last_received, last_state, last_error} | null}],
///  unclaimed_occurrences: [{dataset, open, since}],
///  webhooks: [{name, last_event, delivered, delivered_at, attempted_at, failures, error,
///              disabled_at}]}
/// Unclaimed are occurrences of datasets that no capturing process has ever known.
/// A mirror is readable once its first copy is published; `rows` is null until then. The datasets
/// outside mirrors come last; what is not known before the first capture is null.
std::string LoadStatus(pg::Connection& store);

/// The newest `limit` publishes, newest first: [{basis, system_time, journals: [{journal,
/// tx_last}], members, puts, deletions}].
std::string LoadBases(pg::Connection& store, int64_t limit);

/// The five facts of each member of a basis: {basis, system_time, capture, failures: [{dataset,
/// sqlstate, message, detail, hint}], members: [{dataset, source_position, position,
/// extracted_from, extracted_to, version, tx, accepted_at, rows, puts, deletions}]}; nullopt when
/// there is no such basis. `failures` are the datasets of the same capture that are missing from
/// it; `position` is what the source says of itself, null for mirrors.
std::optional<std::string> LoadEvidence(pg::Connection& store, int64_t basis);

/// The least position up to which nothing is missing: of the mirror `journal`, of all mirrors when
/// it is empty. nullopt while one of them has not published yet. Throws 42704 when there is no
/// mirror of that name.
std::optional<base::Lsn> LoadReceived(pg::Connection& store, const std::string& journal);

}  // namespace tidemark::temporal
