#include "temporal/embedded_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "base/error.h"
#include "temporal/durability.h"
#include "temporal/passfile.h"
#include "temporal/server_account.h"
#include "tests/cluster.h"

namespace tidemark::temporal {
namespace {

namespace fs = std::filesystem;
using base::Deadline;

Deadline Soon() { return Deadline::After(std::chrono::seconds(30)); }

EmbeddedStore StartIn(const fs::path& folder, bool allow_volatile_store = true) {
  return EmbeddedStore::Start({.folder = folder, .allow_volatile_store = allow_volatile_store}, {});
}

/// The SQLSTATE that `action` throws; empty when it throws nothing.
template <typename Action>
std::string StateOf(Action action) {
  try {
    action();
  } catch (const base::Error& error) {
    return error.state().str();
  }
  return "";
}

mode_t ModeOf(const fs::path& path) {
  struct stat status = {};
  ::stat(path.c_str(), &status);
  return status.st_mode & 0777;
}

TEST(EmbeddedStore, KeepsItsRowsOverAStopAndAStart) {
  const tests::TemporaryFolder folder;
  const auto data = folder.path() / "data";
  {
    auto store = StartIn(data);
    store.PrepareDatabase({.name = "shop", .collate = "C.UTF-8", .character_type = "C.UTF-8"},
                          Soon(), {});
    auto connection = pg::Connection::Open({.dsn = StoreLayout(data).Dsn()}, Soon());
    connection.Execute("CREATE TABLE t AS SELECT 7 AS n");
    EXPECT_EQ(connection.Value("SHOW listen_addresses"), "");
    EXPECT_EQ(connection.Value("SELECT datcollate FROM pg_database WHERE datname = 'shop'"),
              "C.UTF-8");
    EXPECT_EQ(ModeOf(data / "run"), 0700u);
    EXPECT_EQ(ModeOf(data / "store.pgpass"), 0600u);
  }
  EXPECT_FALSE(fs::exists(data / "store/postmaster.pid"));
  const auto store = StartIn(data);
  auto connection = pg::Connection::Open({.dsn = StoreLayout(data).Dsn()}, Soon());
  EXPECT_EQ(connection.Value("SELECT n FROM t"), "7");
}

TEST(EmbeddedStore, RefusesAConnectionWithoutItsPassword) {
  const tests::TemporaryFolder folder;
  const auto store = StartIn(folder.path() / "data");
  const auto dsn = "host=" + store.layout().socket_folder.string() +
                   " user=tidemark_store dbname=template1 passfile=/nonexistent";
  EXPECT_EQ(StateOf([&] { pg::Connection::Open({.dsn = dsn}, Soon()); }), "08001");
}

TEST(EmbeddedStore, ReplacesAServerThatOutlivedItsOwner) {
  const tests::TemporaryFolder folder;
  const auto data = folder.path() / "data";
  StartIn(data).Stop();
  const StoreLayout layout(data);
  // As after a SIGKILL of tidemark: a server of nobody, on the same data directory.
  auto orphan = base::ChildProcess::Start(
      AsServer(FindServerAccount(),
               {(tests::ServerBinaries() / "postgres").string(), "-D", layout.store.string()}));
  for (int i = 0; i < 500 && !fs::exists(layout.socket_folder / ".s.PGSQL.5432"); ++i) {
    base::WaitReadable({}, Deadline::After(std::chrono::milliseconds(20)), {});
  }
  const auto store = StartIn(data);
  EXPECT_TRUE(orphan.Wait(Deadline::After(std::chrono::seconds(10))).has_value());
  EXPECT_NE(store.pid(), orphan.pid());
}

TEST(EmbeddedStore, IsNotHinderedByARelicOfAKilledInitdbOrAReusedProcessNumber) {
  const tests::TemporaryFolder folder;
  const auto data = folder.path() / "data";
  fs::create_directories(data / "store.creating/cluster/half");
  StartIn(data).Stop();
  EXPECT_FALSE(fs::exists(data / "store.creating"));
  std::ofstream(data / "store/postmaster.pid") << ::getpid() << "\n/elsewhere\n";
  EXPECT_EQ(StateOf([&] { StartIn(data); }), "");
}

TEST(EmbeddedStore, ASecondOneOnTheSameFolderCannotRunBesideTheFirst) {
  const tests::TemporaryFolder folder;
  const auto first = StartIn(folder.path() / "data");
  const auto second = StartIn(folder.path() / "data");
  EXPECT_TRUE(base::WaitReadable({first.pid_fd()}, Soon(), {}));
}

TEST(EmbeddedStore, UsesAShortSocketFolderBelowALongPath) {
  const tests::TemporaryFolder folder;
  const auto data = folder.path() / std::string(100, 'd');
  const auto store = StartIn(data);
  EXPECT_TRUE(store.layout().socket_folder.string().starts_with("/tmp/tidemark-"));
  EXPECT_EQ(ModeOf(store.layout().socket_folder), 0700u);
  fs::remove_all(store.layout().socket_folder);
}

TEST(EmbeddedStore, NamesTheFolderThatItsAccountCannotEnter) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const tests::TemporaryFolder folder;
  const auto closed = folder.path() / "closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms::owner_all);
  try {
    StartIn(closed / "data");
    FAIL() << "must be refused";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state().view(), "55000");
    EXPECT_NE(error.message().find("\"" + closed.string() + "\""), std::string::npos)
        << error.message();
    EXPECT_NE(error.hint().find("chmod o+x"), std::string::npos);
  }
}

TEST(EmbeddedStore, RefusesADataDirectoryOfAVersionThatIsNotInstalled) {
  const tests::TemporaryFolder folder;
  fs::create_directories(folder.path() / "data/store");
  std::ofstream(folder.path() / "data/store/PG_VERSION") << "99\n";
  try {
    StartIn(folder.path() / "data");
    FAIL() << "must be refused";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state().view(), "55000");
    EXPECT_EQ(error.message(), "no PostgreSQL 99 server was found on this machine");
  }
}

TEST(EmbeddedStore, RefusesAFolderKeptInMemoryBeforeMakingAnything) {
  if (!IsOnVolatileFileSystem("/dev/shm")) GTEST_SKIP() << "/dev/shm is no tmpfs here";
  const fs::path data = "/dev/shm/tidemark-test-refused";
  EXPECT_EQ(StateOf([&] { StartIn(data, false); }), "55000");
  EXPECT_FALSE(fs::exists(data));
}

TEST(Durability, NamesEachSettingThatCouldLoseACommit) {
  auto connection = tests::Cluster::Shared().Connect();
  const auto durability = LoadDurability(connection);
  EXPECT_EQ(durability.Reasons(),
            (std::vector<std::string>{"fsync is off", "full_page_writes is off"}));
  EXPECT_EQ(StateOf([&] { RequireDurable(durability, false); }), "55000");
  EXPECT_EQ(StateOf([&] { RequireDurable(durability, true); }), "");
}

TEST(StoreDatabase, FallsBackToAKnownLocaleAndKeepsWhatExists) {
  auto connection = tests::Cluster::Shared().Connect();
  const DatabaseShape shape{.name = "odd-name", .collate = "xx_YY.ISO-8859-7",
                            .character_type = "xx_YY.ISO-8859-7"};
  EXPECT_TRUE(EnsureDatabase(connection, shape));
  EXPECT_FALSE(EnsureDatabase(connection, shape));
  EXPECT_EQ(connection.Value("SELECT datcollate FROM pg_database WHERE datname = 'odd-name'"),
            "C.UTF-8");
}

TEST(StoreDatabase, ReaderKeepsItsPasswordAndMayOnlyRead) {
  const tests::TemporaryFolder folder;
  const auto passfile = folder.path() / "pgpass";
  auto connection = tests::Cluster::Shared().Connect();
  EnsureReader(connection, {.name = "reader_one", .passfile = passfile, .port = 1});
  const auto first = PasswordOf(passfile, "reader_one");
  EnsureReader(connection, {.name = "reader_one", .passfile = passfile, .port = 2});
  EXPECT_EQ(PasswordOf(passfile, "reader_one"), first);
  EXPECT_EQ(ModeOf(passfile), 0600u);
  EXPECT_TRUE(connection
                  .Value("SELECT rolpassword FROM pg_authid WHERE rolname = 'reader_one'")
                  .starts_with("SCRAM-SHA-256$"));
  EXPECT_EQ(connection.Value("SELECT setconfig::text FROM pg_db_role_setting WHERE setrole = "
                             "'reader_one'::regrole"),
            "{default_transaction_read_only=on}");
  connection.Execute("CREATE ROLE not_a_reader");
  EXPECT_EQ(StateOf([&] {
              EnsureReader(connection, {.name = "not_a_reader", .passfile = passfile});
            }),
            "42710");
}

}  // namespace
}  // namespace tidemark::temporal
