// Which type the values of a text column have, learnt from all of them: the narrowest type in which
// every value comes back as it was written. "007" is text, "1.10" numeric with its scale.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "columnar/field_type.h"
#include "source/reader.h"

namespace tidemark::source {

/// What the values seen so far have in common.
class TextType {
 public:
  /// A CSV field that is not NULL.
  void SeeText(std::string_view value);
  /// What a JSON value is.
  void SeeBool() { seen_ |= kBoolBit; }
  void SeeNumber(std::string_view text);
  void SeeString() { seen_ |= kTextBit; }
  void SeeJson() { seen_ |= kJsonBit; }

  /// The PostgreSQL type for a CSV column; text when nothing was seen.
  columnar::PostgresColumn CsvColumn(const std::string& name) const;
  /// For a JSON column: json when the values are of several kinds.
  columnar::PostgresColumn JsonColumn(const std::string& name) const;

 private:
  enum Bit : unsigned {
    kBoolBit = 1,
    kIntBit = 2,
    kNumericBit = 4,
    kDateBit = 8,
    kTimestampBit = 16,
    kTimestamptzBit = 32,
    kTextBit = 64,
    kJsonBit = 128,
  };
  unsigned seen_ = 0;
};

/// The columns of text files in the order in which they were first met.
struct TextTypes {
  std::vector<std::string> names;
  std::map<std::string, TextType> types;

  TextType& At(const std::string& name);
};

/// -?digits[.digits] without leading zeros: exact as numeric.
bool IsPlainNumber(std::string_view text);

/// A JSON number as plain digits, its exponent worked in: "1e-3" is "0.001". Throws 22003 for an
/// exponent beyond ±1000.
std::string PlainNumber(std::string_view text);

}  // namespace tidemark::source
