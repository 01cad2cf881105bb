// How a reader reaches the gateway with psql: the line that people copy.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/config.h"

namespace tidemark::cli {

/// PGPASSFILE=FILE psql -h HOST -p PORT -U USER DATABASE, quoted for a shell where needed.
std::string PsqlLine(const Listen& gateway, const std::filesystem::path& passfile,
                     const std::string& user, const std::string& database);

/// The hosts for which a passfile should know the password.
std::vector<std::string> PassfileHosts(const Listen& gateway);

/// `text` as one word of a POSIX shell.
std::string ShellWord(const std::string& text);

}  // namespace tidemark::cli
