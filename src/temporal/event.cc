#include "temporal/event.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"

namespace tidemark::temporal {

namespace {

using base::Error;

// One snapshot for all three: what is kept, what is there, and the page.
constexpr const char* kPage = R"sql(
SELECT h.basis, h.dataset, n.basis, n.dataset, e.basis, e.dataset_id, e.dataset, e.relation, e.text
FROM tidemark.event_horizon h
LEFT JOIN LATERAL (
  SELECT m.basis, m.dataset FROM tidemark.basis_member m
  ORDER BY m.basis DESC, m.dataset DESC LIMIT 1) n ON true
LEFT JOIN LATERAL (
  SELECT x.basis, x.dataset_id, x.dataset, x.relation, tidemark.event_text(x) AS text
  FROM tidemark.event x
  WHERE (x.basis, x.dataset_id) > ($1::bigint, $2::integer)
  ORDER BY x.basis, x.dataset_id LIMIT $3::bigint) e ON true
ORDER BY e.basis, e.dataset_id
)sql";

constexpr const char* kPageOfDataset = R"sql(
SELECT h.basis, h.dataset, n.basis, n.dataset, e.basis, e.dataset_id, e.dataset, e.relation, e.text
FROM tidemark.event_horizon h
LEFT JOIN LATERAL (
  SELECT m.basis, m.dataset FROM tidemark.basis_member m
  ORDER BY m.basis DESC, m.dataset DESC LIMIT 1) n ON true
LEFT JOIN LATERAL (
  SELECT x.basis, x.dataset_id, x.dataset, x.relation, tidemark.event_text(x) AS text
  FROM tidemark.event x
  WHERE (x.basis, x.dataset_id) > ($1::bigint, $2::integer) AND $4 IN (x.dataset, x.relation)
  ORDER BY x.basis, x.dataset_id LIMIT $3::bigint) e ON true
ORDER BY e.basis, e.dataset_id
)sql";

constexpr const char* kStanding = R"sql(
SELECT h.basis, h.dataset, coalesce(n.basis, 0), coalesce(n.dataset, 0),
       pg_catalog.pg_is_in_recovery()
FROM tidemark.event_horizon h
LEFT JOIN LATERAL (
  SELECT m.basis, m.dataset FROM tidemark.basis_member m
  ORDER BY m.basis DESC, m.dataset DESC LIMIT 1) n ON true
)sql";

template <typename Integer>
bool ReadNumber(std::string_view text, Integer& number) {
  // Only what ToString writes: no sign, no leading zero.
  if (text.empty() || (text.front() == '0' && text.size() > 1) || text.front() == '-') return false;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size();
}

EventId IdAt(const pg::Result& rows, int row, int column) {
  return {rows.int64(row, column), static_cast<int32_t>(rows.int64(row, column + 1))};
}

void RequireKept(EventId after, EventId horizon) {
  if (after >= horizon) return;
  throw Error(base::kSnapshotTooOld,
              fmt::format("events after {} have been pruned", after.ToString()))
      .Detail(fmt::format("They are kept from after {} on.", horizon.ToString()))
      .Hint("Read the datasets anew, then start without an id.");
}

}  // namespace

std::string EventId::ToString() const { return fmt::format("{}-{}", basis, dataset); }

std::optional<EventId> EventId::Parse(std::string_view text) {
  EventId id;
  const auto dash = text.find('-');
  if (dash == std::string_view::npos || !ReadNumber(text.substr(0, dash), id.basis) ||
      !ReadNumber(text.substr(dash + 1), id.dataset)) {
    return std::nullopt;
  }
  return id;
}

EventPage LoadEvents(pg::Connection& store, EventId after, int64_t limit,
                     const std::optional<std::string>& dataset) {
  const auto basis = std::to_string(after.basis), member = std::to_string(after.dataset),
             most = std::to_string(limit);
  const auto rows = dataset ? store.ExecutePrepared(kPageOfDataset, {basis, member, most, dataset})
                            : store.ExecutePrepared(kPage, {basis, member, most});
  RequireKept(after, IdAt(rows, 0, 0));
  EventPage page{.events = {}, .reached = after};
  for (int i = 0; i < rows.rows() && !rows.is_null(i, 4); ++i) {
    page.events.push_back(
        {IdAt(rows, i, 4), rows.str(i, 6), rows.str(i, 7), rows.str(i, 8)});
  }
  page.more = static_cast<int64_t>(page.events.size()) == limit;
  if (page.more) {
    page.reached = page.events.back().id;
  } else if (!rows.is_null(0, 2)) {
    page.reached = std::max(after, IdAt(rows, 0, 2));
  }
  return page;
}

EventId LoadNewestEventId(pg::Connection& store) {
  return IdAt(store.ExecutePrepared(kStanding, {}), 0, 2);
}

void RequireResumable(pg::Connection& store, EventId after) {
  const auto row = store.ExecutePrepared(kStanding, {});
  RequireKept(after, IdAt(row, 0, 0));
  if (after <= IdAt(row, 0, 2) || row.boolean(0, 4)) return;
  throw Error(base::kNotInPrerequisiteState,
              fmt::format("this store has published nothing as new as event {}", after.ToString()))
      .Detail(fmt::format("Its newest is {}.", IdAt(row, 0, 2).ToString()))
      .Hint("The id may come from another store, or from before this one was restored: read the "
            "datasets anew, then start without an id.");
}

}  // namespace tidemark::temporal
