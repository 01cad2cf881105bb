#include "tests/calls/receiver.h"

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace tidemark::tests {

using namespace std::chrono_literals;

Receiver::Receiver(std::vector<std::string> behaviours, std::vector<std::string> tls) {
  const auto port_file = folder_.path() / "port";
  base::ChildProcess::Options options{
      .command = {"/usr/bin/env", "python3", TIDEMARK_SOURCE_DIR "/tests/calls/receiver.py",
                  kSecret, log().string(), port_file.string()},
      .dies_with_parent = true};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    options.environment.emplace_back(*variable);
  }
  if (!tls.empty()) {
    options.command.emplace_back("--tls");
    options.command.insert(options.command.end(), tls.begin(), tls.end());
  }
  options.command.insert(options.command.end(), behaviours.begin(), behaviours.end());
  process_.emplace(base::ChildProcess::Start(options));
  const auto deadline = base::Deadline::After(30s);
  while (!std::filesystem::exists(port_file)) {
    if (deadline.passed()) throw std::runtime_error("the receiver does not start");
    std::this_thread::sleep_for(10ms);
  }
  std::ifstream(port_file) >> port_;
}

std::vector<nlohmann::json> Receiver::Requests() const {
  std::vector<nlohmann::json> requests;
  std::ifstream in(log());
  // A line without its end is still being written.
  for (std::string line; std::getline(in, line) && !in.eof();) {
    requests.push_back(nlohmann::json::parse(line));
  }
  return requests;
}

std::vector<std::string> Receiver::Arrivals() const {
  std::vector<std::string> arrivals;
  for (const auto& request : Requests()) {
    const auto id = request["event"]["id"].get<std::string>();
    if (arrivals.empty() || arrivals.back() != id) arrivals.push_back(id);
  }
  return arrivals;
}

}  // namespace tidemark::tests
