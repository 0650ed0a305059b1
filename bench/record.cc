// Lazy recording: the cost of an op call before anything runs.
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/report.h"
#include "bench/timing.h"
#include "meshard/meshard.h"

namespace meshard::bench {
namespace {

constexpr int kOps = 10000;
// Longer chains run in parts while they are recorded.
constexpr int kChain = 500;
// Steps of three ops.
constexpr int kSteps = 3000;

// The minimum for a recorded op: a node in an arena with its operands, type and attribute hash, and
// a lookup among the previous nodes.
class Arena {
 public:
  explicit Arena(std::size_t nodes) : nodes_(nodes), table_(4 * nodes, 0) {}
  std::uint32_t add(std::uint32_t op, std::uint32_t a, std::uint32_t b) {
    std::size_t hash = op;
    hash = (hash ^ a) * 0x9E3779B97F4A7C15;
    hash = (hash ^ b) * 0x9E3779B97F4A7C15;
    std::size_t place = hash % table_.size();
    while (table_[place] != 0) {
      const Node& node = nodes_[table_[place]];
      if (node.op == op && node.operands[0] == a && node.operands[1] == b) return table_[place];
      place = (place + 1) % table_.size();
    }
    Node& node = nodes_[++count_];
    node.op = op;
    node.operands = {a, b};
    node.rank = 2;
    node.sizes = {8, 8};
    table_[place] = count_;
    return count_;
  }

 private:
  struct Node {
    std::uint32_t op, rank;
    std::array<std::uint32_t, 4> operands;
    std::array<std::int64_t, 6> sizes;
  };
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> table_;
  std::uint32_t count_ = 0;
};

double record_chain(const Tensor& x) {
  double seconds = 0;
  for (int chain = 0; chain < kOps / kChain; ++chain) {
    Tensor y = x;
    double begin = now();
    for (int i = 0; i < kChain; ++i) y = y + x;
    seconds += now() - begin;
  }
  return seconds / kOps;
}

Tensor small_step(const Tensor& x) { return tanh(x + 1) * 0.5f; }

double unsynced_loop(const Tensor& x) {
  Tensor y = x;
  double begin = now();
  for (int i = 0; i < kSteps; ++i) y = small_step(y);
  sync(y);
  return (now() - begin) / (3 * kSteps);
}

template <class Step>
double jitted_steps(const Step& step, const Tensor& x) {
  Tensor y = x;
  double begin = now();
  for (int i = 0; i < kSteps; ++i) y = step(y);
  sync(y);
  return (now() - begin) / (3 * kSteps);
}

double build_arena() {
  double begin = now();
  Arena arena(kOps + 2);
  std::uint32_t y = 0;
  for (std::uint32_t i = 0; i < kOps; ++i) y = arena.add(7, y, 0);
  double time = (now() - begin) / kOps;
  volatile std::uint32_t last = y;
  (void)last;
  return time;
}

}  // namespace

void record_rows(Report& report) {
  Tensor x = from_host(HostArray::full<float>({8, 8}, 1.0f));
  auto [ours, floor] = in_turns(
      300, [&] { return record_chain(x); }, build_arena);
  report.add({.name = "record.add",
              .work = "record one op lazily, in chains of 500 adds",
              .unit = "us",
              .ours = ours,
              .floor = floor,
              .floor_name = "a node in an arena, looked up among all",
              .goal = "at most 0.15 us",
              .bound = 0.15});
  auto step = jit([](Tensor y) { return small_step(y); });
  auto [loop, steps] = in_turns(
      20, [&] { return unsynced_loop(x); }, [&] { return jitted_steps(step, x); });
  report.add({.name = "record.loop",
              .work = "one op of 3,000 steps of three ops that are never synced",
              .unit = "us",
              .ours = loop,
              .floor = steps,
              .floor_name = "the steps jitted",
              .goal = "at most 5 us",
              .bound = 5});
}

}  // namespace meshard::bench
