#include "http/store_connection.h"

#include "base/error.h"
#include "temporal/store.h"

namespace tidemark::http {

pg::Connection OpenCurrentStore(const std::string& dsn, const std::stop_token& stop) {
  auto store = temporal::OpenStore(dsn, base::Deadline::After(kStoreConnectLimit), stop);
  if (!temporal::IsCurrent(store)) {
    throw base::Error(base::kCannotConnectNow, "the store has no schema of this version")
        .Hint("\"tidemark up\" and \"tidemark follow\" bring a store to their own version.");
  }
  return store;
}

}  // namespace tidemark::http
