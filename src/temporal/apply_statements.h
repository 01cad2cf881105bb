// The SQL by which changes of one dataset are applied. Texts only; apply.cc runs them in order. They
// work on three temporary tables of the session, whose columns go by place (c1, c2, …) so that none
// can be called like one of ours:
//   stage_<id>     rows whose store version ends, with what replaces them
//   found_<id>     the same, each with the ctid of that version
//   versions_<id>  whole versions of datasets whose values travel as text and are cast here
#pragma once

#include <cstddef>
#include <string>

#include "temporal/dataset.h"

namespace tidemark::temporal {

// The statements of one dataset. Their texts never change, so the server plans each once.
struct ApplyStatements {
  size_t columns;
  bool all_binary;
  std::string create;         // the session's temporary tables
  std::string copy_stage;     // rows that end, with the state that replaces them
  std::string find;           // stage × current by key → found, with ctid
  std::string find_missing;   // a staged row without its match, for the error
  std::string fetch_kept;
  std::string to_history;
  std::string remove;
  std::string replace, replace_keeping;  // without and with values that stay
  // Of a keyed dataset, where all that is staged is replaced: by key, without `found`.
  std::string staged_to_history, replace_staged, replace_staged_keeping;
  std::string copy_history, copy_current;
  std::string copy_versions, versions_to_history, versions_to_current;  // not all binary
  std::string truncate_to_history, truncate;
};

ApplyStatements StatementsFor(const Dataset& dataset);

}  // namespace tidemark::temporal
