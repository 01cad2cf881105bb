#include "wire/bytes.h"

#include <gtest/gtest.h>

#include "wire/hex_literal.h"

namespace tidemark::wire {
namespace {

using base::Error;

TEST(ByteWriter, IntegersStandInNetworkOrder) {
  std::string out = "before";
  ByteWriter writer(out);
  writer.WriteU8(0xfe);
  writer.WriteI16(-2);
  writer.WriteI32(0x01020304);
  writer.WriteI64(-1);
  writer.WriteU64(0x0102030405060708);
  writer.WriteString("ab");
  EXPECT_EQ(out, "before" + "fe fffe 01020304 ffffffffffffffff 0102030405060708 616200"_hex);
}

TEST(ByteWriter, PatchReplacesThePlaceholder) {
  std::string out = "x";
  ByteWriter writer(out);
  const size_t at = writer.size();
  writer.WriteI32(0);
  writer.WriteI16(0);
  writer.WriteBytes("tail");
  writer.PatchI32(at, 10);
  writer.PatchI16(at + 4, -1);
  EXPECT_EQ(out, "x" + "0000000a ffff"_hex + "tail");
}

TEST(ByteWriter, TextWithNulIsRefused) {
  std::string out;
  try {
    ByteWriter(out).WriteString(std::string_view("a\0b", 3));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.state(), base::kInvalidParameter);
  }
  EXPECT_EQ(out, "");
}

TEST(ByteReader, ReadsBackWhatWasWritten) {
  std::string out;
  ByteWriter writer(out);
  writer.WriteU8(255);
  writer.WriteU16(65535);
  writer.WriteI16(-32768);
  writer.WriteU32(4'000'000'000);
  writer.WriteI32(-7);
  writer.WriteU64(~0ULL);
  writer.WriteI64(INT64_MIN);
  writer.WriteString("");
  writer.WriteString("né");
  writer.WriteBytes(std::string_view("\0x", 2));
  writer.WriteChar('z');

  ByteReader in(out);
  EXPECT_EQ(in.ReadU8(), 255);
  EXPECT_EQ(in.ReadU16(), 65535);
  EXPECT_EQ(in.ReadI16(), -32768);
  EXPECT_EQ(in.ReadU32(), 4'000'000'000);
  EXPECT_EQ(in.ReadI32(), -7);
  EXPECT_EQ(in.ReadU64(), ~0ULL);
  EXPECT_EQ(in.ReadI64(), INT64_MIN);
  EXPECT_EQ(in.ReadString(), "");
  EXPECT_EQ(in.ReadString(), "né");
  EXPECT_EQ(in.ReadBytes(2), std::string_view("\0x", 2));
  EXPECT_EQ(in.ReadRest(), "z");
  EXPECT_EQ(in.remaining(), 0);
  EXPECT_EQ(in.offset(), out.size());
  EXPECT_NO_THROW(in.ExpectEnd());
}

TEST(ByteReader, ShortReadNamesTheOffsetAndReadsNothing) {
  const std::string bytes = "00 01 02 03 04"_hex;
  ByteReader in(bytes);
  in.ReadU16();
  try {
    in.ReadU32();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.state(), base::kProtocolViolation);
    EXPECT_EQ(error.message(), "message is too short: 4 bytes needed at offset 2, 3 left");
  }
  EXPECT_EQ(in.offset(), 2);
  EXPECT_EQ(in.ReadBytes(3), "\x02\x03\x04");
}

TEST(ByteReader, ThrowsTheStateOfItsFormat) {
  ByteReader in("x", base::kInvalidBinary);
  try {
    in.ReadI64();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.state(), base::kInvalidBinary);
  }
}

TEST(ByteReader, TextWithoutEndIsRefused) {
  ByteReader in("abc");
  EXPECT_THROW(in.ReadString(), Error);
  EXPECT_EQ(in.remaining(), 3);
}

TEST(ByteReader, BytesLeftOverAreRefusedOnRequest) {
  ByteReader in("abc");
  in.ReadU8();
  EXPECT_THROW(in.ExpectEnd(), Error);
}

TEST(ByteReader, NoBytesAtAllIsAnOrdinaryInput) {
  ByteReader in{std::string_view()};
  EXPECT_THROW(in.ReadU8(), Error);
  EXPECT_THROW(in.ReadString(), Error);
  EXPECT_EQ(in.ReadRest(), "");
  EXPECT_NO_THROW(in.ExpectEnd());
}

TEST(ByteReader, LengthBeyondTheAddressSpaceIsShort) {
  ByteReader in("abc");
  EXPECT_THROW(in.ReadBytes(SIZE_MAX), Error);
}

}  // namespace
}  // namespace tidemark::wire
