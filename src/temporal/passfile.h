// Passwords that Tidemark makes, and the libpq passfiles that keep them. Files are written whole
// (a new file renamed over the old one) with mode 0600. Manual: "The Password File".
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::temporal {

/// 32 hexadecimal digits from the kernel's random source.
std::string RandomPassword();

struct PassfileLine {
  std::string host = "*", port = "*", database = "*", user, password;
};

/// The password of `user` in the file's first line for that user; nullopt when there is none, or
/// no file. Hexadecimal passwords only need no unescaping; others are unescaped.
std::optional<std::string> PasswordOf(const std::filesystem::path& passfile,
                                      std::string_view user);

/// Replaces the file's lines for the users of `lines` with `lines`; other lines stay. Throws 58030.
void StorePassfileLines(const std::filesystem::path& passfile,
                        const std::vector<PassfileLine>& lines);

/// Writes `text` to `file` so that after a crash the old or the new text is there, whole: a new
/// file of mode `mode` beside it, fsync, rename, fsync of the folder. Throws 58030, and 53100 when
/// the disk is full.
void WriteFileWhole(const std::filesystem::path& file, std::string_view text, unsigned mode = 0600);

}  // namespace tidemark::temporal
