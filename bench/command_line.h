// The options of a measuring program. Each names the variable it sets, whose value before is the
// default that --help shows.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tidemark::bench {

class CommandLine {
 public:
  explicit CommandLine(const std::string& description);
  ~CommandLine();

  void Add(const std::string& name, int64_t& value, const std::string& meaning);
  void Add(const std::string& name, std::vector<std::string>& values, const std::string& meaning);
  void Add(const std::string& name, bool& flag, const std::string& meaning);
  /// Reads the arguments. Ends the program on --help and on a usage error.
  void Read(int argc, char** argv);

  // What every program has.
  std::string json_file;        // --json
  std::string folder = "/tmp";  // --folder: clusters are made in it; set as TMPDIR by Read
  std::string tidemark;         // --tidemark: the program that is measured
  bool quick = false;           // --quick
  int64_t minutes_max = 60;     // --minutes-max
  std::vector<std::string> store_settings;  // --store-setting
  std::chrono::minutes limit() const { return std::chrono::minutes(minutes_max); }

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace tidemark::bench
