// The values of the element-wise ops, compiled, are those of the C++ library (and of functions that
// are known besides), also at zeros, infinities and NaN.
#include <algorithm>
#include <cmath>

#include "tests/conformance/conformance.h"
#include "tests/support/element_wise_table.h"

namespace meshard::conformance {
namespace {

using ElementWiseOps = OnDevices;
using Numbers = std::vector<double>;

const Numbers& special_points() {
  static const Numbers points{0,  -0.0, 1e-9, 0.25, -0.25, 0.75, 1,        -1,        2,
                              -2, 2.5,  -2.5, 7,    30,    -30,  INFINITY, -INFINITY, NAN};
  return points;
}

// Every pair of two lists.
std::pair<Numbers, Numbers> pairs(const Numbers& a, const Numbers& b) {
  std::pair<Numbers, Numbers> out;
  for (double x : a)
    for (double y : b) out.first.push_back(x), out.second.push_back(y);
  return out;
}

// The operands at which an op of two is compared.
std::pair<Numbers, Numbers> operands_of(const BinaryOp& row) {
  const Numbers positive{0.5, 1, 2.5, 10};
  if (row.name == "polygamma") return pairs({0, 1, 2, 3}, positive);
  if (row.name == "zeta") return pairs({1.5, 2, 3, 7}, positive);
  return pairs(special_points(), special_points());
}

// NaN and infinities at the same places; zeros with the same sign.
bool is_close(double got, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  if (expected == 0 && got == 0) return std::signbit(got) == std::signbit(expected);
  return std::abs(got - expected) <= tolerance * std::max(0.1, std::abs(expected));
}

void expect_values(const std::string& name, const HostArray& got, const Numbers& expected,
                   double tolerance) {
  Numbers values = got.astype(DType::f64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size()) << name;
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_TRUE(is_close(values[i], expected[i], tolerance))
        << name << " at point " << i << ": " << values[i] << ", expected " << expected[i];
  tally("values of element-wise ops compared", static_cast<int>(values.size()));
}

// All ops in one program for each dtype.
void check_values(DType dtype, double tolerance) {
  std::vector<Part> parts;
  std::vector<Numbers> expected;
  auto rounded = [&](const Numbers& values) {
    return HostArray::from_vector<double>(values).astype(dtype);
  };
  for (const UnaryOp& row : unary_ops()) {
    if (!row.real) continue;
    HostArray x = rounded(special_points());
    expected.emplace_back();
    for (double point : x.astype(DType::f64).to_vector<double>())
      expected.back().push_back(row.real(point));
    parts.push_back({std::string(row.name), {x}, [call = row.call](std::span<const Tensor> in) {
                       return std::vector<Tensor>{call(in[0])};
                     }});
  }
  for (const BinaryOp& row : binary_ops()) {
    if (!row.real) continue;
    auto [a, b] = operands_of(row);
    HostArray x = rounded(a), y = rounded(b);
    a = x.astype(DType::f64).to_vector<double>(), b = y.astype(DType::f64).to_vector<double>();
    expected.emplace_back();
    for (std::size_t i = 0; i < a.size(); ++i) expected.back().push_back(row.real(a[i], b[i]));
    parts.push_back({std::string(row.name), {x, y}, [call = row.call](std::span<const Tensor> in) {
                       return std::vector<Tensor>{call(in[0], in[1])};
                     }});
  }
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(cat(part.name, " of ", dtype));
  std::vector<Together::Results> results = Together(std::move(parts)).run();
  for (std::size_t i = 0; i < results.size(); ++i)
    expect_values(names[i], results[i][0],
                  rounded(expected[i]).astype(DType::f64).to_vector<double>(), tolerance);
}

TEST_F(ElementWiseOps, HaveTheirValues) {
  check_values(DType::f64, 1e-12);
  check_values(DType::f32, 1e-5);
}

}  // namespace
}  // namespace meshard::conformance
