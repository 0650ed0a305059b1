#include "tools/conformance/txla/scenario/numbers.h"

#include <cmath>
#include <optional>
#include <stdexcept>

#include "meshard/base/cat.h"

namespace meshard::conformance {
namespace {

using Json = nlohmann::json;
using Sizes = std::vector<std::int64_t>;

constexpr double kTolerance = 1e-5;

bool is_close(double a, double b) {
  return a == b || std::abs(a - b) <= kTolerance * std::max(1.0, std::abs(b)) ||
         (std::isnan(a) && std::isnan(b));
}

/// A shard's half-open range in each dimension.
std::vector<Sizes> box_of(const Json& shard, const Sizes& shape) {
  if (shard.at("indices") != "all") return shard.at("indices").get<std::vector<Sizes>>();
  std::vector<Sizes> box;
  for (std::int64_t size : shape) box.push_back({0, size});
  return box;
}

/// Visits the elements of a box with their indices in the whole and in the shard, both row-major.
template <class Visit>
void visit(const std::vector<Sizes>& box, const Sizes& whole, const Sizes& shard, Visit&& visit_one,
           std::size_t d = 0, std::int64_t at = 0, std::int64_t at_shard = 0) {
  if (d == box.size()) return visit_one(at, at_shard);
  for (std::int64_t i = box[d][0]; i < box[d][1]; ++i)
    visit(box, whole, shard, visit_one, d + 1, at * whole[d] + i,
          at_shard * shard[d] + i - box[d][0]);
}

}  // namespace

std::vector<double> doubles_of(const Json& list) {
  std::vector<double> values;
  for (const Json& value : list)
    values.push_back(value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0) : value.get<double>());
  return values;
}

std::string first_difference_of(const std::vector<double>& ours,
                                const std::vector<double>& recorded) {
  if (ours.size() != recorded.size())
    return cat(": ours has ", ours.size(), " elements, recorded ", recorded.size());
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (!is_close(ours[i], recorded[i]))
      return cat("[", i, "]: ours ", ours[i], ", recorded ", recorded[i]);
  return {};
}

std::vector<double> assembled(const Json& shards, const Json& shape) {
  Sizes sizes = shape.get<Sizes>();
  std::size_t count = 1;
  for (std::int64_t size : sizes) count *= static_cast<std::size_t>(size);
  std::vector<std::optional<double>> whole(count);
  for (const Json& shard : shards) {
    std::vector<double> data = doubles_of(shard.at("data"));
    Sizes padded = shard.contains("shape") ? shard.at("shape").get<Sizes>() : Sizes();
    std::vector<Sizes> box = box_of(shard, sizes);
    if (padded.empty())
      for (const Sizes& range : box) padded.push_back(range[1] - range[0]);
    visit(box, sizes, padded, [&](std::int64_t at, std::int64_t at_shard) {
      std::optional<double>& element = whole[static_cast<std::size_t>(at)];
      double value = data.at(static_cast<std::size_t>(at_shard));
      if (element && !is_close(value, *element))
        throw std::runtime_error(cat("shards disagree about element ", at, ": ", value,
                                     " on device ", shard.at("device").get<int>(), ", ", *element,
                                     " before"));
      element = value;
    });
  }
  std::vector<double> values;
  for (const std::optional<double>& element : whole) {
    if (!element) throw std::runtime_error("no shard holds some element");
    values.push_back(*element);
  }
  return values;
}

}  // namespace meshard::conformance
