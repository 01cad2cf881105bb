// Statistics of the planner over tables and what inherits from them. Autovacuum never collects them
// for a table that is itself empty, as the tables that users see are, and without them a join of
// two such tables is planned as if every value were there a thousand times.
#pragma once

#include <chrono>

#include "pg/connection.h"

namespace tidemark::temporal {

/// ANALYZEs the tables whose newest or closed rows have been analyzed since, unless their own
/// statistics are younger than `age_least`. Uses transactions of its own.
void RefreshStatistics(pg::Connection& store, std::chrono::seconds age_least = {});

}  // namespace tidemark::temporal
