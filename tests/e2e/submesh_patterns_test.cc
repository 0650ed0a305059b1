// Typical programs on all devices, and on some devices in any order: which values are marked, and
// when they are marked, computed and read; with data from the host and from the devices.
#include <algorithm>
#include <functional>

#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Ids = std::vector<std::int64_t>;
using Matrix = std::vector<float>;  // 8 x 8, row-major

constexpr std::int64_t kSize = 8;
constexpr std::uint64_t kMatrixBytes = 64 * sizeof(float);

enum class Origin { kHost, kDevices };

struct Pattern {
  Ids ids;
  Origin origin;
};

/// Integers from -2 to 2, so that matrix products are exact.
float element(std::int64_t i, int seed) { return static_cast<float>((i * 7 + seed) % 5 - 2); }

Matrix values(int seed) {
  Matrix all;
  for (std::int64_t i = 0; i < kSize * kSize; ++i) all.push_back(element(i, seed));
  return all;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(kSize * kSize, 0);
  for (std::size_t i = 0; i < kSize; ++i)
    for (std::size_t j = 0; j < kSize; ++j)
      for (std::size_t k = 0; k < kSize; ++k)
        c[i * kSize + j] += a[i * kSize + k] * b[k * kSize + j];
  return c;
}

Matrix mapped(Matrix a, const std::function<float(float)>& f) {
  for (float& value : a) value = f(value);
  return a;
}

Matrix added(Matrix a, const Matrix& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

/// The elements of a whole matrix in a box.
Matrix part(const Matrix& whole, const Box& box) {
  Matrix elements;
  for (std::int64_t i = box[0].start; i < box[0].stop; ++i)
    for (std::int64_t j = box[1].start; j < box[1].stop; ++j)
      elements.push_back(whole[static_cast<std::size_t>(i * kSize + j)]);
  return elements;
}

class SubmeshPatterns : public OnDevices, public testing::WithParamInterface<Pattern> {
 protected:
  const Ids& ids() const { return GetParam().ids; }
  std::uint64_t count() const { return ids().size(); }
  bool from_the_host() const { return GetParam().origin == Origin::kHost; }
  Mesh mesh() const {
    return Mesh({{"x", 1}, {"y", static_cast<std::int64_t>(ids().size())}}, ids());
  }

  /// values(seed), from the host or computed on the devices.
  Tensor make(int seed) const {
    if (from_the_host()) return from_host(values(seed), {kSize, kSize});
    Tensor numbers = arange(0, kSize * kSize, 1, DType::f32);
    return reshape((numbers * 7 + seed) % 5 - 2, {kSize, kSize});
  }
  Tensor mark(const Tensor& x) const { return mark_sharding(x, mesh(), P("x", "y")); }

  /// Expects the shards on the mesh's devices, in its order, and as parts of `whole`.
  void expect_shards(const Tensor& x, const Matrix& whole) const {
    std::vector<LocalShard> shards = local_shards(x);
    Ids devices;
    for (const LocalShard& shard : shards) {
      devices.push_back(shard.device_id());
      EXPECT_EQ(shard.data().to_vector<float>(), part(whole, shard.box()))
          << "device " << shard.device_id();
    }
    EXPECT_EQ(devices, ids());
  }

  /// Expects the columns to be split in the mesh's order.
  void expect_columns(const Tensor& x, const Matrix& whole) const {
    EXPECT_TRUE(x.sharding()->is_equivalent_to(Sharding(mesh(), P("x", "y")), 2));
    expect_shards(x, whole);
    std::int64_t width = kSize / static_cast<std::int64_t>(ids().size());
    for (const LocalShard& shard : local_shards(x))
      EXPECT_EQ(shard.box(),
                (Box{{0, kSize}, {shard.position() * width, (shard.position() + 1) * width}}));
  }

  /// Expects that this many split matrices have left the host since the test began; none if the
  /// devices compute them.
  void expect_sent(std::uint64_t matrices) const {
    std::uint64_t sent = from_the_host() ? matrices : 0;
    EXPECT_EQ(done().buffers_sent, sent * count());
    EXPECT_EQ(done().bytes_sent, sent * kMatrixBytes);
    EXPECT_EQ(done().buffers_read, 0u);
  }
};

TEST_P(SubmeshPatterns, BothMarkedReadThenSync) {
  Tensor a = mark(make(0)), b = mark(make(3));
  expect_sent(2);
  Tensor c = matmul(a, b);
  Matrix expected = product(values(0), values(3));
  EXPECT_EQ(c.to_vector<float>(), expected);
  EXPECT_EQ(done().launches, 1u);
  sync({a, b, c});
  EXPECT_EQ(done().launches, 1u) << "all was computed on the way";
  expect_shards(c, expected);
  expect_columns(a, values(0));
  expect_columns(b, values(3));
}

TEST_P(SubmeshPatterns, BothMarkedSyncThenRead) {
  Tensor a = mark(make(1)), b = mark(make(2));
  Tensor c = matmul(a, b);
  sync({a, b, c});
  expect_sent(2);
  EXPECT_EQ(done().launches, 1u);
  Matrix expected = product(values(1), values(2));
  EXPECT_EQ(c.to_vector<float>(), expected);
  EXPECT_EQ(done().launches, 1u) << "reading computes nothing";
  expect_shards(c, expected);
}

TEST_P(SubmeshPatterns, OneMarkedReadThenSync) {
  Tensor a = mark(make(0)), b = make(3);
  Tensor c = matmul(a, b);
  Matrix expected = product(values(0), values(3));
  EXPECT_EQ(c.to_vector<float>(), expected);
  // The compiler chooses the sharding of the other operand; at most, every device gets all of it.
  if (from_the_host()) {
    EXPECT_EQ(done().buffers_sent, 2 * count());
    EXPECT_LE(done().bytes_sent, kMatrixBytes * (1 + count()));
  } else {
    EXPECT_EQ(done().buffers_sent, 0u);
  }
  sync({a, b, c});
  EXPECT_EQ(done().launches, 1u);
  expect_shards(c, expected);
  EXPECT_EQ(b.to_vector<float>(), values(3));
}

TEST_P(SubmeshPatterns, OneMarkedSyncThenRead) {
  Tensor a = mark(make(2)), b = make(4);
  Tensor c = matmul(a, b);
  sync({a, b, c});
  Matrix expected = product(values(2), values(4));
  expect_shards(c, expected);
  EXPECT_EQ(c.to_vector<float>(), expected);
  expect_columns(a, values(2));
}

TEST_P(SubmeshPatterns, ChangedThenMarkedOne) {
  Tensor a = make(0), b = make(3);
  a += 2;
  a = mark(a);
  EXPECT_EQ(a.placement(), "recorded");
  Tensor c = matmul(a, b);
  sync({a, b, c});
  Matrix changed = mapped(values(0), [](float value) { return value + 2; });
  EXPECT_EQ(c.to_vector<float>(), product(changed, values(3)));
  expect_columns(a, changed);
  expect_shards(c, product(changed, values(3)));
}

TEST_P(SubmeshPatterns, ChangedThenMarkedBoth) {
  Tensor a = make(1), b = make(4);
  a += 2;
  Tensor left = mark(a), right = mark(b);
  Tensor c = matmul(left, right);
  Matrix changed = mapped(values(1), [](float value) { return value + 2; });
  EXPECT_EQ(c.to_vector<float>(), product(changed, values(4)));
  expect_columns(left, changed);
  expect_columns(right, values(4));
}

TEST_P(SubmeshPatterns, ASingleAddition) {
  Tensor a = mark(make(0));
  Tensor b = a + 0.5;
  sync({a, b});
  Matrix expected = mapped(values(0), [](float value) { return value + 0.5f; });
  EXPECT_EQ(b.to_vector<float>(), expected);
  expect_columns(b, expected);
}

TEST_P(SubmeshPatterns, ANumberGoesToTheDevicesOnce) {
  Tensor a = mark(make(0));
  sync({a + 3.25});
  restart();
  sync({a * 3.25, a - 3.25});
  EXPECT_EQ(done().buffers_sent, 0u);
}

TEST_P(SubmeshPatterns, ProductOfASumWithAThird) {
  Tensor a = mark(make(0)), b = mark(make(1)), c = mark(make(2));
  Tensor d = matmul(a + b, c);
  sync({a, b, c, d});
  expect_sent(3);
  Matrix expected = product(added(values(0), values(1)), values(2));
  EXPECT_EQ(d.to_vector<float>(), expected);
  expect_shards(d, expected);
}

TEST_P(SubmeshPatterns, InPlaceOperatorsKeepTheMark) {
  Tensor a = mark(make(3));
  a *= 2;
  a += 1;
  EXPECT_EQ(*a.sharding(), Sharding(mesh(), P("x", "y")));
  sync({a});
  expect_sent(1);
  Matrix expected = mapped(values(3), [](float value) { return value * 2 + 1; });
  expect_columns(a, expected);
  a += mark(make(4));
  expect_columns(a, added(expected, values(4)));
}

TEST_P(SubmeshPatterns, MarkedReplicated) {
  Tensor a = mark_sharding(make(0), mesh(), P("x", none));
  Tensor b = a + 1;
  sync({a, b});
  for (const LocalShard& shard : local_shards(b))
    EXPECT_EQ(shard.data().size(), kSize * kSize) << "device " << shard.device_id();
  expect_shards(b, mapped(values(0), [](float value) { return value + 1; }));
}

std::string name_of(const Pattern& pattern) {
  std::string name = pattern.origin == Origin::kHost ? "Host" : "Devices";
  for (std::int64_t id : pattern.ids) append(name, cat("_", id));
  return name;
}

void PrintTo(const Pattern& pattern, std::ostream* stream) { *stream << name_of(pattern); }

std::vector<Pattern> patterns() {
  std::vector<Pattern> all;
  for (const Ids& ids :
       {Ids{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1}, {2, 3}, {4, 5, 6, 7}, {1, 5}, {7, 5, 6, 4}})
    for (Origin origin : {Origin::kHost, Origin::kDevices}) all.push_back({ids, origin});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Meshes, SubmeshPatterns, testing::ValuesIn(patterns()),
                         [](const auto& test) { return name_of(test.param); });

using RandomOnSubmesh = OnDevices;

TEST_F(RandomOnSubmesh, ValuesDoNotDependOnTheDevices) {
  std::vector<float> expected = random::uniform(random::key(7), {8, 8}).to_vector<float>();
  for (const Ids& ids : {Ids{0, 1}, {1, 5}, {7, 5, 6, 4}}) {
    Mesh mesh({{"x", static_cast<std::int64_t>(ids.size())}}, ids);
    Tensor made = mark_sharding(random::uniform(random::key(7), {8, 8}), mesh, P("x", none));
    EXPECT_EQ(made.to_vector<float>(), expected);
    EXPECT_EQ(local_shards(made).back().device_id(), ids.back());
  }
}

using DevicesOfOneProgram = OnDevices;

TEST_F(DevicesOfOneProgram, OtherDeviceIdsCompileNothing) {
  auto run = [](const Ids& ids) {
    Mesh mesh({{"x", 1}, {"y", 2}}, ids);
    Tensor a = mark_sharding(from_host(values(0), {kSize, kSize}), mesh, P("x", "y"));
    Tensor b = mark_sharding(from_host(values(1), {kSize, kSize}), mesh, P("x", "y"));
    return matmul(a * b, b - a).to_vector<float>();
  };
  Matrix first = run({0, 1});
  EXPECT_EQ(done().compiles, 1u);
  for (const Ids& ids : {Ids{2, 3}, {6, 7}, {1, 5}, {5, 1}}) EXPECT_EQ(run(ids), first);
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().retargets, 4u);
}

TEST_F(DevicesOfOneProgram, CannotBeThoseOfTwoMeshes) {
  Tensor a = mark_sharding(from_host(values(0), {kSize, kSize}), Mesh({{"y", 2}}, {4, 5}), P("y"));
  Tensor b = mark_sharding(from_host(values(1), {kSize, kSize}), Mesh({{"y", 2}}, {2, 3}), P("y"));
  Tensor c = matmul(a, b);
  EXPECT_TRUE(throws_error([&] { sync({c}); }, ErrorCode::kInvalidArgument,
                           {"devices=[4,5]", "devices=[2,3]"}));
  EXPECT_EQ((a + a).to_vector<float>()[1], 2 * values(0)[1]) << "each alone goes on";
  EXPECT_EQ((b + b).to_vector<float>()[1], 2 * values(1)[1]);
}

}  // namespace
}  // namespace meshard
