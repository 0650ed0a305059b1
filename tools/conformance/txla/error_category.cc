#include "tools/conformance/txla/error_category.h"

#include <string_view>

namespace meshard::conformance {
namespace {

/// Words of a message of ours, and what the reference calls the condition.
struct Wording {
  std::string_view words;
  std::string_view category;
};

/// The first that fits counts.
constexpr Wording kWordings[] = {
    {" cannot make a value ", "global_shape_rank_mismatch"},
    {" shards for the ", "wrong_shard_count"},
    {" it holds ", "wrong_shard_shape"},
    {" is replicated on ", "replicated_not_loadable"},
    {" has no sharding: mark it first", "not_sharded"},
    {"a minibatch is split along dimension 0", "minibatch_not_batch_only"},
    {"a minibatch of ", "minibatch_batch_not_divisible"},
    {" describes ", "spec_rank_mismatch"},
    {" does not exist: platform ", "device_id_not_addressable"},
    {" is listed twice", "device_ids_not_unique"},
    {" device ids for ", "mesh_size_mismatch"},
    {"two different sets of devices", "graph_mixes_device_sets"},
};

}  // namespace

std::string error_category(const Error& error) {
  for (const Wording& wording : kWordings)
    if (error.message().find(wording.words) != std::string_view::npos)
      return std::string(wording.category);
  return "unclassified";
}

}  // namespace meshard::conformance
