#include "bench/mirror_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "bench/polling.h"

namespace tidemark::bench {

namespace {

std::string EndOf(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  constexpr size_t kShown = 3000;
  const auto all = text.str();
  return all.size() > kShown ? all.substr(all.size() - kShown) : all;
}

}  // namespace

MirrorProcess::MirrorProcess(const Options& options) : log_(options.log) {
  const int log = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) throw std::runtime_error("could not open " + log_.string());
  const char* path = std::getenv("PATH");
  process_ = base::ChildProcess::Start(
      {.command = {options.program.string(), "follow", "--store", options.store_dsn, "--source",
                   options.source_dsn},
       .environment = {fmt::format("PATH={}", path == nullptr ? "/usr/bin:/bin" : path)},
       .account = std::nullopt,
       .folder = "/",
       .output_fd = log,
       .kept_fds = {},
       .dies_with_parent = true});
  ::close(log);
}

MirrorProcess::~MirrorProcess() = default;

void MirrorProcess::Stop() {
  process_->Signal(SIGTERM);
  if (!process_->Wait(base::Deadline::After(std::chrono::minutes(1)))) {
    throw std::runtime_error("tidemark did not end on SIGTERM: " + EndOf(log_));
  }
}

void MirrorProcess::RequireRunning() {
  const auto ended = process_->Wait(base::Deadline::After(std::chrono::milliseconds(0)));
  if (ended) {
    throw std::runtime_error(
        fmt::format("tidemark ended with {}: {}", ended->ToString(), EndOf(log_)));
  }
}

void AwaitFirstCopy(MirrorProcess& mirror, pg::Connection& store, std::chrono::minutes limit) {
  bool known = false;
  PollUntil("the first copy", limit, [&] {
    mirror.RequireRunning();
    known = known || store.Value("SELECT to_regclass('tidemark.resume') IS NOT NULL") == "t";
    return known && store.Value("SELECT count(*) FROM tidemark.resume") != "0";
  });
}

}  // namespace tidemark::bench
