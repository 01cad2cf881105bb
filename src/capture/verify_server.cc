#include "capture/verify_server.h"

#include <future>
#include <utility>
#include <vector>

namespace tidemark::capture {

namespace {

constexpr std::chrono::milliseconds kLongestStatement = std::chrono::hours(24 * 7);

// Texts that do not depend on the server's defaults, and little load: one process, bounded memory.
const std::vector<std::pair<std::string, std::string>>& SessionSettings() {
  static const std::vector<std::pair<std::string, std::string>> settings = {
      {"search_path", ""},           {"DateStyle", "ISO, YMD"},
      {"IntervalStyle", "postgres"}, {"TimeZone", "UTC"},
      {"extra_float_digits", "3"},   {"bytea_output", "hex"},
      {"lc_monetary", "C"},          {"xmloption", "content"},
      {"row_security", "off"},       {"default_transaction_isolation", "read committed"},
      {"work_mem", "16MB"},          {"max_parallel_workers_per_gather", "0"}};
  return settings;
}

}  // namespace

VerifyServer::VerifyServer(const std::string& dsn, base::Deadline deadline, std::stop_token stop)
    : deadline_(deadline),
      stop_(stop),
      connection_(
          pg::Connection::Open({.dsn = dsn, .timeouts = false, .settings = SessionSettings()},
                               deadline, stop)) {}

pg::Result VerifyServer::Ask(const std::string& sql) {
  connection_.SetLimits(deadline_.left(kLongestStatement), stop_);
  return connection_.Execute(sql);
}

BothAnswers AskBoth(VerifyServer& source, const std::string& source_sql, VerifyServer& mirror,
                    const std::string& mirror_sql) {
  auto of_source = std::async(std::launch::async, [&] { return source.Ask(source_sql); });
  pg::Result of_mirror = mirror.Ask(mirror_sql);
  return {of_source.get(), std::move(of_mirror)};
}

}  // namespace tidemark::capture
