#include "meshard/processes/device_communicator.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>

#include "meshard/array/host_array.h"
#include "tests/support/random.h"
#include "tests/support/thread_communicator.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using DeviceRanks = std::vector<int>;

/// One thread for each device of some processes, which are threads' communicators.
struct DeviceThreads {
  explicit DeviceThreads(const std::vector<int>& counts) {
    processes =
        make_thread_communicators(static_cast<int>(counts.size()), std::chrono::seconds(20));
    for (auto& process : processes)
      for (auto& device : make_device_communicators(*process, counts))
        devices.push_back(std::move(device));
  }
  void run(const std::function<void(Communicator&)>& body) {
    std::vector<std::jthread> threads;
    for (auto& device : devices) threads.emplace_back([&] { body(*device); });
  }
  std::vector<std::unique_ptr<ProcessCommunicator>> processes;
  std::vector<std::unique_ptr<Communicator>> devices;
};

TEST(DeviceCommunicator, NumbersDevicesProcessByProcess) {
  DeviceThreads threads({1, 3, 2});
  DeviceRanks ranks;
  for (auto& device : threads.devices) {
    ranks.push_back(device->rank());
    EXPECT_EQ(device->size(), 6);
  }
  EXPECT_THAT(ranks, ElementsAre(0, 1, 2, 3, 4, 5));
}

// As the rows and columns of a mesh: two groups of each process at once, in any order.
TEST(DeviceCommunicator, GroupsDoNotWaitForOneAnother) {
  DeviceThreads threads({2, 2});
  threads.run([](Communicator& c) {
    const DeviceRanks column = {c.rank() % 2, c.rank() % 2 + 2};
    // The second column makes ten calls while the first makes one.
    const int calls = c.rank() % 2 == 0 ? 1 : 10;
    for (int i = 0; i < calls; ++i) {
      std::int32_t value = c.rank() + i, sum = 0;
      c.all_reduce(column, Reduction::kSum, DType::i32, &value, &sum, 1).value();
      EXPECT_EQ(sum, column[0] + column[1] + 2 * i);
    }
    const DeviceRanks row = {c.rank() / 2 * 2 + 1, c.rank() / 2 * 2};
    std::int32_t value = c.rank(), both[2] = {};
    c.all_gather(row, &value, both, sizeof value).value();
    EXPECT_THAT(both, ElementsAre(row[0], row[1]));
  });
}

TEST(DeviceCommunicator, DifferentCallsAreAnErrorOfAllOfThem) {
  DeviceThreads threads({2});
  threads.run([](Communicator& c) {
    float data[4] = {};
    std::size_t count = c.rank() == 0 ? 3 : 4;
    auto done = c.all_reduce(DeviceRanks{0, 1}, Reduction::kSum, DType::f32, data, data, count);
    ASSERT_FALSE(done.ok());
    EXPECT_THAT(done.error().message(),
                HasSubstr("device 0 calls all-reduce sum of 3 f32, but device 1 calls all-reduce "
                          "sum of 4 f32"));
    // The next call is another one.
    c.all_reduce(DeviceRanks{0, 1}, Reduction::kSum, DType::f32, data, data, 4).value();
  });
}

/// Has no connection to the process that it is asked to reach.
struct BrokenProcesses : ProcessCommunicator {
  int rank() const override { return 0; }
  int size() const override { return 2; }
  static Error gone() { return Error(ErrorCode::kUnavailable, "process 1 is gone"); }
  Result<void> call(std::span<const int>, const GroupCall&, const void*, void*) override {
    return gone();
  }
  Result<void> permute(int, int, const void*, void*, std::size_t) override { return gone(); }
  Result<void> exchange(std::span<const OutgoingMessage>,
                        std::span<const IncomingMessage>) override {
    return gone();
  }
  Result<std::unique_ptr<StartedMessage>> start_send(const OutgoingMessage&) override {
    return gone();
  }
  Result<std::unique_ptr<StartedMessage>> start_receive(const IncomingMessage&) override {
    return gone();
  }
  int largest_tag() const override { return 32767; }
};

TEST(DeviceCommunicator, AnErrorBetweenProcessesIsThatOfAllDevices) {
  BrokenProcesses processes;
  auto devices = make_device_communicators(processes, {2, 1});
  std::vector<std::jthread> threads;
  for (auto& device : devices)
    threads.emplace_back([&] {
      float data[8] = {}, out[8] = {};
      const DeviceRanks all = {0, 1, 2};
      Communicator& c = *device;
      std::vector<Result<void>> outcomes;
      outcomes.push_back(c.all_reduce(all, Reduction::kSum, DType::f32, data, out, 2));
      outcomes.push_back(c.all_gather(all, data, out, 4));
      outcomes.push_back(c.reduce_scatter(all, Reduction::kSum, DType::f32, data, out, 2));
      outcomes.push_back(c.all_to_all(all, data, out, 4));
      outcomes.push_back(c.broadcast(all, 2, data, 4));
      for (const Result<void>& outcome : outcomes)
        EXPECT_THAT(outcome.error().message(), HasSubstr("process 1 is gone"));
      // Groups in this process need no other one.
      EXPECT_TRUE(c.all_gather(DeviceRanks{1, 0}, data, out, 4).ok());
    });
}

// ---- Random collectives of random groups, against a plain reference.

enum class DeviceOp { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast, kPermute };

struct TestedCall {
  DeviceRanks group;
  DeviceOp op;
  Reduction reduction;
  DType type;
  std::int64_t count;
  int shift;  // of a permutation; the root of a broadcast
};

/// The elements that a device passes: small numbers, whose sums and products every type has.
HostArray elements(const TestedCall& call, int device, std::int64_t count, int seed) {
  std::vector<double> values(static_cast<std::size_t>(count));
  std::mt19937 random(static_cast<std::uint32_t>(seed * 64 + device));
  for (double& value : values) value = random() % 2 == 0 ? 0 : 1;
  return HostArray::from_vector(std::move(values), {count}).astype(call.type);
}

HostArray combined(const TestedCall& call, std::int64_t count, std::int64_t first, int seed,
                   std::int64_t all) {
  std::vector<double> result;
  for (int device : call.group) {
    std::vector<double> values =
        elements(call, device, all, seed).astype(DType::f64).to_vector<double>();
    values.erase(values.begin(), values.begin() + first);
    values.resize(static_cast<std::size_t>(count));
    if (result.empty()) {
      result = values;
      continue;
    }
    for (std::size_t i = 0; i < values.size(); ++i) switch (call.reduction) {
        case Reduction::kSum: result[i] += values[i]; break;
        case Reduction::kProduct: result[i] *= values[i]; break;
        case Reduction::kMin: result[i] = std::min(result[i], values[i]); break;
        default: result[i] = std::max(result[i], values[i]); break;
      }
  }
  return HostArray::from_vector(std::move(result), {count}).astype(call.type);
}

/// What device `position` of the group receives.
HostArray expected(const TestedCall& call, std::size_t position, int seed) {
  auto size = static_cast<std::int64_t>(call.group.size());
  auto own = static_cast<std::int64_t>(position);
  std::vector<HostArray> parts;
  auto part = [&](int device, std::int64_t count, std::int64_t block) {
    Box box = {{block * call.count, (block + 1) * call.count}};
    parts.push_back(elements(call, device, count, seed).slice(box));
  };
  switch (call.op) {
    case DeviceOp::kAllReduce: return combined(call, call.count, 0, seed, call.count);
    case DeviceOp::kReduceScatter:
      return combined(call, call.count, own * call.count, seed, size * call.count);
    case DeviceOp::kAllGather:
      for (int device : call.group) part(device, call.count, 0);
      break;
    case DeviceOp::kAllToAll:
      for (int device : call.group) part(device, size * call.count, own);
      break;
    case DeviceOp::kBroadcast:
      part(call.group[static_cast<std::size_t>(call.shift)], call.count, 0);
      break;
    case DeviceOp::kPermute:
      part(call.group[(position + call.group.size() - static_cast<std::size_t>(call.shift)) %
                      call.group.size()],
           call.count, 0);
      break;
  }
  std::int64_t total = 0;
  for (const HostArray& each : parts) total += each.size();
  HostArray whole = HostArray::uninitialized({call.type, {total}});
  std::byte* at = whole.mutable_bytes();
  for (const HostArray& each : parts) {
    if (each.size() > 0)
      std::memcpy(at, each.bytes(), static_cast<std::size_t>(each.size_in_bytes()));
    at += each.size_in_bytes();
  }
  return whole;
}

HostArray received(const TestedCall& call, std::size_t position, int seed, Communicator& c) {
  const std::size_t size = call.group.size();
  bool is_long = call.op == DeviceOp::kReduceScatter || call.op == DeviceOp::kAllToAll;
  std::int64_t in_count = is_long ? call.count * static_cast<std::int64_t>(size) : call.count;
  HostArray in = elements(call, c.rank(), in_count, seed);
  HostArray out = HostArray::zeros(expected(call, position, seed).type());
  auto count = static_cast<std::size_t>(call.count), bytes = count * size_in_bytes(call.type);
  void* to = out.mutable_bytes();
  int turn = call.shift;
  auto member = [&](std::size_t i) { return call.group[i % size]; };
  switch (call.op) {
    case DeviceOp::kAllReduce:
      c.all_reduce(call.group, call.reduction, call.type, in.bytes(), to, count).value();
      break;
    case DeviceOp::kAllGather: c.all_gather(call.group, in.bytes(), to, bytes).value(); break;
    case DeviceOp::kReduceScatter:
      c.reduce_scatter(call.group, call.reduction, call.type, in.bytes(), to, count).value();
      break;
    case DeviceOp::kAllToAll: c.all_to_all(call.group, in.bytes(), to, bytes).value(); break;
    case DeviceOp::kBroadcast:
      if (bytes > 0) std::memcpy(to, in.bytes(), bytes);
      c.broadcast(call.group, member(static_cast<std::size_t>(turn)), to, bytes).value();
      break;
    case DeviceOp::kPermute:
      c.permute(member(position + static_cast<std::size_t>(turn)),
                member(position + size - static_cast<std::size_t>(turn)), in.bytes(), to, bytes)
          .value();
      break;
  }
  return out;
}

std::vector<TestedCall> random_step(int devices, TestRandom& random) {
  constexpr DType kTypes[] = {DType::f32, DType::i32, DType::bf16,
                              DType::u8,  DType::f64, DType::f8e4m3fn};
  constexpr std::int64_t kCounts[] = {0, 1, 3, 17, 900, 9000};
  DeviceRanks all(static_cast<std::size_t>(devices));
  std::iota(all.begin(), all.end(), 0);
  std::ranges::shuffle(all, random);
  std::vector<TestedCall> step;
  while (!all.empty()) {
    auto size = static_cast<std::size_t>(random.between(1, std::ssize(all)));
    TestedCall call{
        .group = {all.end() - static_cast<std::ptrdiff_t>(size), all.end()},
        .op = static_cast<DeviceOp>(random.between(0, 5)),
        .reduction = static_cast<Reduction>(random.between(0, 3)),
        .type = kTypes[random.between(0, 5)],
        .count = kCounts[random.between(0, 5)],
        .shift = static_cast<int>(random.between(0, static_cast<std::int64_t>(size) - 1))};
    all.resize(all.size() - size);
    if (random.between(0, 4) != 0) step.push_back(std::move(call));  // some devices do nothing
  }
  return step;
}

TEST(DeviceCommunicator, RandomGroups) {
  TestRandom random;
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<int> counts;
    for (std::int64_t p = random.between(1, 4); p > 0; --p)
      counts.push_back(static_cast<int>(random.between(1, 3)));
    const int devices = std::accumulate(counts.begin(), counts.end(), 0);
    std::vector<std::vector<TestedCall>> steps;
    for (int s = 0; s < 12; ++s) steps.push_back(random_step(devices, random));
    DeviceThreads threads(counts);
    threads.run([&](Communicator& c) {
      for (std::size_t s = 0; s < steps.size(); ++s)
        for (const TestedCall& call : steps[s]) {
          auto own = std::ranges::find(call.group, c.rank());
          if (own == call.group.end()) continue;
          auto position = static_cast<std::size_t>(own - call.group.begin());
          HostArray got = received(call, position, static_cast<int>(s), c);
          HostArray wanted = expected(call, position, static_cast<int>(s));
          EXPECT_TRUE(got.size() == 0 ||
                      std::memcmp(got.bytes(), wanted.bytes(),
                                  static_cast<std::size_t>(got.size_in_bytes())) == 0)
              << "trial " << trial << ", step " << s << ": operation " << static_cast<int>(call.op)
              << " of " << call.count << ' ' << call.type << " over " << join(call.group, ",");
        }
    });
  }
}

}  // namespace
}  // namespace meshard
