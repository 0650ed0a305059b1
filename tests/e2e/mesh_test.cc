// Programs on some of the devices, in any order, and programs that combine several meshes.
#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Meshes = OnDevices;
using testing::ElementsAre;

TEST_F(Meshes, ProgramsThatDifferInDevicesCompileOnce) {
  auto product = [](const Mesh& mesh) {
    Tensor a = mark_sharding(counting({4, 4}), mesh, P("x", none));
    Tensor b = mark_sharding(counting({4, 4}), mesh, P(none, "y"));
    return matmul(a, b);
  };
  std::vector<float> expected = matmul(counting({4, 4}), counting({4, 4})).to_vector<float>();
  restart();
  std::vector<std::vector<std::int64_t>> sets = {
      {0, 1, 2, 3}, {4, 5, 6, 7}, {7, 5, 6, 4}, {1, 5, 0, 3}};
  for (const auto& ids : sets) {
    Tensor c = product(Mesh({{"x", 2}, {"y", 2}}, ids));
    EXPECT_EQ(c.to_vector<float>(), expected);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(device_array(c).device_id(i), ids[i]);
  }
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().retargets, 3u);
}

TEST_F(Meshes, AValueOfOneDeviceIsSentToTheMeshOnce) {
  Tensor scale = counting({4}) + 1;  // computed on one device, without a mesh
  sync({scale});
  Tensor x = mark_sharding(counting({8, 4}), Mesh({{"x", 4}}), P("x", none));
  auto step = jit([](Tensor a, Tensor b) { return a * b; });
  step(x, scale);
  restart();
  for (int i = 0; i < 3; ++i) step(x, scale);
  EXPECT_EQ(done().buffers_sent, 0u);
  EXPECT_EQ(done().buffers_read, 0u);
}

TEST_F(Meshes, TwoDevices) {
  for (std::vector<std::int64_t> ids : {std::vector<std::int64_t>{2, 3}, {1, 5}, {5, 1}}) {
    Mesh mesh({{"x", 2}}, ids);
    Tensor x = mark_sharding(counting({6}), mesh, P("x"));
    Tensor y = mark_sharding(x * 3, mesh, P("x"));
    EXPECT_EQ(y.to_vector<float>(), numbers(6, 0, 3));
    EXPECT_EQ(device_array(y).shard(1, {}).to_vector<float>(), (std::vector<float>{9, 12, 15}));
    EXPECT_EQ(device_array(y).device_id(1), ids[1]);
    EXPECT_EQ(sum(x).item<float>(), 15);
  }
}

TEST_F(Meshes, OneDeviceThatIsNotTheFirst) {
  Mesh mesh({{"x", 1}}, {6});
  Tensor y = mark_sharding(counting({3}), mesh, P("x")) + 1;
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(device_array(y).device_id(0), 6);
}

TEST_F(Meshes, TwoOrdersOfTheSameDevicesInOneProgram) {
  Mesh forward({{"x", 4}}), backward({{"y", 4}}, {3, 2, 1, 0});
  Tensor a = mark_sharding(counting({8}), forward, P("x"));
  Tensor b = mark_sharding(counting({8}, 100), backward, P("y"));
  EXPECT_EQ((a + b).to_vector<float>(), numbers(8, 100, 2));
  // A result over the second mesh uses that mesh's order.
  Tensor c = mark_sharding(a + b, backward, P("y"));
  EXPECT_EQ(c.to_vector<float>(), numbers(8, 100, 2));
  EXPECT_EQ(device_array(c).device_id(0), 3);
  EXPECT_THAT(device_array(c).shard(0, {}).to_vector<float>(), ElementsAre(100, 102));
  auto f = jit([&](Tensor s, Tensor t) { return mark_sharding(s * t, backward, P("y")); });
  Tensor d = f(b, a);
  EXPECT_EQ(d.to_vector<float>()[3], 3.f * 103.f);
  EXPECT_EQ(f(b, mark_sharding(a, backward, P("y"))).to_vector<float>()[7], 7.f * 107.f);
}

TEST_F(Meshes, ProductsOfValuesOverTwoOrders) {
  Mesh forward({{"x", 4}, {"z", 2}}), shuffled({{"x", 4}, {"z", 2}}, {2, 7, 0, 5, 4, 1, 6, 3});
  Tensor a = remainder(reshape(counting({128}), {8, 16}), 7) - 3;
  Tensor b = remainder(reshape(counting({128}), {16, 8}), 5) - 2;
  auto f = [](const Tensor& s, const Tensor& t) {
    return matmul(matmul(s, t), permute_dims(t, {1, 0}));
  };
  std::vector<float> expected = f(a, b).to_vector<float>();
  for (const PartitionSpec& spec :
       {P(), P("z"), P(none, "x"), P("z", "x"), P(none, axes("z", "x"))}) {
    Tensor first = mark_sharding(a, forward, spec);
    EXPECT_EQ(jit(f)(first, mark_sharding(b, shuffled, P("z", "x"))).to_vector<float>(), expected)
        << spec.to_string();
    EXPECT_EQ(jit(f)(first, mark_sharding(b, shuffled, P("x", "z"))).to_vector<float>(), expected)
        << spec.to_string();
  }
}

TEST_F(Meshes, TheSameDevicesInAnotherOrderCompileForThemselves) {
  // The module text has both meshes; only the order of the meshes differs.
  Mesh forward({{"x", 4}}), shuffled({{"x", 4}}, {2, 0, 3, 1});
  for (bool swap : {false, true}) {
    Tensor a = mark_sharding(counting({4}), swap ? shuffled : forward, P("x"));
    Tensor b = mark_sharding(counting({4}, 10), swap ? forward : shuffled, P("x"));
    EXPECT_THAT((a - b).to_vector<float>(), ElementsAre(-10, -10, -10, -10));
    Tensor c = mark_sharding(a + 1, b.sharding()->mesh(), P("x"));
    EXPECT_EQ(c.to_vector<float>(), numbers(4, 1));
  }
}

TEST_F(Meshes, TheCompilersChoiceMayFollowTheSecondMesh) {
  // The unused argument determines the device numbering; the result is placed like the other one.
  Mesh first({{"a", 3}}, {4, 3, 6}), second({{"f", 3}}, {6, 4, 3});
  Tensor unused = mark_sharding(counting({4}), first, P(none));
  Tensor x = mark_sharding(counting({6}), second, P("f"));
  auto f = jit([](Tensor, Tensor a) { return stack({a, a}, 1); });
  Tensor y = f(unused, x);
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5));
  EXPECT_EQ(f(unused, index(y, {whole, 0})).to_vector<float>(), y.to_vector<float>());
}

TEST_F(Meshes, APaddingMayCutOffWhereADimensionIsSplit) {
  Tensor x = mark_sharding(counting({4}), Mesh({{"x", 4}}), P("x"));
  EXPECT_THAT(pad(x, 9, {-1}, {0}, {1}).to_vector<float>(), ElementsAre(9, 1, 9, 2, 9, 3));
  EXPECT_THAT(pad(x, 9, {1}, {-2}, {1}).to_vector<float>(), ElementsAre(9, 0, 9, 1, 9, 2));
}

TEST_F(Meshes, ThePaddingOfUnevenUpdatesIsNotScattered) {
  Mesh mesh({{"x", 2}});
  Tensor x = mark_sharding(counting({3}, 1), mesh, P("x"));
  Tensor updates = mark_sharding(log(x) - log(x) + x, mesh, P("x"));  // NaN in the padding
  Tensor indices = from_host(std::vector<std::int32_t>{0, 1, 2}, {3, 1});
  Tensor sum = scatter_add(
      zeros({4}), indices, updates,
      {.inserted_window_dims = {0}, .scatter_dims_to_operand_dims = {0}, .index_vector_dim = 1});
  EXPECT_THAT(sum.to_vector<float>(), ElementsAre(1, 2, 3, 0));
}

TEST_F(Meshes, ReshardingHappensOnTheDevices) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  Tensor rows = mark_sharding(counting({8, 8}), mesh, P(axes("x", "y"), none));
  restart();
  Tensor columns = mark_sharding(rows, mesh, P(none, axes("x", "y")));
  EXPECT_EQ(done().buffers_read, 0u);
  EXPECT_EQ(done().buffers_sent, 0u);
  EXPECT_EQ(done().launches, 1u);
  EXPECT_THAT(device_array(columns).shard(1, {}).to_vector<float>(),
              ElementsAre(1, 9, 17, 25, 33, 41, 49, 57));
  EXPECT_EQ(rows.to_vector<float>(), numbers(64)) << "the first stays as it is";
}

TEST_F(Meshes, AValueMovesToOtherDevices) {
  Tensor a = mark_sharding(counting({8}), Mesh({{"x", 2}}, {0, 1}), P("x")) + 1;
  Tensor b = mark_sharding(a, Mesh({{"x", 2}}, {4, 5}), P("x"));
  sync({a});
  Tensor c = mark_sharding(a, Mesh({{"x", 4}}, {4, 5, 6, 7}), P("x"));
  EXPECT_EQ((c * 2).to_vector<float>(), numbers(8, 2, 2));
  EXPECT_EQ(device_array(c).device_id(3), 7);
  (void)b;
}

TEST_F(Meshes, ManyStepsInFlight) {
  Mesh mesh({{"x", 8}});
  auto step = jit([](Tensor x) { return x + sum(x) * 0; });
  Tensor x = mark_sharding(counting({8}), mesh, P("x"));
  for (int i = 0; i < 500; ++i) x = step(x);
  EXPECT_EQ(x.to_vector<float>(), numbers(8));
}

TEST_F(Meshes, GatherCompilesNothing) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  Tensor x = mark_sharding(counting({8, 8}), mesh, P("y", "x"));
  restart();
  EXPECT_EQ(x.to_vector<float>(), numbers(64));
  EXPECT_EQ(done().compiles, 0u);
  EXPECT_EQ(done().launches, 0u);
  EXPECT_EQ(done().buffers_read, 8u);
  EXPECT_EQ(done().bytes_read, 256u);
  Tensor everywhere = mark_sharding(x, mesh, P());
  restart();
  EXPECT_EQ(everywhere.to_vector<float>(), numbers(64));
  EXPECT_EQ(done().bytes_read, 256u) << "one copy of a replicated value";
}

struct Uneven : OnDevices, testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(Uneven, KeepsItsShardingAndItsValues) {
  std::int64_t size = GetParam().first, devices = GetParam().second;
  Mesh mesh({{"x", devices}});
  std::int64_t per = (size + devices - 1) / devices;
  Tensor x = mark_sharding(counting({size, 3}, 1), mesh, P("x", none));
  EXPECT_EQ(x.to_vector<float>(), numbers(static_cast<std::size_t>(3 * size), 1));
  // log of zero padding is -inf, and the difference is NaN: it must not reach any result.
  Tensor y = mark_sharding(exp(log(x) - log(x)) + x, mesh, P("x", none));
  EXPECT_EQ(y.sharding(), x.sharding());
  std::vector<float> expected = numbers(static_cast<std::size_t>(3 * size), 2);
  EXPECT_EQ(y.to_vector<float>(), expected);
  EXPECT_EQ(sum(y).item<float>(), static_cast<float>(3 * size) * (2 + expected.back()) / 2);
  for (int i = 0; i < devices; ++i) {
    std::int64_t start = std::min<std::int64_t>(i * per, size);
    std::int64_t rows = std::min<std::int64_t>(per, size - start);
    auto position = static_cast<std::size_t>(i);
    EXPECT_EQ(device_array(y).padded_shard(position, {}).shape(), (Shape{per, 3}));
    HostArray shard = device_array(y).shard(position, {});
    EXPECT_EQ(shard.shape(), (Shape{rows, 3}));
    EXPECT_EQ(shard.to_vector<float>(),
              numbers(static_cast<std::size_t>(3 * rows), 2 + 3 * static_cast<float>(start)));
  }
  // The same through jit, as an argument and a result, and as a gradient.
  auto step = jit(
      [&](Tensor a) { return mark_sharding(a * 2, a.sharding() ? *a.sharding() : *x.sharding()); });
  EXPECT_EQ(step(y).to_vector<float>(), numbers(expected.size(), 4, 2));
  Tensor g = grad([](Tensor a) { return sum(a * a); })(y);
  EXPECT_EQ(g.to_vector<float>(), numbers(expected.size(), 4, 2));
  EXPECT_EQ(g.sharding(), y.sharding());
  // Unmarked results also have the right values, wherever the compiler places them.
  EXPECT_EQ((y * 2).to_vector<float>(), numbers(expected.size(), 4, 2));
  EXPECT_EQ((y * 2 + y).to_vector<float>(), numbers(expected.size(), 6, 3));
}

INSTANTIATE_TEST_SUITE_P(Sizes, Uneven,
                         testing::Values(std::pair(7, 4), std::pair(2, 4), std::pair(10, 8),
                                         std::pair(1, 8), std::pair(9, 8), std::pair(5, 2),
                                         std::pair(3, 3)),
                         [](const auto& sizes) {
                           return std::to_string(sizes.param.first) + "over" +
                                  std::to_string(sizes.param.second);
                         });

TEST_F(Meshes, UnevenOverTwoAxes) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  Tensor x = mark_sharding(counting({12, 5}), mesh, P(axes("y", "x"), none));
  Tensor y = mark_sharding(x + 1, mesh, P("x", "y"));
  EXPECT_EQ(y.to_vector<float>(), numbers(60, 1));
  EXPECT_EQ(sum(y).item<float>(), 60 * 61 / 2);
}

// The mark of the result splits the operand too, along the axis that splits the indices.
TEST_F(Meshes, UnevenIndicesOfAnOperandThatTheCompilerSplits) {
  Mesh mesh({{"s", 2}, {"x", 2}});
  Tensor x = counting({6, 1});
  Tensor indices = mark_sharding(zeros({2, 1}, DType::i32), mesh, P("s", "x"));
  Tensor taken = mark_sharding(take(x, indices, 1), mesh, P("s", "x"));
  std::vector<float> twice;
  for (float each : x.to_vector<float>()) twice.insert(twice.end(), {each, each});
  EXPECT_EQ(taken.to_vector<float>(), twice);
}

// The partitioner would split the indices and the slices along one axis, and fail.
TEST_F(Meshes, IndicesAreSplitOtherwiseThanTheResult) {
  Mesh mesh({{"x", 2}, {"y", 2}, {"z", 2}});
  Tensor x = counting({6, 2});
  Tensor at = mark_sharding(from_host(std::vector<std::int32_t>{1, 2, 0, 3, 1, 5}, {1, 6}), mesh,
                            P(none, "y"));
  Tensor taken = mark_sharding(take(x, at, 0), mesh, P("z", "x", "y"));
  EXPECT_THAT(taken.to_vector<float>(), ElementsAre(2, 3, 4, 5, 0, 1, 6, 7, 2, 3, 10, 11));
}

// XLA's partitioner would fetch the edges of a split operand once, with one fill value for all.
TEST_F(Meshes, WindowsOfOneValueKeepTheirFillValues) {
  Mesh mesh({{"x", 2}});
  auto windows = jit([](const Tensor& x) {
    Tensor y = x * 2, z = x * 2;
    WindowOptions options{.padding = {{1, 1}}};
    return std::vector<Tensor>{pad(y, 1, {1}, {1}),
                               pad(y, 2, {1}, {1}),
                               pad(z, sum(x), {1}, {1}),
                               reduce_window_max(y, {3}, options),
                               reduce_window_sum(y, {3}, options),
                               reduce_window_min(z, {3}, options),
                               cumulative_sum(y, 0),
                               cumulative_max(y, 0)};
  });
  for (std::int64_t size : {8, 5}) {
    Tensor x = negative(arange(1.0f, static_cast<float>(size + 1)));
    std::vector<Tensor> whole = windows(x), split = windows(mark_sharding(x, mesh, P("x")));
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_EQ(split[i].to_vector<float>(), whole[i].to_vector<float>()) << i;
  }
}

// The body of a checkpoint is written in the middle of the program.
TEST_F(Meshes, WindowsInsideBodiesKeepTheirFillValues) {
  Mesh mesh({{"x", 2}});
  auto f = jit([](const Tensor& x) {
    Tensor y = x * 2;
    auto fives = checkpoint([](const Tensor& t) { return pad(t, 5, {1}, {1}); });
    return std::pair(pad(y, 1, {1}, {1}), fives(y));
  });
  auto [outside, inside] = f(mark_sharding(ones({4}), mesh, P("x")));
  EXPECT_THAT(outside.to_vector<float>(), ElementsAre(1, 2, 2, 2, 2, 1));
  EXPECT_THAT(inside.to_vector<float>(), ElementsAre(5, 2, 2, 2, 2, 5));
}

// Also along the axes that are not manual.
TEST_F(Meshes, WindowsInsideManualFunctionsKeepTheirFillValues) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  auto pads = [](const Tensor& t) {
    Tensor twice = t * 2;
    return std::pair(pad(twice, 1, {0, 1}, {0, 1}), pad(twice, 3, {0, 1}, {0, 1}));
  };
  auto f = jit(manual(mesh, P("x"), P("x"), pads, {.axes = {"x"}}));
  auto [ones_around, threes_around] = f(mark_sharding(ones({2, 4}), mesh, P("x", "y")));
  EXPECT_THAT(ones_around.to_vector<float>(), ElementsAre(1, 2, 2, 2, 2, 1, 1, 2, 2, 2, 2, 1));
  EXPECT_THAT(threes_around.to_vector<float>(), ElementsAre(3, 2, 2, 2, 2, 3, 3, 2, 2, 2, 2, 3));
}

// The padding of a result counts too.
TEST_F(Meshes, APaddedValueThatIsAResultKeepsItsFillValue) {
  Mesh mesh({{"x", 2}});
  auto f = manual(mesh, P("x"), P("x"), [](const Tensor& t) { return t; },
                  {.out_shapes = {{3}}, .pad = 0});
  Tensor x = f(ones({3})), padded = pad(x, 5, {0}, {1});
  sync({x, padded});
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(1, 1, 1));
  EXPECT_THAT(padded.to_vector<float>(), ElementsAre(1, 1, 1, 5));
}

// "a" of 4x2 is a sub-axis of 2x4; the compiler drops sub-axes of open dimensions where values
// enter a program, and the argument's padding did not fit the sharding that it chose.
TEST_F(Meshes, OpenDimensionsOverASecondMeshKeepTheirPadding) {
  Mesh first({{"s", 2}, {"x", 4}}), second({{"a", 4}, {"b", 2}});
  Tensor x = mark_sharding(ones({2, 3, 4}), first, P(none, none, none));
  Tensor y = mark_sharding(full({1, 3, 4}, 2.0f), second,
                           P(DimensionSpec(AxisList{"a"}, true), none, none));
  auto f = jit([](const Tensor& a, const Tensor& b) {
    Tensor total = sum(a, Dimensions{0}, true);
    return std::pair(total + b * b, total * b);
  });
  auto [added, product] = f(x, y);
  EXPECT_THAT(added.to_vector<float>(), testing::Each(6));
  EXPECT_THAT(product.to_vector<float>(), testing::Each(4));
}

}  // namespace
}  // namespace meshard
