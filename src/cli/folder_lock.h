// One `tidemark up` per folder: a lock on DIR/lock, held for as long as the process lives, with the
// process's number in it for the message that the second one shows.
#pragma once

#include <filesystem>

namespace tidemark::cli {

class FolderLock {
 public:
  /// Makes DIR if it does not exist, and takes the lock. Throws 55006 naming DIR and the process
  /// that holds it, 55000 when DIR cannot be written to.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Throws like the constructor when somebody holds the lock; makes nothing.
  static void RequireFree(const std::filesystem::path& folder);

 private:
  int fd_;
};

}  // namespace tidemark::cli
