// The numbered SQL files of schema/, embedded at build time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark::temporal {

struct SchemaFile {
  std::string_view name;  // 0001_control.sql
  std::string sql;
};

/// In the order of their numbers.
const std::vector<SchemaFile>& SchemaFiles();

}  // namespace tidemark::temporal
