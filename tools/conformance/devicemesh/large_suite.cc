// large.json: digests of meshes of up to a million ranks.
#include "meshard/base/cat.h"
#include "meshard/layout/algebra.h"
#include "meshard/layout/int_tuple.h"
#include "meshard/layout/modes.h"
#include "tools/conformance/devicemesh/golden_error.h"
#include "tools/conformance/devicemesh/layout_adapter.h"
#include "tools/conformance/devicemesh/layout_judge.h"

namespace meshard::conformance {
namespace large_cases {

std::vector<std::int64_t> rank_map_of(const Json& json, std::int64_t world) {
  std::string kind = json.at("kind");
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(world));
  for (std::int64_t i = 0; i < world; ++i) {
    std::int64_t rank = i;
    if (kind == "affine")
      rank = json.at("start").get<std::int64_t>() + json.at("step").get<std::int64_t>() * i;
    if (kind == "mulmod")
      rank = (json.at("a").get<std::int64_t>() * i + json.at("c").get<std::int64_t>()) % world;
    ranks[static_cast<std::size_t>(i)] = rank;
  }
  return ranks;
}

/// The axes after all steps.
std::vector<Layout> run_steps(const Json& input) {
  std::vector<Layout> axes = modes_of(Layout(tuple_of(input.at("shape"))));
  for (Layout& axis : axes) axis = axis_of(axis);
  for (const Json& step : input.at("steps")) {
    std::vector<Layout> next;
    if (step.contains("take_axes"))
      for (const Json& k : step.at("take_axes")) next.push_back(axes.at(k));
    else
      next =
          unflatten(std::vector<Layout>{merged(axes)}, 0, tuple_of(step.at("collapse_then_split")));
    for (Layout& axis : next) axis = axis_of(axis);
    axes = std::move(next);
  }
  return axes;
}

std::string fnv1a64(const std::vector<std::int64_t>& data) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::int64_t value : data)
    for (int byte = 0; byte < 4; ++byte) {
      hash ^= static_cast<std::uint64_t>(value >> (8 * byte)) & 0xff;
      hash *= 0x100000001b3;
    }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::int64_t weighted_sum(const std::vector<std::int64_t>& data) {
  constexpr std::uint64_t kModulus = (std::uint64_t{1} << 61) - 1;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < data.size(); ++i)
    sum = (sum + (i + 1) * static_cast<std::uint64_t>(data[i])) % kModulus;
  return static_cast<std::int64_t>(sum);
}

/// The positions of the rank map whose ranks the file records.
std::vector<std::int64_t> probed_positions(std::int64_t world) {
  return {0, 1, world / 3, world / 2, world - 1};
}

Json large_remap(const Json& input) {
  constexpr std::size_t kShown = 8;
  std::int64_t world = input.at("world");
  std::vector<std::int64_t> rank_map = rank_map_of(input.at("rank_map"), world);
  std::vector<Layout> axes = run_steps(input);
  std::vector<Layout> dims = with_rows(axes, world);
  Layout tensor = concatenate(dims);
  Layout positions = right_inverse(tensor);  // maps a position of the rank map to one of the tensor

  IntVector shape;
  for (const Layout& dim : dims) shape.push_back(dim.size());
  std::vector<std::int64_t> data = values_of(tensor);
  for (std::int64_t& value : data) value = rank_map.at(static_cast<std::size_t>(value));
  std::size_t row = data.size() / static_cast<std::size_t>(shape[0]);
  std::size_t shown = std::min(kShown, row);

  Json probes = Json::array();
  for (std::int64_t at : probed_positions(world)) {
    IntTuple place = coordinate_of(IntTuple::flat(shape), positions(at));
    IntVector position(place.leaves().begin() + 1, place.leaves().end());
    probes.push_back({{"rank", rank_map.at(static_cast<std::size_t>(at))},
                      {"row", place.leaves()[0]},
                      {"position", std::vector<std::int64_t>(position.begin(), position.end())}});
  }
  return {{"axes", json_of_axes(axes)},
          {"tensor_shape", std::vector<std::int64_t>(shape.begin(), shape.end())},
          {"fnv1a64_int32le", fnv1a64(data)},
          {"weighted_sum_mod_2p61m1", weighted_sum(data)},
          {"first_row_head", std::vector<std::int64_t>(data.begin(), data.begin() + shown)},
          {"last_row_tail", std::vector<std::int64_t>(data.end() - shown, data.end())},
          {"rank_probe", probes}};
}

Json answer_to(const Json& input, const GoldenFile&) {
  if (input.at("fn") != "large_remap") return {};
  return answer_or_error([&] { return large_remap(input); });
}

Verdict judge_case(const Json& test, const Json& answer) { return judge_layout_case(test, answer); }

}  // namespace large_cases

Suite large_suite() {
  using namespace large_cases;
  return {"large.json", answer_to, judge_case};
}

}  // namespace meshard::conformance
