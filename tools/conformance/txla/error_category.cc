#include "tools/conformance/txla/error_category.h"

#include <string_view>

#include "meshard/base/cat.h"
#include "tools/conformance/difference.h"

namespace meshard::conformance {
namespace {

using Json = nlohmann::json;

/// Part of one of our messages, and the reference's category for the condition.
struct Wording {
  std::string_view words;
  std::string_view category;
};

/// The first match is used.
constexpr Wording kWordings[] = {
    {" axis names (", "axis_names_length_mismatch"},
    {"[mesh] axis name ", "axis_names_not_unique"},
    {"are listed, but there are only", "device_count_exceeds_global"},
    {"there is no device ", "device_id_not_addressable"},
    {"has size 0", "mesh_size_mismatch"},
    {" inner sizes (", "ici_dcn_rank_mismatch"},
    {"the devices have no slice index", "dcn_shape_on_single_slice"},
    {"and no outer shape", "dcn_shape_required"},
    {"[topology] the outer shape", "slice_count_mismatch"},
    {"[topology] a mesh of", "device_count_mismatch"},
    {"allow AxisSplit::kWhereNeeded", "no_axis_assignment"},
    {"without an axis", "spec_invalid_axes"},
    {"[torus] a mesh of", "physical_logical_size_mismatch"},
    {" cannot make a value ", "global_shape_rank_mismatch"},
    {" shards for the ", "wrong_shard_count"},
    {", or with padding ", "wrong_shard_shape"},
    {" is replicated on ", "replicated_not_loadable"},
    {" has no sharding: mark it first", "not_sharded"},
    {" is already sharded differently", "already_sharded_differently"},
    {"a minibatch must be split along dimension 0", "minibatch_not_batch_only"},
    {"a minibatch of ", "minibatch_batch_not_divisible"},
    {" describes ", "spec_rank_mismatch"},
    {" does not exist: platform ", "device_id_not_addressable"},
    {" is listed twice", "device_ids_not_unique"},
    {" device ids for ", "mesh_size_mismatch"},
    {"two different sets of devices", "graph_mixes_device_sets"},
    {"[mesh] no axis ", "spec_unknown_axis_name"},
    {" is used twice", "spec_axis_repeated"},
    {" dimensions, but the tensor has ", "spec_rank_mismatch"},
};

}  // namespace

std::string error_category(const Error& error) {
  if (dynamic_cast<const ReferenceError*>(&error)) return error.message();
  for (const Wording& wording : kWordings)
    if (error.message().find(wording.words) != std::string_view::npos)
      return std::string(wording.category);
  return "unclassified";
}

Json answer_or_category(const std::function<Json()>& work) {
  try {
    return {{"expect", work()}};
  } catch (const Error& error) {
    return {{"expect_error", {{"category", error_category(error)}, {"message", error.message()}}}};
  }
}

std::string answer_difference(const Json& test, const Json& answer) {
  bool ours_fails = answer.contains("expect_error");
  bool recorded_fails = test.contains("expect_error");
  if (ours_fails != recorded_fails)
    return cat("ours ", shortened(answer), ", recorded ",
               recorded_fails ? shortened(test.at("expect_error")) : shortened(test.at("expect")));
  if (!ours_fails) return first_difference(answer.at("expect"), test.at("expect"));
  const Json& recorded = test.at("expect_error").at("category");
  if (recorded == "other") return {};
  return first_difference(answer.at("expect_error").at("category"), recorded);
}

}  // namespace meshard::conformance
