// Tested in meshard/lowering/shard_regions_test.cc.
// NodeWriter: ops that run on shards, in manual regions over all axes.
#include "meshard/lowering/internal/boundary_padding.h"
#include "meshard/lowering/internal/node_writer.h"

namespace meshard {
namespace {

using stablehlo::Typed;

std::vector<TensorType> local_types(std::span<const TensorType> types,
                                    const std::vector<Sharding>& shardings) {
  std::vector<TensorType> local;
  for (std::size_t i = 0; i < types.size(); ++i) {
    Dimensions sizes;
    for (std::int64_t size : shardings[i].shard_shape(types[i].shape)) sizes.push_back(size);
    local.push_back({types[i].dtype, Shape(std::move(sizes))});
  }
  return local;
}

// Regions take even shards only.
std::vector<TensorType> padded_types(std::span<const Typed> values,
                                     const std::vector<Sharding>& shardings) {
  std::vector<TensorType> padded;
  for (std::size_t i = 0; i < values.size(); ++i)
    padded.push_back(padded_type(*values[i].type, shardings[i]));
  return padded;
}

}  // namespace

bool NodeWriter::is_on_shards(const Node& node) const {
  auto* runs_on_shards = node.op().traits.runs_on_shards;
  if (!runs_on_shards || !is_partitioned(node)) return false;
  // Regions inside regions over other axes, and over axes that another mesh cuts, are faults of
  // compilers; the partitioner gathers instead.
  if (node.annotations() && node.annotations()->manual) return false;
  return meshes_.all().size() == 1 && runs_on_shards(call_of(node));
}

void NodeWriter::write_on_shards(const Node& node, const OpCall& call, const OpEmission& out) {
  if (!splits_) splits_.emplace(graph_, meshes_);
  const ShardSplits::Shardings split = splits_->of(node);
  const Mesh& mesh = *meshes_.numbering();
  const std::uint32_t number = graph_.number(&node);

  std::vector<TensorType> whole_given = padded_types(out.operands, split.operands),
                          whole_made = padded_types(out.results, split.results),
                          given = local_types(whole_given, split.operands),
                          made = local_types(whole_made, split.results);
  std::vector<Typed> whole_arguments, whole_results, arguments, results;
  for (std::size_t i = 0; i < whole_given.size(); ++i)
    whole_arguments.emplace_back(
        pad(out.operands[i].value, *out.operands[i].type, whole_given[i], number), whole_given[i]);
  for (std::size_t i = 0; i < whole_made.size(); ++i)
    whole_results.emplace_back(
        whole_made[i] == *out.results[i].type ? out.results[i].value : writer_.temporary(),
        whole_made[i]);
  OpCall local{.op = call.op,
               .attributes = call.attributes,
               .operands = {},
               .results = {},
               .where = call.where};
  for (const TensorType& type : given) {
    arguments.emplace_back(writer_.block_argument(), type);
    local.operands.push_back(&type);
  }
  for (const TensorType& type : made) {
    results.emplace_back(writer_.temporary(), type);
    local.results.push_back(&type);
  }
  OpEmission inside{.writer = writer_,
                    .operands = arguments,
                    .results = results,
                    .location = out.location,
                    .quirks = quirks_,
                    .bodies = out.bodies};
  writer_.op("sdy.manual_computation", whole_results, whole_arguments, out.location)
      .raw("in_shardings", meshes_.shardings_text(split.operands))
      .raw("manual_axes", cat("#sdy<manual_axes", AxisSet::all(mesh).to_string(mesh), ">"))
      .raw("out_shardings", meshes_.shardings_text(split.results))
      .region(arguments,
              [&] {
                node.op().emit(local, inside);
                writer_.terminate(results, "sdy.return");
              })
      .done();
  for (std::size_t i = 0; i < whole_made.size(); ++i)
    if (whole_made[i] != *out.results[i].type)
      write_cut(out.results[i], whole_results[i], out.location);
}

}  // namespace meshard
