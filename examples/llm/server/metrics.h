#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace llm {

/// Counters and histograms in Prometheus' text format (version 0.0.4). Threads may share one.
class Metrics {
 public:
  /// Adds to a counter. `labels` as in `code="200"`; empty for none.
  void add(const std::string& name, const std::string& labels, double value = 1);
  /// Adds a time to a histogram.
  void observe_seconds(const std::string& name, double seconds);
  /// All of them, with the lines of gauges that the caller has.
  [[nodiscard]] std::string text(const std::map<std::string, double>& counters,
                                 const std::map<std::string, double>& gauges) const;

 private:
  struct Histogram {
    std::vector<double> counts;  ///< for each bound, and for infinity
    double sum = 0, count = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, double>> counters_;
  std::map<std::string, Histogram> histograms_;
};

}  // namespace llm
