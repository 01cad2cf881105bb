#include "temporal/store_database.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/identifier.h"
#include "base/log.h"
#include "temporal/passfile.h"

namespace tidemark::temporal {

using base::Error;
using base::QuoteIdentifier;
using base::QuoteLiteral;

namespace {

std::string Utf8Variant(const std::string& locale) {
  if (locale == "C" || locale == "POSIX") return locale;
  return locale.substr(0, locale.find_first_of(".@")) + ".UTF-8";
}

std::string Libc(const std::string& collate, const std::string& character_type) {
  return fmt::format("LC_COLLATE {} LC_CTYPE {}", QuoteLiteral(collate),
                     QuoteLiteral(character_type));
}

/// The locale clauses to try in turn; the first is the source's own.
std::vector<std::string> LocaleClauses(const DatabaseShape& shape, int server_version) {
  std::vector<std::string> clauses;
  if (shape.provider == 'i') {
    clauses.push_back(fmt::format("LOCALE_PROVIDER icu ICU_LOCALE {} {}",
                                  QuoteLiteral(shape.locale),
                                  Libc(shape.collate, shape.character_type)));
    clauses.push_back(fmt::format("LOCALE_PROVIDER icu ICU_LOCALE {} {}",
                                  QuoteLiteral(shape.locale), Libc("C", "C")));
  } else if (shape.provider == 'b' && server_version >= 170000) {
    clauses.push_back(fmt::format("LOCALE_PROVIDER builtin BUILTIN_LOCALE {} {}",
                                  QuoteLiteral(shape.locale), Libc("C", "C")));
  } else if (shape.provider == 'b') {
    clauses.push_back("LOCALE_PROVIDER libc " + Libc("C", "C.UTF-8"));
  } else {
    clauses.push_back("LOCALE_PROVIDER libc " + Libc(shape.collate, shape.character_type));
    clauses.push_back("LOCALE_PROVIDER libc " + Libc(Utf8Variant(shape.collate),
                                                     Utf8Variant(shape.character_type)));
  }
  clauses.push_back("LOCALE_PROVIDER libc " + Libc("C.UTF-8", "C.UTF-8"));
  clauses.push_back("LOCALE_PROVIDER libc " + Libc("C", "C"));
  return clauses;
}

/// The server has no such locale, or not with UTF8, or was built without the provider.
bool IsLocaleRefusal(const Error& error) {
  return error.state() == base::kWrongObjectType || error.state() == base::kInvalidParameter ||
         error.state() == base::kFeatureNotSupported ||
         error.state() == base::kUndefinedObject ||
         error.state() == base::kInvalidObjectDefinition;
}

bool Exists(pg::Connection& connection, const char* query, const std::string& name) {
  return connection.Execute(query, {name}).rows() > 0;
}

constexpr const char* kDatabaseNamed = "SELECT FROM pg_catalog.pg_database WHERE datname = $1";
constexpr const char* kRoleNamed = "SELECT FROM pg_catalog.pg_roles WHERE rolname = $1";

}  // namespace

bool EnsureDatabase(pg::Connection& maintenance, const DatabaseShape& shape) {
  if (shape.name == "template0" || shape.name == "template1") {
    throw Error(base::kInvalidParameter,
                fmt::format("database \"{}\" cannot be mirrored", shape.name));
  }
  if (Exists(maintenance, kDatabaseNamed, shape.name)) return false;
  const auto clauses = LocaleClauses(shape, maintenance.server_version());
  for (size_t i = 0; i < clauses.size(); ++i) {
    try {
      maintenance.Execute(fmt::format("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' {}",
                                      QuoteIdentifier(shape.name), clauses[i]));
      if (i > 0) {
        spdlog::warn("the store does not have the locale of source database \"{}\"; its text is "
                     "sorted with {}",
                     shape.name, clauses[i]);
      }
      return true;
    } catch (const Error& error) {
      if (!IsLocaleRefusal(error) || i + 1 == clauses.size()) throw;
      spdlog::debug("{}", error.what());
    }
  }
  return true;
}

void EnsureReaderGroup(pg::Connection& store) {
  if (Exists(store, kRoleNamed, kReaderGroup)) return;
  try {
    store.Execute(fmt::format("CREATE ROLE {} NOLOGIN", QuoteIdentifier(kReaderGroup)));
  } catch (const Error& error) {
    if (error.state() != base::kDuplicateObject) throw;  // somebody else made it just now
  }
}

namespace {

// The password travels as a parameter and stays out of statement texts, which logs and errors show.
constexpr const char* kSetPassword = R"(
  DO $$
  BEGIN
    EXECUTE pg_catalog.format('ALTER ROLE %I PASSWORD %L',
                              pg_catalog.current_setting('tidemark.login'),
                              pg_catalog.current_setting('tidemark.login_secret'));
  END
  $$)";

void SetPassword(pg::Connection& store, const std::string& role, const std::string& password) {
  store.Execute(R"(
    SELECT pg_catalog.set_config('tidemark.login', $1, true),
           pg_catalog.set_config('tidemark.login_secret', $2, true))",
                {role, password});
  store.Execute(kSetPassword);
}

bool IsReader(pg::Connection& store, const std::string& role) {
  return store
             .Execute(R"(
    SELECT FROM pg_catalog.pg_auth_members AS m
    JOIN pg_catalog.pg_roles AS g ON g.oid = m.roleid
    JOIN pg_catalog.pg_roles AS r ON r.oid = m.member
    WHERE g.rolname = $1 AND r.rolname = $2)",
                      {kReaderGroup, role})
             .rows() > 0;
}

}  // namespace

void EnsureReader(pg::Connection& store, const ReaderLogin& login) {
  EnsureReaderGroup(store);
  const bool exists = Exists(store, kRoleNamed, login.name);
  if (exists && !IsReader(store, login.name)) {
    throw Error(base::kDuplicateObject,
                fmt::format("role \"{}\" exists in the store and is no reader", login.name))
        .Hint(fmt::format("Choose another name, or GRANT {} to it.", kReaderGroup));
  }
  const auto kept = PasswordOf(login.passfile, login.name);
  const auto password = kept ? *kept : RandomPassword();
  std::vector<PassfileLine> lines;
  for (const auto& host : login.hosts) {
    lines.push_back({.host = host, .port = std::to_string(login.port), .user = login.name,
                     .password = password});
  }
  StorePassfileLines(login.passfile, lines);
  if (exists && kept) return;
  const auto role = QuoteIdentifier(login.name);
  pg::Transaction transaction(store);
  if (!exists) {
    store.Execute(fmt::format("CREATE ROLE {} LOGIN IN ROLE {}", role,
                              QuoteIdentifier(kReaderGroup)));
    store.Execute(fmt::format("ALTER ROLE {} SET default_transaction_read_only = on", role));
  }
  SetPassword(store, login.name, password);
  std::move(transaction).Commit();
}

}  // namespace tidemark::temporal
