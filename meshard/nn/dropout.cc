#include "meshard/nn/dropout.h"

#include "meshard/graph/call_scope.h"
#include "meshard/ops/composite/activation.h"

namespace meshard::nn {

Tensor dropout(const Tensor& x, double rate, const std::optional<Tensor>& key,
               SourceLocation where) {
  CallScope line(where, "in nn::dropout");
  return key ? meshard::dropout(x, rate, *key) : x;
}

}  // namespace meshard::nn
