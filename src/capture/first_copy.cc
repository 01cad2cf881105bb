#include "capture/first_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "capture/dataset_shape.h"
#include "capture/parallel.h"
#include "capture/source_connection.h"
#include "capture/table_copy.h"
#include "pg/relation.h"
#include "source/postgres/inheritance.h"
#include "source/postgres/raw_text.h"
#include "source/postgres/slot.h"
#include "source/postgres/table_state.h"
#include "temporal/inheritance.h"
#include "temporal/plane.h"
#include "temporal/publish.h"
#include "temporal/store.h"
#include "temporal/types.h"

namespace tidemark::capture {

using base::Deadline;
using base::Error;
using temporal::Dataset;

namespace {

constexpr int64_t kFirstTx = 1;
// Larger tables are cut into stretches of this many blocks (32 MB), so that all workers have work.
constexpr int64_t kStretchBlocks = 4096;
constexpr std::chrono::seconds kConnectMax{30};
constexpr std::chrono::hours kStatementMax{24 * 7};
constexpr std::chrono::seconds kUndoMax{60};
constexpr std::chrono::minutes kSlotMax{60};  // for transactions older than the slot

base::Timestamp Now() { return base::Timestamp::FromSystem(std::chrono::system_clock::now()); }

// The slot may have waited for long since preflight. Of a column that came meanwhile nobody would
// copy what older rows have in it, and the stream does not send that either.
void RequireSameShape(const pg::Relation& found, const pg::Relation& now) {
  const bool same_columns =
      std::ranges::equal(found.columns, now.columns, [](const auto& a, const auto& b) {
        return a.number == b.number && a.name == b.name && a.type == b.type &&
               a.modifier == b.modifier && a.generated == b.generated;
      });
  if (same_columns && found.identity == now.identity && found.KeyColumns() == now.KeyColumns()) {
    return;
  }
  throw Error(base::kSerializationFailure,
              fmt::format("the columns or the key of table {} changed before it was copied",
                          now.name.Display()))
      .Detail("The copy begins again from a new snapshot.");
}

}  // namespace

// What one run holds. The replication connection keeps the exported snapshot alive; both go with
// the rows' end, lest others at the source wait for the snapshot.
struct FirstCopy::Work {
  std::optional<pg::Connection> source, replication;
  source::CreatedSlot slot;
  base::Timestamp snapshot_time;
  base::Timestamp began;
  std::vector<pg::Relation> relations;      // as the snapshot sees them
  std::vector<Dataset> datasets;            // parallel to relations
  temporal::TypeMap types;
  std::vector<int64_t> rows;                // copied, parallel to relations
  std::vector<source::InheritedTable> inheritance;
};

FirstCopy::FirstCopy(const MirrorOptions& options, pg::Connection& store,
                     const temporal::Lease& lease, Journal journal, Progress& progress)
    : options_(Completed(options)),
      store_(&store),
      lease_(&lease),
      journal_(std::move(journal)),
      progress_(&progress) {}

FirstCopy::~FirstCopy() = default;
FirstCopy::FirstCopy(FirstCopy&&) noexcept = default;

void FirstCopy::DropStaged(pg::Connection& store) {
  const auto tables = store.Execute(
      R"sql(
SELECT d.id FROM tidemark.dataset d WHERE d.journal = $1 AND d.tx_first IS NULL ORDER BY d.id
)sql",
      {std::to_string(journal_.id)});
  for (int i = 0; i < tables.rows(); ++i) {
    const int id = static_cast<int>(tables.int64(i, 0));
    DropStage(store, id);
    temporal::DropUnattached(store, id);
  }
  temporal::ForgetUnattached(store, journal_.id);
}

// On connections of its own, without a stop token: the copy's may be stopped in mid-statement.
void FirstCopy::Abandon(int64_t capture, const std::string& slot, const std::string& reason) {
  if (!slot.empty()) {
    auto source = OpenSource(options_.source_dsn, Deadline::After(kConnectMax), {});
    source::DropSlot(source, slot, Deadline::After(std::chrono::seconds(20)));
  }
  auto store = temporal::OpenStore(options_.store_dsn, Deadline::After(kConnectMax));
  store.SetLimits(kUndoMax, {});
  DropStaged(store);
  EndCapture(store, capture, "abandoned", reason);
}

void FirstCopy::CleanUp(std::stop_token stop) {
  const auto unfinished = FindUnfinishedCopy(*store_, journal_.id);
  if (unfinished) {
    spdlog::info("an earlier first copy was cut short: undoing it");
    Abandon(unfinished->capture, unfinished->slot, "cut short");
    return;
  }
  DropStaged(*store_);
  auto source = OpenSource(options_.source_dsn, Deadline::After(kConnectMax), stop);
  const auto slot = source::InspectSlot(source, journal_.slot);
  if (!slot) return;
  if (slot->active_pid) {
    throw Error(base::kObjectInUse, fmt::format("replication slot \"{}\" is active for PID {}",
                                                journal_.slot, *slot->active_pid))
        .Hint("Stop the other consumer, or give this mirror another name.");
  }
  throw Error(base::kDuplicateObject,
              fmt::format("replication slot \"{}\" exists, but was not made by this store",
                          journal_.slot))
      .Hint(fmt::format("If nothing needs it, run SELECT pg_drop_replication_slot('{}') on the "
                        "source; or give this mirror another name.",
                        journal_.slot));
}

void FirstCopy::Run(const source::PreflightReport& report, std::stop_token stop) {
  Copy(report, stop);
  try {
    pg::Transaction tx(*store_);
    const auto attached = Attach();
    EndCapture(*store_, *attached.capture, "published", "");
    const auto published = temporal::Publish(
        std::move(tx), *lease_,
        {.journal = attached.journal,
         .capture = attached.capture,
         .commits = attached.commits,
         .members = attached.members,
         .received = attached.received,
         .received_time = attached.received_time,
         .extracted_from = attached.extracted_from,
         .extracted_to = attached.extracted_to});
    spdlog::info("first copy published as basis {}: {} tables, at {}", published.number,
                 attached.members.size(), attached.position.ToString());
    base::KillPoint("copy.after_attach");
  } catch (const Error& error) {
    if (error.state() == base::kCommitOutcomeUnknown) throw;
    Undo(error.message());
    throw;
  }
}

void FirstCopy::Copy(const source::PreflightReport& report, std::stop_token stop) {
  progress_->RestartCopy();
  progress_->SetState(CaptureState::kCopying);
  capture_ = BeginCapture(*store_, journal_.id, "copy", journal_.slot);
  slot_made_ = false;
  base::KillPoint("copy.before_slot");
  try {
    work_ = std::make_unique<Work>(
        Work{.source = OpenSource(options_.source_dsn, Deadline::After(kConnectMax), stop),
             .replication =
                 OpenReplication(options_.source_dsn, Deadline::After(kConnectMax), stop)});
    work_->began = Now();
    MakeSlot(*work_, stop);
    slot_made_ = true;
    base::KillPoint("copy.slot_created");
    Prepare(*work_, report);
    CopyRows(*work_, stop);
    work_->source.reset();
    work_->replication.reset();
    BuildKeys(*work_, stop);
    base::KillPoint("copy.before_attach");
  } catch (const Error& error) {
    Undo(error.message());
    throw;
  }
}

void FirstCopy::Undo(const std::string& reason) {
  if (capture_ == 0) return;
  work_.reset();
  spdlog::warn("first copy abandoned: {}", reason);
  try {
    Abandon(capture_, slot_made_ ? journal_.slot : "", reason);
  } catch (const Error& undo) {
    spdlog::warn("the next start will clean up after the first copy: {}", undo.what());
  }
  capture_ = 0;
}

void FirstCopy::MakeSlot(Work& work, std::stop_token stop) {
  work.source->SetLimits(kStatementMax, stop);
  work.slot = source::CreateSlot(
      *work.replication, *work.source,
      {.name = journal_.slot,
       .deadline = Deadline::After(kSlotMax),
       .stop = stop,
       .on_wait = [&](const std::vector<source::SlotBlocker>& blockers) {
         for (const auto& blocker : blockers) spdlog::info("{}", blocker.Describe());
       }});
}

void FirstCopy::Prepare(Work& work, const source::PreflightReport& report) {
  work.snapshot_time = base::Timestamp(std::stoll(work.source->Value(
      "SELECT (extract(epoch FROM clock_timestamp() - '2000-01-01 00:00+00') * 1000000)::bigint")));
  pg::Transaction snapshot(*work.source, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  work.source->Execute("SET TRANSACTION SNAPSHOT " + base::QuoteLiteral(work.slot.snapshot));

  std::vector<pg::Oid> oids, type_oids;
  std::map<pg::Oid, const source::PublishedTable*> published;
  for (const auto& table : report.tables) {
    oids.push_back(table.relation.oid);
    published[table.relation.oid] = &table;
  }
  work.relations = pg::LoadRelations(*work.source, oids);
  for (auto& relation : work.relations) {
    RequireSameShape(published.at(relation.oid)->relation, relation);
    source::MakeCommentsReadable(relation);
    for (const auto& column : relation.columns) type_oids.push_back(column.type);
  }
  work.types = temporal::EnsureTypes(*store_, pg::LoadTypes(*work.source, type_oids),
                                     TypeOptionsOf(*work.source, *store_, options_));

  work.inheritance = source::LoadInheritance(*work.source);
  std::map<pg::Oid, std::string> states;
  for (const auto& table : source::LoadTableStates(*work.source, options_.publication)) {
    states[table.oid] = table.Text();
  }
  pg::Transaction tx(*store_);
  int64_t expected = 0;
  for (const auto& relation : work.relations) {
    Dataset dataset = ShapeDataset(*published.at(relation.oid), relation, work.types);
    dataset.journal = journal_.id;
    if (options_.only) dataset.name = options_.only->in_store;
    dataset.source_state = states[relation.oid];
    temporal::StoreDataset(*store_, dataset);
    temporal::CreateCurrent(*store_, dataset, relation, kFirstTx);
    if (!dataset.AllBinary()) CreateStage(*store_, dataset);
    expected += std::max<int64_t>(0, relation.tuples);
    work.datasets.push_back(std::move(dataset));
  }
  std::move(tx).Commit();
  work.rows.assign(work.datasets.size(), 0);
  progress_->ExpectRows(expected);
  base::KillPoint("copy.prepared");
}

void FirstCopy::CopyRows(Work& work, std::stop_token stop) {
  std::vector<std::pair<size_t, CopyTask>> tasks;
  for (size_t i = 0; i < work.datasets.size(); ++i) {
    const auto& relation = work.relations[i];
    CopyTask task{.dataset = &work.datasets[i],
                  .upstream = relation.name,
                  .only = relation.kind == 'r',
                  .range = {},
                  .translations = TranslationsOf(work.datasets[i], work.types)};
    if (relation.kind != 'r' || relation.pages <= kStretchBlocks + kStretchBlocks / 2) {
      tasks.emplace_back(i, task);
      continue;
    }
    for (int64_t first = 0; first < relation.pages; first += kStretchBlocks) {
      const bool last = first + kStretchBlocks >= relation.pages;
      task.range.first = first == 0 ? std::nullopt : std::optional(first);
      task.range.end = last ? std::nullopt : std::optional(first + kStretchBlocks);
      tasks.emplace_back(i, task);
    }
  }
  // Smallest first: tables that are truncated now and then are small, and the sooner one is copied
  // the less likely that is to happen before. Big ones are cut into stretches, so that no worker
  // is left alone with one at the end.
  std::stable_sort(tasks.begin(), tasks.end(), [&](const auto& a, const auto& b) {
    return work.relations[a.first].pages < work.relations[b.first].pages;
  });
  std::mutex mutex;
  RunParallel(options_.copy_workers, tasks.size(), stop, [&](WorkQueue& queue, std::stop_token own) {
    auto source = OpenSource(options_.source_dsn, Deadline::After(kConnectMax), own);
    source.SetLimits(kStatementMax, own);
    auto store = temporal::OpenStore(options_.store_dsn, Deadline::After(kConnectMax), own);
    store.SetLimits(kStatementMax, own);
    store.Execute("SET synchronous_commit = off");
    while (const auto next = queue.Take()) {
      auto& [index, task] = tasks[*next];
      // A transaction for each stretch: no lock outlives what it is needed for.
      pg::Transaction snapshot(source, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      source.Execute("SET TRANSACTION SNAPSHOT " + base::QuoteLiteral(work.slot.snapshot));
      const int64_t rows =
          CopyTable(source, store, task, [&](int64_t copied, int64_t bytes) {
            progress_->AddCopied(copied, bytes);
            base::KillPoint("copy.rows");
          });
      RequireUnchanged(source, work.relations[index]);
      const std::lock_guard lock(mutex);
      work.rows[index] += rows;
    }
  });
  for (size_t i = 0; i < work.datasets.size(); ++i) {
    if (!work.datasets[i].AllBinary()) FillFromStage(*store_, work.datasets[i]);
  }
  base::KillPoint("copy.copied");
}

void FirstCopy::BuildKeys(Work& work, std::stop_token stop) {
  RunParallel(options_.copy_workers, work.datasets.size(), stop,
              [&](WorkQueue& queue, std::stop_token own) {
                auto store =
                    temporal::OpenStore(options_.store_dsn, Deadline::After(kConnectMax), own);
                store.SetLimits(kStatementMax, own);
                store.Execute("SET maintenance_work_mem = '256MB'");
                while (const auto next = queue.Take()) {
                  temporal::BuildIndexes(store, work.datasets[*next], work.relations[*next]);
                }
              });
}

temporal::CapturedJournal FirstCopy::Attach() {
  const Work& work = *work_;
  const auto end = work.slot.consistent_point;
  temporal::CapturedJournal copied{.journal = journal_.id,
                                   .lease = lease_,
                                   .capture = capture_,
                                   .commits = {{.tx = kFirstTx,
                                                .end_lsn = end,
                                                .xid = 0,
                                                .source_time = work.snapshot_time}},
                                   .tx_last = kFirstTx,
                                   .position = end,
                                   .received = end,
                                   .received_time = work.snapshot_time,
                                   .members = {},
                                   .unchanged = {},
                                   .extracted_from = work.began,
                                   .extracted_to = Now()};
  for (size_t i = 0; i < work.datasets.size(); ++i) {
    temporal::Attach(*store_, work.datasets[i], work.relations[i], kFirstTx);
    copied.members.push_back({work.datasets[i].id, work.rows[i], 0, work.rows[i]});
  }
  if (!options_.only) {
    temporal::LinkForeignKeys(*store_, work.relations);
    LinkFamilies(work);
  }
  return copied;
}

void FirstCopy::LinkFamilies(const Work& work) {
  std::set<pg::Oid> mirrored;
  std::map<pg::Oid, int> dataset_of;
  for (size_t i = 0; i < work.datasets.size(); ++i) {
    mirrored.insert(work.relations[i].oid);
    dataset_of[work.relations[i].oid] = work.datasets[i].id;
  }
  std::vector<temporal::InheritanceLink> links;
  for (const auto& [child, parent] : source::FamiliesOf(work.inheritance, mirrored).links) {
    links.push_back({dataset_of.at(child), dataset_of.at(parent)});
  }
  if (links.empty()) return;
  for (const auto& misfit : temporal::ChangeLinks(*store_, journal_.id, {}, links, kFirstTx)) {
    spdlog::warn("dataset {} does not show the rows of {}: {}", misfit.link.parent,
                 misfit.link.child, misfit.reason);  // the stream will see to it
  }
}

}  // namespace tidemark::capture
