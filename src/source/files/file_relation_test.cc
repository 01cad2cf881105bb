#include "source/files/file_relation.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.h"

namespace tidemark::source {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using Rows = std::vector<std::string>;

class FileRelation : public testing::Test {
 protected:
  FileRelation() {
    std::string name = (fs::temp_directory_path() / "tidemark-files-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = name;
  }
  ~FileRelation() override { fs::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }

  // A stream file with one int column of this type, or of strings.
  template <typename Builder, typename Value>
  void WriteArrow(const std::string& name, const std::string& column, Value value) {
    Builder builder;
    ASSERT_TRUE(builder.Append(value).ok());
    const auto array = builder.Finish().ValueOrDie();
    const auto schema = arrow::schema({arrow::field(column, array->type())});
    const auto out = arrow::io::FileOutputStream::Open((folder_ / name).string()).ValueOrDie();
    const auto writer = arrow::ipc::MakeStreamWriter(out, schema).ValueOrDie();
    ASSERT_TRUE(writer->WriteRecordBatch(*arrow::RecordBatch::Make(schema, 1, {array})).ok());
    ASSERT_TRUE(writer->Close().ok());
  }

  std::unique_ptr<SourceRelation> Open(const std::string& pattern) {
    return OpenFileRelation({(folder_ / pattern).string()});
  }

  // "name type" of each column.
  Rows Columns(const std::string& pattern) {
    Rows columns;
    for (const auto& column : Open(pattern)->Describe({}).columns) {
      columns.push_back(column.column.name + " " + column.column.type_sql);
    }
    return columns;
  }

  // Each row's values, NULL as "-", joined by "|".
  Rows Read(const std::string& pattern) {
    const auto relation = Open(pattern);
    const auto reader = relation->ReadAll({}, {});
    Rows rows;
    for (;;) {
      Step step = reader->Next({});
      if (const auto* end = std::get_if<End>(&step)) {
        position_ = end->position;
        return rows;
      }
      const auto& batch = *std::get<Batch>(step).rows;
      for (int64_t row = 0; row < batch.num_rows(); ++row) {
        std::string line;
        for (int i = 1; i < batch.num_columns(); ++i) {
          const auto value = batch.column(i)->GetScalar(row).ValueOrDie();
          line += (i > 1 ? "|" : "") + (value->is_valid ? value->ToString() : std::string("-"));
        }
        rows.push_back(line);
      }
    }
  }

  static base::Error ErrorOf(const std::function<void()>& act) {
    try {
      act();
    } catch (const base::Error& error) {
      return error;
    }
    ADD_FAILURE() << "no error";
    return base::Error(base::kInternalError, "no error");
  }

  fs::path folder_;
  Position position_;
};

TEST_F(FileRelation, CsvColumnsGetTheTypeInWhichEveryValueComesBack) {
  Write("a.csv",
        "i,n,zip,b,d,ts,tz,t,empty\n"
        "1,1.10,007,true,2026-11-28,2026-11-28 12:00:00,2026-11-28T12:00:00Z,x,\n"
        "-9223372036854775808,18446744073709551616,12,false,0001-01-01,"
        "2026-11-28T12:00:00.123456,2026-11-28 12:00:00.5+02:00,\"\",\n"
        ",,,,,,,\"a \"\"b\"\",\nc\",\n");
  EXPECT_THAT(Columns("a.csv"),
              ElementsAre("i bigint", "n numeric", "zip text", "b boolean", "d date",
                          "ts timestamp without time zone", "tz timestamp with time zone",
                          "t text", "empty text"));
  EXPECT_THAT(Read("a.csv"),
              ElementsAre("1|1.10|007|true|2026-11-28|2026-11-28 12:00:00.000000|"
                          "2026-11-28 12:00:00.000000Z|x|-",
                          "-9223372036854775808|18446744073709551616|12|false|0001-01-01|"
                          "2026-11-28 12:00:00.123456|2026-11-28 10:00:00.500000Z||-",
                          "-|-|-|-|-|-|-|a \"b\",\nc|-"));
}

TEST_F(FileRelation, ACsvColumnIsTextAsSoonAsOneValueIsNotExact) {
  Write("a.csv", "a,b,c,d\n1,1.5,true,-0\n01,1e5,1,1\n");
  EXPECT_THAT(Columns("a.csv"), ElementsAre("a text", "b text", "c text", "d text"));
  EXPECT_THAT(Read("a.csv"), ElementsAre("1|1.5|true|-0", "01|1e5|1|1"));
}

TEST_F(FileRelation, JsonLinesKeepEveryDigit) {
  Write("a.ndjson",
        "{\"i\": 1, \"n\": 18446744073709551623, \"f\": 1e-3, \"s\": "
        "\"\\u00e9\\ud83d\\ude00\\n\"}\n"
        "\n"
        "{\"s\": null, \"i\": 2, \"f\": 1.50, \"nested\": {\"a\": [1, \"}\"]}, \"m\": 1, \"b\": "
        "true}\n"
        "{\"nested\": null, \"m\": \"x\", \"n\": 0}");
  EXPECT_THAT(Columns("a.ndjson"), ElementsAre("i bigint", "n numeric", "f numeric", "s text",
                                               "nested json", "m json", "b boolean"));
  EXPECT_THAT(Read("a.ndjson"),
              ElementsAre("1|18446744073709551623|0.001|é😀\n|-|-|-",
                          "2|-|1.50|-|{\"a\": [1, \"}\"]}|1|true", "-|0|-|-|-|\"x\"|-"));
}

TEST_F(FileRelation, ALineThatIsNoObjectIsRefusedByItsNumber) {
  for (const char* line :
       {"[1]", "{\"a\": 1", "{\"a\": 01}", "{\"a\": 1} x", "{\"a\": 1, \"a\": 2}", "{\"a\": [}",
        "{\"a\": \"\\ud800\"}", "{\"a\" 1}", "{\"a\": nul}", "{\"a\": \"x}"}) {
    Write("a.jsonl", std::string("{\"a\": \"fine\"}\n") + line + "\n");
    const base::Error error = ErrorOf([&] { Read("a.jsonl"); });
    EXPECT_EQ(error.state().view(), "22P02") << line << error.Full();
    EXPECT_THAT(error.context(), ElementsAre(HasSubstr("line 2 of file"))) << line;
  }
}

TEST_F(FileRelation, FilesOfAPatternAreOneRelationByName) {
  Write("p-1.csv", "id,a\n1,x\n");
  Write("p-2.csv", "id,b\n2.5,y\n");
  Write("other.csv", "z\n1\n");
  EXPECT_THAT(Columns("p-*.csv"), ElementsAre("id numeric", "a text", "b text"));
  EXPECT_THAT(Read("p-*.csv"), ElementsAre("1|x|-", "2.5|-|y"));
  ASSERT_EQ(position_.facts.size(), 8U);
  EXPECT_THAT(position_.facts[0].value, HasSubstr("p-1.csv"));
  EXPECT_EQ(position_.facts[1], (Fact{"size", "9"}));
  // printf 'id,a\n1,x\n' | sha256sum
  EXPECT_EQ(position_.facts[3],
            (Fact{"sha256", "a2eb6c238e77d61f04c4bf428f848169a51590eda8201b7b982a20adeda49ee2"}));
  EXPECT_THAT(position_.facts[4].value, HasSubstr("p-2.csv"));
}

TEST_F(FileRelation, ATypeConflictNamesColumnAndBothFiles) {
  WriteArrow<arrow::Int32Builder>("a-1.arrows", "x", 1);
  WriteArrow<arrow::StringBuilder>("a-2.arrows", "x", "one");
  const base::Error error = ErrorOf([&] { Read("a-*.arrows"); });
  EXPECT_EQ(error.state(), base::kDatatypeMismatch);
  EXPECT_THAT(error.message(), testing::AllOf(HasSubstr("\"x\" is int32"), HasSubstr("a-1"),
                                              HasSubstr("string"), HasSubstr("a-2")));
}

TEST_F(FileRelation, AFileChangedWhileItIsReadIsRefusedByName) {
  const std::string path = Write("a.csv", "id\n1\n2\n");
  const std::pair<const char*, std::function<void()>> changes[] = {
      {"appended", [&] { std::ofstream(path, std::ios::app) << "3\n"; }},
      {"replaced",
       [&] {
         Write("b.csv", "id\n1\n2\n");
         fs::rename(folder_ / "b.csv", path);
       }},
      {"removed", [&] { fs::remove(path); }}};
  for (const auto& [what, change] : changes) {
    Write("a.csv", "id\n1\n2\n");
    const auto relation = Open("a.csv");
    const auto reader = relation->ReadAll({}, {});
    ASSERT_TRUE(std::holds_alternative<Batch>(reader->Next({})));
    change();
    const base::Error error = ErrorOf([&] { reader->Next({}); });
    EXPECT_TRUE(error.state() == base::kNotInPrerequisiteState ||
                (error.state() == base::kIoError && std::string(what) == "removed"))
        << what << error.Full();
    EXPECT_THAT(error.message(), HasSubstr("a.csv")) << what;
    EXPECT_EQ(ErrorOf([&] { reader->Next({}); }).message(), error.message());
  }
}

TEST_F(FileRelation, WhatHasNoTypeIsRefusedWithEveryColumnNamed) {
  const auto type = arrow::dense_union({arrow::field("a", arrow::int8())});
  const auto schema = arrow::schema({arrow::field("fine", arrow::int8()), arrow::field("u", type),
                                     arrow::field("v", arrow::list(type))});
  const auto out = arrow::io::FileOutputStream::Open((folder_ / "u.arrow").string()).ValueOrDie();
  const auto writer = arrow::ipc::MakeFileWriter(out, schema).ValueOrDie();
  ASSERT_TRUE(writer->Close().ok());
  ASSERT_TRUE(out->Close().ok());
  const auto relation = Open("u.arrow");
  const base::Error error = ErrorOf([&] { relation->ReadAll({}, {}); });
  EXPECT_EQ(error.state(), base::kFeatureNotSupported);
  EXPECT_THAT(error.message(), testing::AllOf(HasSubstr("\"u\""), HasSubstr("\"v\"")));
  EXPECT_EQ(relation->Check({}, {}).at(0).state, base::kFeatureNotSupported);
}

TEST_F(FileRelation, WhatIsNotThereOrNotKnownIsRefused) {
  Write("a.xlsx", "x");
  EXPECT_EQ(ErrorOf([&] { Read("a.xlsx"); }).state(), base::kFeatureNotSupported);
  Write("a.parquet", "no parquet at all");
  const base::Error error = ErrorOf([&] { Read("a.parquet"); });
  EXPECT_EQ(error.state().view(), "22000");
  EXPECT_THAT(error.message(), HasSubstr("a.parquet"));
  EXPECT_EQ(ErrorOf([&] { Read("b-*.csv"); }).state(), base::kUndefinedTable);
  EXPECT_EQ(ErrorOf([&] { Read("b.csv"); }).state(), base::kUndefinedTable);
  fs::create_directory(folder_ / "folder.csv");
  EXPECT_EQ(ErrorOf([&] { Read("folder.csv"); }).state(), base::kWrongObjectType);
  EXPECT_EQ(ErrorOf([&] { OpenFileRelation({"ftp://host/a.csv"})->Describe({}); }).state(),
            base::kFeatureNotSupported);
  Write("twice.csv", "a,a\n1,2\n");
  EXPECT_EQ(ErrorOf([&] { Read("twice.csv"); }).state().view(), "42701");
  Write("ragged.csv", "a,b\n1,2\n3\n");
  EXPECT_EQ(ErrorOf([&] { Read("ragged.csv"); }).state().view(), "22000");
}

}  // namespace
}  // namespace tidemark::source
