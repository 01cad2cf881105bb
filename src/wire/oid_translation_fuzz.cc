// The input's beginning describes a type, its rest is a value of it. A value that translates must
// translate back to itself.
#include "wire/oid_translation.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "base/error.h"
#include "wire/bytes.h"

namespace {

using namespace tidemark::wire;  // NOLINT: a fuzz target is one file

// `parts_left` bounds the whole plan.
TypeNode ReadType(ByteReader& in, int depth, int& parts_left) {
  const uint8_t byte = in.ReadU8();
  TypeNode type;
  type.kind = depth == 0 ? TypeNode::Kind::kScalar : static_cast<TypeNode::Kind>(byte % 8);
  type.source_oid = byte >> 4;
  type.store_oid = type.source_oid + 100;
  const bool leaf = type.kind == TypeNode::Kind::kScalar || type.kind >= TypeNode::Kind::kText;
  const int parts = leaf                                      ? 0
                    : type.kind == TypeNode::Kind::kComposite ? in.ReadU8() % 4
                                                              : 1;
  for (int i = 0; i < parts && parts_left-- > 0; ++i) {
    type.children.push_back(ReadType(in, depth - 1, parts_left));
  }
  return type;
}

TypeNode Inverse(TypeNode type) {
  std::swap(type.source_oid, type.store_oid);
  for (TypeNode& child : type.children) child = Inverse(child);
  return type;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    ByteReader in({reinterpret_cast<const char*>(data), size});
    int parts_left = 30;
    const TypeNode type = ReadType(in, 4, parts_left);
    const std::string original(in.ReadRest());
    std::string value = original;
    Translate(type, value);
    if (!NeedsTranslation(type) && value != original) std::abort();
    try {
      Translate(Inverse(type), value);
    } catch (const tidemark::base::Error&) {
      std::abort();
    }
    if (value != original) std::abort();
  } catch (const tidemark::base::Error&) {
  }
  return 0;
}
