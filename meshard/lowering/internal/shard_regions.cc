// Tested in meshard/lowering/shard_regions_test.cc.
// NodeWriter: ops that run on shards, in manual regions over all axes.
#include "meshard/lowering/internal/node_writer.h"

namespace meshard {
namespace {

using stablehlo::Typed;

std::vector<TensorType> local_types(std::span<const Typed> values,
                                    const std::vector<Sharding>& shardings) {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Dimensions sizes;
    for (std::int64_t size : shardings[i].shard_shape(values[i].type->shape)) sizes.push_back(size);
    types.push_back({values[i].type->dtype, Shape(std::move(sizes))});
  }
  return types;
}

}  // namespace

bool NodeWriter::write_on_shards(const Node& node, const OpCall& call, const OpEmission& out) {
  if (!node.op().traits.runs_on_shards || !out.partitioned) return false;
  // Regions inside regions over other axes, and over axes that another mesh cuts, are faults of
  // compilers; the partitioner gathers instead.
  if (node.annotations() && node.annotations()->manual) return false;
  if (meshes_.all().size() > 1) return false;
  if (!splits_) splits_.emplace(graph_, meshes_);
  const ShardSplits::Shardings split = splits_->of(node);
  const Mesh& mesh = *meshes_.numbering();

  std::vector<TensorType> given = local_types(out.operands, split.operands),
                          made = local_types(out.results, split.results);
  std::vector<Typed> arguments, results;
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
  writer_.op("sdy.manual_computation", out.results, out.operands, out.location)
      .raw("in_shardings", meshes_.shardings_text(split.operands))
      .raw("manual_axes", cat("#sdy<manual_axes", AxisSet::all(mesh).to_string(mesh), ">"))
      .raw("out_shardings", meshes_.shardings_text(split.results))
      .region(arguments,
              [&] {
                node.op().emit(local, inside);
                writer_.terminate(results, "sdy.return");
              })
      .done();
  return true;
}

}  // namespace meshard
