// The program: reads the command line, runs the chosen command, prints its error. The only caller
// is main; the only place where errors become text and exit codes.
#pragma once

namespace tidemark::cli {

/// Returns the process's exit code (exit_code.h).
int Run(int argc, char** argv);

}  // namespace tidemark::cli
