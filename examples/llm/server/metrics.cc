#include "examples/llm/server/metrics.h"

#include <sstream>

namespace llm {
namespace {

constexpr double kBounds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};

}  // namespace

void Metrics::add(const std::string& name, const std::string& labels, double value) {
  const std::lock_guard lock(mutex_);
  counters_[name][labels] += value;
}

void Metrics::observe_seconds(const std::string& name, double seconds) {
  const std::lock_guard lock(mutex_);
  Histogram& histogram = histograms_[name];
  histogram.counts.resize(std::size(kBounds) + 1);
  std::size_t place = 0;
  while (place < std::size(kBounds) && seconds > kBounds[place]) ++place;
  histogram.counts[place] += 1;
  histogram.sum += seconds;
  histogram.count += 1;
}

std::string Metrics::text(const std::map<std::string, double>& counters,
                          const std::map<std::string, double>& gauges) const {
  std::ostringstream out;
  out.precision(17);
  const auto single = [&](const std::map<std::string, double>& values, const char* type) {
    for (const auto& [name, value] : values)
      out << "# TYPE " << name << ' ' << type << '\n' << name << ' ' << value << '\n';
  };
  single(counters, "counter");
  single(gauges, "gauge");
  const std::lock_guard lock(mutex_);
  for (const auto& [name, values] : counters_) {
    out << "# TYPE " << name << " counter\n";
    for (const auto& [labels, value] : values)
      out << name << (labels.empty() ? "" : "{" + labels + "}") << ' ' << value << '\n';
  }
  for (const auto& [name, histogram] : histograms_) {
    out << "# TYPE " << name << " histogram\n";
    double below = 0;
    for (std::size_t i = 0; i < std::size(kBounds); ++i)
      out << name << "_bucket{le=\"" << std::to_string(kBounds[i]) << "\"} "
          << (below += histogram.counts[i]) << '\n';
    out << name << "_bucket{le=\"+Inf\"} " << histogram.count << '\n'
        << name << "_sum " << histogram.sum << '\n'
        << name << "_count " << histogram.count << '\n';
  }
  return out.str();
}

}  // namespace llm
