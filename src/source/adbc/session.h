// One connection through an ADBC driver that is loaded at run time, and the query that runs on it.
// The only file pair that includes ADBC. Every call of the driver runs on a thread of its own,
// under the caller's limit. Specification: adbc.h of Apache Arrow ADBC 1.1.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "source/reader.h"

namespace tidemark::source {

struct AdbcDriverOptions {
  std::string driver;      // a name that the driver manager finds, or a path
  std::string entrypoint;  // empty: the driver's default
  /// Given to the database in order: "uri", "username", driver.specific.options. Those that begin
  /// with "statement." are given to each statement, without it.
  std::vector<std::pair<std::string, std::string>> options;
};

class AdbcSession {
 public:
  explicit AdbcSession(AdbcDriverOptions options);
  ~AdbcSession();
  AdbcSession(const AdbcSession&) = delete;
  AdbcSession& operator=(const AdbcSession&) = delete;

  struct About {
    std::string driver_name, driver_version, vendor_name, vendor_version;
  };
  /// Connects at the first call. Throws 58P01 when the driver cannot be loaded, else the driver's
  /// SQLSTATE, or the one that its status stands for.
  const About& Open(const Limit& limit);

  /// Whether the driver knows the table; true when it cannot tell. Empty parts are left to it.
  bool HasTable(const std::string& catalog, const std::string& schema, const std::string& table,
                const Limit& limit);

  /// Runs `sql`, with one row of `parameters` bound unless null, and ends the query before it; its
  /// schema. Nothing has been read then, as far as the driver can.
  std::shared_ptr<arrow::Schema> Execute(const std::string& sql,
                                         std::shared_ptr<arrow::RecordBatch> parameters,
                                         const Limit& limit);
  /// The query's next batch, or null at its end.
  std::shared_ptr<arrow::RecordBatch> Next(const Limit& limit);

 private:
  struct Driver;
  std::shared_ptr<Driver> driver_;
};

}  // namespace tidemark::source
