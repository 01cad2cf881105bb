#include "columnar/numeric.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "wire/hex_literal.h"

namespace tidemark::columnar {
namespace {

using wire::operator""_hex;

std::string BytesOf(std::string_view text) {
  std::string bytes;
  WriteNumericText(text, bytes);
  return bytes;
}

std::string StateOfText(std::string_view text) {
  try {
    BytesOf(text);
  } catch (const base::Error& error) {
    return error.state().str();
  }
  return "no error";
}

TEST(Numeric, TextAndBytesAreWhatPostgresWrote) {
  // numeric_out and numeric_send of PostgreSQL 15.
  const std::pair<std::string, std::string> values[] = {
      {"20", "0001 0000 0000 0000 0014"_hex},
      {"17.685", "0002 0000 0000 0003 0011 1ac2"_hex},
      {"NaN", "0000 0000 c000 0000"_hex},
      {"Infinity", "0000 0000 d000 0020"_hex},
      {"-Infinity", "0000 0000 f000 0020"_hex},
      {"0", "0000 0000 0000 0000"_hex},
      {"0.00", "0000 0000 0000 0002"_hex},
      {"1.00", "0001 0000 0000 0002 0001"_hex},
      {"-1.5", "0002 0000 4000 0001 0001 1388"_hex},
      {"12345678.9", "0003 0001 0000 0001 04d2 162e 2328"_hex},
      {"10000", "0001 0001 0000 0000 0001"_hex},
      {"100000000", "0001 0002 0000 0000 0001"_hex},
      {"0.0001", "0001 ffff 0000 0004 0001"_hex},
      {"0.00000000000000000001", "0001 fffb 0000 0014 0001"_hex},
      {"0." + std::string(999, '0') + "1", "0001 ff06 0000 03e8 0001"_hex},
  };
  for (const auto& [text, bytes] : values) {
    EXPECT_EQ(Numeric::Read(bytes).Text(), text);
    EXPECT_EQ(BytesOf(text), bytes) << text;
  }
}

TEST(Numeric, TheLargestNumberIsHeldInFull) {
  const std::string text = std::string(131072, '9') + "." + std::string(16383, '9');
  const std::string bytes = BytesOf(text);
  EXPECT_EQ(bytes.substr(0, 8), "9000 7fff 0000 3fff"_hex);
  EXPECT_EQ(Numeric::Read(bytes).Text(), text);
  EXPECT_EQ(StateOfText("1" + text), "22003");
  EXPECT_EQ(StateOfText(text + "9"), "22003");
}

TEST(Numeric, EveryTextOfRandomDigitsComesBack) {
  std::mt19937 random(20261129);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    const auto append_digits = [&](uint32_t count) {
      // Mostly zeros and nines, so that groups begin, end and vanish everywhere.
      for (uint32_t k = 0; k < count; ++k) text += "0099900012345678"[random() % 16];
    };
    append_digits(1 + random() % 14);
    text.erase(0, std::min(text.find_first_not_of('0'), text.size() - 1));
    if (random() % 4 != 0) {
      text += '.';
      append_digits(1 + random() % 14);
    }
    if (random() % 2 == 0 && text.find_first_of("123456789") != std::string::npos) {
      text.insert(0, 1, '-');
    }
    const std::string bytes = BytesOf(text);
    ASSERT_EQ(Numeric::Read(bytes).Text(), text);
  }
}

TEST(Numeric, TextOfOtherFormsIsRefusedOrMadeNormal) {
  EXPECT_EQ(BytesOf("007"), BytesOf("7"));
  EXPECT_EQ(BytesOf("-0.0"), BytesOf("0.0"));
  EXPECT_EQ(BytesOf("5."), BytesOf("5"));
  for (const char* text : {"", "-", ".5", "1e5", " 1", "1 ", "+1", "1.2.3", "nan", "0x1", "--1"}) {
    EXPECT_EQ(StateOfText(text), "22P02") << text;
  }
}

TEST(Numeric, BytesThatNoServerSendsAreRefused) {
  const std::string values[] = {
      ""_hex,
      "0001 0000 0000 0000"_hex,            // a group is missing
      "0000 0000 0000 0000 00"_hex,         // a byte too many
      "0001 0000 0000 0000 2710"_hex,       // group 10000
      "0001 0000 0000 0000 ffff"_hex,       // group -1
      "0002 0001 0000 0000 0000 0001"_hex,  // zeros in front
      "0002 0001 0000 0000 0001 0000"_hex,  // zeros at the end
      "0001 ffff 0000 0003 0001"_hex,       // digits behind the scale
      "0001 fff0 0000 0001 0001"_hex,       // groups behind the scale
      "0000 0000 4000 0000"_hex,            // negative zero
      "0000 0001 0000 0000"_hex,            // a zero with weight
      "0000 0000 8000 0000"_hex,            // no such sign
      "0000 0000 0000 4000"_hex,            // scale 16384
      "0001 0000 c000 0000 0001"_hex,       // NaN with digits
  };
  for (const std::string& bytes : values) {
    try {
      Numeric::Read(bytes);
      ADD_FAILURE() << testing::PrintToString(bytes);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.state(), base::kInvalidBinary);
    }
  }
}

}  // namespace
}  // namespace tidemark::columnar
