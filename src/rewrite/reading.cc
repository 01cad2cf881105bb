#include "rewrite/reading.h"

#include <utility>

#include "rewrite/complaint.h"
#include "rewrite/view_text.h"

namespace tidemark::rewrite {
namespace {

using base::QuoteLiteral;

std::string_view ToTx(Axis axis) {
  switch (axis) {
    case Axis::kSystemTime:
      return "tidemark.tx_at";
    case Axis::kSourceTime:
      return "tidemark.tx_at_source";
    case Axis::kSourcePosition:
      return "tidemark.tx_at_position";
  }
  return {};
}

std::string_view NameOf(Form form) {
  switch (form) {
    case Form::kAsOf:
      break;
    case Form::kFromTo:
      return "from_to";
    case Form::kBetween:
      return "between";
    case Form::kSymmetric:
      return "symmetric";
    case Form::kContained:
      return "contained";
    case Form::kAll:
      return "all";
  }
  return {};
}

/// The table of a history view has the table's name, in the schema that the view's is named after.
base::QualifiedName TableOf(const Relation& relation) {
  base::QualifiedName name = relation.name;
  constexpr std::string_view kSuffix = "_history";
  if (relation.kind == Relation::Kind::kHistory && name.schema.ends_with(kSuffix)) {
    name.schema.resize(name.schema.size() - kSuffix.size());
  }
  return name;
}

std::string Regclass(const std::string& relation) { return QuoteLiteral(relation) + "::regclass"; }

/// The tx past which nothing may be read; empty when there is no such limit.
std::string CapOf(const ReadingContext& context, const Relation& relation) {
  if (context.at_execution && context.plan.pins) {
    return "tidemark.capped_tx(" + Regclass(TableOf(relation).Quoted()) + ")";
  }
  return relation.cap_tx ? *relation.cap_tx + "::bigint" : "";
}

/// A call of the function that reads `table` as of a tx, up to that. `once`: the tx is no constant
/// of the plan; `own`: without the rows of tables that inherit from it.
std::string AsOfTx(const Relation& relation, const std::string& table, bool once, bool own) {
  return std::string("tidemark.") + (own && relation.parent ? "only_" : "") +
         (once ? "as_of_tx_once(NULL::" : "as_of_tx(NULL::") + table + ", ";
}

/// The rows of a versioned table, or of its history view, in a pinned session.
std::string PinnedText(const ReadingContext& context, const Relation& relation, bool own) {
  const std::string table = TableOf(relation).Quoted();
  const std::string tx = context.at_execution ? "tidemark.pinned_tx(" + Regclass(table) + ")"
                                              : relation.pinned_tx.value_or("NULL") + "::bigint";
  if (relation.kind == Relation::Kind::kHistory) {
    return "tidemark.versions_until(NULL::" + table + ", 'system', 'all', NULL, NULL, " + tx + ")";
  }
  return AsOfTx(relation, table, context.at_execution, own) + tx + ")";
}

/// Appends to `edit` an instant: the client's own text, or the constant it was evaluated to.
void AppendInstant(Edit& edit, const ReadingContext& context,
                   const Plan::TemporalReference& temporal, size_t i) {
  const Instant& instant = temporal.instants[i];
  const auto place = temporal.evaluable[i];
  if (place && !context.facts.evaluated.empty()) {
    edit.Generate(QuoteLiteral(context.facts.evaluated[*place]) + "::timestamptz", instant.begin);
  } else {
    edit.Keep(instant.begin, instant.end);
  }
}

/// True when the instant of an AS OF is a constant of the plan, or one of each row.
bool IsPlanned(const ReadingContext& context, const Plan::TemporalReference& temporal) {
  const InstantKind kind = temporal.instants[0].kind;
  return kind == InstantKind::kLiteral || kind == InstantKind::kPerRow ||
         (temporal.evaluable[0] && !context.facts.evaluated.empty());
}

void AppendAsOf(Edit& edit, const ReadingContext& context, const Plan::TemporalReference& temporal,
                const Resolution& resolution) {
  const std::string relation = resolution.name.Quoted();
  const size_t shown_at = temporal.bound.name.begin;
  const std::string cap = CapOf(context, resolution);
  // A cap of the execution is no constant of the plan.
  const bool once = !IsPlanned(context, temporal) || (!cap.empty() && context.at_execution);
  const bool per_row = temporal.instants[0].kind == InstantKind::kPerRow;
  const std::string read =
      AsOfTx(resolution, relation, once && !per_row, !temporal.bound.only.empty());
  edit.Generate(per_row ? "LATERAL (SELECT f.* FROM (SELECT " : read, shown_at);
  edit.Generate((cap.empty() ? "" : "least(") + std::string(ToTx(temporal.bound.clause.axis)) +
                    '(' + Regclass(relation) + ", ",
                temporal.instants[0].begin);
  AppendInstant(edit, context, temporal, 0);
  edit.Generate(cap.empty() ? ")" : "), " + cap + ")", shown_at);
  edit.Generate(per_row ? " AS x OFFSET 0) AS w, " + read + "w.x) AS f)" : ")", shown_at);
}

void AppendVersions(Edit& edit, const ReadingContext& context,
                    const Plan::TemporalReference& temporal, const Resolution& resolution) {
  const Clause& clause = temporal.bound.clause;
  const size_t shown_at = temporal.bound.name.begin;
  const std::string cap = CapOf(context, resolution);
  edit.Generate((cap.empty() ? "tidemark.versions(NULL::" : "tidemark.versions_until(NULL::") +
                    resolution.name.Quoted() +
                    (clause.axis == Axis::kSystemTime ? ", 'system', '" : ", 'source', '") +
                    std::string(NameOf(clause.form)) + "', ",
                shown_at);
  if (temporal.instants.empty()) {
    edit.Generate("NULL, NULL", shown_at);
  } else {
    AppendInstant(edit, context, temporal, 0);
    edit.Generate(", ", shown_at);
    AppendInstant(edit, context, temporal, 1);
  }
  edit.Generate(cap.empty() ? ")" : ", " + cap + ")", shown_at);
}

void AppendAlias(Edit& edit, const BoundTable& bound) {
  const size_t shown_at = bound.name.begin;
  if (bound.alias.empty()) {
    edit.Generate(" AS " + base::QuoteIdentifier(bound.table.name.back()), shown_at);
  } else {
    edit.Generate(" ", shown_at);
    edit.Keep(bound.alias.begin, bound.alias.end);
  }
}

/// AS OF, pushed into every versioned table that a view reads.
std::string ViewAsOf(const ReadingContext& context, const Plan::TemporalReference& temporal,
                     const Resolution& view) {
  const BoundClause& bound = temporal.bound;
  const auto refuse = [&](std::string_view what) {
    throw Complaint(base::kFeatureNotSupported,
                    std::string(WordsOf(bound.clause.axis)) + " " + std::string(what) +
                        " view \"" + bound.table.name.back() + '"',
                    context.plan.client, bound.name.begin)
        .Hint("Name the tables of the view, each with its own clause.");
  };
  if (bound.clause.form != Form::kAsOf) refuse("without AS OF is not allowed on");
  const Instant& instant = temporal.instants[0];
  if (instant.kind == InstantKind::kPerRow) refuse("of each row's own instant is not allowed on");
  const auto place = temporal.evaluable[0];
  const std::string text =
      place && !context.facts.evaluated.empty()
          ? QuoteLiteral(context.facts.evaluated[*place]) + "::timestamptz"
          : context.plan.client.substr(instant.begin, instant.end - instant.begin);
  return TextOfView(view.name, context.facts.view_relations, [&](const Relation& relation, bool own) {
    const std::string table = TableOf(relation).Quoted();
    const std::string cap = CapOf(context, relation);
    std::string tx = std::string(ToTx(bound.clause.axis)) + '(' + Regclass(table) + ", " + text + ')';
    if (!cap.empty()) tx = "least(" + tx + ", " + cap + ')';
    if (relation.kind == Relation::Kind::kHistory) {
      return "tidemark.versions_until(NULL::" + table + ", 'system', 'all', NULL, NULL, " + tx + ')';
    }
    const bool once = !IsPlanned(context, temporal) || (!cap.empty() && context.at_execution);
    return AsOfTx(relation, table, once, own) + tx + ')';
  });
}

/// Calls `make`, whose errors about a view get the place of its name.
template <typename Make>
std::string At(const ReadingContext& context, const BoundTable& bound, Make make) {
  try {
    return make();
  } catch (base::Error& error) {
    if (!error.position()) {
      throw Complaint(error.state(), error.message(), context.plan.client, bound.name.begin)
          .Detail(error.detail());
    }
    throw;
  }
}

}  // namespace

Edit EditOfClause(const ReadingContext& context, const Plan::TemporalReference& temporal,
                  const Resolution& resolution) {
  const BoundClause& bound = temporal.bound;
  Edit edit{bound.whole.begin, bound.whole.end, {}};
  if (resolution.kind == Relation::Kind::kView) {
    edit.Generate(At(context, bound, [&] { return ViewAsOf(context, temporal, resolution); }),
                  bound.name.begin);
  } else if (bound.clause.form == Form::kAsOf) {
    AppendAsOf(edit, context, temporal, resolution);
  } else {
    AppendVersions(edit, context, temporal, resolution);
  }
  AppendAlias(edit, bound);
  return edit;
}

Edit EditOfPinned(const ReadingContext& context, const BoundTable& bound,
                  const Resolution& resolution, bool own) {
  Edit edit{bound.whole.begin, bound.whole.end, {}};
  std::string text = At(context, bound, [&] {
    return resolution.kind == Relation::Kind::kView
               ? TextOfView(resolution.name, context.facts.view_relations,
                            [&](const Relation& inner, bool inner_own) {
                              return PinnedText(context, inner, inner_own);
                            })
               : PinnedText(context, resolution, own);
  });
  if (bound.sample) text = SampleOf(context, bound, text);
  edit.Generate(std::move(text), bound.name.begin);
  AppendAlias(edit, bound);
  return edit;
}

Edit EditOfOwnRows(const ReadingContext& context, const BoundTable& bound,
                   const Resolution& resolution) {
  Edit edit{bound.whole.begin, bound.whole.end, {}};
  std::string text = "tidemark.only_rows(NULL::" + resolution.name.Quoted() + ")";
  if (bound.sample) text = SampleOf(context, bound, text);
  edit.Generate(std::move(text), bound.name.begin);
  AppendAlias(edit, bound);
  return edit;
}

std::string SampleOf(const ReadingContext& context, const BoundTable& bound,
                     const std::string& from) {
  const BoundTable::Sample& sample = *bound.sample;
  const TokenList method(sample.method);
  if (!method.IsWord(0, "bernoulli") && !method.IsWord(0, "system")) {
    throw Complaint(base::kFeatureNotSupported,
                    "TABLESAMPLE " + std::string(sample.method) + " cannot be pinned to the past",
                    context.plan.client, bound.name.begin)
        .Hint("Use TABLESAMPLE BERNOULLI.");
  }
  const auto text = [&](Bytes bytes) {
    return context.plan.client.substr(bytes.begin, bytes.end - bytes.begin);
  };
  const std::string seed = sample.seed.empty() ? "w.seed" : "(" + text(sample.seed) + ")";
  return "(SELECT s.* FROM " + from + " AS s" +
         (sample.seed.empty() ? ", (SELECT random() AS seed OFFSET 0) AS w" : "") +
         " WHERE tidemark.sampled(" + text(sample.arguments) + ", " + seed + ", s::text))";
}

}  // namespace tidemark::rewrite
