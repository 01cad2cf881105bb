#include "capture/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace tidemark::capture {

namespace {

struct Header {
  uint64_t commit_lsn;
  uint32_t xid, size;
};

}  // namespace

void Spool::Fail(const char* doing) {
  throw base::Error(base::kIoError, fmt::format("could not {} a file for waiting changes: {}", doing,
                                                std::strerror(errno)))
      .Hint("See that the folder for temporary files (TMPDIR) has room.");
}

void Spool::Open() {
  const char* folder = std::getenv("TMPDIR");
  std::string name = fmt::format("{}/tidemark-spool-{}",
                                 folder == nullptr || *folder == '\0' ? "/tmp" : folder,
                                 "XXXXXX");
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) Fail("create");
  ::unlink(name.c_str());
  file_.reset(::fdopen(fd, "w+b"));
  if (!file_) Fail("open");
}

void Spool::Write(const Message& message) {
  const Header header{message.commit_lsn.value(), message.xid,
                      static_cast<uint32_t>(message.payload.size())};
  kept_.append(reinterpret_cast<const char*>(&header), sizeof header);
  kept_.append(message.payload);
  bytes_ += static_cast<int64_t>(sizeof header + message.payload.size());
  if (kept_.size() < memory_max_) return;
  if (!file_) Open();
  if (std::fwrite(kept_.data(), 1, kept_.size(), file_.get()) != kept_.size()) Fail("write");
  kept_.clear();
}

// The next `size` bytes; false at the end.
bool Spool::Get(void* to, size_t size) {
  if (size == 0) return true;
  if (file_left_ > 0) {
    if (std::fread(to, 1, size, file_.get()) != size) Fail("read");
    file_left_ -= size;
    return true;
  }
  if (kept_read_ == kept_.size()) return false;
  std::memcpy(to, kept_.data() + kept_read_, size);
  kept_read_ += size;
  return true;
}

std::optional<Spool::Message> Spool::Read() {
  if (!reading_ && file_) {
    if (std::fflush(file_.get()) != 0 || std::fseek(file_.get(), 0, SEEK_SET) != 0) Fail("rewind");
    file_left_ = static_cast<size_t>(bytes_) - kept_.size();
  }
  reading_ = true;
  Header header;
  if (!Get(&header, sizeof header)) return std::nullopt;
  payload_.resize(header.size);
  Get(payload_.data(), header.size);
  return Message{base::Lsn(header.commit_lsn), header.xid, payload_};
}

}  // namespace tidemark::capture
