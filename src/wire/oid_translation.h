// Type OIDs inside binary values: arrays and composites name the types of their parts by OID, and
// a user-defined type has another OID in the store than in the source. This replaces them in
// place. Not a reader of values: scalars are skipped by length. Layouts follow array_send,
// record_send, range_send and multirange_send; see docs/formats/copy-binary.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tidemark::wire {

/// The plan for one type, built once from both catalogs. A domain has its own OIDs and the kind
/// and children of its base type, as on the wire.
struct TypeNode {
  enum class Kind {
    kScalar,      // no children
    kArray,       // one child: the element type
    kComposite,   // one child per live column, in order
    kRange,       // one child: the subtype
    kMultirange,  // one child: the range type, of kind kRange
  };
  Kind kind = Kind::kScalar;
  uint32_t source_oid = 0;
  uint32_t store_oid = 0;
  std::vector<TypeNode> children;
};

/// True if some OID that values of this type may embed differs between source and store. The
/// type's own OID is not embedded.
bool NeedsTranslation(const TypeNode& type);

/// Replace every embedded source OID in `value`, the binary form of a non-NULL value of `type`,
/// by the store's. The length never changes. Throws 22P03 for a value that does not have the
/// layout of its type or embeds an OID other than the source's; it may then be half translated.
/// Throws XX000 for a plan with the wrong number of children. Cost: one visit per part.
void Translate(const TypeNode& type, std::span<char> value);

}  // namespace tidemark::wire
