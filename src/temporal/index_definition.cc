#include "temporal/index_definition.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/identifier.h"

namespace tidemark::temporal {

namespace {

// The text after one identifier, quoted or not.
std::string_view AfterIdentifier(std::string_view text) {
  size_t i = 0;
  if (!text.empty() && text[0] == '"') {
    for (i = 1; i < text.size(); ++i) {
      if (text[i] != '"') continue;
      if (i + 1 < text.size() && text[i + 1] == '"') {
        ++i;
        continue;
      }
      return text.substr(i + 1);
    }
    return {};
  }
  while (i < text.size() && text[i] != ' ' && text[i] != '.') ++i;
  return text.substr(i);
}

bool Take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

}  // namespace

std::string IndexDefinitionFor(std::string_view definition, std::string_view name,
                               std::string_view table, bool unique) {
  std::string_view rest = definition;
  bool ok = Take(rest, "CREATE ");
  Take(rest, "UNIQUE ");
  ok = ok && Take(rest, "INDEX ");
  rest = AfterIdentifier(rest);
  ok = ok && Take(rest, " ON ");
  Take(rest, "ONLY ");
  rest = AfterIdentifier(rest);
  if (Take(rest, ".")) rest = AfterIdentifier(rest);
  if (!ok || !rest.starts_with(" USING ")) {
    throw base::Error(base::kInternalError,
                      fmt::format("cannot read index definition: {}", definition));
  }
  return fmt::format("CREATE {}INDEX {} ON {}{}", unique ? "UNIQUE " : "",
                     base::QuoteIdentifier(name), table, rest);
}

}  // namespace tidemark::temporal
