// How the command line shows an error: the one place. Standard error, one line for the error,
// indented ones for detail, hint and context.
#pragma once

#include <cstdio>

#include "base/error.h"
#include "cli/exit_code.h"

namespace tidemark::cli {

/// Prints `tidemark: error: message (SQLSTATE)` and what goes with it.
void PrintError(const base::Error& error, std::FILE* out = stderr);

/// The exit code that an error means: usage for F0000, failed for others.
ExitCode ExitCodeOf(const base::Error& error);

}  // namespace tidemark::cli
