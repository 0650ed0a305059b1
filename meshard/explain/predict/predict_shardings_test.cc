// The shardings that predictions spread through a program.
#include <gtest/gtest.h>

#include "meshard/explain/predict/predict.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/dot_general.h"
#include "meshard/ops/identity.h"
#include "meshard/ops/movement.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/trigonometric.h"

namespace meshard {
namespace {

const Mesh kSpreadMesh({{"data", 2}, {"model", 4}});

struct PredictShardings : testing::Test {
  Tensor parameter(Shape shape, std::optional<PartitionSpec> spec = std::nullopt) {
    std::optional<Sharding> sharding;
    if (spec) sharding = Sharding(kSpreadMesh, *spec);
    Tensor made = make_parameter({DType::f32, std::move(shape)}, std::move(sharding),
                                 SourceLocation::current());
    parameters.push_back(made.value());
    return made;
  }
  // The spec of a value in the program that computes it and `result`.
  std::string spec(const Tensor& of, const Tensor& result) {
    std::vector<Value> results{of.value(), result.value()};
    std::optional<Sharding> found =
        predict(Graph::build(parameters, results, scope.trace())).results.at(0);
    return found ? found->spec().to_string() : "none";
  }
  internal::TraceScope scope;
  std::vector<Value> parameters;
};

TEST_F(PredictShardings, GoForward) {
  Tensor x = parameter({16, 32}, P("data", "model"));
  Tensor y = permute_dims(tanh(x), {1, 0});
  EXPECT_EQ(spec(y, y), R"(P("model", "data"))");
  Tensor s = sum(x, 0);
  EXPECT_EQ(spec(s, s), R"(P("model"))");
}

TEST_F(PredictShardings, GoBackwardFromMarksToWhatIsOpen) {
  Tensor x = parameter({16, 32});
  Tensor y = sharding_constraint(tanh(x), Sharding(kSpreadMesh, P(none, "model")));
  EXPECT_EQ(spec(x, y), R"(P(none, "model"))");
}

TEST_F(PredictShardings, AContractedDimensionIsSplitInBoth) {
  Tensor x = parameter({16, 32}, P("data", "model")), w = parameter({32, 8});
  Tensor y = dot_general(x, w, {.lhs_contracting = {1}, .rhs_contracting = {0}});
  EXPECT_EQ(spec(w, y), R"(P("model", none))");
  EXPECT_EQ(spec(y, y), R"(P("data", none))");
}

TEST_F(PredictShardings, WhatIsClosedStays) {
  Tensor x = parameter({16, 32}, P("data", none)), y = parameter({16, 32}, P(none, "model"));
  Tensor z = add(x, y);
  EXPECT_EQ(spec(x, z), R"(P("data", none))");
  EXPECT_EQ(spec(z, z), R"(P("data", "model"))") << "both dimensions have their own axis";
}

TEST_F(PredictShardings, AConflictLeavesWhatIsCommon) {
  Tensor x = parameter({16, 32}, P(axes("data", "model"), none));
  Tensor y = parameter({16, 32}, P("model", none));
  Tensor z = add(x, y);
  EXPECT_EQ(spec(z, z), R"(P(none, none))");
}

TEST_F(PredictShardings, AReshapeKeepsTheOutermostPart) {
  Tensor x = parameter({8, 32}, P("data", "model"));
  Tensor flat = reshape(x, Shape{256});
  EXPECT_EQ(spec(flat, flat), R"(P("data"))") << "the inner dimension's parts would be strided";
  Tensor split = reshape(parameter({16}, P("data")), Shape{4, 4});
  parameters.clear();
  Tensor rows = parameter({16}, P("data"));
  split = reshape(rows, Shape{4, 4});
  EXPECT_EQ(spec(split, split), R"(P("data", none))");
}

TEST_F(PredictShardings, AnotherMeshIsNotTold) {
  Tensor first = parameter({16, 32}, P("data", "model"));
  Mesh other({{"z", 8}});
  Tensor x = make_parameter({DType::f32, {16}}, Sharding(other, P("z")), {});
  parameters.push_back(x.value());
  EXPECT_EQ(spec(x, tanh(first)), "none");
}

}  // namespace
}  // namespace meshard
