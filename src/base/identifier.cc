#include "base/identifier.h"

#include "base/error.h"

namespace tidemark::base {

std::string QuoteIdentifier(std::string_view name) {
  if (name.empty() || name.find('\0') != std::string_view::npos) {
    throw Error(kInvalidParameter, "invalid name: names are not empty and hold no NUL byte");
  }
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out += '"';
}

std::string QuoteIdentifiers(const std::vector<std::string>& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + QuoteIdentifier(name);
  return list;
}

std::string QuoteLiteral(std::string_view value) {
  const bool escape = value.find('\\') != std::string_view::npos;
  std::string out = escape ? "E'" : "'";
  for (char c : value) {
    if (c == '\'' || c == '\\') out += c;
    out += c;
  }
  return out += '\'';
}

std::string QualifiedName::Quoted() const {
  return QuoteIdentifier(schema) + "." + QuoteIdentifier(name);
}

std::string QualifiedName::Display() const {
  return DisplayIdentifier(schema) + "." + DisplayIdentifier(name);
}

std::string DisplayIdentifier(std::string_view name) {
  bool plain = !name.empty() && ((name[0] >= 'a' && name[0] <= 'z') || name[0] == '_');
  for (char c : name) {
    plain = plain && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '$');
  }
  if (plain) return std::string(name);
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out += '"';
}

}  // namespace tidemark::base
