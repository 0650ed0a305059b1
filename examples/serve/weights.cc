#include "examples/serve/weights.h"

namespace serve {

using namespace meshard;

namespace {

// A training checkpoint has the model as a member.
struct Model {
  gpt::Decoder model;
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

Result<std::int64_t> context_of(const io::Weights& weights) {
  if (!weights.contains("context")) return kContext;
  MESHARD_ASSIGN_OR_RETURN(Tensor context, weights.tensor("context"));
  if (context.type() != TensorType{DType::i64, {}})
    return Error(ErrorCode::kInvalidArgument,
                 cat("[serve] context is ", context.type(), ", not an i64"));
  return context.item<std::int64_t>();
}

Result<gpt::Trained> load_model(const std::string& path, const nn::AxisRules& rules,
                                std::int64_t context) {
  Result<io::Weights> weights = io::Weights::open(path);
  if (!weights) return weights.error();
  Result<gpt::Sizes> sizes = sizes_of(*weights);
  if (!sizes) return sizes.error().with_note(cat("in ", path));
  if (context == 0) {
    MESHARD_ASSIGN_OR_RETURN(context, context_of(*weights));
  }
  gpt::Decoder like =
      nn::describe(rules, [&](nn::Maker& make) { return gpt::make_decoder(make, *sizes); });
  const io::LoadOptions only_the_model{.strict =
                                           false};  // the file may also have an optimizer's state
  if (prefix_of(*weights).empty()) {
    MESHARD_ASSIGN_OR_RETURN(like, io::restore(path, like, only_the_model));
  } else {
    MESHARD_ASSIGN_OR_RETURN(Model found, io::restore(path, Model{like}, only_the_model));
    like = found.model;
  }
  return gpt::Trained{like, context};
}

}  // namespace serve
