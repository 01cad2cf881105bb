#include "base/sha256.h"

#include <gtest/gtest.h>

namespace tidemark::base {
namespace {

TEST(Sha256, IsTheHashOfAllThatWasAddedSinceTheLastOne) {
  Sha256 sha256;
  // FIPS 180-2, appendix B.1.
  sha256.Add("a");
  sha256.Add("bc");
  EXPECT_EQ(Hex(sha256.Finish()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(sha256.Finish()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace tidemark::base
