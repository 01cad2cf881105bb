// Every reader of wire/message.h over arbitrary bytes: it answers or throws base::Error.
#include <cstdint>
#include <string_view>

#include "wire/message.h"

namespace {

template <typename Read>
void Try(Read&& read) {
  try {
    read();
  } catch (const tidemark::base::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  using namespace tidemark::wire;  // NOLINT: all of it is under test
  const std::string_view body(reinterpret_cast<const char*>(bytes), count);
  std::string out;
  Try([&] { ReadHeader(body); });
  Try([&] { StartupPacket::Read(body); });
  Try([&] { Query::Read(body).Write(out); });
  Try([&] { Parse::Read(body).Write(out); });
  Try([&] { BindNames::Read(body); });
  Try([&] { Bind::Read(body).Write(out); });
  Try([&] { Naming::Read(body).WriteClose(out); });
  Try([&] { Execute::Read(body).Write(out); });
  Try([&] {
    auto error = ErrorFields::Read(body);
    error.Set('P', "1");
    error.Write(out);
  });
  Try([&] { ReadyForQuery::Read(body).Write(out); });
  Try([&] { RowDescription::Read(body).Write(out); });
  Try([&] { DataRow::Read(body).Write(out); });
  Try([&] { CommandComplete::Read(body).Write(out); });
  return 0;
}
