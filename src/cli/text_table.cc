#include "cli/text_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark::cli {

namespace {

size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string TextTable::ToString(int indent) const {
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line(static_cast<size_t>(indent), ' ');
    for (size_t i = 0; i < widths.size(); ++i) {
      line += row[i];
      if (i + 1 < widths.size()) line.append(widths[i] - Width(row[i]) + 2, ' ');
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

std::string Grouped(long long number) {
  std::string digits = std::to_string(number);
  const size_t first = digits.starts_with('-') ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string BytesText(long long bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  double amount = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    if (amount < 1000) break;
    amount /= 1000;
    unit = next;
  }
  return fmt::format("{:.1f} {}", amount, unit);
}

}  // namespace tidemark::cli
