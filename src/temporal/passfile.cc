#include "temporal/passfile.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"

namespace tidemark::temporal {

namespace fs = std::filesystem;
using base::Error;

namespace {

constexpr base::SqlState kDiskFull{"53100"};

[[noreturn]] void ThrowIo(std::string_view doing, const fs::path& file) {
  const int why = errno;
  throw Error(why == ENOSPC || why == EDQUOT ? kDiskFull : base::kIoError,
              fmt::format("could not {} \"{}\": {}", doing, file.string(), std::strerror(why)));
}

/// The five fields of a line, unescaped; an empty user for anything else.
PassfileLine ReadLine(std::string_view line) {
  std::array<std::string, 5> fields;
  size_t field = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) {
      fields[field] += line[++i];
    } else if (line[i] == ':' && field < 4) {
      ++field;
    } else {
      fields[field] += line[i];
    }
  }
  if (line.starts_with('#') || field != 4) return {};
  return {fields[0], fields[1], fields[2], fields[3], fields[4]};
}

std::string Escaped(std::string_view field) {
  std::string text;
  for (const char c : field) {
    if (c == ':' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

std::vector<std::string> LinesOf(const fs::path& passfile) {
  std::vector<std::string> lines;
  std::ifstream in(passfile);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::string RandomPassword() {
  std::array<unsigned char, 16> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error(base::kSystemError, "could not get random bytes from the kernel");
  }
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::optional<std::string> PasswordOf(const fs::path& passfile, std::string_view user) {
  for (const auto& text : LinesOf(passfile)) {
    if (auto line = ReadLine(text); !line.user.empty() && line.user == user) return line.password;
  }
  return std::nullopt;
}

void StorePassfileLines(const fs::path& passfile, const std::vector<PassfileLine>& lines) {
  std::string text;
  for (const auto& old : LinesOf(passfile)) {
    const auto user = ReadLine(old).user;
    bool replaced = false;
    for (const auto& line : lines) replaced = replaced || line.user == user;
    if (!replaced) text += old + "\n";
  }
  for (const auto& line : lines) {
    text += fmt::format("{}:{}:{}:{}:{}\n", Escaped(line.host), Escaped(line.port),
                        Escaped(line.database), Escaped(line.user), Escaped(line.password));
  }
  WriteFileWhole(passfile, text);
}

void WriteFileWhole(const fs::path& file, std::string_view text, unsigned mode) {
  const fs::path fresh = file.string() + ".new";
  ::unlink(fresh.c_str());
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) ThrowIo("create", fresh);
  bool ok = true;
  for (size_t at = 0; ok && at < text.size();) {
    const ssize_t wrote = ::write(fd, text.data() + at, text.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    ok = wrote > 0;
    if (ok) at += static_cast<size_t>(wrote);
  }
  ok = ok && ::fsync(fd) == 0;
  const int why = errno;
  ::close(fd);
  errno = why;
  if (!ok) ThrowIo("write", fresh);
  if (::rename(fresh.c_str(), file.c_str()) != 0) ThrowIo("rename", fresh);
  const int folder = ::open(file.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

}  // namespace tidemark::temporal
