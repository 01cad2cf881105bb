#include "cli/psql_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/listen_address.h"

namespace tidemark::cli {

std::string PsqlLine(const Listen& gateway, const std::filesystem::path& passfile,
                     const std::string& user, const std::string& database) {
  return fmt::format("PGPASSFILE={} psql -h {} -p {} -U {} {}", ShellWord(passfile.string()),
                     ReachableHost(gateway), gateway.port, ShellWord(user), ShellWord(database));
}

std::vector<std::string> PassfileHosts(const Listen& gateway) {
  std::vector<std::string> hosts = {"127.0.0.1", "localhost"};
  const auto host = ReachableHost(gateway);
  if (std::count(hosts.begin(), hosts.end(), host) == 0) hosts.push_back(host);
  return hosts;
}

std::string ShellWord(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '_' || c == '-' || c == '+';
  });
  if (plain) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace tidemark::cli
