// Rows of text as an aligned table for people. Widths count characters of UTF-8, not bytes.
#pragma once

#include <string>
#include <vector>

namespace tidemark::cli {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> headings) : rows_{std::move(headings)} {}
  /// `cells` are as many as there are headings.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.size() == 1; }
  /// Lines with their newline, each indented by `indent` blanks.
  std::string ToString(int indent = 0) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// 1234567 as "1,234,567".
std::string Grouped(long long number);
/// Bytes as "1.4 GB", with a unit that leaves few digits.
std::string BytesText(long long bytes);

}  // namespace tidemark::cli
