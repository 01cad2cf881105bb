#include "source/files/file_set.h"

#include <arrow/buffer.h>
#include <arrow/filesystem/filesystem.h>
#include <arrow/io/file.h>
#include <arrow/util/config.h>
#include <arrow/util/key_value_metadata.h>
#ifdef ARROW_S3
#include <arrow/filesystem/s3fs.h>
#endif
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/sha256.h"
#include "columnar/arrow_status.h"

namespace tidemark::source {

namespace {

constexpr int64_t kDigestChunk = 1 << 20;
constexpr char kS3Scheme[] = "s3://";
constexpr char kWildcards[] = "*?[";

base::Error NoFile(const std::string& pattern) {
  return base::Error(base::kUndefinedTable, fmt::format("no file matches \"{}\"", pattern));
}

template <typename T>
T TakeIo(arrow::Result<T> result, std::string_view doing, const std::string& path) {
  if (!result.ok()) {
    throw base::Error(base::kIoError, fmt::format("could not {} file \"{}\"", doing, path))
        .Detail(result.status().message());
  }
  return std::move(result).ValueUnsafe();
}

std::string TimeText(time_t seconds, int64_t nanoseconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:09}Z", fmt::gmtime(seconds), nanoseconds);
}

}  // namespace

void FinishRemoteFiles() {
#ifdef ARROW_S3
  if (arrow::fs::IsS3Initialized()) columnar::Check(arrow::fs::EnsureS3Finalized());
#endif
}

FileSet::FileSet(const std::string& pattern, const Limit& limit) {
  limit.Check();
  if (pattern.starts_with(kS3Scheme)) {
    ListRemote(pattern);
  } else if (pattern.find("://") != std::string::npos) {
    throw base::Error(base::kFeatureNotSupported,
                      fmt::format("files of \"{}\" cannot be read", pattern))
        .Hint("Give a local path or an s3:// URI.");
  } else {
    ListLocal(pattern);
  }
  if (files_.empty()) throw NoFile(pattern);
  std::sort(files_.begin(), files_.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
}

FileSet::~FileSet() = default;

void FileSet::ListLocal(const std::string& pattern) {
  if (pattern.find_first_of(kWildcards) == std::string::npos) {
    // Whatever is in the way of a single file is worth more than "no file matches".
    files_.push_back(Look(pattern));
    return;
  }
  glob_t found{};
  const int code = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (code != 0 && code != GLOB_NOMATCH) {
    throw base::Error(base::kIoError, fmt::format("could not list \"{}\": {}", pattern,
                                                  std::strerror(errno)));
  }
  for (const std::string& path : paths) {
    struct stat state {};
    if (::stat(path.c_str(), &state) == 0 && S_ISREG(state.st_mode)) files_.push_back(Look(path));
  }
}

void FileSet::ListRemote(const std::string& pattern) {
#ifdef ARROW_S3
  columnar::Check(arrow::fs::EnsureS3Initialized());
  const size_t slash = pattern.rfind('/');
  const std::string folder_uri = pattern.substr(0, slash);
  std::string folder;
  remote_ = TakeIo(arrow::fs::FileSystemFromUri(folder_uri, &folder), "open", pattern);
  const std::string name = pattern.substr(slash + 1, pattern.find('?', slash) - slash - 1);
  arrow::fs::FileSelector selector;
  selector.base_dir = folder;
  const auto found = TakeIo(remote_->GetFileInfo(selector), "list", pattern);
  for (const auto& one : found) {
    if (one.IsFile() && ::fnmatch(name.c_str(), one.base_name().c_str(), FNM_PERIOD) == 0) {
      files_.push_back(Look(one.path()));
    }
  }
#else
  throw base::Error(base::kFeatureNotSupported,
                    fmt::format("\"{}\" cannot be read: this Arrow was built without S3", pattern));
#endif
}

SourceFile FileSet::Look(const std::string& path) const {
  if (remote_ != nullptr) {
    const auto info = TakeIo(remote_->GetFileInfo(path), "look at", path);
    const auto since = info.mtime().time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
    SourceFile file{.path = path, .size = info.size()};
    file.modified_at = TimeText(seconds.count(), (since - seconds).count());
    const auto opened = TakeIo(remote_->OpenInputFile(path), "open", path);
    if (const auto metadata = TakeIo(opened->ReadMetadata(), "look at", path)) {
      if (const int at = metadata->FindKey("ETag"); at >= 0) file.etag = metadata->value(at);
    }
    return file;
  }
  struct stat state {};
  if (::stat(path.c_str(), &state) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) throw NoFile(path);
    throw base::Error(base::kIoError,
                      fmt::format("could not look at \"{}\": {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(state.st_mode)) {
    throw base::Error(base::kWrongObjectType, fmt::format("\"{}\" is not a file", path));
  }
  return {.path = path,
          .size = state.st_size,
          .modified_at = TimeText(state.st_mtim.tv_sec, state.st_mtim.tv_nsec),
          .inode = state.st_ino};
}

std::shared_ptr<arrow::io::RandomAccessFile> FileSet::Open(const SourceFile& file) const {
  if (remote_ != nullptr) return TakeIo(remote_->OpenInputFile(file.path), "open", file.path);
  return TakeIo(arrow::io::ReadableFile::Open(file.path), "open", file.path);
}

void FileSet::ExpectUnchanged(const SourceFile& file) const {
  std::string now = "it is gone";
  try {
    const SourceFile again = Look(file.path);
    if (again == file) return;
    now = fmt::format("it has {} bytes and was changed at {}", again.size, again.modified_at);
  } catch (const base::Error& error) {
    if (error.state() != base::kUndefinedTable) throw;
  }
  throw base::Error(base::kNotInPrerequisiteState,
                    fmt::format("file \"{}\" changed while it was being read", file.path))
      .Detail(fmt::format("It had {} bytes and was changed at {}; now {}.", file.size,
                          file.modified_at, now))
      .Hint("Write files under another name and rename them when they are complete.");
}

std::string FileSet::Digest(const SourceFile& file, const Limit& limit) const {
  if (remote_ != nullptr) return "";
  const auto opened = Open(file);
  base::Sha256 digest;
  for (;;) {
    limit.Check();
    const auto chunk = TakeIo(opened->Read(kDigestChunk), "read", file.path);
    if (chunk->size() == 0) return base::Hex(digest.Finish());
    digest.Add({reinterpret_cast<const char*>(chunk->data()), static_cast<size_t>(chunk->size())});
  }
}

}  // namespace tidemark::source
