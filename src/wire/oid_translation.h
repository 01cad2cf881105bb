// Type OIDs inside binary values: arrays and composites name the types of their parts by OID, and
// a user-defined type has another OID in the store than in the source. This replaces them in
// place. Where the source sends text in no encoding that is known, the text inside is looked at,
// too: it must be UTF-8 in the store. Not a reader of values otherwise: scalars are skipped by
// length. Layouts follow array_send, record_send, range_send and multirange_send; see
// docs/formats/copy-binary.md.
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
    kText,           // no children: bytes that must be UTF-8
    kVersionedText,  // the same behind a byte that says in which version (jsonb)
    kFiniteInterval,  // no children: an interval that must not be infinite
  };
  Kind kind = Kind::kScalar;
  uint32_t source_oid = 0;
  uint32_t store_oid = 0;
  std::vector<TypeNode> children;
  bool replace = false;  // of text: '?' takes the place of each byte that is not UTF-8
};

/// True if some OID that values of this type may embed differs between source and store, or if text
/// or intervals in them are to be looked at. The type's own OID is not embedded.
bool NeedsTranslation(const TypeNode& type);

/// Replace every embedded source OID in `value`, the binary form of a non-NULL value of `type`,
/// by the store's, and what is not UTF-8 in its text, where that is wanted. The length never
/// changes. Throws 22P03 for a value that does not have the layout of its type or embeds an OID
/// other than the source's, 22021 for text that is not UTF-8, 22008 for an infinite interval; it
/// may then be half translated.
/// Throws XX000 for a plan with the wrong number of children. Cost: one visit per part.
void Translate(const TypeNode& type, std::span<char> value);

}  // namespace tidemark::wire
