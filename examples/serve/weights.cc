#include "examples/serve/weights.h"

namespace serve {

using namespace meshard;

namespace {

// A checkpoint of a training holds the model as a member.
struct Trained {
  gpt::Gpt model;
  MESHARD_FIELDS(model)
};

std::string prefix_of(const io::Weights& weights) {
  return weights.contains("model.bytes.table") ? "model." : "";
}

}  // namespace

Result<gpt::Sizes> sizes_of(const io::Weights& weights) {
  std::string prefix = prefix_of(weights);
  auto dim = [&](const std::string& name, std::int64_t rank, std::int64_t at) {
    Result<TensorType> type = weights.type(prefix + name);
    return type && type->rank() == rank ? type->shape[at] : 0;
  };
  gpt::Sizes sizes;
  sizes.layers = 0;
  while (weights.contains(cat(prefix, "blocks.", sizes.layers, ".attention.query"))) ++sizes.layers;
  sizes.width = dim("bytes.table", 2, 1);
  sizes.heads = dim("blocks.0.attention.query", 3, 1);
  sizes.hidden = dim("blocks.0.mlp.gate.weight", 2, 1);
  if (sizes.layers == 0 || sizes.width == 0 || sizes.heads == 0 || sizes.hidden == 0)
    return Error(
        ErrorCode::kInvalidArgument,
        "[serve] these are not the weights of examples/gpt: bytes.table, "
        "blocks.0.attention.query and blocks.0.mlp.gate.weight are missing or of another rank");
  return sizes;
}

Result<gpt::Gpt> load_model(const std::string& path, const nn::AxisRules& rules) {
  Result<io::Weights> weights = io::Weights::open(path);
  if (!weights) return weights.error();
  Result<gpt::Sizes> sizes = sizes_of(*weights);
  if (!sizes) return sizes.error().with_note(cat("in ", path));
  gpt::Gpt like = nn::describe(rules, [&](nn::Maker& make) { return gpt::make_gpt(make, *sizes); });
  if (prefix_of(*weights).empty()) return io::restore(path, like);
  Result<Trained> trained = io::restore(path, Trained{like});
  if (!trained) return trained.error();
  return trained->model;
}

}  // namespace serve
