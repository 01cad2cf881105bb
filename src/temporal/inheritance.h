// Which mirrored tables inherit from which (INHERITS, no partitions), as the store keeps it: a row
// of tidemark.inheritance over the txs of a link, and for as long as it is open a link of the
// tables that users see (ALTER TABLE child INHERIT parent), so that a SELECT of the parent reads
// the rows of its heirs. What changes columns takes the links of its table off first, since ALTER
// TABLE would reach the heirs as well, and puts them on again. docs/design/0014-inheritance.md.
//
// Everything is inside the caller's transaction. Takes ACCESS EXCLUSIVE locks on heirs' tables that
// users see, in the order in which a reader of a parent locks them. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pg/connection.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

/// The rows of one dataset are shown by another.
struct InheritanceLink {
  int child = 0, parent = 0;
  auto operator<=>(const InheritanceLink&) const = default;
};

/// A link that cannot be put on, and why.
struct MisfitLink {
  InheritanceLink link;
  std::string reason;
};

/// The links of a journal that have not ended.
std::vector<InheritanceLink> LoadLinks(pg::Connection& store, int journal);

/// Ends and begins links at `tx`, and makes the functions anew that read parents at an instant. One
/// that cannot be put on does not begin and is in the answer.
std::vector<MisfitLink> ChangeLinks(pg::Connection& store, int journal,
                                    const std::vector<InheritanceLink>& ended,
                                    const std::vector<InheritanceLink>& begun, int64_t tx);

/// Locks the tables that users see of everything that links connect with the dataset, then takes
/// the dataset's own links off, those to parents and those to heirs. True if it has any.
bool TakeOffLinks(pg::Connection& store, int dataset);

/// Puts on what is open and off, of one dataset or, without one, of the journal; what does not fit
/// stays off and is in the answer.
std::vector<MisfitLink> PutOnLinks(pg::Connection& store, int journal, int dataset = 0);

/// Whether a link of the journal is open and off.
bool AnyLinkOff(pg::Connection& store, int journal);

/// Of `columns`, those that no heir of the dataset has NULLs in.
std::vector<std::string> RefusedByHeirs(pg::Connection& store, const Dataset& dataset,
                                        const std::vector<std::string>& columns);

}  // namespace tidemark::temporal
