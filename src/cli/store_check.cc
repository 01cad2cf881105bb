#include "cli/store_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/text_table.h"
#include "temporal/history_check.h"
#include "temporal/version_chain.h"

namespace tidemark::cli {

using base::Error;
using nlohmann::json;
using Versioned = temporal::Dataset;

namespace {

constexpr auto kStatementLimit = std::chrono::hours(24);

pg::Connection OpenStore(const Invocation& invocation) {
  auto store = OpenStoreToRead(invocation.Configure(), invocation.stop);
  store.SetLimits(kStatementLimit, invocation.stop);
  store.Execute("SET lc_monetary = 'C'");
  return store;
}

/// Those that were asked for, or all. `what` is what they would have to be.
std::vector<Versioned> Chosen(std::vector<Versioned> datasets,
                              const std::vector<std::string>& names, const std::string& what) {
  for (const auto& name : names) {
    if (std::ranges::find(datasets, NameOf(name), &Versioned::name) == datasets.end()) {
      throw Error(base::kUndefinedTable, fmt::format("\"{}\" is no {}", name, what))
          .Hint("\"tidemark status\" lists the datasets; names are schema.table.");
    }
  }
  if (names.empty()) return datasets;
  std::erase_if(datasets, [&](const Versioned& dataset) {
    return std::ranges::none_of(names, [&](const std::string& name) {
      return NameOf(name) == dataset.name;
    });
  });
  return datasets;
}

json ChainJson(const temporal::ChainCheck& check) {
  json broken;
  if (!check.breaks.empty()) {
    const auto& first = check.breaks.front();
    broken = {{"basis", first.basis}, {"tx", first.tx}, {"what", first.what}};
  }
  return {{"dataset", Shown(check.name)}, {"versions", check.versions}, {"break", broken}};
}

std::string ChainText(const temporal::ChainCheck& check) {
  if (check.breaks.empty()) return "holds";
  const auto& first = check.breaks.front();
  return fmt::format("broken at basis {}, tx {}: {}", first.basis, first.tx, first.what);
}

}  // namespace

base::QualifiedName NameOf(const std::string& text) {
  const auto dot = text.find('.');
  if (dot == std::string::npos) return {"public", text};
  return {text.substr(0, dot), text.substr(dot + 1)};
}

std::string Shown(const base::QualifiedName& name) { return name.schema + "." + name.name; }

ExitCode CheckVersions(const Invocation& invocation, const std::vector<std::string>& names) {
  auto store = OpenStore(invocation);
  const auto datasets = Chosen(temporal::LoadVersionedDatasets(store), names,
                               "captured dataset outside a mirror");
  bool whole = true;
  auto documents = json::array();
  TextTable text({"DATASET", "VERSIONS", "RESULT"});
  for (const auto& dataset : datasets) {
    const auto check = temporal::CheckChain(store, dataset);
    whole = whole && check.breaks.empty();
    documents.push_back(ChainJson(check));
    text.Add({Shown(check.name), Grouped(check.versions), ChainText(check)});
  }
  if (invocation.json) {
    fmt::print("{}\n", documents.dump());
  } else {
    fmt::print("{}", text.empty() ? "no dataset outside a mirror\n" : text.ToString());
  }
  return whole ? ExitCode::kDone : ExitCode::kDifference;
}

ExitCode CheckHistories(const Invocation& invocation, const std::vector<std::string>& names) {
  auto store = OpenStore(invocation);
  const auto datasets = Chosen(temporal::LoadAttachedDatasets(store), names, "captured dataset");
  bool whole = true;
  std::string faults;
  auto documents = json::array();
  TextTable text({"DATASET", "ROW VERSIONS", "RESULT"});
  for (const auto& dataset : datasets) {
    const auto check = temporal::CheckHistory(store, dataset);
    whole = whole && check.faults.empty();
    documents.push_back({{"dataset", Shown(check.name)},
                         {"row_versions", check.versions},
                         {"faults", check.faults}});
    text.Add({Shown(check.name), Grouped(check.versions),
              check.faults.empty() ? "holds" : fmt::format("{} faults", check.faults.size())});
    for (const auto& fault : check.faults) faults += Shown(check.name) + ": " + fault + "\n";
  }
  if (invocation.json) {
    fmt::print("{}\n", documents.dump(-1, ' ', false, json::error_handler_t::replace));
  } else {
    fmt::print("{}{}", text.empty() ? "nothing has been captured\n" : text.ToString(), faults);
  }
  return whole ? ExitCode::kDone : ExitCode::kDifference;
}

}  // namespace tidemark::cli
