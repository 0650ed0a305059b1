// Factorizations of matrices over a grid of devices: meshard._distributed has their Python
// functions.
#include "meshard/linalg/distributed.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "meshard/core.h"
#include "python/bindings/arrays/tensor_argument.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/ops/op_arguments.h"

namespace nb = nanobind;

namespace meshard::python {

using linalg::distributed::MatrixGrid;

void bind_distributed(nb::module_& module) {
  nb::module_ distributed = module.def_submodule("distributed");
  auto bind = [&](const char* name, auto factor) {
    distributed.def(name, [factor](const Operand& x, const Mesh& mesh, std::string rows,
                                   std::string columns, std::int64_t block) {
      CallerLine line;
      MatrixGrid grid(mesh, std::move(rows), std::move(columns));
      grid.block = block;
      return factor(tensor_argument(x), grid);
    });
  };
  bind("cholesky", [](const Tensor& x, const MatrixGrid& grid) {
    return tensor_object(linalg::distributed::cholesky(x, grid));
  });
  bind("qr", [](const Tensor& x, const MatrixGrid& grid) {
    Qr made = linalg::distributed::qr(x, grid);
    return nb::make_tuple(tensor_object(made.q), tensor_object(made.r));
  });
  bind("eigh", [](const Tensor& x, const MatrixGrid& grid) {
    Eigh made = linalg::distributed::eigh(x, grid);
    return nb::make_tuple(tensor_object(made.eigenvalues), tensor_object(made.eigenvectors));
  });
}

}  // namespace meshard::python
