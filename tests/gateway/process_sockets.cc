#include "tests/gateway/process_sockets.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

namespace tidemark::tests {

namespace {

namespace fs = std::filesystem;

constexpr const char* kListening = "0A";

std::vector<std::string> Words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// "0100007F:1F90": address and port in hexadecimal.
uint16_t PortOf(const std::string& address) {
  return static_cast<uint16_t>(std::stoul(address.substr(address.rfind(':') + 1), nullptr, 16));
}

// Every line of a table of /proc/PID/net but its heading, as words.
template <typename Take>
void ReadTable(int pid, const char* table, Take take) {
  std::ifstream in(fmt::format("/proc/{}/net/{}", pid, table));
  std::string line;
  for (std::getline(in, line); std::getline(in, line);) take(Words(line));
}

using ByInode = std::map<std::string, ProcessSocket>;

ByInode ReadTables(int pid) {
  ByInode known;
  for (const char* table : {"tcp", "tcp6"}) {
    ReadTable(pid, table, [&](const std::vector<std::string>& words) {
      known[words.at(9)] = {.kind = words.at(3) == kListening ? ProcessSocket::Kind::kListens
                                                              : ProcessSocket::Kind::kConnected,
                            .local_port = PortOf(words.at(1)),
                            .remote_port = PortOf(words.at(2)),
                            .path = {}};
    });
  }
  ReadTable(pid, "unix", [&](const std::vector<std::string>& words) {
    known[words.at(6)] = {.kind = ProcessSocket::Kind::kLocal,
                          .path = words.size() > 7 ? words[7] : ""};
  });
  ReadTable(pid, "netlink", [&](const std::vector<std::string>& words) {
    known[words.back()] = {.kind = ProcessSocket::Kind::kKernel, .path = {}};
  });
  for (const char* table : {"udp", "udp6", "raw", "raw6"}) {
    ReadTable(pid, table, [&](const std::vector<std::string>& words) {
      known[words.at(9)] = {.kind = ProcessSocket::Kind::kOther, .path = table};
    });
  }
  return known;
}

// Of each descriptor that is a socket.
std::vector<std::string> Inodes(int pid) {
  std::vector<std::string> inodes;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid), gone)) {
    const auto target = fs::read_symlink(entry.path(), gone).string();
    if (target.starts_with("socket:[")) inodes.push_back(target.substr(8, target.size() - 9));
  }
  return inodes;
}

}  // namespace

std::vector<ProcessSocket> SocketsOf(int pid) {
  const auto inodes = Inodes(pid);
  const auto known = ReadTables(pid);
  std::vector<ProcessSocket> sockets;
  for (const auto& inode : inodes) {
    const auto found = known.find(inode);
    if (found != known.end()) sockets.push_back(found->second);
  }
  return sockets;
}

}  // namespace tidemark::tests
