#include "capture/mirror_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "capture/log_change.h"
#include "capture/source_connection.h"
#include "source/postgres/log_place.h"
#include "source/postgres/publication.h"
#include "source/postgres/slot.h"
#include "source/postgres/table_state.h"
#include "temporal/store.h"

namespace tidemark::capture {

using base::Deadline;
using base::Error;

namespace {

constexpr std::chrono::seconds kConnectMax{30};
constexpr std::chrono::minutes kSlotMax{60};  // for transactions older than the slot

std::vector<Complaint> Standing(const source::PreflightReport& report) {
  std::vector<Complaint> complaints;
  for (const auto& problem : report.problems) {
    if (problem.watched) continue;
    complaints.push_back({problem.state.str(), problem.what, "", problem.fix, problem.table,
                          problem.severity == source::Severity::kNote});
  }
  return complaints;
}

// Why the slot has not everything after the resume position; nullopt when it has.
std::optional<Error> GapOf(const std::optional<source::SlotState>& slot, const Journal& journal,
                           const temporal::Resume& resume) {
  if (!slot) {
    return Error(base::kUndefinedObject,
                 fmt::format("replication slot \"{}\" does not exist any more", journal.slot));
  }
  if (slot->lost()) {
    return Error(base::kNotInPrerequisiteState,
                 fmt::format("replication slot \"{}\" has lost write-ahead log that the mirror "
                             "still needs",
                             journal.slot));
  }
  if (slot->confirmed_flush_lsn > resume.received) {
    return Error(base::kNotInPrerequisiteState,
                 fmt::format("replication slot \"{}\" was advanced to {} by somebody else, but the "
                             "store has received only up to {}",
                             journal.slot, slot->confirmed_flush_lsn.ToString(),
                             resume.received.ToString()));
  }
  return std::nullopt;
}

/// Whether every table that is mirrored is to be read whole anyway.
bool AllAsked(pg::Connection& store, int journal) {
  return store.Value(
             R"sql(
SELECT NOT EXISTS (
  SELECT FROM tidemark.dataset d
  WHERE d.journal = $1 AND d.tx_first IS NOT NULL AND d.tx_dropped IS NULL AND NOT EXISTS (
    SELECT FROM tidemark.resync r WHERE r.dataset = d.id AND r.ended_at IS NULL))
)sql",
             {std::to_string(journal)}) == "t";
}

void AskForAll(pg::Connection& store, int journal, const std::string& reason) {
  store.Execute(
      "SELECT tidemark.request_resync(d.id, $2) FROM tidemark.dataset d "
      "WHERE d.journal = $1 AND d.tx_first IS NOT NULL AND d.tx_dropped IS NULL",
      {std::to_string(journal), reason});
}

Error MustBeAsked(const Error& gap) {
  return Error(gap)
      .Detail("Changes since the newest published commit cannot be fetched.")
      .Hint("Run \"tidemark resync\": every table is then read whole again, and its history is kept. "
            "If the mirror was pointed at this server by mistake, point it at its own.");
}

// The place from which the slot's stream goes on. One that is gone or lost is made anew.
base::Lsn UsableSlot(const std::optional<source::SlotState>& slot, pg::Connection& source,
                     pg::Connection& replication, const Journal& journal, std::stop_token stop) {
  if (slot && !slot->lost() && slot->confirmed_flush_lsn.valid()) return slot->confirmed_flush_lsn;
  if (slot) source::DropSlot(source, journal.slot, Deadline::After(kConnectMax));
  const auto made = source::CreateSlot(
      replication, source,
      {.name = journal.slot,
       .deadline = Deadline::After(kSlotMax),
       .stop = std::move(stop),
       .on_wait = [](const std::vector<source::SlotBlocker>& blockers) {
         for (const auto& blocker : blockers) spdlog::info("{}", blocker.Describe());
       }});
  spdlog::info("made replication slot {} anew, at {}", journal.slot,
               made.consistent_point.ToString());
  return made.consistent_point;
}

void FollowLog(pg::Connection& store, const Journal& journal, const source::LogPlace& log,
               const LogChange& change, base::Lsn start) {
  store.Execute(
      "SELECT tidemark.follow_log($1, $2, $3, $4, $5::pg_lsn, $6::pg_lsn, $7)",
      {std::to_string(journal.id), log.system_identifier, std::to_string(log.timeline), log.history,
       start.ToString(),
       change.common_to ? std::optional(change.common_to->ToString()) : std::nullopt,
       change.reason});
}

}  // namespace

Complaint ComplaintOf(const Error& error) {
  std::string detail = error.detail();
  for (const auto& line : error.context()) detail += (detail.empty() ? "" : " ") + line;
  return {error.state().str(), error.message(), detail, error.hint(), "", false};
}

source::PreflightReport InspectSource(pg::Connection& store, const MirrorOptions& options,
                                      Progress& progress, std::stop_token stop) {
  auto source = OpenSource(options.source_dsn, Deadline::After(kConnectMax), stop);
  auto replication = OpenReplication(options.source_dsn, Deadline::After(kConnectMax), stop);
  source::PreflightOptions inspected{.publication = options.publication,
                                     .slot = options.slot,
                                     .may_create_publication = options.may_create_publication,
                                     .unknown_as_text = options.unknown_as_text,
                                     .only = std::nullopt,
                                     .store = &store,
                                     .replication = &replication};
  if (options.only) inspected.only = options.only->relation;
  auto report = source::Preflight(source, inspected);
  progress.SetStanding(Standing(report));
  return report;
}

std::optional<Error> RefusalOf(const source::PreflightReport& report) {
  for (const auto& problem : report.problems) {
    if (problem.severity != source::Severity::kRefusesAll) continue;
    return Error(problem.state, problem.what).Hint(problem.fix);
  }
  return std::nullopt;
}

void AdoptSource(pg::Connection& store, const MirrorOptions& options, const Journal& journal,
                 const source::PreflightReport& report, std::stop_token stop) {
  if (!report.publication.exists) {
    auto source = OpenSource(options.source_dsn, Deadline::After(kConnectMax), stop);
    std::vector<pg::Relation> relations;
    for (const auto& table : report.tables) relations.push_back(table.relation);
    source::CreatePublication(source, options.publication, relations);
    spdlog::info("created publication {} with {} tables", options.publication, relations.size());
  }
  auto replication = OpenReplication(options.source_dsn, Deadline::After(kConnectMax), stop);
  StoreSourceIdentity(store, journal, report.server, source::InspectLog(replication));
}

MetSource MeetSource(pg::Connection& store, const MirrorOptions& options, const Journal& journal,
                     std::stop_token stop) {
  auto replication = OpenReplication(options.source_dsn, Deadline::After(kConnectMax), stop);
  const auto log = source::InspectLog(replication);
  MetSource met{OpenSource(options.source_dsn, Deadline::After(kConnectMax), stop),
                temporal::LoadResume(store, journal.id).value()};
  temporal::Resume& resume = met.resume;
  const bool all_asked = AllAsked(store, journal.id);
  auto slot = source::InspectSlot(met.connection, journal.slot);
  if (const auto change = CompareLogs(log, journal, resume)) {
    if (!all_asked && (change->older || !options.resync_on_gap)) {
      throw MustBeAsked({base::kNotInPrerequisiteState, change->reason});
    }
    spdlog::warn("{}: every table will be read whole again", change->reason);
    resume.received = UsableSlot(slot, met.connection, replication, journal, stop);
    FollowLog(store, journal, log, *change, resume.received);
    resume.lsn = resume.received;
    return met;
  }
  if (log.timeline != journal.timeline) {
    const auto left = *source::LeftAt(log.history, journal.timeline);
    spdlog::info("the source went on from {} on timeline {}", left.ToString(), log.timeline);
    store.Execute("SELECT tidemark.follow_timeline($1, $2, $3, $4::pg_lsn)",
                  {std::to_string(journal.id), std::to_string(log.timeline), log.history,
                   left.ToString()});
    resume.received = std::min(resume.received, left);
  }
  const auto gap = GapOf(slot, journal, resume);
  if (!gap && !all_asked) return met;
  if (gap && !all_asked) {
    if (!options.resync_on_gap) throw MustBeAsked(*gap);
    spdlog::warn("{}: every table will be read whole again", gap->message());
    AskForAll(store, journal.id, gap->message());
  }
  resume.received = std::max(resume.received,
                             UsableSlot(slot, met.connection, replication, journal, stop));
  return met;
}

void MindPublication(pg::Connection& store, const MirrorOptions& options, const Journal& journal,
                     const Error& error, std::stop_token stop) {
  if (error.state() != base::kUndefinedObject) return;
  auto source = OpenSource(options.source_dsn, Deadline::After(kConnectMax), std::move(stop));
  const bool there = source.Value("SELECT EXISTS (SELECT FROM pg_catalog.pg_publication "
                                  "WHERE pubname = $1)",
                                  {journal.publication}) == "t";
  if (!there) return;
  const auto reason =
      fmt::format("publication \"{}\" was dropped and made again", journal.publication);
  if (!options.resync_on_gap && !AllAsked(store, journal.id)) {
    throw MustBeAsked({base::kNotInPrerequisiteState, reason});
  }
  spdlog::warn("{}: every table will be read whole again", reason);
  AskForAll(store, journal.id, reason);
  source::DropSlot(source, journal.slot, Deadline::After(kConnectMax));
}

bool MetRewrittenRows(const MirrorOptions& options, const temporal::Dataset& table,
                      const Error& error, std::stop_token stop) {
  if (error.state() != base::kDataCorrupted) return false;
  auto source = OpenSource(options.source_dsn, Deadline::After(kConnectMax), stop);
  source.SetLimits(kConnectMax, stop);
  return std::ranges::any_of(
      source::LoadTableStates(source, options.publication), [&](const auto& state) {
        return state.oid == table.source_oid &&
               source::CompareStates(table.source_state, state, {}) == source::StateChange::kRows;
      });
}

void SetAside(const MirrorOptions& options, const temporal::Dataset& table, const Error& error,
              std::stop_token stop) {
  spdlog::error("{} is set aside: {}", table.name.Display(), error.Full());
  auto side = temporal::OpenStore(options.store_dsn, Deadline::After(kConnectMax), stop);
  side.Execute("SELECT tidemark.request_resync($1, $2)",
               {std::to_string(table.id), "changes of it were refused: " + error.message()});
}

FollowedTables LoadFollowedTables(pg::Connection& store, pg::Connection& source,
                                  const MirrorOptions& options, int journal) {
  FollowedTables followed{.datasets = temporal::LoadDatasets(store, journal), .types = {}};
  std::vector<pg::Oid> type_oids;
  for (const auto& dataset : followed.datasets) {
    for (const auto& column : dataset.columns) type_oids.push_back(column.source_type);
  }
  followed.types = temporal::EnsureTypes(store, pg::LoadTypes(source, type_oids),
                                         TypeOptionsOf(source, store, options));
  for (auto& dataset : followed.datasets) {
    for (auto& column : dataset.columns) {
      column.binary = followed.types.At(column.source_type).binary;
    }
  }
  return followed;
}

}  // namespace tidemark::capture
