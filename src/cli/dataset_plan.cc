#include "cli/dataset_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "cli/yaml_reader.h"
#include "source/adbc/adbc_relation.h"
#include "source/files/file_relation.h"
#include "source/postgres/postgres_relation.h"

namespace tidemark::cli {

using base::Error;

namespace {

// Of a live mirror: under a steady load four partitions are sealed together, otherwise one soon. What
// is captured on a cadence is sealed at the end of each run, since nobody comes by until the next.
constexpr std::chrono::seconds kSealAfter{10};

using Opener = std::function<std::unique_ptr<source::SourceRelation>()>;

Opener OpenerOf(const Source& source, const Dataset& dataset) {
  if (const auto* dsn = source.dsn()) {
    return [options = source::PostgresOptions{
                .dsn = *dsn, .relation = dataset.relation, .snapshot = ""}] {
      return source::OpenPostgresRelation(options);
    };
  }
  if (const auto* adbc = std::get_if<AdbcSource>(&source.reached_by)) {
    source::AdbcOptions options{.driver = {.driver = adbc->driver, .entrypoint = "", .options = {}},
                                .relation = dataset.relation,
                                .query = ""};
    if (!adbc->uri.empty()) options.driver.options.emplace_back("uri", adbc->uri);
    return [options] { return source::OpenAdbcRelation(options); };
  }
  // The folder and the pattern together name the files.
  const auto& folder = std::get<FilesSource>(source.reached_by).folder;
  std::string pattern = folder;
  if (!pattern.empty() && !pattern.ends_with('/')) pattern += '/';
  pattern += dataset.relation;
  return [options = source::FileOptions{.pattern = pattern}] {
    return source::OpenFileRelation(options);
  };
}

const char* KindOf(const Source& source) {
  if (std::holds_alternative<AdbcSource>(source.reached_by)) return "adbc";
  return std::holds_alternative<FilesSource>(source.reached_by) ? "files" : "postgres";
}

base::QualifiedName PlaceOf(const Dataset& dataset) {
  const auto& name = dataset.as.empty() ? dataset.name : dataset.as;
  const auto dot = name.find('.');
  return {name.substr(0, dot), name.substr(dot + 1)};
}

const std::string& CadenceOf(const Config& config, const Dataset& dataset) {
  return dataset.cadence.empty() ? config.cadence : dataset.cadence;
}

bool IsLive(const Config& config, const Dataset& dataset) {
  return dataset.strategy == Strategy::kCdc && CadenceOf(config, dataset).empty();
}

base::QualifiedName RelationOf(const Dataset& dataset) {
  const auto dot = dataset.relation.find('.');
  return {dataset.relation.substr(0, dot), dataset.relation.substr(dot + 1)};
}

capture::MirrorOptions Followed(capture::MirrorOptions options, const Following& following) {
  options.resync_on_gap = following.resync_on_gap;
  options.replace_undecodable = following.replace_undecodable;
  options.unknown_as_text = following.unknown_as_text;
  options.isolate_failed_tables = following.isolate_failed_tables;
  if (following.wal_warn_bytes) options.wal_warn_bytes = *following.wal_warn_bytes;
  return options;
}

capture::MirrorOptions MirrorOf(const Config& config, const Mirror& mirror) {
  return Followed({.name = mirror.name,
                   .source_dsn = *config.FindSource(mirror.source)->dsn(),
                   .store_dsn = "",
                   .publication = mirror.publication,
                   .slot = mirror.slot},
                  mirror.following);
}

capture::MirrorOptions MirrorOf(const Config& config, const Dataset& dataset) {
  return Followed({.name = dataset.name,
                   .source_dsn = *config.FindSource(dataset.source)->dsn(),
                   .store_dsn = "",
                   .publication = dataset.publication,
                   .slot = dataset.slot,
                   .only = capture::MirrorOptions::Only{.relation = RelationOf(dataset),
                                                        .in_store = PlaceOf(dataset)}},
                  dataset.following);
}

capture::PlannedDataset Planned(capture::MirrorOptions mirror) {
  return {.name = mirror.name,
          .in_store = {},
          .strategy = temporal::Strategy::kCdc,
          .key = {},
          .cursor = "",
          .overlap = "",
          .source = mirror.name,
          .source_kind = "postgres",
          .open = nullptr,
          .mirror = std::move(mirror)};
}

capture::PlannedDataset Plan(const Config& config, const Dataset& dataset) {
  if (dataset.strategy == Strategy::kCdc) return Planned(MirrorOf(config, dataset));
  const Source& source = *config.FindSource(dataset.source);
  return {.name = dataset.name,
          .in_store = PlaceOf(dataset),
          .strategy = dataset.strategy == Strategy::kCursor ? temporal::Strategy::kCursor
                                                            : temporal::Strategy::kSnapshot,
          .key = dataset.key,
          .cursor = dataset.cursor,
          .overlap = dataset.overlap,
          .source = source.name,
          .source_kind = KindOf(source),
          .open = OpenerOf(source, dataset),
          .mirror = std::nullopt};
}

[[noreturn]] void RefuseLive(const std::string& name) {
  throw Error(base::kFeatureNotSupported,
              fmt::format("\"{}\" is followed live and cannot be captured by hand", name))
      .Hint("Run \"tidemark follow\", or give it a \"cadence\".");
}

capture::PlannedDataset PlanNamed(const Config& config, const std::string& name) {
  std::vector<std::string> known;
  for (const auto& dataset : config.datasets) {
    if (dataset.name == name) {
      if (IsLive(config, dataset)) RefuseLive(name);
      return Plan(config, dataset);
    }
    known.push_back(dataset.name);
  }
  for (const auto& mirror : config.mirrors) {
    if (mirror.name == name) {
      if (mirror.cadence.empty()) RefuseLive(name);
      return Planned(MirrorOf(config, mirror));
    }
    known.push_back(mirror.name);
  }
  const auto meant = Nearest(name, known);
  throw Error(base::kConfigFileError,
              fmt::format("there is no dataset \"{}\"{}", name,
                          meant.empty() ? "" : fmt::format(", did you mean \"{}\"?", meant)))
      .Hint("Datasets are declared in tidemark.yaml.");
}

}  // namespace

std::vector<std::pair<capture::PlannedDataset, std::string>> PlanCadences(const Config& config) {
  std::vector<std::pair<capture::PlannedDataset, std::string>> plan;
  for (const auto& mirror : config.mirrors) {
    if (mirror.cadence.empty()) continue;
    plan.emplace_back(Planned(MirrorOf(config, mirror)), mirror.cadence);
  }
  for (const auto& dataset : config.datasets) {
    if (IsLive(config, dataset)) continue;
    plan.emplace_back(Plan(config, dataset), CadenceOf(config, dataset));
  }
  return plan;
}

std::vector<capture::MirrorOptions> PlanMirrors(const Config& config) {
  auto all = PlanLive(config, "");
  for (auto& [dataset, cadence] : PlanCadences(config)) {
    if (dataset.mirror) all.push_back(std::move(*dataset.mirror));
  }
  return all;
}

std::vector<capture::MirrorOptions> PlanLive(const Config& config, const std::string& store_dsn) {
  std::vector<capture::MirrorOptions> live;
  for (const auto& mirror : config.mirrors) {
    if (mirror.cadence.empty()) live.push_back(MirrorOf(config, mirror));
  }
  for (const auto& dataset : config.datasets) {
    if (IsLive(config, dataset)) live.push_back(MirrorOf(config, dataset));
  }
  for (auto& options : live) {
    options.store_dsn = store_dsn;
    options.history = PlanHistory(config);
    options.history.seal_after = kSealAfter;
  }
  return live;
}

temporal::HistoryLimits PlanHistory(const Config& config) {
  temporal::HistoryLimits limits;
  for (const auto& retention : PlanRetentions(config)) {
    if (!retention.span.empty()) limits.retentions.push_back(retention.span);
    for (const auto& [table, span] : retention.by_table) limits.retentions.push_back(span);
  }
  return limits;
}

std::vector<temporal::Retention> PlanRetentions(const Config& config) {
  std::vector<temporal::Retention> retentions;
  const auto add = [&](const std::string& name, const std::string& own,
                       const std::map<std::string, std::string>& by_table) {
    const auto& span = own.empty() ? config.retention : own;
    if (!span.empty() || !by_table.empty()) retentions.push_back({name, span, by_table});
  };
  for (const auto& mirror : config.mirrors) {
    add(mirror.name, mirror.retention, mirror.table_retention);
  }
  for (const auto& dataset : config.datasets) add(dataset.name, dataset.retention, {});
  return retentions;
}

std::vector<capture::PlannedDataset> PlanDatasets(const Config& config,
                                                  const std::vector<std::string>& names) {
  std::vector<capture::PlannedDataset> plan;
  if (names.empty()) {
    for (auto& [dataset, cadence] : PlanCadences(config)) plan.push_back(std::move(dataset));
  }
  for (const auto& name : names) {
    const bool twice = std::any_of(plan.begin(), plan.end(),
                                   [&](const auto& planned) { return planned.name == name; });
    if (!twice) plan.push_back(PlanNamed(config, name));
  }
  if (plan.empty()) {
    throw Error(base::kConfigFileError, "there is nothing to capture")
        .Hint("Declare \"datasets\" in tidemark.yaml; mirrors are followed by \"tidemark follow\".");
  }
  return plan;
}

}  // namespace tidemark::cli
