#include "wire/copy_binary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/hex_literal.h"

namespace tidemark::wire {
namespace {

using base::Error;
using Step = CopyBinaryReader::Step;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kHeader = "5047434f50590aff0d0a00 00000000 00000000"_hex;
const std::string kTrailer = "ffff"_hex;
const std::string kRow1 = "0002 00000004 00000001 00000001 61"_hex;
const std::string kRow2 = "0002 00000004 00000002 ffffffff"_hex;
const std::string kRow3 = "0002 00000004 00000003 00000000"_hex;
// COPY (VALUES (1,'a'), (2,NULL), (3,'')) as PostgreSQL 15 wrote it.
const std::string kThreeRows = kHeader + kRow1 + kRow2 + kRow3 + kTrailer;

using Row = std::vector<std::optional<std::string>>;
const std::vector<Row> kExpected = {
    {"00000001"_hex, "a"}, {"00000002"_hex, std::nullopt}, {"00000003"_hex, ""}};

// Takes every row that is there; the return value is kNeedMore or kEnd.
Step Drain(CopyBinaryReader& reader, std::vector<Row>& rows) {
  while (true) {
    const Step step = reader.Next();
    if (step != Step::kRow) return step;
    Row& row = rows.emplace_back();
    for (const CopyField& field : reader.fields()) {
      row.push_back(field ? std::optional<std::string>(*field) : std::nullopt);
    }
  }
}

// The chunk lives on the heap and only as long as the contract asks for.
Step FeedAndDrain(CopyBinaryReader& reader, std::string_view bytes, std::vector<Row>& rows) {
  const std::vector<char> chunk(bytes.begin(), bytes.end());
  reader.Feed({chunk.data(), chunk.size()});
  return Drain(reader, rows);
}

std::string MessageOf(std::string_view stream) {
  CopyBinaryReader reader;
  std::vector<Row> rows;
  try {
    FeedAndDrain(reader, stream, rows);
    reader.ExpectEnd();
  } catch (const Error& error) {
    EXPECT_EQ(error.state(), base::kProtocolViolation);
    return error.message();
  }
  return "no error";
}

TEST(CopyBinaryReader, ReadsWhatPostgresWrote) {
  CopyBinaryReader reader;
  std::vector<Row> rows;
  EXPECT_EQ(FeedAndDrain(reader, kThreeRows, rows), Step::kEnd);
  EXPECT_EQ(rows, kExpected);
  EXPECT_NO_THROW(reader.ExpectEnd());
  EXPECT_EQ(reader.Next(), Step::kEnd);
}

TEST(CopyBinaryReader, TwoChunksSplitAnywhereGiveTheSameRows) {
  for (size_t split = 0; split <= kThreeRows.size(); ++split) {
    CopyBinaryReader reader;
    std::vector<Row> rows;
    Step step = FeedAndDrain(reader, kThreeRows.substr(0, split), rows);
    EXPECT_EQ(step, split == kThreeRows.size() ? Step::kEnd : Step::kNeedMore);
    EXPECT_EQ(FeedAndDrain(reader, kThreeRows.substr(split), rows), Step::kEnd);
    EXPECT_EQ(rows, kExpected) << "split at " << split;
  }
}

TEST(CopyBinaryReader, ByteForByteGivesTheSameRows) {
  CopyBinaryReader reader;
  std::vector<Row> rows;
  for (const char byte : kThreeRows) FeedAndDrain(reader, {&byte, 1}, rows);
  EXPECT_NO_THROW(reader.ExpectEnd());
  EXPECT_EQ(rows, kExpected);
}

TEST(CopyBinaryReader, OneRowAChunkAsLibpqGivesThem) {
  CopyBinaryReader reader;
  std::vector<Row> rows;
  for (const std::string& chunk : {kHeader + kRow1, kRow2, kRow3}) {
    EXPECT_EQ(FeedAndDrain(reader, chunk, rows), Step::kNeedMore);
  }
  EXPECT_EQ(FeedAndDrain(reader, kTrailer, rows), Step::kEnd);
  EXPECT_EQ(rows, kExpected);
}

TEST(CopyBinaryReader, WholeRowIsBorrowedFromTheChunk) {
  CopyBinaryReader reader;
  reader.Feed(kThreeRows);
  ASSERT_EQ(reader.Next(), Step::kRow);
  EXPECT_EQ(reader.row_bytes(), kRow1);
  EXPECT_EQ(reader.row_bytes().data(), kThreeRows.data() + kHeader.size());
  ASSERT_EQ(reader.Next(), Step::kRow);
  EXPECT_EQ(reader.row_bytes(), kRow2);
}

TEST(CopyBinaryReader, RowBytesSurviveASplit) {
  CopyBinaryReader reader;
  {
    const std::string begin = kThreeRows.substr(0, kHeader.size() + 5);
    reader.Feed(begin);
    ASSERT_EQ(reader.Next(), Step::kNeedMore);
  }
  const std::string rest = kThreeRows.substr(kHeader.size() + 5);
  reader.Feed(rest);
  ASSERT_EQ(reader.Next(), Step::kRow);
  EXPECT_EQ(reader.row_bytes(), kRow1);
}

TEST(CopyBinaryReader, StreamTruncatedAtAnyByteIsRefusedAtItsEnd) {
  for (size_t size = 0; size < kThreeRows.size(); ++size) {
    EXPECT_THAT(MessageOf(kThreeRows.substr(0, size)), HasSubstr("the copy ended within its data"))
        << size;
  }
  EXPECT_EQ(MessageOf(kThreeRows), "no error");
}

TEST(CopyBinaryReader, EmptyTableHasNoRows) {
  CopyBinaryReader reader;
  std::vector<Row> rows;
  EXPECT_EQ(FeedAndDrain(reader, kHeader + kTrailer, rows), Step::kEnd);
  EXPECT_EQ(rows.size(), 0);
}

TEST(CopyBinaryReader, TableWithoutColumnsHasEmptyRows) {
  CopyBinaryReader reader;
  std::vector<Row> rows;
  EXPECT_EQ(FeedAndDrain(reader, kHeader + "0000 0000"_hex + kTrailer, rows), Step::kEnd);
  EXPECT_THAT(rows, ElementsAre(Row{}, Row{}));
}

TEST(CopyBinaryReader, HeaderExtensionIsSkippedAndLowFlagsAreIgnored) {
  const std::string header = "5047434f50590aff0d0a00 00000001 00000003 aabbcc"_hex;
  CopyBinaryReader reader;
  std::vector<Row> rows;
  for (const char byte : header + kRow1 + kTrailer) FeedAndDrain(reader, {&byte, 1}, rows);
  EXPECT_NO_THROW(reader.ExpectEnd());
  EXPECT_THAT(rows, ElementsAre(kExpected[0]));
}

TEST(CopyBinaryReader, ForeignBytesAreRefusedAtOnce) {
  EXPECT_THAT(MessageOf("1\tone\n"), HasSubstr("its signature differs"));
  EXPECT_THAT(MessageOf("5047434f50590a ff0a"_hex), HasSubstr("its signature differs"));
  EXPECT_THAT(MessageOf("5047434f50590aff0d0a00 00010000 00000000"_hex),
              HasSubstr("unknown critical flags 0x00010000"));
  EXPECT_THAT(MessageOf("5047434f50590aff0d0a00 00000000 ffffffff"_hex),
              HasSubstr("header extension of -1 bytes"));
}

TEST(CopyBinaryReader, ImpossibleCountsAndLengthsAreRefused) {
  EXPECT_EQ(MessageOf(kHeader + "fffe"_hex), "row 1 claims -2 fields");
  EXPECT_EQ(MessageOf(kHeader + kRow1 + "0002 00000001 61 fffffffe"_hex),
            "field 2 of row 2 has length -2");
  EXPECT_EQ(MessageOf(kHeader + kRow1 + "0003"_hex), "row 2 has 3 fields instead of 2");
  EXPECT_EQ(MessageOf(kThreeRows + "ff"_hex), "1 bytes after the end of the copy");
}

TEST(CopyBinaryReader, BytesInAChunkAfterTheEndAreRefused) {
  CopyBinaryReader reader;
  std::vector<Row> rows;
  FeedAndDrain(reader, kThreeRows, rows);
  EXPECT_THROW(FeedAndDrain(reader, "x", rows), Error);
}

TEST(CopyBinaryReader, ChunkGivenTooEarlyIsRefused) {
  CopyBinaryReader reader;
  reader.Feed(kThreeRows);
  ASSERT_EQ(reader.Next(), Step::kRow);
  EXPECT_THROW(reader.Feed(std::string_view("x")), Error);
}

TEST(CopyBinaryWriter, WritesWhatPostgresWrites) {
  std::string out;
  CopyBinaryWriter writer(out);
  writer.WriteHeader();
  writer.WriteRow(2);
  writer.WriteField("00000001"_hex);
  writer.WriteField("a");
  writer.WriteRow(2);
  writer.WriteField("00000002"_hex);
  writer.WriteField(std::nullopt);
  writer.WriteRow(2);
  const size_t begun = writer.BeginField();
  out += "00000003"_hex;
  writer.EndField(begun);
  writer.WriteField("");
  writer.WriteTrailer();
  EXPECT_EQ(out, kThreeRows);
}

}  // namespace
}  // namespace tidemark::wire
