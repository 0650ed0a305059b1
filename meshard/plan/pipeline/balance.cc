#include "meshard/plan/pipeline/balance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"

namespace meshard {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// For each number of ranges and each end, the least combined value, and where the last range
// begins.
struct Table {
  Table(std::size_t parts, std::size_t layers)
      : width(layers + 1), value((parts + 1) * width, kInfinity), begin((parts + 1) * width, 0) {
    value[0] = 0;
  }
  double& at(std::size_t part, std::size_t end) { return value[part * width + end]; }
  std::size_t width;
  std::vector<double> value;
  std::vector<std::size_t> begin;
};

// @param combine of the value of the ranges before, and the cost of the last range
template <class Combine>
Table table_of(const std::vector<double>& sums, std::size_t parts, Combine combine) {
  const std::size_t layers = sums.size() - 1;
  Table table(parts, layers);
  for (std::size_t part = 1; part <= parts; ++part)
    for (std::size_t end = part; end <= layers; ++end)
      for (std::size_t begin = part - 1; begin < end; ++begin) {
        double value = combine(table.at(part - 1, begin), sums[end] - sums[begin]);
        if (value < table.at(part, end)) {
          table.at(part, end) = value;
          table.begin[part * table.width + end] = begin;
        }
      }
  return table;
}

}  // namespace

std::vector<int> balanced_layers(std::span<const double> costs, int stages, SourceLocation where) {
  if (stages < 1 || static_cast<std::size_t>(stages) > costs.size())
    throw_invalid(where, "[plan] ", costs.size(), " layers cannot be divided into ", stages,
                  " stages");
  std::vector<double> sums{0};
  for (double cost : costs) {
    if (!(cost >= 0) || !std::isfinite(cost))
      throw_invalid(where, "[plan] a layer has the cost ", cost);
    sums.push_back(sums.back() + cost);
  }
  auto parts = static_cast<std::size_t>(stages);
  const double largest = table_of(sums, parts, [](double before, double cost) {
                           return std::max(before, cost);
                         }).at(parts, costs.size());
  Table table = table_of(sums, parts, [&](double before, double cost) {
    return cost <= largest ? before + cost * cost : kInfinity;
  });
  std::vector<int> counts(parts);
  for (std::size_t end = costs.size(); parts > 0; --parts) {
    std::size_t begin = table.begin[parts * table.width + end];
    counts[parts - 1] = static_cast<int>(end - begin);
    end = begin;
  }
  return counts;
}

}  // namespace meshard
