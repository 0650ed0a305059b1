// Tested in tests/plugin/lapack_calls_test.cc.
#include "meshard/lapack/lapack_calls.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <map>

#include "meshard/base/cat.h"
#include "meshard/lapack/lapack.h"
#include "meshard/lapack/operands.h"

namespace meshard {
namespace {

using lapack::is_complex;
using lapack::Operands;
using lapack::Real;
using lapack::workspace;

// What LAPACK says of a matrix with NaN or infinity; its eigenvalue routines may not end for such.
constexpr int kNotFinite = -4;

template <class T>
bool is_finite(const T* values, std::int64_t count) {
  return std::all_of(values, values + count, [](const T& value) {
    return std::isfinite(std::real(value)) && std::isfinite(std::imag(value));
  });
}

// Each is one operation: `run` calls the routine for every matrix of a batch. Fortran takes
// addresses.

struct Solve {  // trsm: y of op(x) y_out = y, with the triangle of x
  static constexpr std::string_view kReal = "trsm";
  template <class T>
  static void run(const Operands<T>& call) {
    call.expect(2, 1);
    const auto y = call.matrices(1);
    T* out = call.template copy<T>(1, 0);
    char side = call.letter("side", "LR"), uplo = call.letter("uplo", "LU"),
         trans = call.letter("trans_x", "NTC"), diag = call.letter("diag", "NU");
    int order = side == 'L' ? y.rows : y.columns, leading_of_x = std::max(1, order);
    T* x = call.template argument<T>(0, y.batch, std::int64_t{order} * order);
    T one(1);
    for (std::int64_t b = 0; b < y.batch; ++b)
      call(&side, &uplo, &trans, &diag, &y.rows, &y.columns, &one, x + b * order * order,
           &leading_of_x, out + b * y.step(), &y.leading);
  }
};

struct Lu {  // getrf
  static constexpr std::string_view kReal = "getrf";
  template <class T>
  static void run(const Operands<T>& call) {
    call.expect(1, 3);
    const auto x = call.matrices(0);
    T* out = call.template copy<T>(0, 0);
    int* pivots = call.template result<int>(1, x.batch, x.least());
    int* info = call.template result<int>(2, x.batch, 1);
    for (std::int64_t b = 0; b < x.batch; ++b)
      call(&x.rows, &x.columns, out + b * x.step(), &x.leading, pivots + b * x.least(), info + b);
  }
};

struct Qr {  // geqrf
  static constexpr std::string_view kReal = "geqrf";
  template <class T>
  static void run(const Operands<T>& call) {
    call.expect(1, 2);
    const auto x = call.matrices(0);
    T* out = call.template copy<T>(0, 0);
    T* tau = call.template result<T>(1, x.batch, x.least());
    int info = 0;
    auto run_one = [&](std::int64_t b, T* work, int* size) {
      call(&x.rows, &x.columns, out + b * x.step(), &x.leading, tau + b * x.least(), work, size,
           &info);
    };
    workspace<T>(x.batch, run_one);
  }
};

struct PivotedQr {  // geqp3
  static constexpr std::string_view kReal = "geqp3";
  template <class T>
  static void run(const Operands<T>& call) {
    call.expect(2, 3);
    const auto x = call.matrices(0);
    T* out = call.template copy<T>(0, 0);
    call.template argument<int>(1, x.batch, x.columns);
    int* pivots = call.template copy<int>(1, 1);
    T* tau = call.template result<T>(2, x.batch, x.least());
    int info = 0;
    std::vector<Real<T>> reals(static_cast<std::size_t>(2 * x.columns + 1));
    auto run_one = [&](std::int64_t b, T* work, int* size) {
      if constexpr (is_complex<T>)
        call(&x.rows, &x.columns, out + b * x.step(), &x.leading, pivots + b * x.columns,
             tau + b * x.least(), work, size, reals.data(), &info);
      else
        call(&x.rows, &x.columns, out + b * x.step(), &x.leading, pivots + b * x.columns,
             tau + b * x.least(), work, size, &info);
    };
    workspace<T>(x.batch, run_one);
  }
};

struct MakeQ {  // orgqr
  static constexpr std::string_view kReal = "orgqr", kComplex = "ungqr";
  template <class T>
  static void run(const Operands<T>& call) {
    call.expect(2, 1);
    const auto x = call.matrices(0);
    T* out = call.template copy<T>(0, 0);
    int info = 0;
    int count = call.last_dimension(1);
    T* tau = call.template argument<T>(1, x.batch, count);
    auto run_one = [&](std::int64_t b, T* work, int* size) {
      call(&x.rows, &x.columns, &count, out + b * x.step(), &x.leading, tau + b * count, work, size,
           &info);
    };
    workspace<T>(x.batch, run_one);
  }
};

struct MultiplyQ {  // ormqr
  static constexpr std::string_view kReal = "ormqr", kComplex = "unmqr";
  template <class T>
  static void run(const Operands<T>& call) {
    call.expect(3, 1);
    const auto a = call.matrices(0), c = call.matrices(2);
    T* out = call.template copy<T>(2, 0);
    bool left = call.flag("left"), transpose = call.flag("transpose");
    char side = left ? 'L' : 'R', trans = !transpose ? 'N' : is_complex<T> ? 'C' : 'T';
    int info = 0;
    int count = call.last_dimension(1), leading_of_a = std::max(1, left ? c.rows : c.columns);
    T* reflectors = call.template argument<T>(0, c.batch, a.step());
    T* tau = call.template argument<T>(1, c.batch, count);
    if (a.rows != (left ? c.rows : c.columns)) call.fail("the reflectors do not fit the matrix");
    auto run_one = [&](std::int64_t b, T* work, int* size) {
      call(&side, &trans, &c.rows, &c.columns, &count, reflectors + b * a.step(), &leading_of_a,
           tau + b * count, out + b * c.step(), &c.leading, work, size, &info);
    };
    workspace<T>(c.batch, run_one);
  }
};

struct Cholesky {  // potrf
  static constexpr std::string_view kReal = "potrf";
  template <class T>
  static void run(const Operands<T>& call) {
    call.expect(1, 2);
    const auto x = call.square(0);
    T* out = call.template copy<T>(0, 0);
    int* info = call.template result<int>(1, x.batch, 1);
    char uplo = call.letter("uplo", "LU");
    for (std::int64_t b = 0; b < x.batch; ++b)
      call(&uplo, &x.rows, out + b * x.step(), &x.leading, info + b);
  }
};

// gesdd (divide and conquer) and gesvd (QR iterations) have the same arguments but for one.
template <bool kDivide>
struct Svd {
  static constexpr std::string_view kReal = kDivide ? "gesdd" : "gesvd";
  template <class T>
  static void run(const Operands<T>& call) {
    call.expect(1, 5);
    const auto x = call.matrices(0);
    T* out = call.template copy<T>(0, 0);
    char mode = call.letter("mode", "ASN");
    const int least = x.least(), most = std::max(x.rows, x.columns);
    Real<T>* values = call.template result<Real<T>>(1, x.batch, least);
    int columns_of_u = mode == 'A' ? x.rows : least, rows_of_v = mode == 'A' ? x.columns : least;
    int leading_of_v = std::max(1, rows_of_v);
    const std::int64_t u_step = std::int64_t{x.rows} * columns_of_u,
                       v_step = std::int64_t{rows_of_v} * x.columns;
    T *u = nullptr, *v = nullptr;
    if (mode != 'N') {
      u = call.template result<T>(2, x.batch, u_step);
      v = call.template result<T>(3, x.batch, v_step);
    }
    int* info = call.template result<int>(4, x.batch, 1);
    // The sizes of the documentation of cgesdd and cgesvd.
    const std::int64_t m = least, reals_size = !kDivide ? 5 * m
                                               : mode == 'N'
                                                   ? 7 * m
                                                   : m * std::max<std::int64_t>(
                                                             5 * m + 7, 2 * most + 2 * m + 1);
    std::vector<Real<T>> reals(static_cast<std::size_t>(is_complex<T> ? reals_size + 1 : 1));
    std::vector<int> integers(static_cast<std::size_t>(8 * m + 1));
    auto run_one = [&](std::int64_t b, T* work, int* size) {
      T *own_u = u ? u + b * u_step : nullptr, *own_v = v ? v + b * v_step : nullptr;
      T* own = out + b * x.step();
      Real<T>* own_values = values + b * least;
      if (*size >= 0 && !is_finite(own, x.step())) {
        info[b] = kNotFinite;
        return;
      }
      if constexpr (kDivide && is_complex<T>)
        call(&mode, &x.rows, &x.columns, own, &x.leading, own_values, own_u, &x.leading, own_v,
             &leading_of_v, work, size, reals.data(), integers.data(), info + b);
      else if constexpr (kDivide)
        call(&mode, &x.rows, &x.columns, own, &x.leading, own_values, own_u, &x.leading, own_v,
             &leading_of_v, work, size, integers.data(), info + b);
      else if constexpr (is_complex<T>)
        call(&mode, &mode, &x.rows, &x.columns, own, &x.leading, own_values, own_u, &x.leading,
             own_v, &leading_of_v, work, size, reals.data(), info + b);
      else
        call(&mode, &mode, &x.rows, &x.columns, own, &x.leading, own_values, own_u, &x.leading,
             own_v, &leading_of_v, work, size, info + b);
    };
    workspace<T>(x.batch, run_one);
  }
};

struct SymmetricEigen {  // syevd
  static constexpr std::string_view kReal = "syevd", kComplex = "heevd";
  template <class T>
  static void run(const Operands<T>& call) {
    call.expect(1, 3);
    const auto x = call.square(0);
    T* out = call.template copy<T>(0, 0);
    Real<T>* values = call.template result<Real<T>>(1, x.batch, x.rows);
    int* info = call.template result<int>(2, x.batch, 1);
    char mode = call.letter("mode", "NV"), uplo = call.letter("uplo", "LU");
    // The sizes of the documentation of dsyevd and zheevd.
    const std::int64_t n = x.rows, squares = mode == 'V' ? 2 * n * n : 0;
    const std::int64_t real_size = 1 + 6 * n + squares, size_of_integers = 3 + 5 * n;
    std::vector<T> work(
        static_cast<std::size_t>(is_complex<T> ? 2 * n + squares / 2 + 1 : real_size));
    std::vector<Real<T>> reals(static_cast<std::size_t>(is_complex<T> ? real_size : 1));
    std::vector<int> integers(static_cast<std::size_t>(size_of_integers));
    int size = lapack::integer(std::ssize(work)), real_count = lapack::integer(std::ssize(reals)),
        integer_count = lapack::integer(std::ssize(integers));
    for (std::int64_t b = 0; b < x.batch; ++b) {
      info[b] = kNotFinite;
      if (!is_finite(out + b * x.step(), x.step())) continue;
      if constexpr (is_complex<T>)
        call(&mode, &uplo, &x.rows, out + b * x.step(), &x.leading, values + b * x.rows,
             work.data(), &size, reals.data(), &real_count, integers.data(), &integer_count,
             info + b);
      else
        call(&mode, &uplo, &x.rows, out + b * x.step(), &x.leading, values + b * x.rows,
             work.data(), &size, integers.data(), &integer_count, info + b);
    }
  }
};

// dgeev packs a conjugate pair of eigenvectors into two real columns: the real and imaginary parts.
template <class R>
void unpack_eigenvectors(int order, const R* imaginary, const R* packed, std::complex<R>* out) {
  for (int j = 0; j < order; ++j) {
    const R* column = packed + std::int64_t{j} * order;
    std::complex<R>* to = out + std::int64_t{j} * order;
    if (imaginary[j] == 0 || j + 1 == order) {
      std::copy_n(column, order, to);
      continue;
    }
    for (int i = 0; i < order; ++i) {
      to[i] = {column[i], column[order + i]};
      to[order + i] = std::conj(to[i]);
    }
    ++j;
  }
}

struct Eigen {  // geev
  static constexpr std::string_view kReal = "geev";
  template <class T>
  static void run(const Operands<T>& call) {
    using C = std::complex<Real<T>>;
    constexpr int kValues =
        is_complex<T> ? 1 : 2;  // the real results have the imaginary parts apart
    call.expect(1, kValues + 3);
    const auto x = call.square(0);
    const std::int64_t n = x.rows;
    T* given = call.template argument<T>(0, x.batch, n * n);
    char left = call.letter("compute_left", "NV"), right = call.letter("compute_right", "NV");
    T* values = call.template result<T>(0, x.batch, n);
    T* imaginary = is_complex<T> ? nullptr : call.template result<T>(1, x.batch, n);
    C* left_out = call.template result<C>(kValues, x.batch, n * n);
    C* right_out = call.template result<C>(kValues + 1, x.batch, n * n);
    int* info = call.template result<int>(kValues + 2, x.batch, 1);
    std::vector<T> copy(static_cast<std::size_t>(n * n)), packed_left(copy), packed_right(copy);
    std::vector<Real<T>> reals(static_cast<std::size_t>(2 * n + 1));
    auto run_one = [&](std::int64_t b, T* work, int* size) {
      std::copy_n(given + b * n * n, n * n, copy.data());
      if (!is_finite(copy.data(), n * n)) {
        info[b] = kNotFinite;
        if (*size >= 0) return;
        std::fill(copy.begin(), copy.end(), T(0));
      }
      C *to_left = left_out + b * n * n, *to_right = right_out + b * n * n;
      if constexpr (is_complex<T>) {
        call(&left, &right, &x.rows, copy.data(), &x.leading, values + b * n, to_left, &x.leading,
             to_right, &x.leading, work, size, reals.data(), info + b);
      } else {
        call(&left, &right, &x.rows, copy.data(), &x.leading, values + b * n, imaginary + b * n,
             packed_left.data(), &x.leading, packed_right.data(), &x.leading, work, size, info + b);
        if (*size < 0 || info[b] != 0) return;
        if (left == 'V')
          unpack_eigenvectors(x.rows, imaginary + b * n, packed_left.data(), to_left);
        if (right == 'V')
          unpack_eigenvectors(x.rows, imaginary + b * n, packed_right.data(), to_right);
      }
    };
    workspace<T>(x.batch, run_one);
  }
};

struct Schur {  // gees
  static constexpr std::string_view kReal = "gees";
  template <class T>
  static void run(const Operands<T>& call) {
    constexpr int kValues = is_complex<T> ? 1 : 2;
    call.expect(1, kValues + 4);
    const auto x = call.square(0);
    const std::int64_t n = x.rows;
    T* out = call.template copy<T>(0, 0);
    char mode = call.letter("mode", "NV"), sort = call.letter("sort", "N");
    T* vectors = call.template result<T>(1, x.batch, n * n);
    T* values = call.template result<T>(2, x.batch, n);
    T* imaginary = is_complex<T> ? nullptr : call.template result<T>(3, x.batch, n);
    int* selected = call.template result<int>(kValues + 2, x.batch, 1);
    int* info = call.template result<int>(kValues + 3, x.batch, 1);
    std::vector<Real<T>> reals(static_cast<std::size_t>(n + 1));
    std::vector<int> logicals(static_cast<std::size_t>(n + 1));
    void (*select)() = nullptr;  // without an order
    auto run_one = [&](std::int64_t b, T* work, int* size) {
      T* own = out + b * n * n;
      if (*size >= 0 && !is_finite(own, n * n)) {
        info[b] = kNotFinite, selected[b] = 0;
        return;
      }
      if constexpr (is_complex<T>)
        call(&mode, &sort, select, &x.rows, own, &x.leading, selected + b, values + b * n,
             vectors + b * n * n, &x.leading, work, size, reals.data(), logicals.data(), info + b);
      else
        call(&mode, &sort, select, &x.rows, own, &x.leading, selected + b, values + b * n,
             imaginary + b * n, vectors + b * n * n, &x.leading, work, size, logicals.data(),
             info + b);
    };
    workspace<T>(x.batch, run_one);
  }
};

struct Hessenberg {  // gehrd
  static constexpr std::string_view kReal = "gehrd";
  template <class T>
  static void run(const Operands<T>& call) {
    call.expect(1, 3);
    const auto x = call.square(0);
    T* out = call.template copy<T>(0, 0);
    const int count = std::max(0, x.rows - 1);
    T* tau = call.template result<T>(1, x.batch, count);
    int* info = call.template result<int>(2, x.batch, 1);
    int low = call.number("low"), high = call.number("high");
    auto run_one = [&](std::int64_t b, T* work, int* size) {
      call(&x.rows, &low, &high, out + b * x.step(), &x.leading, tau + b * count, work, size,
           info + b);
    };
    workspace<T>(x.batch, run_one);
  }
};

struct Tridiagonal {  // sytrd
  static constexpr std::string_view kReal = "sytrd", kComplex = "hetrd";
  template <class T>
  static void run(const Operands<T>& call) {
    call.expect(1, 5);
    const auto x = call.square(0);
    T* out = call.template copy<T>(0, 0);
    const int count = std::max(0, x.rows - 1);
    Real<T>* diagonal = call.template result<Real<T>>(1, x.batch, x.rows);
    Real<T>* beside = call.template result<Real<T>>(2, x.batch, count);
    T* tau = call.template result<T>(3, x.batch, count);
    int* info = call.template result<int>(4, x.batch, 1);
    char uplo = call.letter("uplo", "LU");
    auto run_one = [&](std::int64_t b, T* work, int* size) {
      call(&uplo, &x.rows, out + b * x.step(), &x.leading, diagonal + b * x.rows,
           beside + b * count, tau + b * count, work, size, info + b);
    };
    workspace<T>(x.batch, run_one);
  }
};

struct TridiagonalSolve {  // gtsv
  static constexpr std::string_view kReal = "gtsv";
  template <class T>
  static void run(const Operands<T>& call) {
    call.expect(4, 5);
    const auto b_of = call.matrices(3);
    for (int i = 0; i < 3; ++i) call.template argument<T>(i, b_of.batch, b_of.rows);
    // The lower diagonal has an element before its first.
    T *lower = call.template copy<T>(0, 0), *diagonal = call.template copy<T>(1, 1),
      *upper = call.template copy<T>(2, 2), *right = call.template copy<T>(3, 3);
    int* info = call.template result<int>(4, b_of.batch, 1);
    for (std::int64_t b = 0; b < b_of.batch; ++b) {
      const std::int64_t at = b * b_of.rows;
      call(&b_of.rows, &b_of.columns, lower + at + (b_of.rows > 0 ? 1 : 0), diagonal + at,
           upper + at, right + b * b_of.step(), &b_of.leading, info + b);
    }
  }
};

template <class Operation>
concept HasComplexName = requires {
  Operation::kComplex;
};

// The routine of the call's element type: `dgetrf`.
template <class Operation>
std::string routine_name(char letter) {
  std::string_view name = Operation::kReal;
  if constexpr (HasComplexName<Operation>)
    if (letter == 'c' || letter == 'z') name = Operation::kComplex;
  return cat(letter, name);
}

template <class Operation, class T>
Result<void> run_as(const pjrt::HostCall& call, char letter) {
  static const auto& routine =  // looked up once; calls may follow the end of statics
      *new Result<void*>([&]() -> Result<void*> {
        MESHARD_ASSIGN_OR_RETURN(const Lapack* library, Lapack::open());
        return library->routine(routine_name<Operation>(letter));
      }());
  if (!routine.ok()) return routine.error();
  Operation::template run<T>(Operands<T>(call, routine_name<Operation>(letter), routine.value()));
  return {};
}

template <class Operation>
Result<void> serve(const pjrt::HostCall& call) {
  switch (call.arguments.empty() ? pjrt::ElementType::kInvalid : call.arguments[0].element) {
    case pjrt::ElementType::kF32: return run_as<Operation, float>(call, 's');
    case pjrt::ElementType::kF64: return run_as<Operation, double>(call, 'd');
    case pjrt::ElementType::kC64: return run_as<Operation, std::complex<float>>(call, 'c');
    case pjrt::ElementType::kC128: return run_as<Operation, std::complex<double>>(call, 'z');
    default:
      return Error(ErrorCode::kInvalidArgument,
                   cat("[lapack] ", Operation::kReal, " takes f32, f64, c64 or c128"));
  }
}

// The order of rows after exchanges by the pivots of getrf, from 0. Not a routine of LAPACK: a
// program would compute it in a loop of one step per row.
Result<void> serve_pivots(const pjrt::HostCall& call) {
  Operands<int> operands(call, "pivots", nullptr);
  operands.expect(1, 1);
  const std::int64_t count = operands.last_dimension(0),
                     rows =
                         call.results[0].dimensions.empty() ? 0 : call.results[0].dimensions.back();
  std::int64_t batch = 1;
  for (std::int64_t size : call.results[0].dimensions) batch *= size;
  batch = rows == 0 ? 0 : batch / rows;
  const int* pivots = operands.argument<int>(0, batch, count);
  int* order = operands.result<int>(0, batch, rows);
  for (std::int64_t b = 0; b < batch; ++b, pivots += count, order += rows) {
    for (std::int64_t i = 0; i < rows; ++i) order[i] = static_cast<int>(i);
    for (std::int64_t i = 0; i < count; ++i) {
      if (pivots[i] < 0 || pivots[i] >= rows)
        operands.fail(cat("pivot ", i, " = ", pivots[i], " is not a row of ", rows));
      std::swap(order[i], order[pivots[i]]);
    }
  }
  return {};
}
constexpr std::string_view kPivots = "lapack_pivots_ffi";

struct Target {
  std::string routine;  // empty: none is needed
  pjrt::HostCallFunction function;
};
using Targets = std::map<std::string, Target, std::less<>>;

template <class Operation>
void add(Targets& targets) {
  for (char letter : {'s', 'd', 'c', 'z'}) {
    std::string routine = routine_name<Operation>(letter);
    targets.emplace(cat("lapack_", routine, "_ffi"), Target{routine, serve<Operation>});
  }
}

const Targets& all_targets() {
  static const Targets& targets = *[] {
    auto* made = new Targets;  // the plugin keeps their names
    add<Solve>(*made), add<Lu>(*made), add<Qr>(*made), add<PivotedQr>(*made), add<MakeQ>(*made);
    add<MultiplyQ>(*made), add<Cholesky>(*made), add<Svd<true>>(*made), add<Svd<false>>(*made);
    add<SymmetricEigen>(*made), add<Eigen>(*made), add<Schur>(*made), add<Hessenberg>(*made);
    add<Tridiagonal>(*made), add<TridiagonalSolve>(*made);
    made->emplace(kPivots, Target{"", serve_pivots});
    return made;
  }();
  return targets;
}

}  // namespace

const std::vector<std::string>& lapack_targets() {
  static const auto& names = *[] {
    auto* made = new std::vector<std::string>;
    for (const auto& [name, target] : all_targets()) made->push_back(name);
    return made;
  }();
  return names;
}

bool is_lapack_target(std::string_view target) { return all_targets().contains(target); }

Result<void> accept_lapack_call(const pjrt::Client& client, std::string_view target) {
  auto found = all_targets().find(target);
  if (found == all_targets().end())
    return Error(ErrorCode::kNotFound,
                 cat("[lapack] ", target, " is not one of ", join(lapack_targets(), ", ")));
  MESHARD_ASSIGN_OR_RETURN(const Lapack* library, Lapack::open());
  if (!found->second.routine.empty())
    MESHARD_RETURN_IF_ERROR(library->routine(found->second.routine));
  return pjrt::accept_host_calls(client, found->first, found->second.function);
}

}  // namespace meshard
