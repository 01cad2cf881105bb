#include "capture/table_sync.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "capture/capture_journal.h"
#include "capture/dataset_shape.h"
#include "capture/journal.h"
#include "capture/source_connection.h"
#include "capture/table_copy.h"
#include "source/postgres/preflight.h"
#include "source/postgres/slot.h"
#include "temporal/plane.h"
#include "temporal/store.h"

namespace tidemark::capture {

using base::Deadline;
using base::Error;
using temporal::Dataset;
using temporal::Keying;

namespace {

constexpr std::chrono::seconds kConnectMax{30};
constexpr std::chrono::hours kStatementMax{24 * 7};
constexpr std::chrono::minutes kSlotMax{60};  // for transactions older than the slot
constexpr std::chrono::seconds kUndoMax{60};

base::Timestamp Now() { return base::Timestamp::FromSystem(std::chrono::system_clock::now()); }

source::PublishedTable LoadTable(pg::Connection& source, pg::Connection& store,
                                 const MirrorOptions& options, pg::Oid table) {
  std::vector<source::Problem> problems;
  auto published = source::LoadPublishedTable(source,
                                              {.publication = options.publication,
                                               .slot = options.slot,
                                               .may_create_publication = false,
                                               .unknown_as_text = options.unknown_as_text,
                                               .only = std::nullopt,
                                               .store = &store,
                                               .replication = nullptr},
                                              table, problems);
  if (published) return std::move(*published);
  for (const auto& problem : problems) {
    if (problem.severity == source::Severity::kNote) continue;
    throw Error(problem.state, problem.table + ": " + problem.what).Hint(problem.fix);
  }
  throw Error(base::kUndefinedTable, "the table is not published any more");
}

std::string StateOf(pg::Connection& source, const std::string& publication, pg::Oid table) {
  for (const auto& state : source::LoadTableStates(source, publication)) {
    if (state.oid == table) return state.Text();
  }
  return "";
}

}  // namespace

TableSync::TableSync(pg::Connection& store, Request request) : request_(std::move(request)) {
  request_.options = Completed(request_.options);
  copied_.capture = BeginCapture(store, request_.journal, "complete", "");
  thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
}

TableSync::~TableSync() {
  thread_.request_stop();
  thread_.join();
  if (!published_) Drop();
}

bool TableSync::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

std::exception_ptr TableSync::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void TableSync::Run(const std::stop_token& stop) {
  std::exception_ptr failure;
  try {
    const auto& options = request_.options;
    copied_.extracted_from = Now();
    auto store = temporal::OpenStore(options.store_dsn, Deadline::After(kConnectMax), stop);
    store.SetLimits(kStatementMax, stop);
    auto source = OpenSource(options.source_dsn, Deadline::After(kConnectMax), stop);
    auto replication = OpenReplication(options.source_dsn, Deadline::After(kConnectMax), stop);
    const auto slot = source::CreateSlot(
        replication, source,
        {.name = fmt::format("tidemark_sync_{}_{}", replication.server_pid(), request_.table),
         .temporary = true,
         .deadline = Deadline::After(kSlotMax),
         .stop = stop,
         .on_wait = [](const std::vector<source::SlotBlocker>& blockers) {
           for (const auto& blocker : blockers) spdlog::info("{}", blocker.Describe());
         }});
    copied_.consistent_point = slot.consistent_point;
    base::KillPoint("sync.slot_created");
    source.SetLimits(kStatementMax, stop);
    pg::Transaction snapshot(source, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    source.Execute("SET TRANSACTION SNAPSHOT " + base::QuoteLiteral(slot.snapshot));
    Copy(source, store, stop);
    copied_.extracted_to = Now();
    base::KillPoint("sync.copied");
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  failure_ = failure;
}

void TableSync::Copy(pg::Connection& source, pg::Connection& store, const std::stop_token&) {
  const auto& options = request_.options;
  const auto published = LoadTable(source, store, options, request_.table);
  copied_.relation = published.relation;
  std::vector<pg::Oid> type_oids;
  for (const auto& column : published.relation.columns) type_oids.push_back(column.type);
  copied_.types = temporal::EnsureTypes(store, pg::LoadTypes(source, type_oids),
                                        TypeOptionsOf(source, store, options));
  Dataset& dataset = copied_.dataset;
  dataset = ShapeDataset(published, published.relation, copied_.types);
  dataset.journal = request_.journal;
  if (options.only) dataset.name = options.only->in_store;
  dataset.source_state = StateOf(source, options.publication, request_.table);
  CopyTask task{.dataset = &dataset,
                .upstream = published.relation.name,
                .only = published.relation.kind == 'r',
                .range = {},
                .translations = TranslationsOf(dataset, copied_.types),
                .command = ""};
  const auto progressed = [](int64_t, int64_t) { base::KillPoint("sync.rows"); };
  if (request_.known) {
    dataset.id = request_.known->id;
    const bool hashed = dataset.keying == Keying::kMultiset;
    copied_.stage = temporal::Stage::CreateForCopy(store, copied_.capture, dataset.id,
                                                   dataset.columns, hashed);
    task.command = copied_.stage->CopyCommand();
    copied_.rows = CopyTable(source, store, task, progressed);
    RequireUnchanged(source, published.relation);
    if (dataset.keying == Keying::kKey) {
      copied_.stage->Finish(store, copied_.rows, dataset.key_columns);
    } else {
      copied_.stage->FinishKeyless(store, copied_.rows);
    }
    return;
  }
  {
    pg::Transaction tx(store);
    temporal::StoreDataset(store, dataset);
    // Its rows begin with the tx that the publish gives them; until then they say nothing.
    temporal::CreateCurrent(store, dataset, published.relation, 0);
    if (!dataset.AllBinary()) CreateStage(store, dataset);
    std::move(tx).Commit();
  }
  copied_.rows = CopyTable(source, store, task, progressed);
  RequireUnchanged(source, published.relation);
  if (!dataset.AllBinary()) FillFromStage(store, dataset);
  temporal::BuildIndexes(store, dataset, published.relation);
}

// On a connection of its own: the stream's may be in the middle of a transaction.
void TableSync::Drop() {
  try {
    auto store = temporal::OpenStore(request_.options.store_dsn, Deadline::After(kConnectMax));
    store.SetLimits(kUndoMax, {});
    if (copied_.stage) copied_.stage->Drop(store);
    if (!request_.known && copied_.dataset.id != 0) {
      pg::Transaction tx(store);
      DropStage(store, copied_.dataset.id);
      temporal::DropUnattached(store, copied_.dataset.id);
      store.Execute("DELETE FROM tidemark.dataset WHERE id = $1 AND tx_first IS NULL",
                    {std::to_string(copied_.dataset.id)});
      std::move(tx).Commit();
    }
    EndCapture(store, copied_.capture, "abandoned", "not published");
  } catch (const Error& error) {
    spdlog::warn("the next start will clean up after a table's copy: {}", error.what());
  }
}

void DropDeadTableSyncs(pg::Connection& store, int journal) {
  store.Execute(
      "UPDATE tidemark.capture SET state = 'abandoned', reason = 'cut short', "
      "ended_at = pg_catalog.clock_timestamp() "
      "WHERE journal = $1 AND kind = 'complete' AND state = 'running'",
      {std::to_string(journal)});
  temporal::DropDeadStages(store);
  const auto tables = store.Execute(
      "SELECT id FROM tidemark.dataset WHERE journal = $1 AND tx_first IS NULL",
      {std::to_string(journal)});
  for (int i = 0; i < tables.rows(); ++i) DropStage(store, static_cast<int>(tables.int64(i, 0)));
  ForgetUnpublished(store, journal);
}

}  // namespace tidemark::capture
