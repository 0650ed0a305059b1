#include "meshard/ops/composite/assign.h"

#include "meshard/graph/leaf.h"
#include "meshard/ops/composite/mark_sharding.h"

namespace meshard {

void assign(Tensor& x, HostArray&& array, SourceLocation where) {
  if (array.type() != x.type(where))
    throw_invalid(where, "[assign] an array of type ", array.type(),
                  " cannot be assigned to a tensor of type ", x.type(where));
  std::optional<Sharding> sharding = x.sharding();
  Tensor contents = from_host(std::move(array), where);
  x = sharding ? mark_sharding(In(contents, where), *sharding) : contents;
}

void assign(Tensor& x, const HostArray& array, SourceLocation where) {
  assign(x, HostArray(array), where);
}

}  // namespace meshard
