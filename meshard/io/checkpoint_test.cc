#include "meshard/io/checkpoint.h"

#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/leaf.h"
#include "meshard/io/io_testutil.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/runtime/plugin_testutil.h"

namespace meshard::io {
namespace {

struct Layer {
  Tensor w, b;
  MESHARD_FIELDS(w, b)
};
struct State {
  std::vector<Layer> layers;
  std::map<std::string, Tensor> extra;
  std::int64_t step = 0;
  double rate = 0;
  bool done = false;
  Static<int> size{3};
  MESHARD_FIELDS(layers, extra, step, rate, done, size)
};

Tensor vector_of(std::vector<float> values) {
  auto size = static_cast<std::int64_t>(values.size());
  return from_host(std::move(values), {size});
}

State some_state() {
  State state;
  for (float i : {0.f, 10.f})
    state.layers.push_back(
        {from_host(std::vector<float>{i, i + 1, i + 2, i + 3}, {2, 2}), vector_of({i, -i})});
  state.extra["m"] = vector_of({1, 2, 3});
  state.step = 12345678901;
  state.rate = 0.1;
  state.done = true;
  return state;
}

class CheckpointOnDevices : public OnPlugin {
 protected:
  std::string path_ = testing::TempDir() + "/meshard_checkpoint.safetensors";
  ~CheckpointOnDevices() override { std::filesystem::remove(path_); }
};

TEST(Checkpoint, NamesArePathsWithDots) {
  EXPECT_EQ(checkpoint_name(".blocks[12].w"), "blocks.12.w");
  EXPECT_EQ(checkpoint_name(".extra[\"a.b[0]\"][1]"), "extra.a.b[0].1");
  EXPECT_EQ(checkpoint_name("[0]"), "0");
  EXPECT_EQ(checkpoint_name(""), "value");
}

TEST_F(CheckpointOnDevices, RecordedValuesOfSeveralSubmeshesAreSavedTogether) {
  Mesh left({{"x", 2}}, {0, 1}), right({{"x", 2}}, {2, 3});
  std::map<std::string, Tensor> stages;
  stages["first"] = mark_sharding(vector_of({1, 2}), left, P("x")) + 1;
  stages["second"] = mark_sharding(vector_of({3, 4}), right, P("x")) * 2;
  stages["shared"] = vector_of({5, 6}) - 1;
  save(path_, stages).value();
  Weights saved = Weights::open(path_).value();
  EXPECT_EQ(saved.tensor("first").value().to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(saved.tensor("second").value().to_vector<float>(), (std::vector<float>{6, 8}));
  EXPECT_EQ(saved.tensor("shared").value().to_vector<float>(), (std::vector<float>{4, 5}));
}

TEST_F(CheckpointOnDevices, EveryMemberComesBackWhereItIsToGo) {
  save(path_, some_state()).value();
  EXPECT_EQ(Weights::open(path_).value().names(),
            (std::vector<std::string>{"done", "extra.m", "layers.0.b", "layers.0.w", "layers.1.b",
                                      "layers.1.w", "rate", "step"}));
  Mesh mesh({{"x", 2}}, {3, 5});
  State like;
  like.layers = {{abstract_tensor({2, 2}, DType::f32, mesh, P(none, "x")), Tensor()},
                 {mark_sharding(from_host(std::vector<float>(4), {2, 2}), mesh, P("x")),
                  abstract_tensor({2}, DType::f32)}};
  like.extra["m"] = Tensor();
  State back = restore(path_, like).value();
  State expected = some_state();
  EXPECT_EQ(back.step, expected.step);
  EXPECT_EQ(back.rate, expected.rate);
  EXPECT_EQ(back.done, expected.done);
  std::vector<Tensor> got = structure::tensors(back), wanted = structure::tensors(expected);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i].to_host(), wanted[i].to_host()) << i;
  EXPECT_EQ(back.layers[0].w.sharding(), Sharding(mesh, P(none, "x"), 2));
  EXPECT_EQ(back.layers[1].w.sharding(), Sharding(mesh, P("x"), 2));
  EXPECT_EQ(back.layers[1].b.placement(), "host");
}

TEST_F(CheckpointOnDevices, OneTensorIsAStructure) {
  save(path_, vector_of({1, 2})).value();
  EXPECT_EQ(restore(path_, Tensor()).value().to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST_F(CheckpointOnDevices, WhatDoesNotFitIsNamed) {
  save(path_, some_state()).value();
  auto refusal = [&](const State& like) { return restore(path_, like).error(); };
  State more = some_state(), other = some_state();
  more.extra["n"] = Tensor();
  EXPECT_EQ(refusal(more).code(), ErrorCode::kNotFound);
  EXPECT_NE(refusal(more).message().find("extra.n"), std::string::npos);
  other.layers[1].b = abstract_tensor({3}, DType::f32);
  EXPECT_EQ(refusal(other).message(),
            cat("[io] ", path_,
                ": \"layers.1.b\" is f32[2] in the checkpoint, but the destination is f32[3]"));
  EXPECT_EQ(restore(path_ + ".none", Tensor()).error().code(), ErrorCode::kNotFound);
  State less = some_state();
  less.extra.clear();
  less.layers.pop_back();
  EXPECT_EQ(refusal(less).code(), ErrorCode::kNotFound);
  for (std::string part : {"\"extra.m\", \"layers.1.b\", \"layers.1.w\"", "strict = false"})
    EXPECT_NE(refusal(less).message().find(part), std::string::npos) << refusal(less).message();
  EXPECT_TRUE(restore(path_, less, {.strict = false}).ok());
  more.extra.clear();
  more.extra["mm"] = Tensor();
  EXPECT_NE(refusal(more).message().find("lacks \"extra.mm\" (the nearest names are \"extra.m\""),
            std::string::npos)
      << refusal(more).message();
  std::map<std::string, std::map<std::string, Tensor>> twice;
  twice["a"]["b.c"] = twice["a.b"]["c"] = vector_of({1});
  EXPECT_NE(save(path_, twice).error().message().find("\"a.b.c\""), std::string::npos);
}

}  // namespace
}  // namespace meshard::io
