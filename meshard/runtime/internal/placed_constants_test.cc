#include "meshard/runtime/internal/placed_constants.h"

#include <gmock/gmock.h>

#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"

namespace meshard {
namespace {

using testing::Each;

struct PlacedConstants : OnPlugin {};

Tensor marked(const Tensor& x, const Mesh& mesh, const PartitionSpec& spec) {
  return mark_sharding(x, mesh, spec);
}

TEST_F(PlacedConstants, NeedNoProgram) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  restart();
  Tensor ones_split = marked(ones({16, 8}), mesh, P("y", "x"));
  Tensor whole = marked(zeros({3}, DType::i32), mesh, P(none));
  Tensor uneven = marked(full({5}, 2.5), mesh, P("y"));
  Tensor alone = zeros({2, 2});
  compute({ones_split, whole, uneven});
  compute({alone});
  EXPECT_EQ(done().compiles + done().launches, 0u);
  EXPECT_EQ(done().buffers_sent, 8u + 8u + 8u + 1u);
  EXPECT_THAT(ones_split.to_vector<float>(), Each(1.0f));
  EXPECT_THAT(whole.to_vector<std::int32_t>(), Each(0));
  EXPECT_THAT(uneven.to_vector<float>(), Each(2.5f));
  EXPECT_EQ(ones_split.sharding()->to_string(), Sharding(mesh, P("y", "x")).to_string());
  EXPECT_EQ((ones_split + 1).to_vector<float>()[5], 2.0f);
}

// The program's results are the reference.
TEST_F(PlacedConstants, HaveTheBytesThatAProgramComputes) {
  Mesh mesh({{"x", 2}});
  for (DType dtype : {DType::bool_, DType::i8, DType::u16, DType::i64, DType::bf16, DType::f16,
                      DType::f32, DType::f64, DType::c64}) {
    Tensor placed = marked(ones({4, 2}, dtype), mesh, P("x"));
    compute({placed});
    auto f = jit([&] { return sharding_constraint(ones({4, 2}, dtype), Sharding(mesh, P("x"))); });
    EXPECT_EQ(placed.to_host().to_string(), f().to_host().to_string()) << dtype;
  }
}

TEST_F(PlacedConstants, OtherValuesAreComputed) {
  Mesh mesh({{"x", 2}});
  for (const auto& make : {+[](const Mesh& m) { return marked(ones({8}) * 2, m, P("x")); },
                           +[](const Mesh& m) { return marked(ones({1 << 14}), m, P("x")); },
                           +[](const Mesh& m) { return marked(arange(8), m, P("x")); },
                           +[](const Mesh& m) { return marked(ones({8}), m, P(unconstrained)); }}) {
    Tensor x = make(mesh);
    restart();
    compute({x});
    EXPECT_EQ(done().launches, 1u);
  }
  Tensor inner = ones({8}), outer = marked(inner, mesh, P("x"));
  restart();
  compute({outer});
  EXPECT_THAT(inner.to_vector<float>(), Each(1.0f)) << "kept by its handle";
}

TEST_F(PlacedConstants, CanBeDonated) {
  Mesh mesh({{"x", 2}});
  Tensor x = marked(ones({4}), mesh, P("x"));
  auto f = jit([](Tensor y) { return y + 1; }, {.donate = {0}});
  EXPECT_THAT(f(x).to_vector<float>(), Each(2.0f));
  EXPECT_THROW((void)x.to_host(), Error) << "donated";
}

// The compiler reads the elements from the module's text.
TEST_F(PlacedConstants, BoolsInAProgram) {
  std::vector<bool> given(1240);
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = i % 3 == 0;
  HostArray bools = HostArray::from_vector<bool>(given, {40, 31});
  auto count = jit([&] { return sum(astype(constant(bools), DType::i32)); });
  EXPECT_EQ(count().to_vector<std::int32_t>(), std::vector<std::int32_t>{414});
}

}  // namespace
}  // namespace meshard
