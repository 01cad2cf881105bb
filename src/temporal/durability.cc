#include "temporal/durability.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "base/error.h"

namespace tidemark::temporal {

namespace fs = std::filesystem;

std::vector<std::string> Durability::Reasons() const {
  std::vector<std::string> reasons;
  if (!fsync) reasons.emplace_back("fsync is off");
  if (!full_page_writes) reasons.emplace_back("full_page_writes is off");
  if (volatile_folder) {
    reasons.push_back(fmt::format("\"{}\" is kept in memory only", *volatile_folder));
  }
  return reasons;
}

bool IsOnVolatileFileSystem(const fs::path& folder) {
  std::error_code none;
  fs::path existing = fs::absolute(folder, none);
  while (!fs::exists(existing, none) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  struct statfs system = {};
  if (::statfs(existing.c_str(), &system) != 0) return false;
  return system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
}

namespace {

constexpr const char* kLoadDurability = R"(
  SELECT pg_catalog.current_setting('fsync') = 'on',
         pg_catalog.current_setting('full_page_writes') = 'on')";

}  // namespace

Durability LoadDurability(pg::Connection& store, const std::optional<fs::path>& data_folder) {
  const auto row = store.Execute(kLoadDurability);
  Durability durability{.fsync = row.boolean(0, 0), .full_page_writes = row.boolean(0, 1)};
  if (data_folder) {
    for (const auto& folder : {*data_folder, *data_folder / "pg_wal"}) {
      if (!durability.volatile_folder && IsOnVolatileFileSystem(folder)) {
        durability.volatile_folder = folder.string();
      }
    }
  }
  return durability;
}

void RequireDurable(const Durability& durability, bool allow_volatile_store) {
  if (!durability.IsVolatile() || allow_volatile_store) return;
  throw base::Error(base::kNotInPrerequisiteState,
                    "the store could lose changes that it has confirmed")
      .Detail(fmt::format("In the store, {}.", fmt::join(durability.Reasons(), ", and ")))
      .Hint("Correct that, or accept the loss with \"allow_volatile_store: true\".");
}

}  // namespace tidemark::temporal
