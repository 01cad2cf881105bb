#include "tests/standby.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

namespace tidemark::tests {

namespace {

void Must(const std::vector<std::string>& command) {
  std::string output;
  if (Run(AsServerUser(command), &output) != 0) {
    throw std::runtime_error(command.front() + ": " + output);
  }
}

std::string Binary(const char* name) { return (ServerBinaries() / name).string(); }

}  // namespace

Standby::Standby(const Cluster& primary, const std::vector<std::string>& settings) {
  Must({Binary("pg_basebackup"), "-D", data(), "-R", "-X", "stream", "-c", "fast", "-h",
        primary.host(), "-p", std::to_string(primary.port()), "-U", "postgres"});
  std::ofstream config(data() + "/postgresql.auto.conf", std::ios::app);
  config << "unix_socket_directories = '" << folder_.path().string() << "'\nport = 5432\n"
         << "wal_receiver_status_interval = 1s\n";
  for (const auto& setting : settings) config << setting << "\n";
  config.close();
  Start();
}

void Standby::Start() { Control({"-w", "-t", "60", "-l", data() + "/log", "start"}); }
void Standby::Stop() { Control({"-w", "-t", "60", "-m", "fast", "stop"}); }

Standby::~Standby() {
  std::string output;
  Run(AsServerUser({Binary("pg_ctl"), "-D", data(), "-m", "immediate", "-w", "stop"}), &output);
}

void Standby::Control(const std::vector<std::string>& what) const {
  std::vector<std::string> command = {Binary("pg_ctl"), "-D", data()};
  command.insert(command.end(), what.begin(), what.end());
  Must(command);
}

std::string Standby::Dsn(const std::string& database) const {
  return fmt::format("host={} user=postgres dbname={}", folder_.path().string(), database);
}

pg::Connection Standby::Connect(const std::string& database) const {
  return pg::Connection::Open({.dsn = Dsn(database), .application_name = "test"},
                              base::Deadline::After(std::chrono::seconds(30)));
}

void Standby::AwaitReplay(const std::string& lsn) const {
  Connect().Execute(
      fmt::format("DO $$ BEGIN FOR i IN 1 .. 6000 LOOP IF pg_last_wal_replay_lsn() >= '{0}' THEN "
                  "RETURN; END IF; PERFORM pg_sleep(0.01); END LOOP; "
                  "RAISE 'the standby has not replayed up to {0}'; END $$",
                  lsn));
}

void Standby::Promote() { Control({"-w", "-t", "60", "promote"}); }

}  // namespace tidemark::tests
