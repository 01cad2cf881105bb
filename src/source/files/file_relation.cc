#include "source/files/file_relation.h"

#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/error.h"
#include "columnar/batch_cutter.h"
#include "source/arrow_shape.h"
#include "source/files/file_format.h"
#include "source/files/file_set.h"
#include "source/files/schema_union.h"

namespace tidemark::source {

namespace {

constexpr char kExtensionPrefix[] = "ARROW:extension:";

// Without metadata but that of extensions: what a file says about PostgreSQL's types was true in
// another server.
std::shared_ptr<arrow::Schema> Plain(const arrow::Schema& schema) {
  arrow::FieldVector fields;
  for (const auto& field : schema.fields()) {
    auto kept = std::make_shared<arrow::KeyValueMetadata>();
    if (const auto metadata = field->metadata()) {
      for (int64_t i = 0; i < metadata->size(); ++i) {
        if (metadata->key(i).starts_with(kExtensionPrefix)) {
          kept->Append(metadata->key(i), metadata->value(i));
        }
      }
    }
    fields.push_back(kept->size() > 0 ? field->WithMetadata(kept) : field->RemoveMetadata());
  }
  return arrow::schema(std::move(fields));
}

// What is to be read: the files as listed, and their columns.
struct Plan {
  FileSet set;
  TextTypes types;
  std::shared_ptr<arrow::Schema> fields;
};

std::shared_ptr<arrow::RecordBatchReader> OpenBatches(const Plan& plan, const SourceFile& file,
                                                      int64_t rows_max) {
  const FileFormat format = FormatOf(file.path);
  const auto opened = plan.set.Open(file);
  return HasTypes(format) ? OpenTyped(format, file.path, opened, rows_max)
                          : OpenText(format, file.path, opened, plan.types);
}

std::shared_ptr<Plan> MakePlan(const std::string& pattern, const Limit& limit) {
  auto plan = std::make_shared<Plan>(Plan{FileSet(pattern, limit), {}, nullptr});
  for (const SourceFile& file : plan->set.files()) {
    const FileFormat format = FormatOf(file.path);
    if (HasTypes(format)) continue;
    LearnTypes(format, file.path, plan->set.Open(file), limit, plan->types);
    plan->set.ExpectUnchanged(file);
  }
  SchemaUnion all;
  for (const SourceFile& file : plan->set.files()) {
    limit.Check();
    const bool typed = HasTypes(FormatOf(file.path));
    const auto schema = OpenBatches(*plan, file, 1)->schema();
    all.Add(file.path, typed ? *Plain(*schema) : *schema);
  }
  plan->fields = all.schema();
  return plan;
}

class FileReader final : public Reader {
 public:
  FileReader(std::shared_ptr<Plan> plan, RelationShape shape, const ReadOptions& options)
      : plan_(std::move(plan)),
        shape_(std::move(shape)),
        first_ordinal_(options.first_ordinal),
        rows_max_(options.limits.rows_max),
        cutter_(plan_->fields, options.limits, options.first_ordinal) {}

  const RelationShape& shape() const override { return shape_; }

  Step Next(const Limit& limit) override {
    if (error_) throw *error_;
    if (end_) return *end_;
    try {
      return Pull(limit);
    } catch (base::Error& error) {
      error_ = error;
      throw;
    }
  }

 private:
  Step Pull(const Limit& limit) {
    for (;;) {
      limit.Check();
      const int64_t first = cutter_.next_ordinal();
      if (auto rows = cutter_.Take()) return Batch{std::move(rows), first};
      if (batches_ == nullptr) {
        if (at_ == plan_->set.files().size()) break;
        batches_ = OpenBatches(*plan_, plan_->set.files()[at_], rows_max_);
      }
      const SourceFile& file = plan_->set.files()[at_];
      std::shared_ptr<arrow::RecordBatch> batch;
      CheckFile(batches_->ReadNext(&batch), file.path);
      if (batch != nullptr) {
        cutter_.Give(Aligned(plan_->fields, *batch));
        continue;
      }
      batches_ = nullptr;
      Conclude(file, limit);
      ++at_;
    }
    end_ = End{position_, cutter_.next_ordinal() - first_ordinal_};
    return *end_;
  }

  void Conclude(const SourceFile& file, const Limit& limit) {
    const std::string digest = plan_->set.Digest(file, limit);
    plan_->set.ExpectUnchanged(file);
    position_.facts.push_back({"file", file.path});
    position_.facts.push_back({"size", std::to_string(file.size)});
    position_.facts.push_back({"modified_at", file.modified_at});
    if (!digest.empty()) position_.facts.push_back({"sha256", digest});
    if (!file.etag.empty()) position_.facts.push_back({"etag", file.etag});
  }

  std::shared_ptr<Plan> plan_;
  RelationShape shape_;
  int64_t first_ordinal_, rows_max_;
  columnar::BatchCutter cutter_;
  size_t at_ = 0;
  std::shared_ptr<arrow::RecordBatchReader> batches_;  // of the file at_
  Position position_;
  std::optional<End> end_;
  std::optional<base::Error> error_;
};

class FileRelation final : public SourceRelation {
 public:
  explicit FileRelation(FileOptions options) : options_(std::move(options)) {}

  std::string Display() const override { return options_.pattern; }

  RelationShape Describe(const Limit& limit) override {
    return ShapeOfFields(Display(), MakePlan(options_.pattern, limit)->fields);
  }

  std::vector<Problem> Check(const Declaration& declaration, const Limit& limit) override {
    try {
      auto problems = CheckColumns(Display(), Describe(limit), declaration);
      if (!declaration.cursor.empty()) {
        const base::Error refusal = NoCursor();
        problems.push_back({Severity::kRefusesTable, Display(), refusal.message(), refusal.hint(),
                            refusal.state()});
      }
      return problems;
    } catch (const base::Error& error) {
      if (error.IsTransient()) throw;
      return {{Severity::kRefusesTable, Display(), error.message(), error.hint(), error.state()}};
    }
  }

  std::unique_ptr<Reader> ReadAll(const ReadOptions& options, const Limit& limit) override {
    auto plan = MakePlan(options_.pattern, limit);
    RelationShape shape = ShapeOfFields(Display(), plan->fields);
    return std::make_unique<FileReader>(std::move(plan), std::move(shape), options);
  }

  std::unique_ptr<Reader> ReadSince(const CursorPlan&, const ReadOptions&, const Limit&) override {
    throw NoCursor();
  }

 private:
  base::Error NoCursor() const {
    return base::Error(base::kFeatureNotSupported,
                       fmt::format("files cannot be read by cursor: {}", Display()))
        .Hint("Use strategy snapshot.");
  }

  FileOptions options_;
};

}  // namespace

std::unique_ptr<SourceRelation> OpenFileRelation(FileOptions options) {
  return std::make_unique<FileRelation>(std::move(options));
}

}  // namespace tidemark::source
