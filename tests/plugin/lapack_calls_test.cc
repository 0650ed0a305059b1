// LAPACK's routines, called by compiled programs for a batch of matrices.
#include "meshard/lapack/lapack_calls.h"

#include <gmock/gmock.h>

#include <complex>

#include "meshard/lapack/lapack.h"
#include "meshard/lapack/operands.h"
#include "tests/plugin/fixture.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using pjrt::ElementType;
using C = std::complex<double>;
using testing::HasSubstr;

constexpr int kBatch = 2;

// A batch of matrices (columns > 0) or of vectors, in row-major order.
struct Values {
  ElementType element = ElementType::kF64;
  int rows = 0, columns = 0;
  std::vector<C> all;
  int step() const { return rows * std::max(1, columns); }
  C& at(int b, int i, int j = 0) {
    return all[static_cast<std::size_t>(b * step() + i * std::max(1, columns) + j)];
  }
  std::vector<std::int64_t> dimensions() const {
    if (columns == 0 && rows == 0) return {kBatch};
    if (columns == 0) return {kBatch, rows};
    return {kBatch, rows, columns};
  }
  std::string type() const {
    std::string_view name = to_string(element);
    if (element == ElementType::kC64) name = "complex<f32>";
    if (element == ElementType::kC128) name = "complex<f64>";
    if (element == ElementType::kS32) name = "i32";
    return cat("tensor<", join(dimensions(), "x"), "x", name, ">");
  }
  std::string layout() const {  // matrices are in column-major order
    if (columns == 0 && rows == 0) return "dense<0> : tensor<1xindex>";
    if (columns == 0) return "dense<[1, 0]> : tensor<2xindex>";
    return "dense<[1, 2, 0]> : tensor<3xindex>";
  }
  std::size_t count() const { return static_cast<std::size_t>(kBatch * std::max(1, step())); }
};

template <class Each>
std::string listed(const std::vector<Values>& all, const Each& each) {
  std::string text;
  for (const Values& one : all) append(text, cat(text.empty() ? "" : ", ", each(one)));
  return text;
}

Values product(Values a, Values b, bool adjoint = false) {
  const int inner = adjoint ? a.rows : a.columns;
  Values made{a.element, adjoint ? a.columns : a.rows, b.columns, {}};
  made.all.resize(made.count());
  for (int k = 0; k < kBatch; ++k)
    for (int i = 0; i < made.rows; ++i)
      for (int j = 0; j < made.columns; ++j)
        for (int l = 0; l < inner; ++l)
          made.at(k, i, j) += (adjoint ? std::conj(a.at(k, l, i)) : a.at(k, i, l)) * b.at(k, l, j);
  return made;
}

Values adjoint(Values a) {
  Values made{a.element, a.columns, a.rows, std::vector<C>(a.count())};
  for (int k = 0; k < kBatch; ++k)
    for (int i = 0; i < a.rows; ++i)
      for (int j = 0; j < a.columns; ++j) made.at(k, j, i) = std::conj(a.at(k, i, j));
  return made;
}

Values scaled_columns(Values a, Values by) {
  for (int k = 0; k < kBatch; ++k)
    for (int i = 0; i < a.rows; ++i)
      for (int j = 0; j < a.columns; ++j) a.at(k, i, j) *= by.at(k, j);
  return a;
}

// The elements for which keep(i, j) holds; the others are zero. `unit`: the diagonal is one.
template <class Keep>
Values part(Values a, int rows, int columns, const Keep& keep, bool unit = false) {
  Values made{a.element, rows, columns, {}};
  made.all.resize(made.count());
  for (int k = 0; k < kBatch; ++k)
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        if (keep(i, j)) made.at(k, i, j) = a.at(k, i, j);
        if (unit && i == j) made.at(k, i, j) = 1;
      }
  return made;
}
constexpr auto kUpper = [](int i, int j) { return i <= j; };
constexpr auto kLower = [](int i, int j) { return i >= j; };

template <class T>
class LapackCalls : public testing::Test {
 protected:
  using R = lapack::Real<T>;
  static constexpr ElementType kElement = lapack::element_of<T>();
  static constexpr ElementType kReal = lapack::element_of<R>();
  static constexpr bool kComplex = lapack::is_complex<T>;

  void SetUp() override {
    if (!Lapack::open().ok()) GTEST_SKIP() << Lapack::open().error().what();
    for (const pjrt::Subject& each : pjrt::subjects())
      if (!each.is_fake && !each.path.empty()) {
        client_ = pjrt::make_client(pjrt::Plugin::load(each.path).value(), 1);
        if (client_->platform() == "cpu") return;
      }
    GTEST_SKIP() << "no CPU plugin";
  }

  static Values empty(int rows, int columns, ElementType element = kElement) {
    return {element, rows, columns, {}};
  }
  static Values vector(int rows, ElementType element = kElement) { return empty(rows, 0, element); }
  static Values info() { return empty(0, 0, ElementType::kS32); }

  // Numbers without a pattern, the same on each machine.
  static Values some(int rows, int columns, int seed = 1) {
    Values made = empty(rows, columns);
    auto next = [state = static_cast<unsigned>(seed) * 2654435761u]() mutable {
      state = state * 1664525u + 1013904223u;
      return static_cast<double>(state >> 16) / 32768.0 - 1.0;
    };
    for (std::size_t i = 0; i < made.count(); ++i) {
      double real = static_cast<float>(next()), imaginary = static_cast<float>(next());
      made.all.emplace_back(real, kComplex ? imaginary : 0.0);
    }
    return made;
  }
  static Values hermitian(int order, double diagonal = 0) {
    Values a = some(order, order), b = adjoint(a);
    for (std::size_t i = 0; i < a.all.size(); ++i) a.all[i] += b.all[i];
    for (int k = 0; k < kBatch; ++k)
      for (int i = 0; i < order; ++i) a.at(k, i, i) += diagonal;
    return a;
  }

  static std::string name(std::string_view real, std::string_view complex = "") {
    const char letter = "sdcz"[(kComplex ? 2 : 0) + (sizeof(R) == 8 ? 1 : 0)];
    return cat("lapack_", letter, kComplex && !complex.empty() ? complex : real, "_ffi");
  }

  Result<std::vector<Values>> try_call(const std::string& target, const std::string& attributes,
                                       const std::vector<Values>& arguments,
                                       std::vector<Values> results) {
    MESHARD_RETURN_IF_ERROR(accept_lapack_call(*client_, target));
    std::string parameters, names;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      append(parameters, cat(i ? ", %a" : "%a", i, ": ", arguments[i].type()));
      append(names, cat(i ? ", %a" : "%a", i));
    }
    std::string returned;
    for (std::size_t i = 0; i < results.size(); ++i)
      append(returned, cat(i ? ", %r" : "%r", results.size() > 1 ? cat("#", i) : ""));
    auto type = [](const Values& each) { return each.type(); };
    auto layout = [](const Values& each) { return each.layout(); };
    std::string text =
        cat("module @call { func.func public @main(", parameters, ") -> (", listed(results, type),
            ") {\n  %r", results.size() > 1 ? cat(":", results.size()) : "",
            " = stablehlo.custom_call @", target, "(", names, ") {api_version = 4 : i32, ",
            "backend_config = {", attributes, "}, operand_layouts = [", listed(arguments, layout),
            "], result_layouts = [", listed(results, layout), "]} : (", listed(arguments, type),
            ") -> (", listed(results, type), ")\n  return ", returned, " : ", listed(results, type),
            " } }");
    MESHARD_ASSIGN_OR_RETURN(pjrt::LoadedExecutable program,
                             client_->compile(text, pjrt::on_devices({0})));
    std::vector<pjrt::BufferList> lists;
    for (const Values& each : arguments) lists.push_back(pjrt::list_of(send(each)));
    const auto pointers = pjrt::pointers_to(lists);
    MESHARD_ASSIGN_OR_RETURN(pjrt::Launched done, pjrt::execute(program, pointers));
    MESHARD_RETURN_IF_ERROR(done.launch.await());
    for (std::size_t i = 0; i < results.size(); ++i) read(done.outputs[i][0], results[i]);
    return results;
  }
  std::vector<Values> call(const std::string& target, const std::string& attributes,
                           const std::vector<Values>& arguments, std::vector<Values> results) {
    return try_call(target, attributes, arguments, std::move(results)).value();
  }

  static void expect_equal(const Values& a, const Values& b) {
    ASSERT_EQ(a.all.size(), b.all.size());
    const double tolerance = sizeof(R) == 8 ? 1e-12 : 2e-5;
    for (std::size_t i = 0; i < a.all.size(); ++i)
      EXPECT_LE(std::abs(a.all[i] - b.all[i]), tolerance) << i << ": " << a.all[i] << b.all[i];
  }
  static void expect_no_problem(const Values& info) {
    for (C each : info.all) EXPECT_EQ(each, C(0));
  }
  static void expect_orthonormal(const Values& q) {
    Values one = product(q, q, true), expected = one;
    for (int k = 0; k < kBatch; ++k)
      for (int i = 0; i < one.rows; ++i)
        for (int j = 0; j < one.columns; ++j) expected.at(k, i, j) = i == j;
    expect_equal(one, expected);
  }

  std::optional<pjrt::Client> client_;

 private:
  template <class E>
  pjrt::Buffer send_as(const Values& values) {
    std::vector<E> converted;
    for (C each : values.all) {
      if constexpr (std::is_same_v<E, std::complex<float>> || std::is_same_v<E, C>)
        converted.push_back(E(each));
      else
        converted.push_back(static_cast<E>(each.real()));
    }
    const std::vector<std::int64_t> dimensions = values.dimensions();
    pjrt::HostArrayView view{converted.data(), values.element, dimensions};
    return std::move(client_
                         ->buffer_from_host(view, pjrt::HostSemantics::kImmutableOnlyDuringCall,
                                            *client_->addressable_devices()[0])
                         .value()
                         .buffer);
  }
  pjrt::Buffer send(const Values& values) {
    if (values.element == ElementType::kS32) return send_as<int>(values);
    return values.element == kReal ? send_as<R>(values) : send_as<T>(values);
  }
  template <class E>
  static void read_as(const pjrt::BufferView& buffer, Values& values) {
    values.all.clear();
    for (E each : pjrt::read_all<E>(buffer)) values.all.push_back(C(each));
  }
  static void read(const pjrt::BufferView& buffer, Values& values) {
    using Complex = std::complex<R>;
    if (values.element == ElementType::kS32)
      read_as<int>(buffer, values);
    else if (values.element == kReal)
      read_as<R>(buffer, values);
    else
      read_as<Complex>(buffer, values);
  }
};

using Elements = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(LapackCalls, Elements);

TYPED_TEST(LapackCalls, LuGivesTheMatrixWithItsRowsSwapped) {
  Values a = this->some(4, 3);
  auto made = this->call(this->name("getrf"), "", {a},
                         {a, this->vector(3, ElementType::kS32), this->info()});
  this->expect_no_problem(made[2]);
  for (int k = 0; k < kBatch; ++k)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        std::swap(a.at(k, i, j), a.at(k, static_cast<int>(made[1].at(k, i).real()) - 1, j));
  this->expect_equal(product(part(made[0], 4, 3, kLower, true), part(made[0], 3, 3, kUpper)), a);
}

TYPED_TEST(LapackCalls, QrGivesTheMatrix) {
  Values a = this->some(4, 3);
  auto made = this->call(this->name("geqrf"), "", {a}, {a, this->vector(3)});
  auto q = this->call(this->name("orgqr", "ungqr"), "", {made[0], made[1]}, {a})[0];
  this->expect_orthonormal(q);
  this->expect_equal(product(q, part(made[0], 3, 3, kUpper)), a);
  // The same, without forming Q.
  auto r = this->call(this->name("ormqr", "unmqr"), "left = true, transpose = true",
                      {made[0], made[1], a}, {a})[0];
  this->expect_equal(r, part(made[0], 4, 3, kUpper));
}

TYPED_TEST(LapackCalls, PivotedQrGivesTheMatrixWithItsColumnsSwapped) {
  Values a = this->some(4, 3), pivots = this->vector(3, ElementType::kS32);
  pivots.all.assign(pivots.count(), 0);
  auto made = this->call(this->name("geqp3"), "", {a, pivots}, {a, pivots, this->vector(3)});
  auto q = this->call(this->name("orgqr", "ungqr"), "", {made[0], made[2]}, {a})[0];
  Values swapped = a;
  for (int k = 0; k < kBatch; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 4; ++i)
        swapped.at(k, i, j) = a.at(k, i, static_cast<int>(made[1].at(k, j).real()) - 1);
  this->expect_equal(product(q, part(made[0], 3, 3, kUpper)), swapped);
}

TYPED_TEST(LapackCalls, CholeskyGivesTheMatrix) {
  Values a = this->hermitian(3, 9);
  auto made = this->call(this->name("potrf"), "uplo = 76 : ui8", {a}, {a, this->info()});
  this->expect_no_problem(made[1]);
  Values l = part(made[0], 3, 3, kLower);
  this->expect_equal(product(l, adjoint(l)), a);
  Values negative = this->hermitian(3, -9);
  made = this->call(this->name("potrf"), "uplo = 76 : ui8", {negative}, {a, this->info()});
  EXPECT_EQ(made[1].all, (std::vector<C>{1, 1}));
}

TYPED_TEST(LapackCalls, TriangularSystemsAreSolved) {
  Values a = this->hermitian(3, 4), b = this->some(3, 2, 7);
  auto x = this->call(this->name("trsm"),
                      "side = 76 : ui8, uplo = 76 : ui8, trans_x = 78 : ui8, diag = 78 : ui8",
                      {a, b}, {b})[0];
  this->expect_equal(product(part(a, 3, 3, kLower), x), b);
  x = this->call(this->name("trsm"),
                 "side = 76 : ui8, uplo = 76 : ui8, trans_x = 67 : ui8, diag = 85 : ui8", {a, b},
                 {b})[0];
  this->expect_equal(product(adjoint(part(a, 3, 3, kLower, true)), x), b);
}

TYPED_TEST(LapackCalls, SingularValuesGiveTheMatrix) {
  Values a = this->some(4, 3);
  for (std::string_view routine : {"gesdd", "gesvd"}) {
    auto made = this->call(this->name(routine), "mode = 83 : ui8", {a},
                           {a, this->vector(3, this->kReal), a, this->empty(3, 3), this->info()});
    this->expect_no_problem(made[4]);
    this->expect_orthonormal(made[2]);
    this->expect_equal(product(scaled_columns(made[2], made[1]), made[3]), a);
    auto whole = this->call(
        this->name(routine), "mode = 65 : ui8", {a},
        {a, this->vector(3, this->kReal), this->empty(4, 4), this->empty(3, 3), this->info()});
    this->expect_orthonormal(whole[2]);
    auto values = this->call(
        this->name(routine), "mode = 78 : ui8", {a},
        {a, this->vector(3, this->kReal), this->empty(4, 4), this->empty(3, 3), this->info()});
    this->expect_equal(values[1], made[1]);
  }
}

TYPED_TEST(LapackCalls, EigenvectorsOfASymmetricMatrix) {
  Values a = this->hermitian(4);
  auto made = this->call(this->name("syevd", "heevd"), "mode = 86 : ui8, uplo = 76 : ui8", {a},
                         {a, this->vector(4, this->kReal), this->info()});
  this->expect_no_problem(made[2]);
  this->expect_orthonormal(made[0]);
  this->expect_equal(product(a, made[0]), scaled_columns(made[0], made[1]));
}

TYPED_TEST(LapackCalls, EigenvectorsOfAnyMatrix) {
  constexpr ElementType kComplexElement =
      lapack::element_of<std::complex<lapack::Real<TypeParam>>>();
  Values a = this->some(4, 4), vectors = this->empty(4, 4, kComplexElement);
  std::vector<Values> results{this->vector(4)};
  if (!this->kComplex) results.push_back(this->vector(4));
  results.insert(results.end(), {vectors, vectors, this->info()});
  const std::string both = "compute_left = 86 : ui8, compute_right = 86 : ui8";
  auto made = this->call(this->name("geev"), both, {a}, results);
  this->expect_no_problem(made.back());
  Values values = made[0];
  if (!this->kComplex)
    for (std::size_t i = 0; i < values.all.size(); ++i) values.all[i] += C(0, 1) * made[1].all[i];
  Values left = made[made.size() - 3], right = made[made.size() - 2];
  this->expect_equal(product(a, right), scaled_columns(right, values));
  Values conjugates = values;
  for (C& each : conjugates.all) each = std::conj(each);
  this->expect_equal(product(adjoint(a), left), scaled_columns(left, conjugates));
  a.all[1] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(this->call(this->name("geev"), both, {a}, results).back().all, (std::vector<C>{-4, 0}));
}

TYPED_TEST(LapackCalls, SchurGivesTheMatrix) {
  Values a = this->some(4, 4);
  std::vector<Values> results{a, a, this->vector(4)};
  if (!this->kComplex) results.push_back(this->vector(4));
  results.insert(results.end(), {this->info(), this->info()});
  auto made = this->call(this->name("gees"), "mode = 86 : ui8, sort = 78 : ui8", {a}, results);
  this->expect_no_problem(made.back());
  this->expect_orthonormal(made[1]);
  this->expect_equal(product(product(made[1], made[0]), adjoint(made[1])), a);
}

// Sums that no orthogonal change of basis changes.
std::vector<C> invariants(Values a) {
  std::vector<C> sums;
  for (int k = 0; k < kBatch; ++k) {
    C trace, squares;
    for (int i = 0; i < a.rows; ++i) {
      trace += a.at(k, i, i);
      for (int j = 0; j < a.columns; ++j) squares += std::norm(a.at(k, i, j));
    }
    sums.insert(sums.end(), {trace, squares});
  }
  return sums;
}

TYPED_TEST(LapackCalls, HessenbergAndTridiagonalForms) {
  Values a = this->some(4, 4), expected = a;
  auto made = this->call(this->name("gehrd"), "low = 1 : i32, high = 4 : i32", {a},
                         {a, this->vector(3), this->info()});
  this->expect_no_problem(made[2]);
  Values form = part(made[0], 4, 4, [](int i, int j) { return i <= j + 1; });
  form.all = invariants(form), expected.all = invariants(a);
  this->expect_equal(form, expected);

  a = this->hermitian(4);
  Values beside = this->vector(3, this->kReal);
  made = this->call(this->name("sytrd", "hetrd"), "uplo = 76 : ui8", {a},
                    {a, this->vector(4, this->kReal), beside, this->vector(3), this->info()});
  this->expect_no_problem(made[4]);
  form = this->empty(4, 4);
  form.all.resize(form.count());
  for (int k = 0; k < kBatch; ++k)
    for (int i = 0; i < 4; ++i) {
      form.at(k, i, i) = made[1].at(k, i);
      if (i < 3) form.at(k, i, i + 1) = form.at(k, i + 1, i) = made[2].at(k, i);
    }
  form.all = invariants(form), expected.all = invariants(a);
  this->expect_equal(form, expected);
}

TYPED_TEST(LapackCalls, TridiagonalSystemsAreSolved) {
  Values lower = this->some(3, 1, 3), middle = this->some(3, 1, 4), upper = this->some(3, 1, 5),
         b = this->some(3, 2, 6), a = this->empty(3, 3);
  a.all.resize(a.count());
  for (int k = 0; k < kBatch; ++k)
    for (int i = 0; i < 3; ++i) {
      a.at(k, i, i) = middle.at(k, i) += 4;
      if (i > 0) a.at(k, i, i - 1) = lower.at(k, i);
      if (i < 2) a.at(k, i, i + 1) = upper.at(k, i);
    }
  for (Values* each : {&lower, &middle, &upper}) each->columns = 0;
  auto made = this->call(this->name("gtsv"), "", {lower, middle, upper, b},
                         {lower, middle, upper, b, this->info()});
  this->expect_no_problem(made[4]);
  this->expect_equal(product(a, made[3]), b);
}

TYPED_TEST(LapackCalls, ThatDoNotFitAreErrors) {
  Values a = this->some(4, 3);
  auto fails = [&](const std::string& attributes, std::vector<Values> arguments,
                   std::vector<Values> results, const std::string& why) {
    auto made = this->try_call(this->name("potrf"), attributes, arguments, results);
    ASSERT_FALSE(made.ok());
    EXPECT_THAT(made.error().what(), HasSubstr(why));
  };
  Values square = this->hermitian(3, 4);
  fails("uplo = 76 : ui8", {a}, {a, this->info()}, "a matrix of 4 x 3 is not square");
  fails("uplo = 65 : ui8", {square}, {square, this->info()}, "uplo is A, which is none of LU");
  fails("", {square}, {square, this->info()}, "there is no attribute uplo");
  fails("uplo = 76 : ui8", {square}, {square}, "1 arguments and 1 results, instead of 1 and 2");
  fails("uplo = 76 : ui8", {square}, {a, this->info()}, "result 0 has 24 elements, not 18");
  fails("uplo = 76 : ui8", {square}, {square, this->vector(0, this->kReal)}, "not s32");
  EXPECT_THAT(accept_lapack_call(*this->client_, "lapack_sfoo_ffi").error().what(),
              HasSubstr("lapack_sfoo_ffi is not one of lapack_cgees_ffi, "));
}

}  // namespace
}  // namespace meshard
