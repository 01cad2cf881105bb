#include "bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "cli/text_table.h"

namespace tidemark::bench {

namespace {

// The other work of the machine, which every figure suffers from.
Cell LoadAverage() {
  double minutes[1] = {0};
  if (::getloadavg(minutes, 1) != 1) return {};
  return {minutes[0], 1};
}

}  // namespace

Cell::Cell(double value, int digits) {
  if (!std::isfinite(value)) return;
  json = fmt::format("{}", value);
  text = digits == 0 ? cli::Grouped(std::llround(value)) : fmt::format("{:.{}f}", value, digits);
}

std::string Cell::Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

Report::Report(std::string bench, std::vector<std::string> columns)
    : bench_(std::move(bench)), columns_(std::move(columns)) {
  Note("load average before", LoadAverage());
}

void Report::Note(const std::string& name, Cell value) { notes_.emplace_back(name, value); }

void Report::Add(std::vector<Cell> cells) {
  if (cells.size() != columns_.size()) throw std::logic_error("a row has the wrong width");
  rows_.push_back(std::move(cells));
}

void Report::Figure(const std::string& what, Cell value, std::string to_reach) {
  figures_.push_back({what, std::move(value), std::move(to_reach)});
}

void Report::Publish(const std::string& json_file) const {
  auto notes = notes_;
  notes.emplace_back("load average after", LoadAverage());
  fmt::print("\n{}\n", bench_);
  for (const auto& [name, value] : notes) fmt::print("  {}: {}\n", name, value.text);
  cli::TextTable table(columns_);
  for (const auto& row : rows_) {
    std::vector<std::string> cells;
    for (const auto& cell : row) cells.push_back(cell.text);
    table.Add(std::move(cells));
  }
  fmt::print("\n{}\n", table.ToString(2));
  if (!figures_.empty()) {
    cli::TextTable results({"figure", "value", "to reach"});
    for (const auto& figure : figures_) {
      results.Add({figure.what, figure.value.text, figure.to_reach});
    }
    fmt::print("{}\n", results.ToString(2));
  }
  std::fflush(stdout);
  if (json_file.empty()) return;
  std::string json = fmt::format("{{\"bench\": {}", Cell::Quoted(bench_));
  for (const auto& [name, value] : notes) {
    json += fmt::format(", {}: {}", Cell::Quoted(name), value.json);
  }
  json += ", \"rows\": [";
  for (const auto& row : rows_) {
    json += &row == rows_.data() ? "\n  {" : ",\n  {";
    for (size_t i = 0; i < row.size(); ++i) {
      json += fmt::format("{}{}: {}", i == 0 ? "" : ", ", Cell::Quoted(columns_[i]), row[i].json);
    }
    json += '}';
  }
  std::ofstream out(json_file);
  json += "\n], \"figures\": [";
  for (const auto& figure : figures_) {
    json += fmt::format("{}\n  {{\"what\": {}, \"value\": {}, \"to reach\": {}}}",
                        &figure == figures_.data() ? "" : ",", Cell::Quoted(figure.what),
                        figure.value.json, Cell::Quoted(figure.to_reach));
  }
  out << json << "\n]}\n";
  if (!out.flush()) throw std::runtime_error("could not write " + json_file);
}

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

double Median(std::vector<double> values) { return Percentile(std::move(values), 0.5); }

void Say(const std::string& what) {
  static const Stopwatch since_start;
  fmt::print(stderr, "[{:7.1f} s] {}\n", since_start.seconds(), what);
}

}  // namespace tidemark::bench
