#include "meshard/explain/argument_matrix.h"

#include <algorithm>
#include <vector>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

// The part of a value that a device receives.
std::string part_of(const ValuePlacement& value, std::int64_t device) {
  if (!value.sharding || value.sharding->is_fully_replicated()) return "all";
  std::optional<std::int64_t> position = value.sharding->mesh().position(device);
  if (!position) return "none";
  std::vector<std::string> ranges;
  for (const DimensionSlice& slice : value.sharding->slice(value.type.shape, *position)) {
    if (slice.size() == 0) return "empty";
    ranges.push_back(slice.to_string());
  }
  return join(ranges, ",");
}

std::string padded_to(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

}  // namespace

std::string argument_matrix(const ProgramReport& report, std::size_t most_devices) {
  const std::vector<ValuePlacement>& arguments = report.arguments();
  std::vector<std::int64_t> devices{0};
  std::size_t left_out = 0;
  if (const std::optional<Mesh>& mesh = report.mesh()) {
    auto all = static_cast<std::size_t>(mesh->size());
    std::size_t shown = most_devices == 0 ? all : std::min(all, most_devices);
    left_out = all - shown;
    devices.resize(shown);
    for (std::size_t i = 0; i < shown; ++i)
      devices[i] = mesh->rank_map()[static_cast<std::int64_t>(i)];
  }
  std::vector<std::vector<std::string>> columns{{"device"}};
  for (std::int64_t device : devices)
    columns[0].push_back(report.mesh() ? cat(device) : std::string("single"));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view name = arguments[i].name;
    columns.push_back({name.empty() ? cat(i) : cat(i, ' ', name)});
    for (std::int64_t device : devices) columns.back().push_back(part_of(arguments[i], device));
  }
  std::string out;
  for (std::size_t row = 0; row <= devices.size(); ++row) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      std::size_t width = 0;
      for (const std::string& text : columns[c]) width = std::max(width, text.size());
      bool last = c + 1 == columns.size();
      append(out, last ? columns[c][row] : padded_to(columns[c][row], width + 2));
    }
    append(out, '\n');
  }
  if (left_out > 0) append(out, cat("and ", left_out, " more devices\n"));
  return out;
}

}  // namespace meshard
