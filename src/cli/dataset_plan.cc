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

capture::PlannedDataset Plan(const Config& config, const Dataset& dataset) {
  if (dataset.strategy == Strategy::kCdc) {
    throw Error(base::kFeatureNotSupported,
                fmt::format("dataset \"{}\": strategy cdc is not available outside a mirror",
                            dataset.name))
        .Hint("Declare a mirror of the publication, or capture the relation as a snapshot.");
  }
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
          .open = OpenerOf(source, dataset)};
}

const Dataset& Named(const Config& config, const std::string& name) {
  std::vector<std::string> known;
  for (const auto& dataset : config.datasets) {
    if (dataset.name == name) return dataset;
    known.push_back(dataset.name);
  }
  for (const auto& mirror : config.mirrors) {
    if (mirror.name != name) continue;
    throw Error(base::kFeatureNotSupported,
                fmt::format("mirror \"{}\" is followed live and cannot be captured by hand", name))
        .Hint("Run \"tidemark follow\".");
  }
  const auto meant = Nearest(name, known);
  throw Error(base::kConfigFileError,
              fmt::format("there is no dataset \"{}\"{}", name,
                          meant.empty() ? "" : fmt::format(", did you mean \"{}\"?", meant)))
      .Hint("Datasets are declared in tidemark.yaml.");
}

}  // namespace

std::vector<capture::PlannedDataset> PlanDatasets(const Config& config,
                                                  const std::vector<std::string>& names) {
  std::vector<capture::PlannedDataset> plan;
  if (names.empty()) {
    for (const auto& dataset : config.datasets) plan.push_back(Plan(config, dataset));
  }
  for (const auto& name : names) {
    const bool twice = std::any_of(plan.begin(), plan.end(),
                                   [&](const auto& planned) { return planned.name == name; });
    if (!twice) plan.push_back(Plan(config, Named(config, name)));
  }
  if (plan.empty()) {
    throw Error(base::kConfigFileError, "there is nothing to capture")
        .Hint("Declare \"datasets\" in tidemark.yaml; mirrors are followed by \"tidemark follow\".");
  }
  return plan;
}

}  // namespace tidemark::cli
