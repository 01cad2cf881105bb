// The files that a pattern names, opened, and held to what they were: a file that changes while it
// is read is refused. Local paths and, where Arrow brings it, s3://. Not their formats.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "source/reader.h"

namespace arrow::fs {
class FileSystem;
}  // namespace arrow::fs
namespace arrow::io {
class RandomAccessFile;
}  // namespace arrow::io

namespace tidemark::source {

/// A file as it was when it was listed.
struct SourceFile {
  std::string path;
  int64_t size = 0;
  std::string modified_at;  // UTC, with all the digits that the file system has
  uint64_t inode = 0;       // local files
  std::string etag;         // s3
  bool operator==(const SourceFile&) const = default;
};

class FileSet {
 public:
  /// `pattern` is a path or an s3:// URI whose last part may hold *, ? and [ ]; local patterns may
  /// hold them anywhere. Files only, by path. Throws 42P01 when it names none, 58030 when the
  /// file system cannot be read, 0A000 for an unknown scheme.
  FileSet(const std::string& pattern, const Limit& limit);
  ~FileSet();

  const std::vector<SourceFile>& files() const { return files_; }

  /// Throws 58030.
  std::shared_ptr<arrow::io::RandomAccessFile> Open(const SourceFile& file) const;

  /// Throws 55000, naming the file, unless it still is what it was when listed.
  void ExpectUnchanged(const SourceFile& file) const;

  /// SHA-256 of a local file in hex; reads all of it. Empty for s3, where the etag stands for it.
  std::string Digest(const SourceFile& file, const Limit& limit) const;

 private:
  void ListLocal(const std::string& pattern);
  void ListRemote(const std::string& pattern);
  SourceFile Look(const std::string& path) const;

  std::shared_ptr<arrow::fs::FileSystem> remote_;  // null: local
  std::vector<SourceFile> files_;
};

/// Lets go of what s3:// files needed, once, when no more are read: call it before main returns, or
/// Arrow's own statics are gone by then. Nothing when none were read.
void FinishRemoteFiles();

}  // namespace tidemark::source
