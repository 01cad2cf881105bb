#include "gateway/prepared.h"

namespace tidemark::gateway {
namespace {

void Erase(auto& names, std::string_view name) {
  if (const auto found = names.find(name); found != names.end()) names.erase(found);
}

Prepared::Statement Find(const auto& names, std::string_view name) {
  const auto found = names.find(name);
  return found == names.end() ? nullptr : found->second;
}

}  // namespace

void Prepared::OnParse(std::string_view name, Statement statement) {
  const Statement old = FindStatement(name);
  if (old && old->settles && !name.empty() && !(statement && statement->settles)) return;
  if (statement) {
    statements_.insert_or_assign(std::string(name), std::move(statement));
  } else {
    Erase(statements_, name);
  }
}

Prepared::Statement Prepared::OnBind(std::string_view portal, std::string_view name) {
  Statement statement = FindStatement(name);
  if (statement) {
    portals_.insert_or_assign(std::string(portal), statement);
  } else {
    Erase(portals_, portal);
  }
  return statement;
}

void Prepared::OnClose(char kind, std::string_view name) {
  Erase(kind == 'S' ? statements_ : portals_, name);
}

void Prepared::OnQuery() {
  OnClose('S', "");
  OnClose('P', "");
}

Prepared::Statement Prepared::FindStatement(std::string_view name) const {
  return Find(statements_, name);
}

Prepared::Statement Prepared::FindPortal(std::string_view name) const {
  return Find(portals_, name);
}

}  // namespace tidemark::gateway
