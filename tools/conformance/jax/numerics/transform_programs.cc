// vmap_*, jvp_*: function transforms.
#include "meshard/meshard.h"
#include "tools/conformance/jax/numerics/programs.h"

namespace meshard::conformance {

std::optional<Program> transform_program(const Json& test) {
  const std::string id = test.at("id");
  if (id == "vmap_matvec")
    return single([](Inputs x) {
      return vmap([](Tensor matrix, Tensor vector) { return matmul(matrix, vector); })(x[0], x[1]);
    });
  if (id == "jvp_dot")
    return single([](Inputs x) {
      Tensor w = x[1];
      return jvp([w](Tensor a) { return matmul(a, w); }, x[0], x[2]).second;
    });
  return std::nullopt;
}

}  // namespace meshard::conformance
