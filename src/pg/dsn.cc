#include "pg/dsn.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <charconv>
#include <memory>
#include <string_view>

#include "base/error.h"

namespace tidemark::pg {

namespace {

using OptionList = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

std::string ValueOf(const PQconninfoOption* option, std::string_view keyword) {
  for (; option != nullptr && option->keyword != nullptr; ++option) {
    if (option->keyword == keyword && option->val != nullptr) return option->val;
  }
  return "";
}

}  // namespace

std::string Endpoint::Display() const {
  return host.starts_with('/') ? fmt::format("{}/{}", host, database)
                               : fmt::format("{}:{}/{}", host, port, database);
}

Endpoint EndpointOf(const std::string& dsn) {
  char* message = nullptr;
  const OptionList given(PQconninfoParse(dsn.c_str(), &message), PQconninfoFree);
  PQfreemem(message);  // it may quote the string, password and all
  if (!given) {
    throw base::Error(base::kInvalidParameter, "invalid connection string")
        .Hint("Write it as postgres://user@host:port/database or as \"host=… dbname=…\".");
  }
  const OptionList defaults(PQconndefaults(), PQconninfoFree);
  const auto value = [&](std::string_view keyword) {
    auto text = ValueOf(given.get(), keyword);
    return text.empty() ? ValueOf(defaults.get(), keyword) : text;
  };
  Endpoint endpoint{.host = value("host"), .user = value("user")};
  if (endpoint.host.empty()) endpoint.host = value("hostaddr");
  if (endpoint.host.empty()) endpoint.host = "/var/run/postgresql";
  endpoint.host = endpoint.host.substr(0, endpoint.host.find(','));
  endpoint.database = value("dbname").empty() ? endpoint.user : value("dbname");
  const auto port = value("port");
  std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  return endpoint;
}

}  // namespace tidemark::pg
