#include "temporal/store_layout.h"

#include <fmt/format.h>

#include <cstdint>
#include <fstream>

#include "base/error.h"

namespace tidemark::temporal {

namespace fs = std::filesystem;

namespace {

/// What sockaddr_un holds, without the closing NUL.
constexpr size_t kSocketPathBytesMax = 107;

/// FNV-1a: short, and the same in every process.
uint64_t HashOf(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

StoreLayout::StoreLayout(const fs::path& given)
    : folder(fs::weakly_canonical(fs::absolute(given)).lexically_normal()) {
  if (!folder.has_filename()) folder = folder.parent_path();
  store = folder / "store";
  store_being_made = folder / "store.creating";
  socket_folder = folder / "run";
  if ((socket_folder / ".s.PGSQL.5432.lock").string().size() > kSocketPathBytesMax) {
    socket_folder = fmt::format("/tmp/tidemark-{:016x}", HashOf(folder.string()));
  }
  log = folder / "store.log";
  lock = folder / "store.lock";
  owner_passfile = folder / "store.pgpass";
  reader_passfile = folder / "pgpass";
  database = folder / "database";
}

std::string StoreLayout::Dsn(const std::string& database_name) const {
  return fmt::format("host={} port=5432 user={} dbname={} passfile={}",
                     DsnValue(socket_folder.string()), kStoreOwner, DsnValue(database_name),
                     DsnValue(owner_passfile.string()));
}

std::string StoreLayout::Dsn() const {
  std::ifstream in(database);
  std::string name;
  if (!std::getline(in, name) || name.empty()) {
    throw base::Error(base::kNotInPrerequisiteState,
                      fmt::format("there is no embedded store in \"{}\"", folder.string()))
        .Hint("Start one with \"tidemark up\", or name another folder with --data.");
  }
  return Dsn(name);
}

std::string DsnValue(const std::string& value) {
  std::string text = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') text += '\\';
    text += c;
  }
  return text + "'";
}

}  // namespace tidemark::temporal
