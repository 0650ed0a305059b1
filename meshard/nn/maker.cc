#include "meshard/nn/maker.h"

#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/composite/mark_sharding.h"

namespace meshard::nn {

Maker::Maker(AxisRules rules, Tensor key, DType dtype)
    : rules_(std::move(rules)), key_(std::move(key)), dtype_(dtype) {}
Maker::Maker(AxisRules rules, DType dtype) : rules_(std::move(rules)), dtype_(dtype) {}

Tensor Maker::operator()(const Shape& shape, const PartitionSpec& names,
                         const Initializer& initializer, const Fans& fans) {
  std::optional<Sharding> sharding = rules_.sharding(names);
  if (sharding) sharding = sharding->with_rank(static_cast<std::size_t>(shape.rank()));
  if (!key_) return abstract_tensor({dtype_, shape}, sharding);
  Tensor key = random::fold_in(*key_, made_++);
  // The key is computed separately, so that layers of the same shape share one program.
  if (!only_recording()) compute({key});
  Tensor value = initializer(key, shape, fans, dtype_);
  if (sharding) value = mark_sharding(value, *sharding);
  if (!only_recording()) compute({value});
  return value;
}

}  // namespace meshard::nn
