#include "capture/spool.h"

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

Spool::Spool() {
  const char* folder = std::getenv("TMPDIR");
  std::string name = fmt::format("{}/tidemark-spool-{}",
                                 folder == nullptr || *folder == '\0' ? "/tmp" : folder,
                                 "XXXXXX");
  const int fd = ::mkstemp(name.data());
  if (fd < 0) Fail("create");
  ::unlink(name.c_str());
  file_.reset(::fdopen(fd, "w+b"));
  if (!file_) Fail("open");
}

void Spool::Write(const Message& message) {
  const Header header{message.commit_lsn.value(), message.xid,
                      static_cast<uint32_t>(message.payload.size())};
  if (std::fwrite(&header, sizeof header, 1, file_.get()) != 1 ||
      std::fwrite(message.payload.data(), 1, message.payload.size(), file_.get()) !=
          message.payload.size()) {
    Fail("write");
  }
  bytes_ += static_cast<int64_t>(sizeof header + message.payload.size());
}

std::optional<Spool::Message> Spool::Read() {
  if (!reading_ && (std::fflush(file_.get()) != 0 || std::fseek(file_.get(), 0, SEEK_SET) != 0)) {
    Fail("rewind");
  }
  reading_ = true;
  Header header;
  if (std::fread(&header, sizeof header, 1, file_.get()) != 1) {
    if (std::ferror(file_.get()) != 0) Fail("read");
    return std::nullopt;
  }
  payload_.resize(header.size);
  if (std::fread(payload_.data(), 1, header.size, file_.get()) != header.size) Fail("read");
  return Message{base::Lsn(header.commit_lsn), header.xid, payload_};
}

}  // namespace tidemark::capture
