// GET /metrics: what the store knows of how capturing goes, and what this server knows of itself,
// for Prometheus. docs/reference/http.md lists the names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "temporal/measures.h"

namespace tidemark::http {

/// What the server counts of itself.
struct ServerMeasures {
  uint64_t connections = 0, subscribers = 0;          // now
  uint64_t requests = 0, events_sent = 0, cut = 0;    // since it started; cut: readers too slow
};

/// nullopt while the store is away: then only the server's own, and tidemark_store_up 0.
std::string MetricsPage(const std::optional<temporal::Measures>& store,
                        const ServerMeasures& server);

}  // namespace tidemark::http
