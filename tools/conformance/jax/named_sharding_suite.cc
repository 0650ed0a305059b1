// named_sharding.json: a mesh, a spec and a shape, observed from every device.
#include <functional>

#include "meshard/sharding/tile_assignment.h"
#include "tools/conformance/difference.h"
#include "tools/conformance/jax/inputs.h"
#include "tools/conformance/jax/module_shardings.h"
#include "tools/conformance/jax/rules.h"

namespace meshard::conformance {
namespace named_sharding_cases {

Json error_named(const char* name) { return {{"error", name}}; }

/// The result of `work()`, or the name of JAX's exception if it throws.
Json answer_or(const char* exception, const std::function<Json()>& work) {
  try {
    return work();
  } catch (const Error&) {
    return error_named(exception);
  }
}

/// Drops dimensions beyond the rank that nothing splits, which JAX ignores.
Sharding for_rank(const Sharding& sharding, std::size_t rank) {
  std::vector<DimensionSpec> dimensions = sharding.spec().dimensions();
  while (dimensions.size() > rank && sharding.num_tiles(dimensions.size() - 1) == 1)
    dimensions.pop_back();
  return Sharding(sharding.mesh(), PartitionSpec(std::move(dimensions)), rank);
}

Json indices_of(const Sharding& sharding, IntView shape) {
  Json all = Json::array();
  SliceTable slices = sharding.slices(shape);
  for (std::size_t p = 0; p < slices.size(); ++p) {
    Json box = Json::array();
    for (std::size_t d = 0; d < shape.size(); ++d)
      box.push_back({slices[p][d].start, slices[p][d].stop});
    all.push_back(box);
  }
  return all;
}

Json replica_ids_of(const Sharding& sharding, IntView shape) {
  Json ids = Json::array();
  for (std::int64_t p = 0; p < sharding.mesh().size(); ++p)
    ids.push_back(sharding.replica_id(shape, p));
  return ids;
}

/// The boundary of a program accepts only fully specified shardings.
Json at_boundary(const Sharding& sharding, const Shape& shape) {
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    if (sharding.is_open(d)) return error_named("ValueError");
  return identity_shardings(sharding, shape);
}

Json facts_of(const Sharding& sharding, const std::vector<std::int64_t>& shape) {
  auto fitted = [&] { return for_rank(sharding, shape.size()); };
  Json facts = {
      {"is_fully_replicated", sharding.is_fully_replicated()},
      {"shard_shape", answer_or("IndexError",
                                [&] {
                                  IntVector shard = fitted().shard_shape(shape);
                                  return std::vector<std::int64_t>(shard.begin(), shard.end());
                                })},
      {"indices", answer_or("IndexError", [&] { return indices_of(fitted(), shape); })},
      {"hlo", answer_or("IndexError", [&] { return tile_assignment(fitted()).to_string(); })},
      {"sdy_in_out",
       answer_or("ValueError",
                 [&] { return at_boundary(sharding.with_rank(shape.size()), Shape(shape)); })},
      {"sdy_constraint", answer_or("ValueError", [&] {
         return constraint_shardings(sharding.with_rank(shape.size()), Shape(shape));
       })}};
  if (facts.at("indices").is_array())
    facts["replica_id_mesh_order"] = replica_ids_of(fitted(), shape);
  return facts;
}

Json answer_to(const Json& input, const GoldenFile& file) {
  Mesh mesh = jax_mesh(input.at("mesh"), file);
  try {
    Sharding sharding(mesh, jax_spec(input.at("spec")));
    return facts_of(sharding, input.at("shape"));
  } catch (const Error& error) {
    bool twice = error.message().find(" is used twice") != std::string::npos;
    return {{"ctor", error_named(twice ? "DuplicateSpecError" : "ValueError")}};
  }
}

/// Replaces our answer with the recorded one where the rule uneven-kept explains the difference.
/// Where JAX rejects a size, it records no replicas either.
Json with_recorded_refusals(Json ours, const Json& test) {
  if (!ours.contains("hlo") || !ours.at("hlo").is_string()) return ours;
  std::string tiles = ours.at("hlo");
  Json shard = ours.at("shard_shape");
  for (const char* field : {"shard_shape", "indices", "sdy_in_out"})
    if (uneven_kept(test.at(field), tiles, shard, test.at("shape"))) ours[field] = test.at(field);
  if (ours.at("indices").contains("error")) ours.erase("replica_id_mesh_order");
  return ours;
}

/// The first difference from the recorded answer. Fields of the input are copied from it. For
/// scalars, JAX prints an additional mesh without axes.
std::string difference_of(Json ours, Json test) {
  for (const char* field : {"id", "mesh", "spec", "shape"}) ours[field] = test.at(field);
  if (test.contains("sdy_constraint") && test.at("sdy_constraint").contains("mesh_ops")) {
    Json& meshes = test.at("sdy_constraint").at("mesh_ops");
    if (meshes.at(0) == "@empty_mesh = <[]>") meshes.erase(0);
  }
  return first_difference(ours, test);
}

Verdict judge_case(const Json& test, const Json& answer) {
  std::string difference = difference_of(answer, test);
  if (difference.empty()) return {};
  if (test.contains("ctor")) return Verdict::failed(difference);
  difference = difference_of(with_recorded_refusals(answer, test), test);
  return difference.empty() ? Verdict::by(Rule::kUnevenKept) : Verdict::failed(difference);
}

}  // namespace named_sharding_cases

Suite named_sharding_suite() {
  using namespace named_sharding_cases;
  return {"named_sharding.json", answer_to, judge_case};
}

}  // namespace meshard::conformance
