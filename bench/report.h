// What a measurement prints: one aligned table for people, and the same figures as JSON for
// programs. No figure is judged.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace tidemark::bench {

/// One cell: a text, or a number with its figures behind the point. Empty: not applicable.
struct Cell {
  Cell() = default;
  Cell(std::string t) : text(std::move(t)), json(Quoted(text)) {}  // NOLINT
  Cell(const char* t) : Cell(std::string(t)) {}                    // NOLINT
  Cell(double value, int digits);
  static std::string Quoted(const std::string& text);
  std::string text = "-", json = "null";
};

class Report {
 public:
  /// `columns` head the table and name the JSON members.
  Report(std::string bench, std::vector<std::string> columns);
  /// A condition of the run, shown above the table.
  void Note(const std::string& name, Cell value);
  /// `cells` are as many as there are columns.
  void Add(std::vector<Cell> cells);
  /// A result of the whole run, shown below the table, with what is to be reached (empty: nothing
  /// set).
  void Figure(const std::string& what, Cell value, std::string to_reach);
  /// Prints table and figures, and writes JSON to `json_file` unless it is empty.
  void Publish(const std::string& json_file) const;

 private:
  std::string bench_;
  std::vector<std::string> columns_;
  std::vector<std::pair<std::string, Cell>> notes_;
  std::vector<std::vector<Cell>> rows_;
  struct Result {
    std::string what;
    Cell value;
    std::string to_reach;
  };
  std::vector<Result> figures_;
};

/// The middle value (of the lower half when they are even); 0 without any.
double Median(std::vector<double> values);
/// The value below which `share` (0 … 1) of the values lie; 0 without any.
double Percentile(std::vector<double> values, double share);

/// Says on stderr what goes on now, with the seconds since the program began.
void Say(const std::string& what);

/// Seconds since its construction.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace tidemark::bench
