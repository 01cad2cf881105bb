#include "cli/supervised.h"

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "cli/exit_code.h"

namespace tidemark::cli {

using base::Deadline;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kFirstDelay{1000};
constexpr milliseconds kLastDelay{30'000};
/// Having run this long, a crash is a new story.
constexpr auto kSettled = std::chrono::minutes(1);

}  // namespace

Supervised::Supervised(std::string name, std::vector<std::string> arguments,
                       std::vector<std::string> environment)
    : name_(std::move(name)),
      arguments_(std::move(arguments)),
      environment_(std::move(environment)) {
  Start();
}

void Supervised::Start() {
  std::vector<std::string> command = {"/proc/self/exe", name_};
  command.insert(command.end(), arguments_.begin(), arguments_.end());
  process_ = base::ChildProcess::Start({.command = std::move(command),
                                        .environment = environment_,
                                        .folder = std::filesystem::current_path(),
                                        .dies_with_parent = true});
  started_ = std::chrono::steady_clock::now();
  due_ = Deadline::Never();
  spdlog::debug("{} started (process {})", name_, process_->pid());
}

void Supervised::Tend() {
  if (given_up_) return;
  if (process_) {
    const auto ended = process_->Wait(Deadline::After(milliseconds(0)));
    if (!ended) return;
    process_.reset();
    if (ended->code == static_cast<int>(ExitCode::kUsage) ||
        ended->code == static_cast<int>(ExitCode::kRefused)) {
      given_up_ = ended->code;
      return;
    }
    if (std::chrono::steady_clock::now() - started_ > kSettled) delay_ = milliseconds(0);
    delay_ = std::clamp(delay_ * 2, kFirstDelay, kLastDelay);
    due_ = Deadline::After(delay_);
    spdlog::warn("{} ended with {}; it is started again in {} s", name_, ended->ToString(),
                 delay_.count() / 1000);
  } else if (due_.passed()) {
    Start();
  }
}

int Supervised::pid_fd() const { return process_ ? process_->pid_fd() : -1; }

void Supervised::Signal(int signal) {
  if (process_) process_->Signal(signal);
}

void Supervised::Stop(milliseconds limit) {
  if (!process_) return;
  process_->Signal(SIGTERM);
  if (!process_->Wait(Deadline::After(limit))) {
    spdlog::warn("{} did not stop in time and is killed", name_);
  }
  process_.reset();
}

}  // namespace tidemark::cli
