// Tensors outside jit: nothing runs before its value is read, and nothing runs twice.
#include <thread>

#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Lazy = OnDevices;
using testing::ElementsAre;

TEST_F(Lazy, NothingRunsUntilItIsRead) {
  Tensor x = counting({4});
  Tensor y = x * 2 + 1, z = y * y;
  EXPECT_EQ(done(), RuntimeCounters());
  EXPECT_EQ(z.placement(), "recorded");
  EXPECT_THAT(z.to_vector<float>(), ElementsAre(1, 9, 25, 49));
  EXPECT_EQ(done().launches, 1u);
  EXPECT_EQ(done().compiles, 1u);
}

TEST_F(Lazy, ValuesOnTheWayAreKeptIfSomebodyHoldsThem) {
  Tensor x = counting({4});
  Tensor y = x * 3;
  Tensor z = (y + 1) * y;  // nothing holds y + 1
  (void)z.to_host();
  std::uint64_t nodes = done().nodes_run;
  EXPECT_EQ(y.placement(), "device 0") << "computed on the way";
  restart();
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(0, 3, 6, 9));
  EXPECT_EQ(done().launches, 0u);
  EXPECT_GE(nodes, 3u);
}

TEST_F(Lazy, WhatAnotherRecordedValueNeedsIsKept) {
  Tensor other;
  Tensor sum;
  {
    Tensor shared = exp(counting({4}));
    other = shared * 2;
    sum = shared + 1;
  }
  (void)sum.to_host();
  restart();
  (void)other.to_host();
  EXPECT_LE(done().nodes_run, 3u) << "exp is not run again";
}

TEST_F(Lazy, InPlaceOperatorsRebindTheirOwnHandle) {
  Tensor a = counting({3});
  Tensor b = a;
  a += 10;
  a *= 2;
  EXPECT_THAT(a.to_vector<float>(), ElementsAre(20, 22, 24));
  EXPECT_THAT(b.to_vector<float>(), ElementsAre(0, 1, 2));
}

TEST_F(Lazy, FloatsAreArgumentsAndIntegersConstants) {
  Tensor x = counting({4}, 1);
  for (int i = 0; i < 100; ++i) {
    float rate = 0.5f + static_cast<float>(i);
    EXPECT_EQ((x * rate).to_vector<float>()[1], 2 * rate);
  }
  EXPECT_EQ(done().compiles, 1u);
  restart();
  Tensor y = counting({11}, 1);  // a size that no other test uses
  EXPECT_EQ((y * 2).to_vector<float>(), numbers(11, 2, 2));
  EXPECT_EQ((y * 3).to_vector<float>(), numbers(11, 3, 3));
  EXPECT_EQ(done().compiles, 2u);
}

TEST_F(Lazy, StepsThatReadOnlyTheLossStaySmall) {
  Mesh mesh({{"data", 4}});
  Tensor x = mark_sharding(counting({8, 4}) / 32, mesh, P("data", none));
  Tensor w = mark_sharding(ones({4, 2}), mesh, P());
  auto loss_of = [](Tensor weights, Tensor batch) { return mean(square(matmul(batch, weights))); };
  std::vector<std::uint64_t> nodes;
  double first = 0, last = 0;
  std::uint64_t warm = 0;
  for (int i = 0; i < 100; ++i) {
    RuntimeCounters before = runtime_counters();
    auto [loss, gradient] = value_and_grad(loss_of)(w, x);
    w -= 0.05 * gradient;
    last = static_cast<double>(loss.item<float>());
    if (i == 0) first = last;
    nodes.push_back((runtime_counters() - before).nodes_run);
    if (i == 4) warm = done().compiles;
  }
  EXPECT_LT(last, 0.9 * first);
  for (std::size_t i = 5; i < nodes.size(); ++i) EXPECT_EQ(nodes[i], nodes[4]) << i;
  EXPECT_EQ(done().compiles, warm);
}

// The node of a computed value has released its operands.
TEST_F(Lazy, APadThatIsComputedIsSliced) {
  Mesh mesh({{"x", 2}});
  Tensor padded = pad(mark_sharding(counting({4}, 1), mesh, P("x")) * 2, 3, {1}, {1});
  sync({padded});
  EXPECT_THAT(slice(padded, {0}, {1}, {1}).to_vector<float>(), ElementsAre(3));
  EXPECT_THAT(roll(padded, 1).to_vector<float>(), ElementsAre(3, 3, 2, 4, 6, 8));
}

TEST_F(Lazy, ALongChainIsReleasedAndComputed) {
  Tensor x = counting({2});
  for (int i = 0; i < 3000; ++i) x = x + 1;
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(3000, 3001));
}

TEST_F(Lazy, ReadingInsideADifferentiatedFunctionWorks) {
  float seen = 0;
  auto f = [&](Tensor x) {
    Tensor y = x * x;
    seen = y.item<float>();
    return y * x;
  };
  EXPECT_EQ(grad(f)(counting({}, 3)).item<float>(), 27);
  EXPECT_EQ(seen, 9);
}

TEST_F(Lazy, SyncComputesSeveralInOneProgram) {
  Tensor x = counting({4});
  Tensor a = x + 1, b = x * 5;
  sync({a, b});
  EXPECT_EQ(done().launches, 1u);
  EXPECT_THAT(a.to_vector<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(b.to_vector<float>(), ElementsAre(0, 5, 10, 15));
  EXPECT_EQ(done().launches, 1u);
}

TEST_F(Lazy, ManyThreadsComputeAtOnce) {
  Tensor shared = counting({8}) * 2;  // recorded; computed by the first thread that reads it
  Mesh left({{"x", 2}}, {0, 1}), right({{"x", 4}}, {7, 5, 6, 4});
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(6);
  for (std::size_t t = 0; t < results.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        Tensor mine =
            mark_sharding(counting({8}, static_cast<float>(t)), t % 2 ? left : right, P("x"));
        Tensor other = from_host(shared.to_host());
        results[t] = (mine + other * static_cast<float>(i)).to_vector<float>();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < results.size(); ++t)
    EXPECT_EQ(results[t], numbers(8, static_cast<float>(t), 1 + 2 * 9)) << t;
}

Tensor static_tensor;
TEST_F(Lazy, TensorsWithStaticStorageAtExit) {
  // Passes if the process exits cleanly.
  static_tensor = mark_sharding(counting({8}), Mesh({{"x", 8}}), P("x")) * 2;
  sync({static_tensor});
  static Tensor recorded = static_tensor + 1;
  EXPECT_EQ(recorded.placement(), "recorded");
}

TEST_F(Lazy, AnOpenMarkOfStoredDataMayBeLaidOutOtherwiseByEachProgram) {
  Mesh mesh({{"x", 4}});
  Tensor x = mark_sharding(from_host(std::vector<float>{1, 2, 3, 4}, {4}), mesh, P(unconstrained));
  Tensor split = mark_sharding(from_host(std::vector<float>{1, 2, 3, 4}, {4}), mesh, P("x"));
  EXPECT_THAT((x * split).to_vector<float>(), ElementsAre(1, 4, 9, 16));
  EXPECT_THAT((x + 1).to_vector<float>(), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(mark_sharding(x, mesh, P("x")).to_vector<float>(), ElementsAre(1, 2, 3, 4));
}

TEST_F(Lazy, UnevenSizesKeepTheirSharding) {
  Mesh mesh({{"x", 4}, {"y", 2}});
  Tensor w = mark_sharding(reshape(astype(arange(15), DType::f32), {5, 3}), mesh, P("x", "y"));
  sync({w});
  Sharding uneven = *w.sharding();
  Tensor twice = w + w;  // not marked
  sync({twice});
  EXPECT_EQ(twice.stored_sharding(), uneven);
  Tensor turned = permute_dims(exp(twice), {1, 0});
  sync({turned});
  EXPECT_EQ(turned.stored_sharding(), Sharding(mesh, P("y", "x")));
  auto [loss, gradient] = jit(value_and_grad([](Tensor v) { return sum(square(v)); }))(w);
  EXPECT_EQ(loss.item<float>(), 1015);
  EXPECT_EQ(gradient.stored_sharding(), uneven);
  for (int step = 0; step < 3; ++step) w -= 0.25 * gradient;
  sync({w});
  EXPECT_EQ(w.stored_sharding(), uneven);
  auto update = jit([](Tensor v, Tensor g) { return v - 0.25 * g; });
  Tensor updated = update(update(w, gradient), gradient);
  EXPECT_EQ(updated.stored_sharding(), uneven);
  EXPECT_EQ(update.stats().traces, 1u);
  for (const LocalShard& shard : local_shards(updated))
    EXPECT_EQ(shard.padded_data().shape(), (Shape{2, 2}));
  // 5 updates of 0.25 * 2w each: w * (1 - 2.5).
  for (int i = 0; i < 15; ++i)
    EXPECT_EQ(updated.to_vector<float>()[static_cast<std::size_t>(i)],
              -1.5f * static_cast<float>(i));
}

TEST_F(Lazy, EmptyTensors) {
  Tensor empty = from_host(std::vector<float>{}, {0, 4});
  EXPECT_EQ((empty + 1).to_vector<float>().size(), 0u);
  Tensor marked = mark_sharding(empty, Mesh({{"x", 4}}), P("x"));
  EXPECT_EQ((marked * 2).to_vector<float>().size(), 0u);
}

}  // namespace
}  // namespace meshard
