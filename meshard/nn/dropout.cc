#include "meshard/nn/dropout.h"

#include "meshard/ops/composite/dropout.h"

namespace meshard::nn {

Tensor dropout(const Tensor& x, double rate, const std::optional<Tensor>& key) {
  return key ? meshard::dropout(x, rate, *key) : x;
}

}  // namespace meshard::nn
