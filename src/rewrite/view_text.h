// A view's definition with every versioned table in it, and in the views it reads, replaced.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "rewrite/statement.h"

namespace tidemark::rewrite {

/// Writes the SQL that stands for one relation: versioned, or a history view; with `only`, for its
/// own rows.
using RelationText = std::function<std::string(const Relation& relation, bool only)>;

/// `view` as a sub-select in brackets. Throws 0A000 without a position: the view, or one that it
/// reads, cannot be read at an instant.
std::string TextOfView(const base::QualifiedName& view, std::span<const ViewRelation> relations,
                       const RelationText& text_of);

}  // namespace tidemark::rewrite
