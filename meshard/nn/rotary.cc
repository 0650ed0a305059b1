#include "meshard/nn/rotary.h"

#include "meshard/base/error.h"
#include "meshard/graph/call_scope.h"
#include "meshard/ops/all.h"

namespace meshard::nn {

Tensor rotated(const Rotary& rotary, const Tensor& x, const Tensor& positions,
               SourceLocation where) {
  CallScope line(where, "in nn::rotated");
  if (x.rank() != 4 || x.dim(3) % 2 != 0 || positions.rank() < 1 || positions.rank() > 2 ||
      positions.dim(-1) != x.dim(1))
    throw_invalid(
        x.where(),
        "[nn.rotated] takes x [batch, time, heads, size] with an even size, and positions ",
        "[time] or [batch, time], not ", x.type(), " and ", positions.type());
  return rotary_embedding(x, positions, RotaryForm::kHalves, rotary.theta);
}

}  // namespace meshard::nn
