#include "http/base64.h"

#include <gtest/gtest.h>

namespace tidemark::http {
namespace {

// RFC 4648, section 10.
TEST(Base64, WritesAndReadsTheVectorsOfItsRfc) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(EncodeBase64(bytes), text);
    EXPECT_EQ(DecodeBase64(text), bytes);
  }
}

TEST(Base64, EveryByteComesBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes += static_cast<char>(i);
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)), bytes);
  }
}

TEST(Base64, PaddingMayBeLeftOutAndOtherCharactersMayNotStandThere) {
  EXPECT_EQ(DecodeBase64("Zm8"), "fo");
  EXPECT_EQ(DecodeBase64("Zg"), "f");
  for (const char* text :
       {"Z", "Zm9vY", "Zm9v ", "Zm-_", "Zg=", "Z===", "====", "Zm=v", "Zg==Zg=="}) {
    EXPECT_EQ(DecodeBase64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tidemark::http
