// Tested in tests/e2e/linalg_test.cc.
#include "meshard/ops/internal/by_lapack.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/matrix_operand.h"
#include "meshard/ops/linalg.h"

namespace meshard::internal {
namespace {

// The target that serves a routine (lapack/lapack_calls.h): `lapack_dgetrf_ffi`.
std::string target_of(std::string_view routine, DType dtype) {
  bool wide = real_dtype(dtype) == DType::f64;
  std::string_view letter = is_complex(dtype) ? (wide ? "z" : "c") : (wide ? "d" : "s");
  return cat("lapack_", letter, routine, "_ffi");
}

std::string letter(std::string_view name, char value) {
  return cat(name, " = ", static_cast<int>(value), " : ui8");
}

// A call for matrices like `x`.
std::vector<Tensor> call_lapack(const std::string& target, const Tensor& x,
                                const std::vector<Tensor>& operands,
                                const std::vector<TensorType>& results,
                                const std::string& attributes = "") {
  return custom_call(
      target, operands, results,
      {.backend_config = cat("{", attributes, "}"), .column_major_after = x.rank() - 2});
}

TensorType like(const Tensor& x, std::initializer_list<std::int64_t> last, DType dtype) {
  return {dtype, batch_then(x.shape(), last)};
}

}  // namespace

std::vector<Tensor> lu_by_lapack(const Tensor& x) {
  std::int64_t rows = x.dim(-2), least = std::min(rows, x.dim(-1));
  std::vector<Tensor> made =
      call_lapack(target_of("getrf", x.dtype()), x, {x},
                  {x.type(), like(x, {least}, DType::i32), like(x, {}, DType::i32)});
  Tensor pivots = made[1] - 1;
  Tensor moved = not_equal(pivots, iota(DType::i32, pivots.shape(), pivots.rank() - 1));
  Tensor odd = remainder(sum(astype(moved, DType::i32), -1), 2);
  return {made[0], pivots, lu_pivots_to_permutation(pivots, rows),
          astype(1 - 2 * odd, real_dtype(x.dtype()))};
}

Tensor permutation_by_lapack(const Tensor& pivots, std::int64_t size) {
  return custom_call("lapack_pivots_ffi", {pivots},
                     {{DType::i32, batch_then(pivots.shape(), {size}, 1)}},
                     {.column_major_after = pivots.rank()})[0];
}

std::vector<Tensor> qr_by_lapack(const Tensor& x, bool complete) {
  std::int64_t rows = x.dim(-2), columns = x.dim(-1), least = std::min(rows, columns);
  std::vector<Tensor> made =
      call_lapack(target_of("geqrf", x.dtype()), x, {x}, {x.type(), like(x, {least}, x.dtype())});
  std::int64_t count = complete ? rows : least;
  Tensor r = triu(slice_along(made[0], -2, 0, std::min(count, rows)));
  Tensor reflectors = slice_along(made[0], -1, 0, least);
  if (count > least) reflectors = pad_along(reflectors, 0, -1, 0, count - least);
  Tensor q = call_lapack(target_of(is_complex(x.dtype()) ? "ungqr" : "orgqr", x.dtype()), x,
                         {reflectors, made[1]}, {reflectors.type()})[0];
  return {q, r};
}

std::vector<Tensor> svd_by_lapack(const Tensor& x, bool full_matrices, bool vectors) {
  std::int64_t rows = x.dim(-2), columns = x.dim(-1), least = std::min(rows, columns);
  DType dtype = x.dtype(), real_type = real_dtype(dtype);
  std::int64_t of_u = full_matrices ? rows : least, of_v = full_matrices ? columns : least;
  TensorType u = vectors ? like(x, {rows, of_u}, dtype) : like(x, {1, 1}, dtype);
  TensorType v = vectors ? like(x, {of_v, columns}, dtype) : like(x, {1, 1}, dtype);
  std::vector<Tensor> made =
      call_lapack(target_of("gesdd", dtype), x, {x},
                  {x.type(), like(x, {least}, real_type), u, v, like(x, {}, DType::i32)},
                  letter("mode", !vectors        ? 'N'
                                 : full_matrices ? 'A'
                                                 : 'S'));
  Tensor ok = equal(made[4], 0);
  if (!vectors) return {or_nan(ok, made[1])};
  return {or_nan(ok, made[2]), or_nan(ok, made[1]), or_nan(ok, made[3])};
}

std::vector<Tensor> eigh_by_lapack(const Tensor& x, bool vectors) {
  DType dtype = x.dtype();
  std::vector<Tensor> made =
      call_lapack(target_of(is_complex(dtype) ? "heevd" : "syevd", dtype), x, {x},
                  {x.type(), like(x, {x.dim(-1)}, real_dtype(dtype)), like(x, {}, DType::i32)},
                  cat(letter("mode", vectors ? 'V' : 'N'), ", ", letter("uplo", 'L')));
  Tensor ok = equal(made[2], 0);
  std::vector<Tensor> results{or_nan(ok, made[1])};
  if (vectors) results.push_back(or_nan(ok, made[0]));
  return results;
}

std::vector<Tensor> eig_by_lapack(const Tensor& x, bool vectors) {
  DType dtype = x.dtype(), complex_type = complex_dtype(dtype);
  std::int64_t n = x.dim(-1);
  std::vector<TensorType> results{like(x, {n}, dtype)};
  if (!is_complex(dtype)) results.push_back(results[0]);  // real and imaginary parts
  for (int side = 0; side < 2; ++side) results.push_back(like(x, {n, n}, complex_type));
  results.push_back(like(x, {}, DType::i32));
  std::vector<Tensor> made = call_lapack(
      target_of("geev", dtype), x, {x}, results,
      cat(letter("compute_left", 'N'), ", ", letter("compute_right", vectors ? 'V' : 'N')));
  Tensor ok = equal(made.back(), 0);
  Tensor values = is_complex(dtype) ? made[0] : complex(made[0], made[1]);
  std::vector<Tensor> found{or_nan(ok, values)};
  if (vectors) found.push_back(or_nan(ok, made[made.size() - 2]));
  return found;
}

std::vector<Tensor> schur_by_lapack(const Tensor& x) {
  DType dtype = x.dtype();
  std::vector<TensorType> results{x.type(), x.type(), like(x, {x.dim(-1)}, dtype)};
  if (!is_complex(dtype)) results.push_back(results.back());
  for (int i = 0; i < 2; ++i) results.push_back(like(x, {}, DType::i32));
  std::vector<Tensor> made = call_lapack(target_of("gees", dtype), x, {x}, results,
                                         cat(letter("mode", 'V'), ", ", letter("sort", 'N')));
  Tensor ok = equal(made.back(), 0);
  return {or_nan(ok, made[0]), or_nan(ok, made[1])};
}

Tensor cholesky_by_lapack(const Tensor& x) {
  std::vector<Tensor> made = call_lapack(target_of("potrf", x.dtype()), x, {x},
                                         {x.type(), like(x, {}, DType::i32)}, letter("uplo", 'L'));
  return tril(or_nan(equal(made[1], 0), made[0]));
}

Tensor triangular_solve_by_lapack(const Tensor& a, const Tensor& b,
                                  const TriangularSolveOptions& options) {
  constexpr char kTranspose[] = {'N', 'T', 'C'};
  std::string attributes = cat(letter("side", options.left_side ? 'L' : 'R'), ", ",
                               letter("uplo", options.lower ? 'L' : 'U'), ", ",
                               letter("trans_x", kTranspose[static_cast<int>(options.transpose)]),
                               ", ", letter("diag", options.unit_diagonal ? 'U' : 'N'));
  return call_lapack(target_of("trsm", a.dtype()), a, {a, b}, {b.type()}, attributes)[0];
}

}  // namespace meshard::internal
