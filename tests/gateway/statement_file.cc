#include "tests/gateway/statement_file.h"

#include <fstream>
#include <stdexcept>
#include <string_view>

namespace tidemark::tests {
namespace {

constexpr std::string_view kParameters = "-- parameters: ";

std::vector<std::optional<std::string>> Values(std::string_view text) {
  std::vector<std::optional<std::string>> values;
  while (true) {
    const size_t end = text.find('|');
    const auto value = text.substr(0, end);
    values.push_back(value == "NULL" ? std::nullopt : std::optional<std::string>(value));
    if (end == std::string_view::npos) return values;
    text.remove_prefix(end + 1);
  }
}

std::string Joined(const std::vector<std::string>& lines, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) text += (i == begin ? "" : "\n") + lines[i];
  return text;
}

FileStatement Statement(const std::vector<std::string>& lines, int first_line) {
  FileStatement statement{.line = first_line};
  size_t begin = 0, end = lines.size();
  for (; begin < end && lines[begin].starts_with("--"); ++begin) {
    if (lines[begin].starts_with(kParameters)) {
      statement.parameters = Values(std::string_view(lines[begin]).substr(kParameters.size()));
    }
  }
  const std::string& last = lines.back();
  if (last == "\\." || last == "\\f") {
    using CopyEnd = FileStatement::CopyEnd;
    statement.copy_end = last == "\\." ? CopyEnd::kDone : CopyEnd::kFail;
    for (size_t i = begin + 1; i + 1 < end; ++i) statement.copy_data += lines[i] + "\n";
    end = begin + 1;
  }
  for (size_t i = begin; i < end; ++i) {
    if (lines[i] != "==") continue;
    statement.by_hand = Joined(lines, i + 1, end);
    end = i;
  }
  statement.sql = Joined(lines, begin, end);
  return statement;
}

}  // namespace

std::vector<FileStatement> ReadStatements(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  std::vector<FileStatement> statements;
  std::vector<std::string> paragraph;
  int line = 0, first = 1;
  const auto flush = [&] {
    if (!paragraph.empty()) {
      auto statement = Statement(paragraph, first);
      // A paragraph of comments only says something about the file.
      if (!statement.sql.empty()) statements.push_back(std::move(statement));
    }
    paragraph.clear();
    first = line + 1;
  };
  for (std::string text; std::getline(in, text);) {
    ++line;
    if (text.empty()) {
      flush();
    } else {
      paragraph.push_back(text);
    }
  }
  flush();
  if (statements.empty()) throw std::runtime_error("no statement in " + file.string());
  return statements;
}

}  // namespace tidemark::tests
