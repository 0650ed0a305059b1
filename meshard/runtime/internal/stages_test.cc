#include "meshard/runtime/internal/stages.h"

#include <gmock/gmock.h>

#include "meshard/autodiff/grad.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/graph/sync.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/transfer.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::ElementsAre;

// Two submeshes, and the mesh of all devices.
class OverDevices : public OnPlugin {
 protected:
  Mesh left{{{"x", 2}}, {0, 1}};
  Mesh right{{{"y", 2}}, {2, 3}};
  Mesh all{{{"z", 8}}};

  static Tensor floats(std::vector<float> values) {
    auto size = static_cast<std::int64_t>(values.size());
    return from_host(std::move(values), {size});
  }
  Tensor on_left(std::vector<float> values) {
    return mark_sharding(floats(std::move(values)), left, P("x"));
  }
  Tensor on_right(std::vector<float> values) {
    return mark_sharding(floats(std::move(values)), right, P("y"));
  }
};

TEST_F(OverDevices, UnplacedRecordedValuesFollowWhatTheyMeet) {
  Tensor a = on_left({1, 2}), b = on_right({3, 4});
  Tensor host_made = floats({10, 20}) * 2, constant = full({2}, 5.f);
  EXPECT_THAT((a + host_made + constant).to_vector<float>(), ElementsAre(26, 47));
  EXPECT_THAT((b + host_made + constant).to_vector<float>(), ElementsAre(28, 49));
  EXPECT_THAT((a * constant).to_vector<float>(), ElementsAre(5, 10));
}

TEST_F(OverDevices, ManualRegionsOfMovedValuesStayWhole) {
  Tensor shared = floats({1, 2}) * 2, a = on_right({3, 4});
  // Computed with `a`, then moved to the devices of the region, whose position needs no device.
  Tensor b = a + shared;
  Tensor c = manual(left, P("x"), P("x"), [](const Tensor& part) {
    return part * (astype(axis_index("x"), DType::f32) + 1);
  })(shared);
  // The padding is a constant with a dimension.
  Tensor d = manual(left, P("x"), P("x"), [](const Tensor& part) { return part + part; },
                    {.out_shapes = {{1}}, .pad = 7})(slice(shared, {0}, {1}));
  block_until_ready({b, c, d});
  EXPECT_THAT(b.to_vector<float>(), ElementsAre(5, 8));
  EXPECT_THAT(c.to_vector<float>(), ElementsAre(2, 8));
  EXPECT_THAT(d.to_vector<float>(), ElementsAre(4));
}

TEST_F(OverDevices, AnUnplacedValueIsComputedOnceAndMovedOnceToEachSet) {
  Tensor base = floats({1, 2, 3, 4});
  Tensor shared = exp(base);
  Tensor a = mark_sharding(floats({1, 1, 1, 1}), left, P("x"));
  Tensor b = mark_sharding(floats({2, 2, 2, 2}), right, P("y"));
  Tensor p = a * shared, q = b * shared;
  sync({p, q});
  HostArray expected = exp(floats({1, 2, 3, 4})).to_host();
  EXPECT_EQ(p.to_host(), expected);
  restart();
  EXPECT_EQ((q / 2).to_host(), expected);
  EXPECT_EQ((b - shared - b + shared).shape(), Shape({4}));
  Tensor r = b + shared;
  sync({r});
  EXPECT_EQ(done().bytes_moved, 0u) << "its copy is there";
  EXPECT_EQ(done().buffers_sent, 0u);
  EXPECT_FALSE(shared.sharding()) << "nobody placed it";
}

TEST_F(OverDevices, ValuesMarkedOnTwoSetsMayShareAnAncestor) {
  Tensor ancestor = floats({1, 2}) + 1;
  Tensor p = mark_sharding(ancestor * 2, left, P("x"));
  Tensor q = mark_sharding(ancestor * 3, right, P("y"));
  EXPECT_THAT(p.to_vector<float>(), ElementsAre(4, 6));
  EXPECT_THAT(q.to_vector<float>(), ElementsAre(6, 9));
  EXPECT_EQ(p.sharding(), Sharding(left, P("x")));
  EXPECT_EQ(q.sharding(), Sharding(right, P("y")));
}

TEST_F(OverDevices, SeveralValuesAreSyncedAtOnce) {
  Tensor p = on_left({1, 2}) + 1, q = on_right({3, 4}) * 2;
  Tensor none = floats({7, 8}) - 1;
  sync({p, q, none});
  EXPECT_TRUE(p.value().storage() && q.value().storage() && none.value().storage());
  EXPECT_THAT(p.to_vector<float>(), ElementsAre(2, 3));
  EXPECT_THAT(q.to_vector<float>(), ElementsAre(6, 8));
  EXPECT_THAT(none.to_vector<float>(), ElementsAre(6, 7));
  EXPECT_TRUE(p.sharding()->mesh().same_devices(left));
  EXPECT_TRUE(q.sharding()->mesh().same_devices(right));
}

TEST_F(OverDevices, ReplicatedValuesNarrowToASubmesh) {
  Tensor everywhere = mark_sharding(floats({10, 20}), all, P(none));
  Tensor b = on_right({1, 2});
  sync({everywhere, b});
  restart();
  Tensor sum = everywhere + b, swapped = b - everywhere;
  EXPECT_THAT(sum.to_vector<float>(), ElementsAre(11, 22));
  EXPECT_THAT(swapped.to_vector<float>(), ElementsAre(-9, -18));
  EXPECT_EQ(done().bytes_moved, 0u);
  EXPECT_EQ(done().bytes_sent, 0u);
  EXPECT_TRUE(sum.sharding()->mesh().same_devices(right));
  // So does a value that is only recorded when it is combined with the other.
  Tensor computed = mark_sharding(everywhere * 2, all, P(none));
  EXPECT_THAT((computed + b).to_vector<float>(), ElementsAre(21, 42));
  // The same in a jitted function.
  auto f = jit([](Tensor x, Tensor y) { return x * y; });
  EXPECT_THAT(f(everywhere, b).to_vector<float>(), ElementsAre(10, 40));
  EXPECT_THAT(f(everywhere, on_left({3, 4})).to_vector<float>(), ElementsAre(30, 80));
}

TEST_F(OverDevices, ASplitValueDoesNotNarrow) {
  Tensor split = mark_sharding(floats({1, 2, 3, 4, 5, 6, 7, 8}), all, P("z"));
  Tensor b = mark_sharding(floats({1, 2, 3, 4, 5, 6, 7, 8}), right, P("y"));
  Tensor marked = split + b, recorded = split * 2 + b;
  for (const Tensor& sum : {marked, recorded})
    EXPECT_TRUE(throws_error([&] { sync({sum}); }, ErrorCode::kInvalidArgument,
                             {"[add]", "two different sets of devices", "mesh<z=8>",
                              "mesh<y=2; devices=[2,3]>", "transfer()"}));
}

TEST_F(OverDevices, ScalarsCross) {
  Tensor loss = mean(on_left({2, 4})), b = on_right({1, 2});
  EXPECT_THAT((b * loss).to_vector<float>(), ElementsAre(3, 6));
  Tensor stored = sum(on_left({2, 4}));
  sync({stored});
  EXPECT_THAT((b + stored).to_vector<float>(), ElementsAre(7, 8));
  auto f = jit([](Tensor x, Tensor s) { return x - s; });
  EXPECT_THAT(f(b, stored).to_vector<float>(), ElementsAre(-5, -4));
  // There and back.
  Tensor other = sum(b * loss);
  EXPECT_THAT((on_left({1, 1}) * other).to_vector<float>(), ElementsAre(9, 9));
  EXPECT_FLOAT_EQ((loss + other).item<float>(), 12);
}

// A carry keeps a placement that the program chose, not the devices that it was computed on.
TEST_F(OverDevices, CarriesCrossWhetherTheyWereComputedOrNot) {
  for (bool computed : {false, true}) {
    Tensor number = sum(on_left({1, 2})) / 2, slices = on_right({3, 4});
    if (computed) sync(number);
    auto [last, before] =
        scan([](Tensor c, Tensor x) { return std::pair(c + x, c); }, number, slices);
    EXPECT_FLOAT_EQ(last.item<float>(), 8.5f) << computed;
    EXPECT_THAT(before.to_vector<float>(), ElementsAre(1.5f, 4.5f)) << computed;
    Tensor updated = sum(on_left({1, 2}));
    if (computed) sync(updated);
    updated += slices;
    EXPECT_THAT(updated.to_vector<float>(), ElementsAre(6, 7)) << computed;
  }
}

// A scalar that the program placed is whole wherever it is used, so it moves to other devices, also
// as a carry.
TEST_F(OverDevices, PlacedNumbersAreCarriedElsewhere) {
  Mesh one({}, {0});
  Tensor marked = mark_sharding(reshape(floats({5}), {}), one, P());
  Tensor by_hand = manual(one, P(), P(), [](Tensor x) { return x + 4; },
                          {.out_shapes = {Shape{}}})(reshape(floats({1}), {}));
  Tensor slices = on_right({3, 4});
  for (const Tensor& number : {marked, by_hand}) {
    auto [last, before] =
        scan([](Tensor c, Tensor x) { return std::pair(c + x, c); }, number, slices);
    EXPECT_FLOAT_EQ(last.item<float>(), 12);
    EXPECT_THAT(before.to_vector<float>(), ElementsAre(5, 8));
    auto chosen = cond(
        from_host(HostArray::scalar(true)), [](Tensor a, Tensor b) { return a + b; },
        [](Tensor a, Tensor b) { return a - b; }, number, slices);
    EXPECT_THAT(chosen.to_vector<float>(), ElementsAre(8, 9));
  }
}

// The other results of the loop do not come along: as vectors of one set, they could not.
TEST_F(OverDevices, OnlyTheUsedResultOfALoopCrosses) {
  auto running_sum = [&] {
    return scan([](Tensor c, Tensor x) { return std::pair(c + x, c + x); }, full({}, 0.f),
                on_left({1, 2}));
  };
  for (bool computed : {false, true}) {
    Tensor total = running_sum().first;
    if (computed) sync(total);
    EXPECT_THAT((on_right({10, 20}) + total).to_vector<float>(), ElementsAre(13, 23)) << computed;
    auto f = jit([&](Tensor x) { return x * total; });
    EXPECT_THAT(f(on_right({1, 2})).to_vector<float>(), ElementsAre(3, 6)) << computed;
    std::pair<Tensor, Tensor> again = running_sum();
    if (computed) sync(again.first);
    Tensor other = on_right({1, 2});
    EXPECT_TRUE(throws_error([&] { sync(other + again.second * again.first); },
                             ErrorCode::kInvalidArgument, {"two different sets of devices"}));
  }
}

TEST_F(OverDevices, AMarkInATracePinsANumber) {
  Mesh one({}, {0});
  auto f = jit(
      [&](Tensor number, Tensor x) { return std::pair(mark_sharding(number, one, P()), x + 1); });
  auto [number, x] =
      f(mark_sharding(reshape(floats({5}), {}), one, P()), mark_sharding(floats({7}), left, P()));
  EXPECT_EQ(number.placement(), "device 0");
  EXPECT_EQ(x.placement(), "device 0") << "the whole value narrows";
}

// A stage frees what it no longer needs, and the next stage's nodes reuse the memory.
TEST_F(OverDevices, StagesThatRecordWhatTheyMoveEnd) {
  for (int k = 1; k <= 4; ++k) {
    Tensor shared = floats({1, 2, 3, 4});
    for (int i = 0; i < 8 * k; ++i) shared = shared + static_cast<float>(k);
    Tensor a = mark_sharding(floats({1, 1, 1, 1}), left, P("x")) * shared;
    Tensor b = mark_sharding(floats({4, 3, 2, 1}), right, P("y"));
    Tensor c = mark_sharding(floats({0, 1}), right, P());
    sync({a, flip(cumulative_sum(shared, 0), {0}) + b, sum(shared * b), c + sum(shared)});
    float more = static_cast<float>(8 * k * k);
    EXPECT_THAT(a.to_vector<float>(), ElementsAre(1 + more, 2 + more, 3 + more, 4 + more));
  }
}

TEST_F(OverDevices, AClearedValueIsFreeAgain) {
  Tensor stored = clear_sharding(on_left({1, 2}));
  Tensor recorded = clear_sharding(on_left({1, 2}) * 10);
  Tensor b = on_right({3, 4});
  EXPECT_THAT((stored + b).to_vector<float>(), ElementsAre(4, 6));
  EXPECT_THAT((recorded + b).to_vector<float>(), ElementsAre(13, 24));
  EXPECT_THAT((recorded + on_left({1, 1})).to_vector<float>(), ElementsAre(11, 21));
  EXPECT_FALSE(stored.sharding());
  EXPECT_FALSE(recorded.sharding());
}

TEST_F(OverDevices, InATraceAClearedArgumentIsFreeAgain) {
  Mesh wide({{"w", 4}}, {0, 1, 2, 3}), one(std::vector<MeshAxis>{}, {2});
  Tensor whole = mark_sharding(floats({1, 2}), wide, P());
  auto f = jit([&](Tensor x, Tensor y) {
    return clear_sharding(x) + manual(one, P(), P(), [](const Tensor& t) { return t * 2; })(y);
  });
  EXPECT_THAT(f(whole, floats({10, 20})).to_vector<float>(), ElementsAre(21, 42));
}

TEST_F(OverDevices, AComputedMarkIsClearedInABody) {
  Tensor marked = mark_sharding(on_left({1, 2}) + 1, left, P("x"));
  sync(marked);
  Tensor total = fori_loop(
      0, 2, [&](Tensor, Tensor c) { return c + sum(clear_sharding(marked)); }, full({}, 1.f));
  EXPECT_FLOAT_EQ(total.item<float>(), 11);
}

TEST_F(OverDevices, AFunctionMayUseNoneOfItsArguments) {
  Mesh wide({{"w", 4}}, {0, 1, 2, 3}), one(std::vector<MeshAxis>{}, {2});
  Tensor whole = mark_sharding(floats({1, 2}), wide, P());
  Tensor small = mark_sharding(floats({3, 4}), one, P());
  auto f = jit([](Tensor, Tensor) { return from_host<float>({5, 6}, {2}); });
  EXPECT_THAT(f(whole, small).to_vector<float>(), ElementsAre(5, 6));
  auto second = jit([](Tensor, Tensor y) { return y; });
  EXPECT_THAT(second(whole, small).to_vector<float>(), ElementsAre(3, 4));
  EXPECT_THAT(second(small, whole).to_vector<float>(), ElementsAre(1, 2));
}

TEST_F(OverDevices, JittedFunctionsTakeUnplacedValuesFromAnywhere) {
  Tensor shared = floats({1, 2}) + 0;
  (void)(on_left({1, 1}) * shared).to_host();  // computed there
  auto f = jit([&](Tensor x) { return x + shared; });
  auto g = jit([](Tensor x, Tensor y) { return x * y; });
  EXPECT_THAT(f(on_right({5, 6})).to_vector<float>(), ElementsAre(6, 8));
  EXPECT_THAT(g(shared, on_right({5, 6})).to_vector<float>(), ElementsAre(5, 12));
  EXPECT_THAT(g(shared, on_left({7, 8})).to_vector<float>(), ElementsAre(7, 16));
  // A result computed from unplaced values only is unplaced.
  Tensor made = g(shared, shared);
  EXPECT_THAT((made + on_right({1, 1})).to_vector<float>(), ElementsAre(2, 5));
  EXPECT_THAT((made + on_left({1, 1})).to_vector<float>(), ElementsAre(2, 5));
  // A result computed from a placed value is bound to that value's devices.
  Tensor bound = g(shared, on_left({7, 8}));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)(bound + on_right({1, 1})).to_host();
      },
      ErrorCode::kInvalidArgument, {"two different sets of devices"}));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)g(bound, on_right({1, 1}));
      },
      ErrorCode::kInvalidArgument, {"two different sets of devices"}));
}

TEST_F(OverDevices, GradientsOfUnplacedValuesAreUnplaced) {
  Tensor shared = floats({1, 2}) * 1;
  (void)(on_left({1, 1}) + shared).to_host();
  auto square_sum = [](Tensor v) { return sum(v * v); };
  Tensor gradient = grad(square_sum)(shared);
  EXPECT_THAT((gradient + on_right({1, 1})).to_vector<float>(), ElementsAre(3, 5));
  auto loss = [&](Tensor v) { return sum(v * on_right({3, 4})); };
  EXPECT_THAT(grad(loss)(shared).to_vector<float>(), ElementsAre(3, 4));
}

TEST_F(OverDevices, AMarkOnOtherDevicesPinsAnUnplacedValue) {
  Tensor shared = floats({1, 2}) * 1;
  sync({on_left({1, 1}) + shared});
  (void)(on_left({1, 1}) + shared).to_host();
  Tensor pinned = mark_sharding(shared, right, P("y"));
  EXPECT_EQ(pinned.sharding(), Sharding(right, P("y")));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)(pinned + on_left({1, 1})).to_host();
      },
      ErrorCode::kInvalidArgument, {"two different sets of devices"}));
}

TEST_F(OverDevices, RandomKeysServeEverySubmesh) {
  Tensor key = random::key(7);
  std::vector<Tensor> keys = random::split(key, 2);
  Tensor first = keys[0], second = keys[1];
  Tensor a = mark_sharding(random::normal(first, {4}), left, P("x"));
  Tensor b = mark_sharding(random::normal(first, {4}), right, P("y"));
  Tensor c = mark_sharding(random::normal(second, {4}), right, P("y"));
  EXPECT_EQ(a.to_host(), b.to_host());
  EXPECT_NE(a.to_host(), c.to_host());
}

TEST_F(OverDevices, BodiesCaptureValuesOfOtherSets) {
  Tensor unplaced = floats({1, 2}) + 1;
  (void)(on_left({0, 0}) + unplaced).to_host();
  Tensor scalar = sum(on_left({1, 2}));
  sync({scalar});
  Tensor everywhere = mark_sharding(floats({10, 20}), all, P(none));
  Tensor result = fori_loop(
      0, 2, [&](Tensor, Tensor x) { return x + unplaced * scalar + everywhere; }, on_right({0, 0}));
  EXPECT_THAT(result.to_vector<float>(), ElementsAre(32, 58));
}

}  // namespace
}  // namespace meshard
