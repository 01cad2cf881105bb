#include "tests/crash/follower_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>

extern char** environ;

namespace tidemark::crash {

using base::Deadline;

namespace {

constexpr std::chrono::seconds kEndMax{30};

}  // namespace

FollowerProcess::FollowerProcess(std::string name, std::string source_dsn, std::string store_dsn,
                                 std::optional<size_t> batch_changes)
    : command_{FOLLOWER_BINARY, std::move(name), std::move(source_dsn), std::move(store_dsn)} {
  if (batch_changes) command_.push_back(std::to_string(*batch_changes));
  std::string path = "/tmp/tidemark-follower-XXXXXX";
  log_fd_ = ::mkostemp(path.data(), O_CLOEXEC | O_APPEND);
  if (log_fd_ < 0) throw std::runtime_error("mkostemp");
  log_ = path;
}

FollowerProcess::~FollowerProcess() {
  process_.reset();
  ::close(log_fd_);
  std::error_code ignored;
  std::filesystem::remove(log_, ignored);
}

void FollowerProcess::Start(const std::string& kill_point) {
  base::ChildProcess::Options options{.command = command_,
                                      .output_fd = log_fd_,
                                      .dies_with_parent = true};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    options.environment.emplace_back(*variable);
  }
  if (!kill_point.empty()) options.environment.push_back("TIDEMARK_KILL_POINT=" + kill_point);
  process_.emplace(base::ChildProcess::Start(options));
}

bool FollowerProcess::WaitKilled(Deadline deadline) {
  const auto ended = process_->Wait(deadline);
  return ended && ended->signal == SIGKILL;
}

void FollowerProcess::Kill() {
  process_->Signal(SIGKILL);
  process_->Wait(Deadline::After(kEndMax));
}

bool FollowerProcess::Stop() {
  process_->Signal(SIGTERM);
  const auto ended = process_->Wait(Deadline::After(kEndMax));
  return ended && ended->ok();
}

std::string FollowerProcess::Log() const {
  std::ifstream in(log_);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace tidemark::crash
