#include "source/adbc/table_name.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"

namespace tidemark::source {

namespace {

constexpr std::string_view kBacktickVendors[] = {"MySQL", "MariaDB", "BigQuery", "Databricks",
                                                 "Spark", "Hive",    "Impala"};

}  // namespace

TableName TableName::Parse(std::string_view text) {
  std::vector<std::string> parts(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      if (quoted && i + 1 < text.size() && text[i + 1] == '"') {
        parts.back() += '"';
        ++i;
      } else {
        quoted = !quoted;
      }
    } else if (text[i] == '.' && !quoted) {
      parts.emplace_back();
    } else {
      parts.back() += text[i];
    }
  }
  bool sound = !quoted && parts.size() <= 3;
  for (const std::string& part : parts) sound = sound && !part.empty();
  if (!sound) {
    throw base::Error(base::kSyntaxError, fmt::format("\"{}\" is not the name of a table", text));
  }
  parts.insert(parts.begin(), 3 - parts.size(), "");
  return {parts[0], parts[1], parts[2]};
}

std::string TableName::Quoted(char quote) const {
  std::string all;
  for (const std::string* part : {&catalog, &schema, &table}) {
    if (part->empty()) continue;
    if (!all.empty()) all += '.';
    all += QuoteName(*part, quote);
  }
  return all;
}

std::string QuoteName(std::string_view name, char quote) {
  std::string quoted(1, quote);
  for (const char c : name) {
    if (c == quote) quoted += c;
    quoted += c;
  }
  return quoted + quote;
}

char QuoteOf(std::string_view vendor) {
  for (const std::string_view name : kBacktickVendors) {
    if (vendor.find(name) != std::string_view::npos) return '`';
  }
  return '"';
}

}  // namespace tidemark::source
