#include "meshard/ops/rolling/roll_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "meshard/graph/body.h"
#include "meshard/graph/graph.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kLayers = 5;
const TensorType kRolledPair{DType::f32, {2}};
const TensorType kStack{DType::f32, {kLayers, 2}};

using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

// What is recorded for a function.
struct Recorded {
  std::vector<std::string> ops;    // the names of the nodes
  std::vector<std::string> inner;  // of the first scan's body
  std::vector<std::string> unrolled;
};

Recorded record_rolled(const Function& f, const std::vector<TensorType>& types) {
  internal::TraceScope scope;
  std::vector<Tensor> parameters;
  std::vector<Value> values, wanted;
  for (const TensorType& type : types) {
    parameters.push_back(make_parameter(type, std::nullopt, {}));
    values.push_back(parameters.back().value());
  }
  internal::UnrolledLayersScope unrolled;
  internal::RollingScope rolling;
  for (const Tensor& each : rolling.rolled(f(parameters))) wanted.push_back(each.value());
  Graph graph = Graph::build(values, wanted, scope.trace());
  Recorded recorded;
  for (const Node* node : graph.nodes()) {
    recorded.ops.emplace_back(node->op().name);
    if (recorded.ops.back() != "scan") continue;
    if (!recorded.inner.empty()) continue;
    for (const Node* each : bodies_of(*node)[0].graph().nodes())
      recorded.inner.emplace_back(each->op().name);
  }
  for (const UnrolledLayers& each : unrolled.found()) recorded.unrolled.push_back(each.to_string());
  return recorded;
}

std::vector<std::string> ops_of(const std::function<Tensor(Tensor, Tensor)>& f) {
  Recorded recorded = record_rolled(
      [&](std::span<const Tensor> given) { return std::vector<Tensor>{f(given[0], given[1])}; },
      {kStack, kRolledPair});
  EXPECT_THAT(recorded.unrolled, IsEmpty());
  return recorded.ops;
}

std::string reason_of(const std::function<Tensor(Tensor, Tensor)>& f) {
  Recorded recorded = record_rolled(
      [&](std::span<const Tensor> given) { return std::vector<Tensor>{f(given[0], given[1])}; },
      {kStack, kRolledPair});
  EXPECT_THAT(recorded.ops, testing::Not(testing::Contains("scan")));
  return recorded.unrolled.empty() ? "" : recorded.unrolled[0];
}

Tensor layer(const Tensor& w, const Tensor& x) { return tanh(x * w); }

TEST(RollLayers, EqualLayersAreOneScan) {
  Recorded recorded = record_rolled(
      [](std::span<const Tensor> given) {
        Tensor x = exp(given[1]);
        for (int i = 0; i < kLayers; ++i) x = layer(layer_slice(given[0], i), x);
        return std::vector<Tensor>{sin(x)};
      },
      {kStack, kRolledPair});
  EXPECT_THAT(recorded.ops, ElementsAre("exp", "scan", "sin"));
  EXPECT_THAT(recorded.inner, ElementsAre("multiply", "tanh"));
  EXPECT_THAT(recorded.unrolled, IsEmpty());
}

TEST(RollLayers, BackwardOrder) {
  EXPECT_THAT(ops_of([](Tensor w, Tensor x) {
                for (int i = kLayers; i-- > 0;) x = layer(layer_slice(w, i), x);
                return x;
              }),
              ElementsAre("scan"));
}

TEST(RollLayers, AllSlicesMayBeTakenFirst) {
  EXPECT_THAT(ops_of([](Tensor w, Tensor x) {
                std::vector<Tensor> slices;
                for (int i = 0; i < kLayers; ++i) slices.push_back(layer_slice(w, i));
                for (const Tensor& each : slices) x = layer(each, x);
                return x;
              }),
              ElementsAre("scan"));
}

TEST(RollLayers, ALayerMayUseItsSlicesTwice) {
  EXPECT_THAT(ops_of([](Tensor w, Tensor x) {
                for (int i = 0; i < kLayers; ++i)
                  x = layer(layer_slice(w, i), x) + layer_slice(w, i);
                return x;
              }),
              ElementsAre("scan"));
}

TEST(RollLayers, LayersRecordEqualValuesFromOutsideAgain) {
  EXPECT_THAT(ops_of([](Tensor w, Tensor x) {
                for (int i = 0; i < kLayers; ++i)
                  x = where(greater(iota(DType::i32, {2}, 0), 0), layer(layer_slice(w, i), x), 0);
                return x;
              }),
              ElementsAre("scan"));
}

TEST(RollLayers, SmallValuesThatDifferByLayerAreStacked) {
  Recorded recorded = record_rolled(
      [](std::span<const Tensor> given) {
        Tensor x = given[2];
        for (int i = 0; i < kLayers; ++i)
          x = layer(layer_slice(given[0], i), x) * exp(slice(given[1], {i}, {i + 1})) * i;
        return std::vector<Tensor>{x};
      },
      {kStack, {DType::f32, {kLayers}}, kRolledPair});
  EXPECT_THAT(recorded.ops, testing::Contains("scan").Times(1));
  EXPECT_THAT(recorded.unrolled, IsEmpty());
}

TEST(RollLayers, LargeValuesThatDifferByLayerAreNotCopied) {
  Recorded recorded = record_rolled(
      [](std::span<const Tensor> given) {
        Tensor x = given[0];
        for (int i = 0; i < 3; ++i) x = (x + given[2 + i]) * layer_slice(given[1], i);
        return std::vector<Tensor>{x};
      },
      {{DType::f32, {1 << 19}},
       {DType::f32, {3, 1}},
       {DType::f32, {1 << 19}},
       {DType::f32, {1 << 19}},
       {DType::f32, {1 << 19}}});
  EXPECT_THAT(recorded.unrolled, ElementsAre(HasSubstr("f32[524288]")));
}

TEST(RollLayers, SeveralValuesArePassedOn) {
  EXPECT_THAT(ops_of([](Tensor w, Tensor x) {
                Tensor sum = x * 0;
                for (int i = 0; i < kLayers; ++i) {
                  x = layer(layer_slice(w, i), x);
                  sum = sum + x;
                }
                return sum * x;
              }),
              ElementsAre("constant", "broadcast_in_dim", "multiply", "scan", "multiply"));
}

TEST(RollLayers, LayersBeginWithTheirSlices) {
  EXPECT_THAT(ops_of([](Tensor w, Tensor x) {
                for (int i = 0; i < kLayers; ++i) {
                  Tensor slice = layer_slice(w, i);
                  x = where(greater(iota(DType::i32, {2}, 0), 0), exp(x), 0) * slice;
                }
                return sin(x);
              }),
              ElementsAre("scan", "sin"));
}

TEST(RollLayers, LayersThatBeginBeforeTheirSlices) {
  // exp() needs no slice, so that it counts as the end of the previous layer.
  EXPECT_THAT(ops_of([](Tensor w, Tensor x) {
                for (int i = 0; i < kLayers; ++i) {
                  Tensor before = exp(x);
                  x = before * layer_slice(w, i);
                }
                return sin(x);
              }),
              ElementsAre("exp", "constant", "broadcast_in_dim", "scan", "sin"));
}

TEST(RollLayers, SeveralStacks) {
  EXPECT_THAT(record_rolled(
                  [](std::span<const Tensor> given) {
                    Tensor x = given[2];
                    for (int i = 0; i < kLayers; ++i)
                      x = layer(layer_slice(given[0], i), x) + layer_slice(given[1], i);
                    return std::vector<Tensor>{x};
                  },
                  {kStack, kStack, kRolledPair})
                  .ops,
              ElementsAre("scan"));
}

TEST(RollLayers, TwoSequencesAreTwoScans) {
  EXPECT_THAT(record_rolled(
                  [](std::span<const Tensor> given) {
                    Tensor x = given[2];
                    for (int i = 0; i < kLayers; ++i) x = layer(layer_slice(given[0], i), x);
                    for (int i = 0; i < kLayers; ++i) x = exp(x + layer_slice(given[1], i));
                    return std::vector<Tensor>{x};
                  },
                  {kStack, kStack, kRolledPair})
                  .ops,
              ElementsAre("scan", "scan"));
}

TEST(RollLayers, TheSameStackTwice) {
  Recorded recorded = record_rolled(
      [](std::span<const Tensor> given) {
        Tensor x = given[1], y = given[1];
        for (int i = 0; i < kLayers; ++i) x = layer(layer_slice(given[0], i), x);
        for (int i = 0; i < kLayers; ++i) y = exp(y + layer_slice(given[0], i));
        return std::vector<Tensor>{x, y};
      },
      {kStack, kRolledPair});
  // Both uses of slice i are regarded as layer i's.
  EXPECT_THAT(recorded.ops, ElementsAre("scan"));
}

TEST(RollLayers, LayersOfLayers) {
  Recorded recorded = record_rolled(
      [](std::span<const Tensor> given) {
        Tensor x = given[1];
        for (int i = 0; i < 4; ++i) {
          Tensor inner = layer_slice(given[0], i);
          for (int j = 0; j < 3; ++j) x = layer(layer_slice(inner, j), x);
          x = sin(x);
        }
        return std::vector<Tensor>{x};
      },
      {{DType::f32, {4, 3, 2}}, kRolledPair});
  EXPECT_THAT(recorded.ops, ElementsAre("scan"));
  EXPECT_THAT(recorded.inner, ElementsAre("scan", "sin"));
}

TEST(RollLayers, AResultMayBeTheLastValueItself) {
  Recorded recorded = record_rolled(
      [](std::span<const Tensor> given) {
        Tensor x = given[1];
        for (int i = 0; i < kLayers; ++i) x = layer(layer_slice(given[0], i), x);
        return std::vector<Tensor>{x, x + 1, given[1]};
      },
      {kStack, kRolledPair});
  EXPECT_THAT(recorded.ops,
              testing::UnorderedElementsAre("scan", "constant", "broadcast_in_dim", "add"));
}

TEST(RollLayers, FewLayersStay) {
  Recorded recorded = record_rolled(
      [](std::span<const Tensor> given) {
        Tensor x = given[1];
        for (int i = 0; i < 2; ++i) x = layer(layer_slice(given[0], i), x);
        return std::vector<Tensor>{x};
      },
      {{DType::f32, {2, 2}}, kRolledPair});
  EXPECT_THAT(recorded.ops, testing::Not(testing::Contains("scan")));
  EXPECT_THAT(recorded.unrolled, IsEmpty());
}

TEST(RollLayers, ReasonsWhyLayersStay) {
  EXPECT_THAT(
      reason_of([](Tensor w, Tensor x) {
        for (int i = 0; i < kLayers; ++i) {
          x = layer(layer_slice(w, i), x);
          if (i == 2) x = sin(x);
        }
        return x;
      }),
      testing::AllOf(HasSubstr("roll_layers_test.cc:"), HasSubstr("5 layers"),
                     HasSubstr("layer 2 records 3 operations of its own, layer 1 records 2")));
  EXPECT_THAT(reason_of([](Tensor w, Tensor x) {
                for (int i = 0; i < kLayers; ++i)
                  x = i == 3 ? sin(x * layer_slice(w, i)) : tanh(x * layer_slice(w, i));
                return x;
              }),
              testing::AllOf(HasSubstr("layer 3"), HasSubstr("sin"), HasSubstr("tanh")));
  EXPECT_THAT(reason_of([](Tensor w, Tensor x) {
                std::vector<Tensor> kept;
                for (int i = 0; i < kLayers; ++i) kept.push_back(x = layer(layer_slice(w, i), x));
                return x + kept[2];
              }),
              HasSubstr("a value of layer 2, made at roll_layers_test.cc:"));
  EXPECT_THAT(reason_of([](Tensor w, Tensor x) {
                std::vector<Tensor> all;
                for (int i = 0; i < kLayers; ++i) all.push_back(layer(layer_slice(w, i), x));
                return concat(all);
              }),
              HasSubstr("no layer uses a result of the layer before it"));
}

TEST(RollLayers, ALayerThatIsNotUsedInOrder) {
  EXPECT_NE(reason_of([](Tensor w, Tensor x) {
              for (int i : {0, 2, 1, 3, 4}) x = layer(layer_slice(w, i), x);
              return x;
            }),
            "");
}

}  // namespace
}  // namespace meshard
