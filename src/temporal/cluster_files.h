// The files of the embedded store's cluster: initdb once, settings at each start. Runs no server.
// The making is atomic: a cluster is whole below DIR/store, or it is not there.
#pragma once

#include <optional>
#include <stop_token>

#include "base/child_process.h"
#include "temporal/server_binaries.h"
#include "temporal/store_layout.h"

namespace tidemark::temporal {

/// The major version of the cluster in `layout.store`; nullopt when there is none yet. Throws 55000
/// when something else is there.
std::optional<int> ClusterMajor(const StoreLayout& layout);

/// Makes the cluster with a new owner's password in `layout.owner_passfile`. Some seconds. Throws
/// 53100 when the disk has too little room, 58000 with initdb's words, 57014 on stop.
void MakeCluster(const StoreLayout& layout, const ServerBinaries& binaries,
                 const base::Account& account, const std::stop_token& stop);

/// Writes tidemark.conf for this machine and this place.
void StoreClusterSettings(const StoreLayout& layout, const ServerBinaries& binaries,
                          const base::Account& account);

}  // namespace tidemark::temporal
