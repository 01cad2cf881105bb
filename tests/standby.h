// A streaming standby of a throwaway cluster, made by pg_basebackup; gone when the object is.
#pragma once

#include <string>
#include <vector>

#include "tests/cluster.h"

namespace tidemark::tests {

class Standby {
 public:
  /// `settings` are further lines of its configuration. Runs once constructed; throws otherwise.
  explicit Standby(const Cluster& primary, const std::vector<std::string>& settings = {});
  ~Standby();
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  /// The folder of its Unix socket.
  std::string host() const { return folder_.path().string(); }
  /// A libpq string for `database` as the superuser `postgres`.
  std::string Dsn(const std::string& database = "postgres") const;
  pg::Connection Connect(const std::string& database = "postgres") const;
  /// Waits until everything up to `lsn` is replayed, 60 s at most.
  void AwaitReplay(const std::string& lsn) const;
  void Stop();
  void Start();
  /// From now on a primary of its own, on a timeline of its own.
  void Promote();

 private:
  void Control(const std::vector<std::string>& what) const;
  std::string data() const { return (folder_.path() / "data").string(); }

  TemporaryFolder folder_;
};

}  // namespace tidemark::tests
