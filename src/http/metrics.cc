#include "http/metrics.h"

#include "http/metrics_text.h"

namespace tidemark::http {

namespace {

using temporal::CaptureMeasures;
using temporal::Measures;
using temporal::MirrorMeasures;
using temporal::RowMeasures;

constexpr auto kCounter = MetricType::kCounter;
constexpr auto kGauge = MetricType::kGauge;

/// One family with a sample of each item whose value is known.
template <typename Item, typename LabelsOf, typename ValueOf>
void WriteFamily(MetricsText& text, const char* name, MetricType type, const char* help,
                 const std::vector<Item>& items, LabelsOf labels, ValueOf value) {
  text.Family(name, type, help);
  for (const auto& item : items) {
    if (const std::optional<double> known = value(item)) text.Sample(labels(item), *known);
  }
}

void WriteMirrors(MetricsText& text, const std::vector<MirrorMeasures>& mirrors) {
  const auto write = [&](const char* name, MetricType type, const char* help, auto value) {
    WriteFamily(text, name, type, help, mirrors,
                [](const MirrorMeasures& m) { return Labels{{"mirror", m.name}}; }, value);
  };
  text.Family("tidemark_mirror_info", kGauge, "The mirror's source and state; always 1.");
  for (const auto& m : mirrors) {
    text.Sample({{"mirror", m.name}, {"source", m.source}, {"state", m.state}}, 1);
  }
  write("tidemark_mirror_up", kGauge,
        "1 while the mirror copies or streams and has said so within 30 s.",
        [](const MirrorMeasures& m) { return m.alive ? 1.0 : 0.0; });
  write("tidemark_mirror_readable", kGauge, "1 once the first copy is published.",
        [](const MirrorMeasures& m) { return m.readable ? 1.0 : 0.0; });
  write("tidemark_mirror_heartbeat_age_seconds", kGauge,
        "Since the capturing process last said something.",
        [](const MirrorMeasures& m) { return m.heartbeat_age_seconds; });
  write("tidemark_mirror_lag_bytes", kGauge,
        "Write-ahead log of the source that has not been received, as last heard.",
        [](const MirrorMeasures& m) { return m.lag_bytes; });
  write("tidemark_mirror_lag_seconds", kGauge,
        "How old the newest received commit is while more is known to come; 0 otherwise.",
        [](const MirrorMeasures& m) { return m.lag_seconds; });
  write("tidemark_mirror_slot_retained_bytes", kGauge,
        "Write-ahead log that the replication slot holds back at the source.",
        [](const MirrorMeasures& m) { return m.retained_bytes; });
  write("tidemark_mirror_slot_safe_bytes", kGauge,
        "What the source may write before it drops log that the slot needs; none: not limited.",
        [](const MirrorMeasures& m) { return m.slot_safe_bytes; });
  write("tidemark_mirror_source_log_free_bytes", kGauge,
        "What is free where the source keeps its log; none: not known.",
        [](const MirrorMeasures& m) { return m.log_free_bytes; });
  write("tidemark_mirror_commits_total", kCounter,
        "Commits of the source that have been applied; the first copy is one.",
        [](const MirrorMeasures& m) { return static_cast<double>(m.commits); });
  write("tidemark_mirror_failures_total", kCounter, "How often following the mirror has failed.",
        [](const MirrorMeasures& m) { return static_cast<double>(m.failures); });
  write("tidemark_mirror_basis_age_seconds", kGauge, "Since the newest publish of the mirror.",
        [](const MirrorMeasures& m) { return m.basis_age_seconds; });
}

void WriteCaptures(MetricsText& text, const std::vector<CaptureMeasures>& captures) {
  const auto write = [&](const char* name, MetricType type, const char* help, auto value) {
    WriteFamily(text, name, type, help, captures,
                [](const CaptureMeasures& c) { return Labels{{"dataset", c.dataset}}; }, value);
  };
  write("tidemark_captures_total", kCounter,
        "Captures of the dataset that were published, unchanged ones too.",
        [](const CaptureMeasures& c) { return static_cast<double>(c.captures); });
  write("tidemark_capture_failures_total", kCounter, "Captures of the dataset that failed.",
        [](const CaptureMeasures& c) { return static_cast<double>(c.failures); });
  write("tidemark_capture_failing", kGauge, "1 when a capture has failed since the last success.",
        [](const CaptureMeasures& c) { return c.failing ? 1.0 : 0.0; });
  write("tidemark_capture_seconds_total", kCounter,
        "How long all published captures of the dataset read their source.",
        [](const CaptureMeasures& c) { return c.capture_seconds; });
  write("tidemark_capture_last_duration_seconds", kGauge,
        "How long the newest published capture read its source.",
        [](const CaptureMeasures& c) { return c.last_capture_seconds; });
  write("tidemark_capture_basis_age_seconds", kGauge, "Since the newest publish of the dataset.",
        [](const CaptureMeasures& c) { return c.basis_age_seconds; });
}

void WriteRows(MetricsText& text, const std::vector<RowMeasures>& rows) {
  const auto write = [&](const char* name, MetricType type, const char* help, auto value) {
    WriteFamily(text, name, type, help, rows,
                [](const RowMeasures& r) {
                  return Labels{{"dataset", r.dataset}, {"journal", r.journal}};
                },
                value);
  };
  write("tidemark_dataset_rows", kGauge, "Rows of the newest version.",
        [](const RowMeasures& r) { return static_cast<double>(r.live_rows); });
  write("tidemark_dataset_puts_total", kCounter, "Row versions that have been put.",
        [](const RowMeasures& r) { return static_cast<double>(r.puts); });
  write("tidemark_dataset_deletions_total", kCounter, "Rows that have been deleted.",
        [](const RowMeasures& r) { return static_cast<double>(r.deletions); });
}

void WriteStore(MetricsText& text, const std::optional<Measures>& store) {
  text.Family("tidemark_store_up", kGauge, "1 while the store answers.");
  text.Sample({}, store ? 1 : 0);
  if (!store) return;
  text.Family("tidemark_store_info", kGauge, "The store's identity; always 1.");
  text.Sample({{"store", store->store_id}}, 1);
  text.Family("tidemark_last_basis", kGauge, "The number of the newest publish.");
  text.Sample({}, static_cast<double>(store->last_basis));
  text.Family("tidemark_last_basis_age_seconds", kGauge, "Since the newest publish.");
  if (store->last_basis_age_seconds) text.Sample({}, *store->last_basis_age_seconds);
  text.Family("tidemark_store_notification_queue_usage_ratio", kGauge,
              "How full PostgreSQL's queue of notifications is; above 0.5 events are no longer "
              "notified, only kept.");
  text.Sample({}, store->notification_queue_usage);
  WriteMirrors(text, store->mirrors);
  WriteCaptures(text, store->captures);
  WriteRows(text, store->rows);
}

}  // namespace

std::string MetricsPage(const std::optional<Measures>& store, const ServerMeasures& server) {
  MetricsText text;
  WriteStore(text, store);
  text.Family("tidemark_http_connections", kGauge, "Connections to the http server.");
  text.Sample({}, static_cast<double>(server.connections));
  text.Family("tidemark_http_subscribers", kGauge, "Those of them that read events.");
  text.Sample({}, static_cast<double>(server.subscribers));
  text.Family("tidemark_http_requests_total", kCounter, "Requests that were read.");
  text.Sample({}, static_cast<double>(server.requests));
  text.Family("tidemark_http_events_sent_total", kCounter, "Events that were sent to subscribers.");
  text.Sample({}, static_cast<double>(server.events_sent));
  text.Family("tidemark_http_slow_readers_cut_total", kCounter,
              "Connections that were closed since they did not take what was sent.");
  text.Sample({}, static_cast<double>(server.cut));
  return text.text();
}

}  // namespace tidemark::http
