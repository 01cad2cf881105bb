// Prometheus' text format, version 0.0.4: families of samples, each with its help and type, labels
// escaped. A pure writer; what the numbers mean is metrics.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidemark::http {

enum class MetricType { kCounter, kGauge };

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

class MetricsText {
 public:
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

  /// Begins a family; the samples that follow are its. A family without samples is left out.
  void Family(std::string_view name, MetricType type, std::string_view help);
  /// Whole numbers are written whole.
  void Sample(const Labels& labels, double value);

  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string name_, header_;  // the header is written before the first sample
};

}  // namespace tidemark::http
