// The store's database and its reader roles, for the embedded store and for a server of the user's
// alike. Not the tables in it (store.h). Each function uses one connection, on its thread.
// Manual: "Managing Databases", "Locale Support", "Database Roles".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "pg/connection.h"

namespace tidemark::temporal {

/// The group whose members may read everything in the plane; cannot log in.
inline constexpr const char* kReaderGroup = "tidemark_reader";

/// How a database sorts and classifies text (pg_database.datlocprovider and its fellows).
struct DatabaseShape {
  std::string name;
  char provider = 'c';  // c libc, i ICU, b builtin
  std::string collate = "C", character_type = "C";
  std::string locale;  // of ICU or builtin; empty for libc
};

/// Makes the database in UTF8 from template0 when there is none of that name: with the shape's
/// locale where the server knows it, else with C.UTF-8, else C (logged as a warning). Returns
/// whether it was made. Throws 42501, and 22023 for template0 and template1.
bool EnsureDatabase(pg::Connection& maintenance, const DatabaseShape& shape);

/// Makes the group `tidemark_reader` when it does not exist.
void EnsureReaderGroup(pg::Connection& store);

struct ReaderLogin {
  std::string name = "reader";
  std::filesystem::path passfile;  // where the password is kept
  std::vector<std::string> hosts = {"127.0.0.1", "localhost"};
  int port = 5480;
};

/// Makes the login role, a read-only member of the group, and writes its passfile lines; a password
/// that is in the passfile already is kept. Throws 42710 when a role of that name exists that is
/// no reader.
void EnsureReader(pg::Connection& store, const ReaderLogin& login);

}  // namespace tidemark::temporal
