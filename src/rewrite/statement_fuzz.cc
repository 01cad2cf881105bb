// Any text at all: Analyze and Render may refuse it with a base::Error, and nothing else may
// happen.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "rewrite/statement.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace tidemark;
  const std::string_view sql(reinterpret_cast<const char*>(bytes), size);
  try {
    const auto statement = rewrite::Statement::Analyze(sql);
    if (!statement) return 0;
    std::vector<rewrite::Resolution> resolutions(
        statement->references().size(),
        {rewrite::Resolution::Kind::kVersioned, {"public", "t"}, {}});
    const auto rewritten = statement->Render({.resolutions = resolutions});
    for (int position = 1; position < 64; position += 7) rewritten.positions.ToClient(position);
    const std::vector<std::string> evaluated(statement->evaluable_instants().size(), "2026-01-01");
    statement->Render({.resolutions = resolutions, .evaluated = evaluated});
  } catch (const base::Error&) {
    return 0;
  }
  return 0;
}
