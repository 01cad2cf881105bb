#include "source/adbc/session.h"

#include <arrow-adbc/adbc.h>
#include <arrow-adbc/adbc_driver_manager.h>
#include <arrow/array.h>
#include <arrow/c/bridge.h>
#include <arrow/record_batch.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "columnar/arrow_status.h"
#include "source/adbc/driver_thread.h"

namespace tidemark::source {

namespace {

constexpr base::SqlState kUndefinedFile{"58P01"};
constexpr base::SqlState kDataException{"22000"};
constexpr char kStatementPrefix[] = "statement.";

std::string OneLine(const char* text) {
  std::string line = text == nullptr ? "" : text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

base::SqlState StateOf(AdbcStatusCode status) {
  switch (status) {
    case ADBC_STATUS_NOT_IMPLEMENTED:
      return base::kFeatureNotSupported;
    case ADBC_STATUS_INVALID_ARGUMENT:
      return base::kInvalidParameter;
    case ADBC_STATUS_INVALID_DATA:
      return kDataException;
    case ADBC_STATUS_IO:
      return base::kConnectionFailure;
    case ADBC_STATUS_CANCELLED:
    case ADBC_STATUS_TIMEOUT:
      return base::kQueryCanceled;
    case ADBC_STATUS_UNAUTHENTICATED:
      return base::kInvalidAuthorization;
    case ADBC_STATUS_UNAUTHORIZED:
      return base::kInsufficientPrivilege;
    default:
      return base::kSystemError;
  }
}

base::SqlState StateOf(AdbcStatusCode status, const AdbcError& error) {
  const std::string_view state(error.sqlstate, sizeof error.sqlstate);
  const bool given = std::all_of(state.begin(), state.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0 || (c >= 'A' && c <= 'Z');
  });
  return given && state != "00000" ? base::SqlState(state) : StateOf(status);
}

// An AdbcError that gives back what it holds.
struct DriverError {
  AdbcError error = ADBC_ERROR_INIT;
  DriverError() = default;
  DriverError(const DriverError&) = delete;
  DriverError& operator=(const DriverError&) = delete;
  ~DriverError() {
    if (error.release != nullptr) error.release(&error);
  }
  void Check(AdbcStatusCode status, std::string_view doing) const {
    if (status == ADBC_STATUS_OK) return;
    throw base::Error(StateOf(status, error),
                      fmt::format("could not {}: {}", doing, OneLine(error.message)));
  }
};

std::string TextOf(const arrow::DenseUnionArray& values, int64_t row) {
  const auto child = values.field(values.child_id(row));
  const int64_t at = values.value_offset(row);
  if (child->type_id() != arrow::Type::STRING || child->IsNull(at)) return "";
  return static_cast<const arrow::StringArray&>(*child).GetString(at);
}

// A stream that the driver filled.
class Stream {
 public:
  explicit Stream(std::string doing) : doing_(std::move(doing)) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (stream_.release != nullptr) stream_.release(&stream_);
  }
  ArrowArrayStream* get() { return &stream_; }

  const std::shared_ptr<arrow::Schema>& schema() {
    if (schema_ == nullptr) {
      ArrowSchema schema{};
      Check(stream_.get_schema(&stream_, &schema));
      schema_ = columnar::Take(arrow::ImportSchema(&schema));
    }
    return schema_;
  }

  std::shared_ptr<arrow::RecordBatch> Next() {
    const auto& fields = schema();
    ArrowArray array{};
    Check(stream_.get_next(&stream_, &array));
    if (array.release == nullptr) return nullptr;
    return columnar::Take(arrow::ImportRecordBatch(&array, fields));
  }

 private:
  void Check(int code) {
    if (code == 0) return;
    const std::string text = OneLine(stream_.get_last_error(&stream_));
    AdbcStatusCode status = code == ECANCELED ? ADBC_STATUS_CANCELLED : ADBC_STATUS_INVALID_DATA;
    const AdbcError* error = AdbcErrorFromArrayStream(&stream_, &status);
    throw base::Error(error != nullptr ? StateOf(status, *error) : StateOf(status),
                      fmt::format("could not {}: {}", doing_, text));
  }

  std::string doing_;
  ArrowArrayStream stream_{};
  std::shared_ptr<arrow::Schema> schema_;
};

}  // namespace

// What the driver owns. All of it is touched on the thread only, but for `running`.
struct AdbcSession::Driver {
  explicit Driver(AdbcDriverOptions given) : options(std::move(given)) {}

  AdbcDriverOptions options;
  AdbcDatabase database{};
  AdbcConnection connection{};
  AdbcStatement statement{};
  bool has_database = false, has_connection = false, has_statement = false;
  std::unique_ptr<Stream> stream;
  About about;
  bool open = false;

  std::mutex running_mutex;
  AdbcStatement* running = nullptr;  // may be cancelled from another thread

  DriverThread thread;  // last: joined before anything above goes

  void Load();
  void Connect();
  void LoadAbout();
  void EndQuery();
  void Close();
  std::shared_ptr<arrow::Schema> Start(const std::string& sql,
                                       const std::shared_ptr<arrow::RecordBatch>& parameters);
  void Cancel();
};

void AdbcSession::Driver::Load() {
  DriverError error;
  error.Check(AdbcDatabaseNew(&database, &error.error), "prepare a driver");
  has_database = true;
  const auto set = [&](const std::string& name, const std::string& value) {
    error.Check(AdbcDatabaseSetOption(&database, name.c_str(), value.c_str(), &error.error),
                fmt::format("set driver option \"{}\"", name));
  };
  set("driver", options.driver);
  if (!options.entrypoint.empty()) set("entrypoint", options.entrypoint);
  DriverError load;
  load.Check(AdbcDriverManagerDatabaseSetLoadFlags(&database, ADBC_LOAD_FLAG_DEFAULT, &load.error),
             "prepare a driver");
  for (const auto& [name, value] : options.options) {
    if (!name.starts_with(kStatementPrefix)) set(name, value);
  }
}

void AdbcSession::Driver::Connect() {
  // A driver that cannot be loaded and one that cannot connect fail in one call; so it is loaded
  // once by itself.
  DriverError loading;
  AdbcDriver probe{};
  const char* entrypoint = options.entrypoint.empty() ? nullptr : options.entrypoint.c_str();
  const AdbcStatusCode loaded =
      AdbcFindLoadDriver(options.driver.c_str(), entrypoint, ADBC_VERSION_1_1_0,
                         ADBC_LOAD_FLAG_DEFAULT, nullptr, &probe, &loading.error);
  if (loaded != ADBC_STATUS_OK) {
    throw base::Error(kUndefinedFile,
                      fmt::format("ADBC driver \"{}\" cannot be loaded", options.driver))
        .Detail(OneLine(loading.error.message))
        .Hint("Give the path of the driver's shared library, or install its manifest where the "
              "driver manager looks (ADBC_DRIVER_PATH).");
  }
  if (probe.release != nullptr) {
    DriverError ignored;
    probe.release(&probe, &ignored.error);
  }
  Load();
  DriverError error;
  error.Check(AdbcDatabaseInit(&database, &error.error), "open a database through ADBC");
  error.Check(AdbcConnectionNew(&connection, &error.error), "connect through ADBC");
  has_connection = true;
  error.Check(AdbcConnectionInit(&connection, &database, &error.error), "connect through ADBC");
  LoadAbout();
  open = true;
}

void AdbcSession::Driver::LoadAbout() {
  const uint32_t codes[] = {ADBC_INFO_VENDOR_NAME, ADBC_INFO_VENDOR_VERSION, ADBC_INFO_DRIVER_NAME,
                            ADBC_INFO_DRIVER_VERSION};
  Stream answer("ask the driver about itself");
  DriverError error;
  if (AdbcConnectionGetInfo(&connection, codes, std::size(codes), answer.get(), &error.error) !=
      ADBC_STATUS_OK) {
    return;  // a driver need not say
  }
  while (const auto batch = answer.Next()) {
    const auto& names = static_cast<const arrow::UInt32Array&>(*batch->column(0));
    const auto& values = static_cast<const arrow::DenseUnionArray&>(*batch->column(1));
    for (int64_t row = 0; row < batch->num_rows(); ++row) {
      const std::string text = TextOf(values, row);
      if (names.Value(row) == ADBC_INFO_VENDOR_NAME) about.vendor_name = text;
      if (names.Value(row) == ADBC_INFO_VENDOR_VERSION) about.vendor_version = text;
      if (names.Value(row) == ADBC_INFO_DRIVER_NAME) about.driver_name = text;
      if (names.Value(row) == ADBC_INFO_DRIVER_VERSION) about.driver_version = text;
    }
  }
}

std::shared_ptr<arrow::Schema> AdbcSession::Driver::Start(
    const std::string& sql, const std::shared_ptr<arrow::RecordBatch>& parameters) {
  EndQuery();
  DriverError error;
  error.Check(AdbcStatementNew(&connection, &statement, &error.error), "prepare a query");
  has_statement = true;
  {
    const std::lock_guard lock(running_mutex);
    running = &statement;
  }
  for (const auto& [name, value] : options.options) {
    if (!name.starts_with(kStatementPrefix)) continue;
    const std::string option = name.substr(std::strlen(kStatementPrefix));
    error.Check(
        AdbcStatementSetOption(&statement, option.c_str(), value.c_str(), &error.error),
        fmt::format("set statement option \"{}\"", option));
  }
  error.Check(AdbcStatementSetSqlQuery(&statement, sql.c_str(), &error.error), "prepare a query");
  if (parameters != nullptr) {
    error.Check(AdbcStatementPrepare(&statement, &error.error), "prepare a query");
    ArrowArray array{};
    ArrowSchema schema{};
    columnar::Check(arrow::ExportRecordBatch(*parameters, &array, &schema));
    error.Check(AdbcStatementBind(&statement, &array, &schema, &error.error), "bind parameters");
  }
  stream = std::make_unique<Stream>("read rows");
  int64_t affected = 0;
  error.Check(AdbcStatementExecuteQuery(&statement, stream->get(), &affected, &error.error),
              "run a query");
  return stream->schema();
}

void AdbcSession::Driver::EndQuery() {
  stream.reset();
  {
    const std::lock_guard lock(running_mutex);
    running = nullptr;
  }
  if (!std::exchange(has_statement, false)) return;
  DriverError ignored;
  AdbcStatementRelease(&statement, &ignored.error);
  statement = {};
}

void AdbcSession::Driver::Close() {
  EndQuery();
  DriverError ignored;
  if (std::exchange(has_connection, false)) AdbcConnectionRelease(&connection, &ignored.error);
  if (std::exchange(has_database, false)) AdbcDatabaseRelease(&database, &ignored.error);
  connection = {};
  database = {};
  open = false;
}

void AdbcSession::Driver::Cancel() {
  const std::lock_guard lock(running_mutex);
  if (running == nullptr) return;
  DriverError ignored;
  AdbcStatementCancel(running, &ignored.error);
}

AdbcSession::AdbcSession(AdbcDriverOptions options)
    : driver_(std::make_shared<Driver>(std::move(options))) {}

AdbcSession::~AdbcSession() {
  driver_->Cancel();
  driver_->thread.Post([driver = driver_.get()] { driver->Close(); });
}

const AdbcSession::About& AdbcSession::Open(const Limit& limit) {
  Driver* driver = driver_.get();
  driver->thread.Run<bool>(
      [driver] {
        if (driver->open) return true;
        try {
          driver->Connect();
        } catch (const base::Error&) {
          driver->Close();
          throw;
        }
        return true;
      },
      limit, [] {});
  return driver->about;
}

bool AdbcSession::HasTable(const std::string& catalog, const std::string& schema,
                           const std::string& table, const Limit& limit) {
  Driver* driver = driver_.get();
  return driver->thread.Run<bool>(
      [driver, catalog, schema, table] {
        const auto part = [](const std::string& text) {
          return text.empty() ? nullptr : text.c_str();
        };
        ArrowSchema answer{};
        DriverError error;
        const AdbcStatusCode status = AdbcConnectionGetTableSchema(
            &driver->connection, part(catalog), part(schema), table.c_str(), &answer,
            &error.error);
        if (answer.release != nullptr) answer.release(&answer);
        if (status == ADBC_STATUS_NOT_IMPLEMENTED) return true;
        if (status == ADBC_STATUS_NOT_FOUND ||
            StateOf(status, error.error) == base::kUndefinedTable) {
          return false;
        }
        error.Check(status, "look for a table");
        return true;
      },
      limit, [] {});
}

std::shared_ptr<arrow::Schema> AdbcSession::Execute(
    const std::string& sql, std::shared_ptr<arrow::RecordBatch> parameters, const Limit& limit) {
  Driver* driver = driver_.get();
  return driver->thread.Run<std::shared_ptr<arrow::Schema>>(
      [driver, sql, parameters = std::move(parameters)] { return driver->Start(sql, parameters); },
      limit, [driver] { driver->Cancel(); });
}

std::shared_ptr<arrow::RecordBatch> AdbcSession::Next(const Limit& limit) {
  Driver* driver = driver_.get();
  return driver->thread.Run<std::shared_ptr<arrow::RecordBatch>>(
      [driver]() -> std::shared_ptr<arrow::RecordBatch> {
        if (driver->stream == nullptr) {
          throw base::Error(base::kNotInPrerequisiteState, "no query is running");
        }
        return driver->stream->Next();
      },
      limit, [driver] { driver->Cancel(); });
}

}  // namespace tidemark::source
