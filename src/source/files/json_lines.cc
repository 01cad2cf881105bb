#include "source/files/json_lines.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/utf8.h>
#include <fmt/format.h>

#include <charconv>
#include <set>
#include <utility>

#include "base/error.h"
#include "columnar/arrow_status.h"
#include "columnar/type_oid.h"
#include "source/files/file_format.h"
#include "source/files/line_reader.h"

namespace tidemark::source {

namespace {

constexpr int64_t kBatchRows = 4096;
constexpr size_t kBatchBytes = 4 << 20;
constexpr int64_t kLinesPerCheck = 1024;
constexpr base::SqlState kInvalidText{"22P02"};

base::Error NotJson(std::string_view what) {
  return base::Error(kInvalidText, fmt::format("invalid JSON: {}", what));
}

// Reads forward over one line.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  void SkipBlanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool AtEnd() const { return at_ == text_.size(); }
  void Expect(char c) {
    SkipBlanks();
    if (Peek() != c) {
      throw NotJson(fmt::format("'{}' expected at byte {}", c, at_ + 1));
    }
    ++at_;
  }
  // Up to and with the closing quote.
  std::string_view String() {
    const size_t begin = at_;
    for (Expect('"'); at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        return text_.substr(begin, at_ - begin);
      }
    }
    throw NotJson("a string has no end");
  }
  std::string_view Nested() {
    const size_t begin = at_;
    std::string open;
    do {
      switch (Peek()) {
        case '"':
          String();
          continue;
        case '{':
        case '[':
          open.push_back(Peek());
          break;
        case '}':
        case ']':
          if (open.back() != (Peek() == '}' ? '{' : '[')) throw NotJson("brackets do not match");
          open.pop_back();
          break;
        default:
          break;
      }
      if (AtEnd()) throw NotJson("an object or array has no end");
      ++at_;
    } while (!open.empty());
    return text_.substr(begin, at_ - begin);
  }
  std::string_view Word() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_.substr(at_, 1).find_first_of(",}] \t\r") != 0) ++at_;
    return text_.substr(begin, at_ - begin);
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

bool IsNumber(std::string_view word) {
  const size_t e = word.find_first_of("eE");
  if (e == std::string_view::npos) return IsPlainNumber(word);
  std::string_view exponent = word.substr(e + 1);
  if (exponent.starts_with('-') || exponent.starts_with('+')) exponent.remove_prefix(1);
  return IsPlainNumber(word.substr(0, e)) && !exponent.empty() &&
         exponent.find_first_not_of("0123456789") == std::string_view::npos;
}

uint32_t Hex4(std::string_view text, size_t at) {
  uint32_t unit = 0;
  if (at + 4 > text.size()) throw NotJson("an escape has no end");
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + 4, unit, 16);
  if (error != std::errc() || end != text.data() + at + 4) throw NotJson("a bad \\u escape");
  return unit;
}

void AppendUtf8(uint32_t point, std::string& out) {
  const auto byte = [&](uint32_t bits) { out.push_back(static_cast<char>(bits)); };
  if (point < 0x80) return byte(point);
  if (point < 0x800) {
    byte(0xc0 | (point >> 6));
  } else {
    if (point < 0x10000) {
      byte(0xe0 | (point >> 12));
    } else {
      byte(0xf0 | (point >> 18));
      byte(0x80 | ((point >> 12) & 0x3f));
    }
    byte(0x80 | ((point >> 6) & 0x3f));
  }
  byte(0x80 | (point & 0x3f));
}

// One column being built.
class ColumnBuilder {
 public:
  explicit ColumnBuilder(const columnar::PostgresColumn& column)
      : type_(column.type), field_(columnar::FieldOf(column)) {
    builder_ = columnar::Take(arrow::MakeBuilder(field_->type()));
  }
  const std::shared_ptr<arrow::Field>& field() const { return field_; }

  // Returns the bytes that it takes.
  size_t Append(JsonKind kind, std::string_view raw) {
    ++rows_;
    if (kind == JsonKind::kNull) {
      columnar::Check(builder_->AppendNull());
      return 1;
    }
    switch (type_) {
      case columnar::kBool:
        columnar::Check(static_cast<arrow::BooleanBuilder&>(*builder_).Append(raw == "true"));
        return 1;
      case columnar::kInt8: {
        int64_t value = 0;
        std::from_chars(raw.data(), raw.data() + raw.size(), value);
        columnar::Check(static_cast<arrow::Int64Builder&>(*builder_).Append(value));
        return sizeof value;
      }
      case columnar::kNumeric:
        return AppendText(PlainNumber(raw));
      case columnar::kText:
        return AppendText(Unescape(raw));
      default:
        return AppendText(raw);
    }
  }
  // NULL in the rows that did not have the member.
  void FillUpTo(int64_t rows) {
    columnar::Check(builder_->AppendNulls(rows - rows_));
    rows_ = rows;
  }
  std::shared_ptr<arrow::Array> Finish() {
    rows_ = 0;
    return columnar::Take(builder_->Finish());
  }

 private:
  size_t AppendText(std::string_view text) {
    columnar::Check(static_cast<arrow::StringBuilder&>(*builder_).Append(text));
    return text.size();
  }

  uint32_t type_;
  std::shared_ptr<arrow::Field> field_;
  std::unique_ptr<arrow::ArrayBuilder> builder_;
  int64_t rows_ = 0;
};

class JsonLinesReader final : public arrow::RecordBatchReader {
 public:
  JsonLinesReader(std::shared_ptr<arrow::io::InputStream> input, const std::string& path,
                  const TextTypes& types)
      : path_(path), lines_(std::move(input), path) {
    arrow::FieldVector fields;
    for (const std::string& name : types.names) {
      place_[name] = columns_.size();
      columns_.emplace_back(types.types.at(name).JsonColumn(name));
      fields.push_back(columns_.back().field());
    }
    schema_ = arrow::schema(std::move(fields));
  }

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }

  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    int64_t rows = 0;
    size_t bytes = 0;
    std::string_view line;
    while (rows < kBatchRows && bytes < kBatchBytes && lines_.Next(line)) {
      ++rows;
      bytes += AppendLine(line, rows);
    }
    *out = nullptr;
    if (rows == 0) return arrow::Status::OK();
    arrow::ArrayVector arrays;
    for (ColumnBuilder& column : columns_) arrays.push_back(column.Finish());
    *out = arrow::RecordBatch::Make(schema_, rows, std::move(arrays));
    return arrow::Status::OK();
  }

 private:
  size_t AppendLine(std::string_view line, int64_t row) {
    size_t bytes = 0;
    try {
      VisitMembers(line, [&](std::string&& name, JsonKind kind, std::string_view raw) {
        const auto at = place_.find(name);
        if (at == place_.end()) {
          throw base::Error(base::kNotInPrerequisiteState,
                            fmt::format("field \"{}\" was not there before", name));
        }
        bytes += columns_[at->second].Append(kind, raw);
      });
    } catch (base::Error& error) {
      error.AddContext(fmt::format("line {} of file \"{}\"", lines_.number(), path_));
      throw;
    }
    for (ColumnBuilder& column : columns_) column.FillUpTo(row);
    return bytes;
  }

  std::string path_;
  LineReader lines_;
  std::map<std::string, size_t> place_;
  std::vector<ColumnBuilder> columns_;
  std::shared_ptr<arrow::Schema> schema_;
};

}  // namespace

void VisitMembers(
    std::string_view line,
    const std::function<void(std::string&&, JsonKind, std::string_view)>& visit) {
  if (!arrow::util::ValidateUTF8(line)) {
    throw base::Error(base::kCharacterNotInRepertoire, "text that is not in UTF-8");
  }
  Cursor cursor(line);
  std::set<std::string> names;
  cursor.Expect('{');
  cursor.SkipBlanks();
  if (cursor.Peek() == '}') {
    cursor.Expect('}');
  } else {
    for (char next = ','; next == ',';) {
      cursor.SkipBlanks();
      std::string name = Unescape(cursor.String());
      if (!names.insert(name).second) throw NotJson(fmt::format("field \"{}\" stands twice", name));
      cursor.Expect(':');
      cursor.SkipBlanks();
      if (cursor.Peek() == '"') {
        visit(std::move(name), JsonKind::kString, cursor.String());
      } else if (cursor.Peek() == '{' || cursor.Peek() == '[') {
        visit(std::move(name), JsonKind::kNested, cursor.Nested());
      } else {
        const std::string_view word = cursor.Word();
        const bool is_bool = word == "true" || word == "false";
        if (!is_bool && word != "null" && !IsNumber(word)) {
          throw NotJson(fmt::format("\"{}\" is no value", word));
        }
        visit(std::move(name),
              is_bool          ? JsonKind::kBool
              : word == "null" ? JsonKind::kNull
                               : JsonKind::kNumber,
              word);
      }
      cursor.SkipBlanks();
      next = cursor.Peek();
      cursor.Expect(next == ',' ? ',' : '}');
    }
  }
  cursor.SkipBlanks();
  if (!cursor.AtEnd()) throw NotJson("something stands behind the object");
}

std::string Unescape(std::string_view quoted) {
  const std::string_view text = quoted.substr(1, quoted.size() - 2);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) < 0x20) throw NotJson("a control character in a string");
    if (text[i] != '\\') {
      out.push_back(text[i]);
      continue;
    }
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const char letter = text[++i];
    if (const size_t at = kLetters.find(letter); at != std::string_view::npos) {
      out.push_back(kMeanings[at]);
      continue;
    }
    if (letter != 'u') throw NotJson("an unknown escape");
    uint32_t point = Hex4(text, i + 1);
    i += 4;
    if (point >= 0xd800 && point < 0xdc00) {
      if (text.substr(i + 1, 2) != "\\u") throw NotJson("half a surrogate pair");
      const uint32_t low = Hex4(text, i + 3);
      if (low < 0xdc00 || low > 0xdfff) throw NotJson("half a surrogate pair");
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
      i += 6;
    } else if (point >= 0xdc00 && point <= 0xdfff) {
      throw NotJson("half a surrogate pair");
    }
    AppendUtf8(point, out);
  }
  return out;
}

void LearnJsonTypes(std::shared_ptr<arrow::io::InputStream> input, const std::string& path,
                    const Limit& limit, TextTypes& types) {
  arrow::util::InitializeUTF8();
  LineReader lines(std::move(input), path);
  std::string_view line;
  while (lines.Next(line)) {
    if (lines.number() % kLinesPerCheck == 1) limit.Check();
    try {
      VisitMembers(line, [&](std::string&& name, JsonKind kind, std::string_view raw) {
        TextType& type = types.At(name);
        switch (kind) {
          case JsonKind::kNull:
            break;
          case JsonKind::kBool:
            return type.SeeBool();
          case JsonKind::kNumber:
            return type.SeeNumber(raw);
          case JsonKind::kString:
            return type.SeeString();
          case JsonKind::kNested:
            return type.SeeJson();
        }
      });
    } catch (base::Error& error) {
      error.AddContext(fmt::format("line {} of file \"{}\"", lines.number(), path));
      throw;
    }
  }
}

std::shared_ptr<arrow::RecordBatchReader> OpenJsonLines(
    std::shared_ptr<arrow::io::InputStream> input, const std::string& path,
    const TextTypes& types) {
  return std::make_shared<JsonLinesReader>(std::move(input), path, types);
}

}  // namespace tidemark::source
