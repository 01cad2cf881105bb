// Where the parts of an embedded store lie below its folder DIR, and how to reach it. Pure paths:
// every process that is given DIR finds the same store. Any thread.
//
//   DIR/store         data directory        DIR/store.pgpass  password of its owner
//   DIR/run           Unix socket           DIR/pgpass        password of the role reader
//   DIR/store.log     the server's log      DIR/database      name of the mirror's database
//   DIR/store.lock    held by the server for as long as a process of it lives
#pragma once

#include <filesystem>
#include <string>

namespace tidemark::temporal {

/// The superuser that owns an embedded store.
inline constexpr const char* kStoreOwner = "tidemark_store";

struct StoreLayout {
  /// `folder` may be relative and need not exist.
  explicit StoreLayout(const std::filesystem::path& folder);

  std::filesystem::path folder;  // DIR, absolute
  std::filesystem::path store, store_being_made, socket_folder, log, lock;
  std::filesystem::path owner_passfile, reader_passfile, database;

  /// The libpq string by which Tidemark's own processes connect. Holds no secret.
  std::string Dsn(const std::string& database_name) const;
  /// Like Dsn, with the name kept in DIR/database. Throws 55000 when there is no such file, since
  /// then no store has been made in DIR.
  std::string Dsn() const;
};

/// `value` as libpq's keyword/value strings quote it.
std::string DsnValue(const std::string& value);

}  // namespace tidemark::temporal
