#include "meshard/nn/linear.h"

#include "meshard/graph/record.h"

namespace meshard::nn {

Linear make_linear(Maker& make, std::int64_t in, std::int64_t out, const LinearOptions& options,
                   SourceLocation where) {
  CallScope line(where, "in nn::make_linear");
  Linear params{make({in, out}, P(options.in, options.out), options.weight, {in, out}), {}};
  if (options.bias) params.bias = make({out}, P(options.out), init::zeros());
  return params;
}

Tensor linear(const Linear& params, const Tensor& x, SourceLocation where) {
  CallScope line(where, "in nn::linear");
  Tensor y = matmul(x, match_dtype(params.weight, x));
  return params.bias ? y + match_dtype(*params.bias, x) : y;
}

Embedding make_embedding(Maker& make, std::int64_t words, std::int64_t width,
                         const Initializer& table, SourceLocation where) {
  CallScope line(where, "in nn::make_embedding");
  return {make({words, width}, P("vocabulary", "embed"), table, {words, width})};
}

Tensor embedding(const Embedding& params, const Tensor& tokens, SourceLocation where) {
  CallScope line(where, "in nn::embedding");
  return take(params.table, tokens, 0);
}

Tensor unembed(const Embedding& params, const Tensor& x, SourceLocation where) {
  CallScope line(where, "in nn::unembed");
  return tensordot(x, match_dtype(params.table, x), {x.rank() - 1}, {1});
}

}  // namespace meshard::nn
