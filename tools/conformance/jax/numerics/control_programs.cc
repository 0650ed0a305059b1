// while*: control flow.
#include "meshard/meshard.h"
#include "tools/conformance/jax/numerics/programs.h"

namespace meshard::conformance {
namespace {

// Square root by Newton's method, until |y * y - x| < 1e-4.
Tensor square_root(const Tensor& x) {
  return while_loop([x](Tensor y) { return greater_equal(abs(y * y - x), 1e-4); },
                    [x](Tensor y) { return (y + x / y) * 0.5; }, x);
}

}  // namespace

std::optional<Program> control_program(const Json& test) {
  const std::string id = test.at("id"), what = test.at("what");
  // The bodies of other cases are not recorded.
  if (id.starts_with("while") && mentions(what, "Newton") && mentions(what, "1e-4"))
    return single([](Inputs x) { return square_root(x[0]); });
  return std::nullopt;
}

}  // namespace meshard::conformance
