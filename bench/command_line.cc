#include "bench/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>

namespace tidemark::bench {

CommandLine::CommandLine(const std::string& description)
    : tidemark(TIDEMARK_BINARY), app_(std::make_unique<CLI::App>(description)) {
  app_->option_defaults()->always_capture_default();
  app_->add_option("--json", json_file, "also write the figures as JSON")->type_name("FILE");
  app_->add_option("--folder", folder, "where the clusters are made")->type_name("DIR");
  app_->add_option("--tidemark", tidemark, "the program to measure")->type_name("FILE");
  app_->add_flag("--quick", quick, "a small run, to see that it works");
  app_->add_option("--minutes-max", minutes_max, "give up after so many minutes");
  app_->add_option("--store-setting", store_settings, "a line for both stores' postgresql.conf");
}

CommandLine::~CommandLine() = default;

void CommandLine::Add(const std::string& name, int64_t& value, const std::string& meaning) {
  app_->add_option(name, value, meaning);
}

void CommandLine::Add(const std::string& name, std::vector<std::string>& values,
                      const std::string& meaning) {
  app_->add_option(name, values, meaning);
}

void CommandLine::Add(const std::string& name, bool& flag, const std::string& meaning) {
  app_->add_flag(name, flag, meaning);
}

void CommandLine::Read(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app_->exit(error));
  }
  tidemark = std::filesystem::absolute(tidemark);  // it runs in another folder
  ::setenv("TMPDIR", folder.c_str(), 1);
}

}  // namespace tidemark::bench
