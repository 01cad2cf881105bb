// The control rows of captures of datasets outside mirrors: a source, a journal for each dataset,
// the captures that ran, and what failed in them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "capture/capture_plan.h"
#include "pg/connection.h"
#include "temporal/dataset.h"
#include "temporal/lease.h"

namespace tidemark::capture {

/// The journal of a planned dataset, registered at its first capture. Throws 42710 when a mirror or
/// a dataset of another name has its name or its place in the store.
int EnsureDatasetJournal(pg::Connection& store, const PlannedDataset& planned);

/// The dataset in its journal, once a capture of it has been published; nullopt before.
std::optional<temporal::Dataset> FindAttached(pg::Connection& store, int journal);

/// Keeps how the dataset is captured from now on.
void StoreStrategy(pg::Connection& store, int dataset, temporal::Strategy strategy);

/// Opens a capture of datasets under `lease`. Returns its id.
int64_t BeginDatasetsCapture(pg::Connection& store, const temporal::Lease& lease);

/// Keeps why a dataset of a capture failed.
void StoreFailure(pg::Connection& store, int64_t capture, const std::string& dataset,
                  const base::Error& error);

/// Whether nobody has taken the lease over.
bool StillHeld(pg::Connection& store, const temporal::Lease& lease);

/// Ends the captures that died under earlier holders of `lease`, and removes their stages and the
/// datasets that they had not published.
void ClearDeadCaptures(pg::Connection& store, const temporal::Lease& lease);

/// Removes a dataset that was registered but not published, with its rows.
void ForgetUnpublished(pg::Connection& store, int journal);

}  // namespace tidemark::capture
