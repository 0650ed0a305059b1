#include "meshard/runtime/transfer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/graph/sync.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/shards.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

using Transferring = OnPlugin;

Tensor numbers(Shape shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.size(); ++i) values.push_back(static_cast<float>(i));
  return from_host(std::move(values), std::move(shape));
}

// Expects each device to hold the part of `whole` that the sharding gives it.
void expect_placed(const Tensor& tensor, const Sharding& sharding, const HostArray& whole) {
  ASSERT_EQ(tensor.stored_sharding(), sharding);
  std::vector<LocalShard> shards = local_shards(tensor);
  ASSERT_EQ(static_cast<std::int64_t>(shards.size()), sharding.mesh().size());
  for (const LocalShard& shard : shards) {
    EXPECT_EQ(shard.device_id(), sharding.mesh().device_id(shard.position()));
    EXPECT_EQ(shard.data(), whole.slice(shard.box())) << "on device " << shard.device_id();
  }
}

TEST_F(Transferring, EqualTilesGoFromDeviceToDevice) {
  Tensor x = numbers({4, 6});
  HostArray whole = x.to_host();
  Tensor a = mark_sharding(x, Mesh({{"x", 2}}), P("x"));
  Sharding there(Mesh({{"y", 2}}, {5, 3}), P("y", none));
  restart();
  Tensor b = transfer(a, there);
  expect_placed(b, there, whole);
  expect_placed(a, *a.sharding(), whole);
  EXPECT_EQ(done().buffers_sent, 0u);
  EXPECT_EQ(done().buffers_moved, 2u);
  EXPECT_EQ(done().bytes_moved, 96u);
  EXPECT_EQ(done().compiles, 0u);
}

TEST_F(Transferring, UnlikeTilesAreSentInPieces) {
  Tensor x = numbers({4, 6});
  HostArray whole = x.to_host();
  Tensor a = mark_sharding(x, Mesh({{"x", 4}}), P("x"));
  Sharding there(Mesh({{"r", 2}, {"c", 2}}, {7, 5, 6, 4}), P("c", "r"));
  restart();
  Tensor b = transfer(a, there);
  EXPECT_EQ(done().buffers_sent, 0u);
  EXPECT_EQ(done().buffers_read, 0u);
  EXPECT_EQ(done().bytes_moved, 96u) << "each device receives its tile, and nothing else";
  expect_placed(b, there, whole);
}

TEST_F(Transferring, ToSharedDevicesUnevenAndReplicated) {
  Tensor x = numbers({5});
  HostArray whole = x.to_host();
  Tensor a = mark_sharding(x, Mesh({{"x", 2}}, {1, 5}), P("x"));
  Sharding overlapping(Mesh({{"x", 2}}, {5, 2}), P("x"));
  restart();
  Tensor b = transfer(a, overlapping);
  expect_placed(b, overlapping, whole);
  Sharding all(Mesh({{"x", 2}}, {0, 1}), P(none));
  Tensor one = x + 1;  // on one device, without a mesh
  HostArray more = one.to_host();
  restart();
  expect_placed(transfer(one, all), all, more);
  EXPECT_EQ(done().buffers_sent, 0u);
}

TEST_F(Transferring, BetweenDifferentNumbersOfDevicesWithoutTheHost) {
  Tensor x = numbers({4, 6});
  HostArray whole = x.to_host();
  Tensor rows = mark_sharding(x, Mesh({{"x", 4}}), P("x"));
  const auto expect_bytes = [&](const Tensor& from, const Sharding& there, std::uint64_t bytes) {
    restart();
    Tensor moved = transfer(from, there);
    RuntimeCounters after = done();
    EXPECT_EQ(after.buffers_sent, 0u);
    EXPECT_EQ(after.buffers_read, 0u);
    EXPECT_EQ(after.bytes_moved, bytes) << there;
    expect_placed(moved, there, whole);
    return moved;
  };
  // Every byte of the value goes to one device.
  Tensor columns = expect_bytes(rows, Sharding(Mesh({{"x", 2}}, {6, 7}), P(none, "x")), 96);
  // From each of two devices to two of four, which have a part of the columns that each has.
  expect_bytes(columns, Sharding(Mesh({{"r", 2}, {"c", 2}}, {0, 1, 2, 3}), P("r", "c")), 96);
  // Uneven: of 6 columns, five devices have 2, 2, 2, 0 and 0.
  expect_bytes(columns, Sharding(Mesh({{"x", 5}}, {0, 1, 2, 3, 4}), P(none, "x")), 96);
  // Replicated on three devices.
  expect_bytes(rows, Sharding(Mesh({{"copy", 3}}, {5, 6, 7}), P(none, none)), 3 * 96);
  // Devices 2 and 3 each have one of the four pieces that they need.
  expect_bytes(rows, Sharding(Mesh({{"x", 2}}, {2, 3}), P(none, "x")), 72);
}

TEST_F(Transferring, BetweenRandomShardingsNothingIsRead) {
  TestRandom random;
  const auto random_sharding = [&](const char* first, const char* second, std::size_t rank) {
    std::vector<std::int64_t> ids(8);
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), random);
    std::int64_t rows = random.between(1, 4), columns = random.between(1, 8 / rows);
    ids.resize(static_cast<std::size_t>(rows * columns));
    std::vector<AxisList> split(rank);
    for (const char* name : {first, second})
      if (std::size_t d = random() % (rank + 1); d < rank) split[d].push_back(AxisRef(name));
    std::vector<DimensionSpec> dimensions;
    for (AxisList& each : split) dimensions.emplace_back(std::move(each));
    return Sharding(Mesh({{first, rows}, {second, columns}}, ids),
                    PartitionSpec(std::move(dimensions)));
  };
  const std::vector<DType> dtypes{DType::f32, DType::bf16, DType::bool_, DType::i8,
                                  DType::u64, DType::c64,  DType::f64,   DType::f8e4m3fn};
  for (int round = 0; round < 24; ++round) {
    const auto rank = static_cast<std::size_t>(random.between(1, 3));
    Dimensions sizes;
    for (std::size_t d = 0; d < rank; ++d) sizes.push_back(random.between(1, 7));
    const DType dtype = dtypes[random() % dtypes.size()];
    Tensor x = astype(numbers(Shape(sizes)) - 5, dtype);
    HostArray whole = x.to_host();
    const Sharding source = random_sharding("a", "b", rank),
                   target = random_sharding("r", "c", rank);
    SCOPED_TRACE(cat(x.type(), " from ", source, " to ", target));
    Tensor placed = mark_sharding(from_host(whole), source);
    restart();
    Tensor moved = transfer(placed, target);
    EXPECT_EQ(done().buffers_sent, 0u);
    EXPECT_EQ(done().buffers_read, 0u);
    expect_placed(moved, target, whole);
    restart();
    (void)transfer(placed, target);
    EXPECT_EQ(done().compiles + done().retargets, 0u) << "its programs are kept";
  }
}

TEST_F(Transferring, PartialSumsAreSummedFirst) {
  Tensor x = numbers({4, 6});
  HostArray whole = x.to_host();
  Mesh source({{"x", 4}});
  Tensor parts = mark_sharding(x, Sharding(source, P("x", none)));
  Tensor partial = jit([&](const Tensor& t) {
    return sharding_constraint(t, Sharding(source, P(none, none)).with_unreduced({AxisRef("x")}));
  })(parts);
  EXPECT_EQ(partial.to_host(), whole);
  Sharding there(Mesh({{"y", 3}}, {5, 6, 7}), P(none, "y"));
  expect_placed(transfer(partial, there), there, whole);
}

TEST_F(Transferring, AViewOutlivesTheDonationOfItsSource) {
  Tensor x = numbers({64, 64});
  HostArray whole = x.to_host();
  Tensor a = mark_sharding(x * 1, Mesh({{"x", 2}}, {0, 1}), P("x"));
  sync({a});
  Sharding there(Mesh({{"x", 2}}, {0, 2}), P("x", none));
  Tensor b = transfer(a, there);
  auto program = [&] {
    internal::TraceScope scope;
    Tensor parameter = make_parameter(a.type(), a.sharding(), {});
    Tensor result = sharding_constraint(parameter * -5, *a.sharding());
    return Program{.graph = Graph::build(std::vector{parameter.value()},
                                         std::vector{result.value()}, scope.trace()),
                   .donated = {0}};
  }();
  auto compiled = evaluator().compile(std::move(program), SourceLocation::current());
  const Tensor* argument = &a;
  Tensor result;
  compiled->run(std::span(&argument, 1), std::span(&result, 1), SourceLocation::current());
  (void)result.to_host();
  EXPECT_NE(a.value().storage()->gone(), "") << "it was donated";
  expect_placed(b, there, whole);
}

TEST_F(Transferring, PendingValuesAreComputedFirst) {
  Mesh left({{"x", 2}}), right({{"x", 2}}, {2, 3});
  Tensor a = mark_sharding(numbers({4}), left, P("x")) * 2;
  Tensor b = mark_sharding(numbers({4}), right, P("x"));
  EXPECT_THAT((transfer(a, right, P("x")) + b).to_vector<float>(),
              testing::ElementsAre(0, 3, 6, 9));
}

TEST_F(Transferring, IsDevicePut) {
  Mesh left({{"x", 2}}), right({{"x", 2}}, {2, 3});
  Tensor a = mark_sharding(numbers({4}), left, P("x"));
  Tensor moved = device_put(a, Sharding(right, P("x")));
  EXPECT_EQ(moved.sharding(), Sharding(right, P("x")));
  EXPECT_EQ(device_put(a, right, P()).sharding(), Sharding(right, P(none)));
  EXPECT_THAT(moved.to_vector<float>(), testing::ElementsAre(0, 1, 2, 3));
}

TEST_F(Transferring, Errors) {
  Mesh mesh({{"x", 2}});
  Tensor x = numbers({4});
  EXPECT_TRUE(throws_error([&] { transfer(x, mesh, P("x", none)); }, ErrorCode::kInvalidArgument,
                           {"transfer_test.cc:", "[transfer]", "2 dimensions", "f32[4] has 1"}));
  internal::TraceScope scope;
  EXPECT_TRUE(throws_error([&] { transfer(x, mesh, P("x")); }, ErrorCode::kFailedPrecondition,
                           {"traced function", "one set of devices"}));
}

}  // namespace
}  // namespace meshard
