// The SQL by which changes of one dataset are applied. Texts only; apply.cc runs them in order. They
// work on temporary tables of the session, whose columns go by place (c1, c2, …) so that none
// can be called like one of ours:
//   stage_<id>     rows whose store version ends, with what replaces them
//   found_<id>     of datasets without a key: the same, each with the ctid of that version
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
  std::string delete_staged, truncate_staged;  // rows in them: few, many
  size_t staged_columns;
  std::string copy_stage;     // rows that end, with the state that replaces them
  std::string find;           // without a key: stage × current by hash → found, with ctid
  std::string find_missing;   // a staged row without its match, for the error
  std::string fetch_kept;
  std::string removed_to_history, remove;
  // Rows that are replaced go to history by a trigger, which has them from the update itself:
  // tidemark.keep_ended() runs what the session's setting of that name holds, once.
  std::string replaced_to_history;
  std::string replace, replace_keeping;  // without and with values that stay
  std::string copy_history, copy_current;
  std::string copy_versions, versions_to_history, versions_to_current;  // not all binary
  std::string truncate_to_history, truncate;
};

ApplyStatements StatementsFor(const Dataset& dataset);

}  // namespace tidemark::temporal
