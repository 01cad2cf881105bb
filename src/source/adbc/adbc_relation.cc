#include "source/adbc/adbc_relation.h"

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "base/error.h"
#include "columnar/batch_cutter.h"
#include "source/adbc/table_name.h"
#include "source/arrow_shape.h"
#include "source/cursor_value.h"

namespace tidemark::source {

namespace {

constexpr char kPostgresVendor[] = "PostgreSQL";

// The batches of the session's query, cut to bounds.
class AdbcReader final : public Reader {
 public:
  AdbcReader(AdbcSession& session, RelationShape shape,
             const std::shared_ptr<arrow::Schema>& fields, Position position,
             const ReadOptions& options, std::optional<CursorPlan> plan)
      : session_(session),
        shape_(std::move(shape)),
        position_(std::move(position)),
        first_ordinal_(options.first_ordinal),
        cutter_(fields, options.limits, options.first_ordinal),
        plan_(std::move(plan)) {}

  const RelationShape& shape() const override { return shape_; }

  Step Next(const Limit& limit) override {
    if (error_) throw *error_;
    if (end_) return *end_;
    try {
      return Pull(limit);
    } catch (const base::Error& error) {
      error_ = error;
      throw;
    }
  }

 private:
  Step Pull(const Limit& limit) {
    limit.Check();
    for (;;) {
      const int64_t first = cutter_.next_ordinal();
      if (auto rows = cutter_.Take()) return Batch{std::move(rows), first};
      auto batch = session_.Next(limit);
      if (batch == nullptr) break;
      if (plan_ && batch->num_rows() > 0) Remember(*batch);
      cutter_.Give(std::move(batch));
    }
    if (plan_) {
      position_.facts.push_back(
          {"cursor_to", position_.resume ? position_.resume->cursor : std::string()});
    }
    end_ = End{position_, cutter_.next_ordinal() - first_ordinal_};
    return *end_;
  }

  // Rows come in order, so the last one is where the next read goes on.
  void Remember(const arrow::RecordBatch& batch) {
    CursorPosition last{TextOf(batch, plan_->cursor), {}};
    for (const std::string& name : plan_->key) last.key.push_back(TextOf(batch, name));
    position_.resume = std::move(last);
  }

  static std::string TextOf(const arrow::RecordBatch& batch, const std::string& name) {
    return CursorText(*batch.GetColumnByName(name), batch.num_rows() - 1);
  }

  AdbcSession& session_;
  RelationShape shape_;
  Position position_;
  int64_t first_ordinal_;
  columnar::BatchCutter cutter_;
  std::optional<CursorPlan> plan_;
  std::optional<End> end_;
  std::optional<base::Error> error_;
};

class AdbcRelation final : public SourceRelation {
 public:
  explicit AdbcRelation(AdbcOptions options)
      : options_(std::move(options)),
        name_(options_.query.empty() ? TableName::Parse(options_.relation) : TableName{}),
        session_(options_.driver) {}

  std::string Display() const override {
    return options_.query.empty() ? options_.relation : "query";
  }

  RelationShape Describe(const Limit& limit) override {
    return ShapeOfFields(Display(), Fields(limit));
  }

  std::vector<Problem> Check(const Declaration& declaration, const Limit& limit) override {
    std::vector<Problem> problems;
    try {
      problems = CheckColumns(Display(), Describe(limit), declaration);
      if (!problems.empty()) return problems;
      if (!declaration.key.empty()) CheckUnique(declaration, limit, problems);
    } catch (const base::Error& error) {
      if (error.IsTransient()) throw;
      return {{Severity::kRefusesTable, Display(), error.message(), error.hint(), error.state()}};
    }
    if (!declaration.cursor.empty()) {
      problems.push_back({Severity::kNote, Display(),
                          "an ADBC source does not show which transactions are running, so that "
                          "late commits cannot be waited for",
                          "Declare an overlap that is longer than any transaction.",
                          base::kNotInPrerequisiteState});
    }
    return problems;
  }

  std::unique_ptr<Reader> ReadAll(const ReadOptions& options, const Limit& limit) override {
    const AdbcSession::About& about = Expect(limit);
    const auto fields = session_.Execute(SelectAll(about), nullptr, limit);
    return std::make_unique<AdbcReader>(session_, ShapeOfFields(Display(), fields), fields,
                                        PositionOf(about), options, std::nullopt);
  }

  std::unique_ptr<Reader> ReadSince(const CursorPlan& plan, const ReadOptions& options,
                                    const Limit& limit) override {
    const AdbcSession::About& about = Expect(limit);
    const auto described = Fields(limit);
    std::vector<std::string> order{plan.cursor};
    for (const std::string& name : plan.key) {
      if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
    }
    for (const std::string& name : order) {
      if (described->GetFieldByName(name) != nullptr) continue;
      throw base::Error(base::kUndefinedColumn, fmt::format("column \"{}\" of relation {} does not "
                                                            "exist",
                                                            name, Display()));
    }
    RefuseNulls(about, order, limit);
    if (plan.after) RefuseGoingBack(about, plan, *described, limit);

    std::string sql = SelectAll(about);
    std::shared_ptr<arrow::RecordBatch> parameters;
    if (plan.after) {
      auto [condition, values] = After(about, plan, order, *described);
      sql += " WHERE " + condition;
      parameters = std::move(values);
    }
    sql += " ORDER BY " + Columns(about, order, ", ");
    const auto fields = session_.Execute(sql, parameters, limit);
    Position position = PositionOf(about);
    position.resume = plan.after;
    position.settled = !plan.overlap.empty();
    position.facts.push_back({"cursor", plan.cursor});
    position.facts.push_back({"cursor_after", plan.after ? plan.after->cursor : ""});
    return std::make_unique<AdbcReader>(session_, ShapeOfFields(Display(), fields), fields,
                                        std::move(position), options, plan);
  }

 private:
  // Connected, and sure that the relation is there.
  const AdbcSession::About& Expect(const Limit& limit) {
    const AdbcSession::About& about = session_.Open(limit);
    if (options_.query.empty() &&
        !session_.HasTable(name_.catalog, name_.schema, name_.table, limit)) {
      throw base::Error(base::kUndefinedTable,
                        fmt::format("relation \"{}\" does not exist", options_.relation));
    }
    return about;
  }

  // What the query gives; no batch of it is taken.
  std::shared_ptr<arrow::Schema> Fields(const Limit& limit) {
    const AdbcSession::About& about = Expect(limit);
    return session_.Execute(SelectAll(about), nullptr, limit);
  }

  std::string From(const AdbcSession::About& about) const {
    return options_.query.empty() ? name_.Quoted(QuoteOf(about.vendor_name))
                                  : "(" + options_.query + ") AS q";
  }
  std::string SelectAll(const AdbcSession::About& about) const {
    return "SELECT * FROM " + From(about);
  }

  static std::string Columns(const AdbcSession::About& about,
                             const std::vector<std::string>& names, std::string_view between) {
    std::string list;
    for (const std::string& name : names) {
      if (!list.empty()) list += between;
      list += QuoteName(name, QuoteOf(about.vendor_name));
    }
    return list;
  }

  static std::string Placeholder(const AdbcSession::About& about, size_t number) {
    return about.vendor_name == kPostgresVendor ? fmt::format("${}", number) : "?";
  }

  static Position PositionOf(const AdbcSession::About& about) {
    Position position;
    position.facts = {{"driver", about.driver_name},
                      {"driver_version", about.driver_version},
                      {"vendor", about.vendor_name},
                      {"vendor_version", about.vendor_version}};
    return position;
  }

  // The one integer that `sql` gives.
  int64_t Number(const std::string& sql, std::shared_ptr<arrow::RecordBatch> parameters,
                 const Limit& limit) {
    session_.Execute(sql, std::move(parameters), limit);
    while (const auto batch = session_.Next(limit)) {
      if (batch->num_rows() == 0) continue;
      return std::stoll(CursorText(*batch->column(0), 0));
    }
    return 0;
  }

  void RefuseNulls(const AdbcSession::About& about, const std::vector<std::string>& columns,
                   const Limit& limit) {
    const int64_t count =
        Number(fmt::format("SELECT count(*) AS n FROM {} WHERE {} IS NULL", From(about),
                           Columns(about, columns, " IS NULL OR ")),
               nullptr, limit);
    if (count == 0) return;
    throw base::Error(base::kNullValueNotAllowed,
                      fmt::format("{} rows of relation {} have NULL in a cursor or key column",
                                  count, Display()))
        .Detail(fmt::format("Columns: {}.", fmt::join(columns, ", ")))
        .Hint("Such rows have no place in the order. Give the column values and NOT NULL, or use "
              "strategy snapshot.");
  }

  void RefuseGoingBack(const AdbcSession::About& about, const CursorPlan& plan,
                       const arrow::Schema& fields, const Limit& limit) {
    const auto type = fields.GetFieldByName(plan.cursor)->type();
    const auto value = CursorArray(type, plan.after->cursor);
    const std::string cursor = QuoteName(plan.cursor, QuoteOf(about.vendor_name));
    const std::string count = fmt::format("SELECT count(*) AS n FROM {}", From(about));
    const auto parameters =
        arrow::RecordBatch::Make(arrow::schema({arrow::field("p", type)}), 1, {value});
    const int64_t at_or_after = Number(
        fmt::format("{} WHERE {} >= {}", count, cursor, Placeholder(about, 1)), parameters, limit);
    if (at_or_after > 0 || Number(count, nullptr, limit) == 0) return;
    throw base::Error(base::kNotInPrerequisiteState,
                      fmt::format("cursor \"{}\" of relation {} went backwards", plan.cursor,
                                  Display()))
        .Detail(fmt::format("It has been read up to {}, which no row reaches.",
                            plan.after->cursor))
        .Hint("Rows were deleted or the source was restored: capture the relation anew.");
  }

  // (c > p OR (c = p AND (k > q OR …))): row comparison is not known to every database.
  std::pair<std::string, std::shared_ptr<arrow::RecordBatch>> After(
      const AdbcSession::About& about, const CursorPlan& plan,
      const std::vector<std::string>& order, const arrow::Schema& fields) const {
    arrow::FieldVector types;
    arrow::ArrayVector values;
    const auto bind = [&](const std::string& name, std::shared_ptr<arrow::Array> value) {
      types.push_back(arrow::field(fmt::format("p{}", types.size() + 1), value->type()));
      values.push_back(std::move(value));
      return Columns(about, {name}, "");
    };
    const auto parameters = [&] {
      return arrow::RecordBatch::Make(arrow::schema(types), 1, values);
    };
    const auto type_of = [&](const std::string& name) { return fields.GetFieldByName(name)->type(); };
    if (!plan.overlap.empty()) {
      const std::string column =
          bind(plan.cursor, CursorArrayBefore(type_of(plan.cursor), plan.after->cursor,
                                              plan.overlap));
      return {column + " >= " + Placeholder(about, 1), parameters()};
    }
    std::string condition, closing;
    for (size_t i = 0; i < order.size(); ++i) {
      const auto at = std::find(plan.key.begin(), plan.key.end(), order[i]);
      const std::string& text =
          i == 0 ? plan.after->cursor
                 : plan.after->key.at(static_cast<size_t>(at - plan.key.begin()));
      const std::string column = bind(order[i], CursorArray(type_of(order[i]), text));
      condition += fmt::format("({} > {}", column, Placeholder(about, types.size()));
      closing += ")";
      if (i + 1 == order.size()) break;
      bind(order[i], CursorArray(type_of(order[i]), text));
      condition += fmt::format(" OR ({} = {} AND ", column, Placeholder(about, types.size()));
      closing += ")";
    }
    return {condition + closing, parameters()};
  }

  void CheckUnique(const Declaration& declaration, const Limit& limit,
                   std::vector<Problem>& problems) {
    const AdbcSession::About& about = session_.Open(limit);
    const std::string columns = Columns(about, declaration.key, ", ");
    const int64_t twice = Number(
        fmt::format("SELECT count(*) AS n FROM (SELECT {} FROM {} GROUP BY {} HAVING count(*) > 1) "
                    "AS d",
                    columns, From(about), columns),
        nullptr, limit);
    if (twice == 0) return;
    problems.push_back({Severity::kRefusesTable, Display(),
                        fmt::format("{} values of key ({}) stand in more than one row", twice,
                                    fmt::join(declaration.key, ", ")),
                        "Declare a key that is unique.", base::kInvalidObjectDefinition});
  }

  AdbcOptions options_;
  TableName name_;
  AdbcSession session_;
};

}  // namespace

std::unique_ptr<SourceRelation> OpenAdbcRelation(AdbcOptions options) {
  return std::make_unique<AdbcRelation>(std::move(options));
}

}  // namespace tidemark::source
