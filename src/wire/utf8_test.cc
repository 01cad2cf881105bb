#include "wire/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace tidemark::wire {
namespace {

using namespace std::string_literals;

std::string Replaced(std::string text) {
  ReplaceInvalidUtf8(text);
  return text;
}

TEST(Utf8, CharactersOfEveryLengthStay) {
  for (const auto& text : {""s, "plain"s, "\x7f"s, "\xc2\x80"s, "é"s, "\xdf\xbf"s, "\xe0\xa0\x80"s,
                           "€"s, "\xed\x9f\xbf"s, "\xee\x80\x80"s, "\xef\xbf\xbf"s, "\xf0\x90\x80\x80"s,
                           "😀"s, "\xf4\x8f\xbf\xbf"s, "a\0b"s}) {
    EXPECT_EQ(FindInvalidUtf8(text), std::string::npos) << text;
    EXPECT_EQ(Replaced(text), text);
  }
}

TEST(Utf8, EachByteThatIsNoCharacterBecomesAQuestionMarkInItsPlace) {
  EXPECT_EQ(Replaced("\xff"), "?");
  EXPECT_EQ(Replaced("a\xffz\xfe"), "a?z?");
  EXPECT_EQ(Replaced("caf\xe9"), "caf?");              // Latin-1
  EXPECT_EQ(Replaced("\xe9t\xe9"), "?t?");
  EXPECT_EQ(Replaced("\xc3"), "?");                    // cut short
  EXPECT_EQ(Replaced("\xe2\x82"), "??");
  EXPECT_EQ(Replaced("\xf0\x9f\x98"), "???");
  EXPECT_EQ(Replaced("\xe2\x82z"), "??z");
  EXPECT_EQ(Replaced("\x80\xbf"), "??");               // nothing before them
  EXPECT_EQ(Replaced("\xc0\x80\xc1\xbf"), "????");     // longer than need be
  EXPECT_EQ(Replaced("\xe0\x9f\xbf"), "???");
  EXPECT_EQ(Replaced("\xf0\x8f\xbf\xbf"), "????");
  EXPECT_EQ(Replaced("\xed\xa0\x80"), "???");          // a surrogate
  EXPECT_EQ(Replaced("\xf4\x90\x80\x80"), "????");     // beyond U+10FFFF
  EXPECT_EQ(Replaced("\xf5\x80\x80\x80"), "????");
  EXPECT_EQ(Replaced("\xc3\xc3\xa9"), "?é");           // the next character is not lost
}

TEST(Utf8, TheFirstInvalidByteIsFound) {
  EXPECT_EQ(FindInvalidUtf8("é\xff"), 2U);
  EXPECT_EQ(FindInvalidUtf8("\xff\xff", 1), 1U);
  EXPECT_EQ(FindInvalidUtf8("ab\xe2\x82"), 2U);
}

}  // namespace
}  // namespace tidemark::wire
