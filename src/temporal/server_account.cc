#include "temporal/server_account.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace tidemark::temporal {

namespace fs = std::filesystem;
using base::Account;
using base::Error;

Account FindServerAccount() {
  if (::geteuid() != 0) return Account::Own();
  if (auto account = Account::Find("postgres")) return *account;
  throw Error(base::kNotInPrerequisiteState, "there is no account \"postgres\" to run the store as")
      .Detail("A PostgreSQL server refuses to run as root.")
      .Hint("Run tidemark as an ordinary user, or make the account: useradd --system postgres");
}

base::ChildProcess::Options AsServer(const Account& account, std::vector<std::string> command,
                                     const fs::path& folder) {
  base::ChildProcess::Options options{.command = std::move(command), .folder = folder};
  options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C",
                         fmt::format("HOME={}", account.home)};
  if (const char* zone = std::getenv("TZ")) options.environment.push_back(fmt::format("TZ={}", zone));
  if (::geteuid() == 0) options.account = account;
  return options;
}

namespace {

/// By the mode bits alone; access control lists may say otherwise.
bool ModeLetsEnter(const Account& account, const fs::path& folder) {
  struct stat status = {};
  if (::stat(folder.c_str(), &status) != 0) return false;
  if (status.st_uid == account.uid) return (status.st_mode & S_IXUSR) != 0;
  const bool in_group = status.st_gid == account.gid ||
                        std::count(account.groups.begin(), account.groups.end(), status.st_gid) > 0;
  return (status.st_mode & (in_group ? S_IXGRP : S_IXOTH)) != 0;
}

}  // namespace

void RequireCanEnter(const Account& account, const fs::path& folder) {
  try {
    const auto options = AsServer(account, {"/bin/true"}, folder);
    base::RunToEnd(options, nullptr, base::Deadline::After(std::chrono::seconds(10)));
  } catch (const Error&) {
    fs::path closed = folder;
    for (fs::path above = "/"; const auto& part : folder.relative_path()) {
      above /= part;
      if (!ModeLetsEnter(account, above)) {
        closed = above;
        break;
      }
    }
    throw Error(base::kNotInPrerequisiteState,
                fmt::format("account \"{}\" cannot enter \"{}\"", account.name, closed.string()))
        .Detail("The embedded store runs as that account, because a PostgreSQL server refuses to "
                "run as root.")
        .Hint(fmt::format("Use another folder, such as --data /var/lib/tidemark, or open this one: "
                          "chmod o+x {}",
                          closed.string()));
  }
}

void MakePrivateFolder(const Account& account, const fs::path& folder) {
  const bool made = ::mkdir(folder.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) {
    throw Error(base::kIoError, fmt::format("could not create folder \"{}\": {}", folder.string(),
                                            std::strerror(errno)));
  }
  if (made) GiveTo(account, folder);
  struct stat status = {};
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != account.uid || (status.st_mode & 077) != 0) {
    throw Error(base::kNotInPrerequisiteState,
                fmt::format("\"{}\" is not a private folder of account \"{}\"", folder.string(),
                            account.name))
        .Hint("Run tidemark as the user who did before, or remove it when no server uses it.");
  }
}

void GiveTo(const Account& account, const fs::path& path) {
  if (::geteuid() != 0) return;
  if (::lchown(path.c_str(), account.uid, account.gid) != 0) {
    throw Error(base::kIoError, fmt::format("could not give \"{}\" to account \"{}\": {}",
                                            path.string(), account.name, std::strerror(errno)));
  }
}

}  // namespace tidemark::temporal
