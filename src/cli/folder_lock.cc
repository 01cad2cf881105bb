#include "cli/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "base/error.h"

namespace tidemark::cli {

namespace fs = std::filesystem;
using base::Error;

namespace {

[[noreturn]] void ThrowHeld(const fs::path& folder) {
  std::string holder;
  std::ifstream(folder / "lock") >> holder;
  throw Error(base::kObjectInUse,
              fmt::format("another tidemark up (process {}) works in \"{}\"",
                          holder.empty() ? "unknown" : holder, folder.string()))
      .Hint("Stop it, or name another folder with --data and another port with --port.");
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) {
  std::error_code failed;
  const bool is_new = !fs::exists(folder, failed);
  fs::create_directories(folder, failed);
  // Others may pass through (the store's account must), but not look.
  if (is_new && !failed) ::chmod(folder.c_str(), 0711);
  fd_ = ::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) {
    throw Error(base::kNotInPrerequisiteState, fmt::format("cannot use folder \"{}\": {}",
                                                           folder.string(), std::strerror(errno)))
        .Hint("Name a folder that you may write to with --data.");
  }
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    ::close(fd_);
    ThrowHeld(folder);
  }
  const auto number = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd_, 0) != 0 ||
      ::write(fd_, number.data(), number.size()) != static_cast<ssize_t>(number.size())) {
    ::close(fd_);
    throw Error(base::kIoError, fmt::format("could not write \"{}\": {}",
                                            (folder / "lock").string(), std::strerror(errno)));
  }
}

FolderLock::~FolderLock() { ::close(fd_); }

void FolderLock::RequireFree(const fs::path& folder) {
  const int fd = ::open((folder / "lock").c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return;  // nobody was ever here
  const bool is_free = ::flock(fd, LOCK_SH | LOCK_NB) == 0;
  ::close(fd);
  if (!is_free) ThrowHeld(folder);
}

}  // namespace tidemark::cli
