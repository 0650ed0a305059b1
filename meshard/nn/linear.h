// Linear layers and embeddings.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "meshard/nn/maker.h"
#include "meshard/ops/all.h"

namespace meshard::nn {

// Internal: converts parameters to the dtype of a layer's input.

/// A parameter converted to the dtype of `x`, so that layers compute in the dtype of their input. A
/// complex parameter stays complex: with a real input the result is complex.
inline Tensor match_dtype(const Tensor& parameter, const Tensor& x) {
  if (is_complex(parameter.dtype()) && !is_complex(x.dtype())) return parameter;
  return astype(parameter, x.dtype());
}

/// The parameters of a linear layer: weight [in, out], bias [out] or none.
struct Linear {
  Tensor weight;
  std::optional<Tensor> bias;
  MESHARD_FIELDS(weight, bias)
};

/// Options of make_linear().
struct LinearOptions {
  /// The names of the weight's dimensions, for AxisRules.
  std::string in = "embed", out = "hidden";
  bool bias = true;
  Initializer weight = init::lecun_normal();
};
/// Creates a Linear of a weight [in, out] and, by default, a bias [out] of zeros.
Linear make_linear(Maker& make, std::int64_t in, std::int64_t out,
                   const LinearOptions& options = {},
                   SourceLocation where = SourceLocation::current());

/// x weight + bias over the last dimension: [..., in] to [..., out], in the dtype of x.
Tensor linear(const Linear& params, const Tensor& x,
              SourceLocation where = SourceLocation::current());

/// The parameters of an embedding: table [words, width].
struct Embedding {
  Tensor table;
  MESHARD_FIELDS(table)
};

/// Creates an embedding. The dimension names are "vocabulary" and "embed".
Embedding make_embedding(Maker& make, std::int64_t words, std::int64_t width,
                         const Initializer& table = init::normal(0.02),
                         SourceLocation where = SourceLocation::current());

/// Looks up rows of the table: integers [...] to [..., width].
Tensor embedding(const Embedding& params, const Tensor& tokens,
                 SourceLocation where = SourceLocation::current());

/// The products of x with every row of the table: [..., width] to [..., words]. The output layer of
/// a model that shares its weights with the embedding (Press and Wolf, 2017).
Tensor unembed(const Embedding& params, const Tensor& x,
               SourceLocation where = SourceLocation::current());

}  // namespace meshard::nn
