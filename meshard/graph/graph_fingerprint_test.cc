#include <gtest/gtest.h>

#include "meshard/graph/graph.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"

namespace meshard {
namespace {

using test::plus;
using test::scale;

const TensorType kTwoFloats{DType::f32, Shape{2}};

std::vector<Value> values_of(std::initializer_list<Tensor> tensors) {
  std::vector<Value> out;
  for (const Tensor& tensor : tensors) out.push_back(tensor.value());
  return out;
}

Graph scaled_sum(double factor, std::int64_t extent, int extra_lines) {
  internal::TraceScope scope;
  SourceLocation where{"f.cc", "f", static_cast<std::uint32_t>(10 + extra_lines)};
  Tensor a = make_parameter({DType::f32, Shape{extent}}, std::nullopt, where);
  Tensor y = scale(plus(a, In(a, where)), factor, {1, 2});
  return Graph::build(values_of({a}), values_of({y}), scope.trace());
}

TEST(GraphFingerprint, IsOfWhatIsComputed) {
  Fingerprint base = scaled_sum(2, 4, 0).fingerprint();
  EXPECT_EQ(base, scaled_sum(2, 4, 7).fingerprint()) << "source lines do not count";
  EXPECT_NE(base, scaled_sum(3, 4, 0).fingerprint()) << "attributes count";
  EXPECT_NE(base, scaled_sum(2, 5, 0).fingerprint()) << "types count";
}

TEST(GraphFingerprint, SeesWhichOperandIsWhich) {
  auto make = [](bool swapped) {
    internal::TraceScope scope;
    Tensor a = make_parameter(kTwoFloats, std::nullopt, {}),
           b = make_parameter(kTwoFloats, std::nullopt, {});
    Tensor y = swapped ? plus(scale(b, 2), a) : plus(scale(a, 2), b);
    return Graph::build(values_of({a, b}), values_of({y}), scope.trace()).fingerprint();
  };
  EXPECT_NE(make(false), make(true));
}

TEST(GraphFingerprint, SeesShardings) {
  auto make = [](const PartitionSpec& spec) {
    internal::TraceScope scope;
    Tensor a = make_parameter({DType::f32, Shape{8}}, Sharding(Mesh({{"x", 2}}), spec, 1), {});
    return Graph::build(values_of({a}), values_of({scale(a, 2)}), scope.trace()).fingerprint();
  };
  EXPECT_EQ(make(P("x")), make(P("x")));
  EXPECT_NE(make(P("x")), make(P(none)));
}

}  // namespace
}  // namespace meshard
