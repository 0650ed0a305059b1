// sort*, argsort*, top_k*: sorting.
#include "meshard/meshard.h"
#include "tools/conformance/jax/numerics/programs.h"

namespace meshard::conformance {

std::optional<Program> order_program(const Json& test) {
  const std::string id = test.at("id"), what = test.at("what");
  std::int64_t axis = integer_behind(what, "axis", -1);
  bool descending = mentions(what, "desc") || mentions(id, "desc");
  if (id.starts_with("argsort"))
    return single([=](Inputs x) { return argsort(x[0], axis, descending); });
  if (id.starts_with("sort") && test.at("inputs").size() > 1) {
    std::int64_t keys = mentions(id, "two") || mentions(what, "two keys") ? 2 : 1;
    return [=](Inputs x) { return sort({x.begin(), x.end()}, axis, descending, keys); };
  }
  if (id.starts_with("sort")) return single([=](Inputs x) { return sort(x[0], axis, descending); });
  if (id.starts_with("top_k")) {
    Shape shape = result_shape(test);
    std::int64_t k = shape[shape.rank() - 1];
    return [k](Inputs x) {
      auto [values, indices] = top_k(x[0], k);
      return Tensors{values, indices};
    };
  }
  return std::nullopt;
}

}  // namespace meshard::conformance
