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

// nullptr: it was unknown, and is.
Prepared::ChangePointer Prepared::Set(bool portal, std::string_view name, Statement statement) {
  Names& names = portal ? portals_ : statements_;
  Statement before = Find(names, name);
  if (!before && !statement) return nullptr;
  if (statement) {
    names.insert_or_assign(std::string(name), std::move(statement));
  } else {
    Erase(names, name);
  }
  return std::make_shared<const Change>(Change{portal, std::string(name), std::move(before)});
}

Prepared::ChangePointer Prepared::OnParse(std::string_view name, Statement statement) {
  return Set(false, name, std::move(statement));
}

Prepared::ChangePointer Prepared::OnBind(std::string_view portal, std::string_view name) {
  return Set(true, portal, FindStatement(name));
}

Prepared::ChangePointer Prepared::OnClose(char kind, std::string_view name) {
  return Set(kind != 'S', name, nullptr);
}

void Prepared::Undo(const Change& change) { Set(change.portal, change.name, change.before); }

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
