// The functions of linear algebra once more, under the names of NumPy's and the array API's
// `linalg`.
#pragma once
#include "meshard/ops/composite/linalg.h"
#include "meshard/ops/composite/matmul.h"
#include "meshard/ops/factorization.h"

/// `linalg::solve(a, b)` is `solve(a, b)`.
namespace meshard::linalg {

using meshard::cholesky;
using meshard::cross;
using meshard::det;
using meshard::diagonal;
using meshard::eigh;
using meshard::eigvalsh;
using meshard::inv;
using meshard::matmul;
using meshard::matrix_norm;
using meshard::matrix_power;
using meshard::matrix_transpose;
using meshard::qr;
using meshard::slogdet;
using meshard::solve;
using meshard::trace;
using meshard::vecdot;
using meshard::vector_norm;

}  // namespace meshard::linalg
