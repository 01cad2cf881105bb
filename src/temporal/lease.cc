#include "temporal/lease.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "pg/wait.h"

namespace tidemark::temporal {

namespace {

constexpr std::chrono::milliseconds kRetryInterval{500};

std::string Holder() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{} process {}", host, ::getpid());
}

}  // namespace

Lease Lease::Take(pg::Connection& store, const std::string& name, std::stop_token stop) {
  return TakeBefore(store, name, base::Deadline::Never(), stop);
}

Lease Lease::TakeBefore(pg::Connection& store, const std::string& name, base::Deadline deadline,
                        std::stop_token stop) {
  const auto key = "pg_catalog.hashtextextended('tidemark lease ' || $1, 0)";
  pg::Bell bell;
  for (bool told = false;;) {
    const auto taken =
        store.Execute(fmt::format("SELECT pg_catalog.pg_try_advisory_lock({})", key), {name});
    if (taken.boolean(0, 0)) break;
    if (!told) {
      const auto holder =
          store.Execute("SELECT holder, taken_at FROM tidemark.lease WHERE name = $1", {name});
      spdlog::info("waiting for the capture of {}: it is held by {}", name,
                   holder.rows() == 1 ? holder.str(0, 0) : "another process");
      told = true;
    }
    if (deadline.passed()) {
      throw base::Error(base::kObjectInUse,
                        fmt::format("another process is capturing \"{}\"", name))
          .Hint("Stop it, or let it do this capture.");
    }
    bell.Wait(-1, false, deadline.Min(base::Deadline::After(kRetryInterval)), stop);
  }
  const auto fence = store.Value(
      R"sql(
INSERT INTO tidemark.lease AS l (name, fence, holder, taken_at)
VALUES ($1, 1, $2, pg_catalog.clock_timestamp())
ON CONFLICT (name) DO UPDATE
SET fence = l.fence + 1, holder = excluded.holder, taken_at = excluded.taken_at
RETURNING fence
)sql",
      {name, Holder()});
  return Lease(name, std::stoll(fence));
}

}  // namespace tidemark::temporal
