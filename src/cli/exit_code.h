// How every command of tidemark ends. Scripts rely on these numbers.
#pragma once

namespace tidemark::cli {

enum class ExitCode {
  kDone = 0,
  kFailed = 1,      // a base::Error, printed
  kUsage = 2,       // the command line or the configuration is wrong
  kRefused = 3,     // preflight found that the source or the store cannot be used
  kDifference = 4,  // verify found mirror and source to differ
};

}  // namespace tidemark::cli
