#include "wire/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::wire {
namespace {

using testing::ElementsAre;

std::string_view BodyOf(std::string_view message, char type) {
  const auto header = ReadHeader(message);
  EXPECT_EQ(header->type, type);
  EXPECT_EQ(header->body_bytes + MessageHeader::kBytes, message.size());
  return message.substr(MessageHeader::kBytes);
}

TEST(Header, IsReadOnceFiveBytesAreThere) {
  EXPECT_FALSE(ReadHeader(std::string_view("Q\0\0\0", 4)).has_value());
  const auto header = ReadHeader(std::string_view("Q\0\0\0\x09", 5));
  EXPECT_EQ(header->type, 'Q');
  EXPECT_EQ(header->body_bytes, 5u);
}

TEST(Header, RefusesLengthsThatNoMessageHas) {
  EXPECT_THROW(ReadHeader(std::string_view("Q\0\0\0\3", 5)), base::Error);
  EXPECT_THROW(ReadHeader("FATAL"), base::Error);
}

TEST(Message, QueryAndParseReadWhatWasWritten) {
  std::string out;
  Query{"select 1"}.Write(out);
  EXPECT_EQ(out, std::string("Q\0\0\0\x0dselect 1\0", 14));
  EXPECT_EQ(Query::Read(BodyOf(out, 'Q')).text, "select 1");

  out.clear();
  const std::string_view types("\0\1\0\0\0\x17", 6);
  Parse{"s", "select $1", types}.Write(out);
  const Parse parse = Parse::Read(BodyOf(out, 'P'));
  EXPECT_EQ(parse.statement, "s");
  EXPECT_EQ(parse.text, "select $1");
  EXPECT_EQ(parse.parameter_types, types);
}

TEST(Message, ParseRefusesTypesThatAreMissing) {
  EXPECT_THROW(Parse::Read(std::string_view("s\0x\0\0\2\0\0\0\x17", 10)), base::Error);
  EXPECT_THROW(Parse::Read(std::string_view("s\0x\0", 4)), base::Error);
}

TEST(Message, BindReadsWhatWasWritten) {
  std::string out;
  Bind{"p", "s", {"one", std::nullopt, ""}}.Write(out);
  const std::string_view body = BodyOf(out, 'B');
  const Bind bind = Bind::Read(body);
  EXPECT_EQ(bind.portal, "p");
  EXPECT_EQ(bind.statement, "s");
  EXPECT_THAT(bind.values, ElementsAre("one", std::nullopt, ""));
  EXPECT_FALSE(BindNames::Read(body.substr(0, 3)).has_value());
  EXPECT_EQ(BindNames::Read(body.substr(0, 4))->statement, "s");
}

TEST(Message, ErrorFieldsKeepTheirOrderAndAreReplaced) {
  std::string out;
  ErrorFields{{{'S', "FEHLER"}, {'V', "ERROR"}, {'C', "42P01"}, {'P', "7"}}}.Write(out);
  ErrorFields error = ErrorFields::Read(BodyOf(out, 'E'));
  EXPECT_EQ(error.Find('S'), "FEHLER");
  EXPECT_FALSE(error.EndsConnection());
  error.Set('P', "");
  error.Set('C', "42809");
  error.Set('M', "no");
  EXPECT_EQ(error.Find('P'), "");
  EXPECT_EQ(error.fields.size(), 4u);
  EXPECT_THROW(ErrorFields::Read("Sno end"), base::Error);
}

TEST(Message, ErrorsOfOursHaveEveryField) {
  const auto fields = ErrorFields::From(
      base::Error(base::kSyntaxError, "no").Detail("Why.").Hint("How.").Position(3), "ERROR");
  EXPECT_EQ(fields.Find('C'), "42601");
  EXPECT_EQ(fields.Find('D'), "Why.");
  EXPECT_EQ(fields.Find('H'), "How.");
  EXPECT_EQ(fields.Find('P'), "3");
}

TEST(Message, RowsReadWhatWasWritten) {
  std::string out;
  RowDescription{{{"a", 25}, {"b", 20}}}.Write(out);
  const auto description = RowDescription::Read(BodyOf(out, 'T'));
  EXPECT_EQ(description.fields[1].name, "b");
  EXPECT_EQ(description.fields[1].type_oid, 20u);
  out.clear();
  DataRow{{"x", std::nullopt}}.Write(out);
  EXPECT_THAT(DataRow::Read(BodyOf(out, 'D')).values, ElementsAre("x", std::nullopt));
  EXPECT_THROW(DataRow::Read(std::string_view("\0\1\0\0\0\5x", 7)), base::Error);
}

TEST(StartupPacket, ReadsParametersOfProtocol3) {
  std::string out;
  WriteStartup(out, {{"user", "ada"}, {"options", "-c a=b"}}, 2);
  EXPECT_FALSE(StartupPacket::Read(std::string_view(out).substr(0, out.size() - 1)).has_value());
  const auto packet = StartupPacket::Read(out + "more");
  EXPECT_EQ(packet->kind, StartupPacket::Kind::kStartup);
  EXPECT_EQ(packet->minor, 2);
  EXPECT_EQ(packet->bytes, out.size());
  EXPECT_EQ(packet->Find("options"), "-c a=b");
  EXPECT_EQ(packet->Find("database"), std::nullopt);
}

TEST(StartupPacket, LeavesOtherProtocolsUnread) {
  const auto packet = StartupPacket::Read(std::string_view("\0\0\0\x0a\0\2\0\0xx", 10));
  EXPECT_EQ(packet->major, 2);
  EXPECT_TRUE(packet->parameters.empty());
}

}  // namespace
}  // namespace tidemark::wire
