#include "meshard/nn/lora.h"

#include "meshard/base/error.h"
#include "meshard/graph/record.h"
#include "meshard/nn/linear.h"
#include "meshard/ops/all.h"

namespace meshard::nn {

Lora make_lora(Maker& make, std::int64_t in, std::int64_t out, std::int64_t rank,
               const LoraOptions& options, SourceLocation where) {
  CallScope line(where, "in nn::make_lora");
  if (in < 1 || out < 1 || rank < 1)
    throw_invalid(SourceLocation{}, "[nn.make_lora] ", in, " inputs, ", out,
                  " outputs and the rank ", rank, " must be positive");
  Tensor down = make({in, rank}, P(options.in, "rank"), options.down, {in, rank});
  return {down, make({rank, out}, P("rank", options.out), options.up, {rank, out})};
}

Tensor lora(const Lora& params, const Tensor& x, double scale, SourceLocation where) {
  CallScope line(where, "in nn::lora");
  Tensor y = matmul(matmul(x, match_dtype(params.down, x)), match_dtype(params.up, x));
  return scale == 1 ? y : y * scale;
}

Tensor with_lora(const Tensor& weight, const Lora& params, double scale, SourceLocation where) {
  CallScope line(where, "in nn::with_lora");
  std::int64_t in = params.down.dim(0), out = params.up.dim(1), before = 1;
  int d = 0;
  while (d < weight.rank() && before < in) before *= weight.dim(d++);
  if (before != in || weight.shape().size() != in * out)
    throw_invalid(weight.where(), "[nn.with_lora] an adapter of ", in, " inputs and ", out,
                  " outputs does not fit the weight ", weight.type());
  Tensor change = matmul(params.down, params.up);
  if (scale != 1) change = change * scale;
  return weight + reshape(match_dtype(change, weight), weight.shape());
}

}  // namespace meshard::nn
