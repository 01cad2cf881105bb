// One decoder over a sequence of messages, each behind a length of two bytes. Every borrowed byte
// is touched, so that a view outside the input is seen by the address sanitizer.
#include "wire/pgoutput.h"

#include "base/error.h"

namespace {

using namespace tidemark::wire;  // NOLINT: a fuzz target is one file
using namespace tidemark::wire::pgoutput;

uint64_t sum = 0;

void Touch(std::string_view bytes) {
  for (const char c : bytes) sum += static_cast<unsigned char>(c);
}
void Touch(Tuple tuple) {
  for (const TupleField& field : tuple) Touch(field.value);
}

struct Toucher {
  void operator()(const Insert& m) const { Touch(m.new_tuple); }
  void operator()(const Update& m) const {
    Touch(m.old_tuple);
    Touch(m.new_tuple);
  }
  void operator()(const Delete& m) const { Touch(m.old_tuple); }
  void operator()(const Relation& m) const {
    Touch(m.schema);
    Touch(m.name);
    for (const RelationColumn& column : m.columns) Touch(column.name);
  }
  void operator()(const Truncate& m) const {
    for (const RelationOid oid : m.relations) sum += oid;
  }
  void operator()(const Type& m) const { Touch(m.name); }
  void operator()(const Origin& m) const { Touch(m.name); }
  void operator()(const LogicalMessage& m) const {
    Touch(m.prefix);
    Touch(m.content);
  }
  template <typename Other>
  void operator()(const Other& m) const {
    if constexpr (requires { m.gid; }) Touch(m.gid);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader in({reinterpret_cast<const char*>(data), size});
  Decoder decoder;
  try {
    while (in.remaining() > 0) {
      const std::string_view bytes = in.ReadBytes(in.ReadU16());
      try {
        std::visit(Toucher(), decoder.Decode(bytes));
      } catch (const tidemark::base::Error&) {
      }
    }
  } catch (const tidemark::base::Error&) {
  }
  return 0;
}
