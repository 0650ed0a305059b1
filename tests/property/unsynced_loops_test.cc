// Random loops that are never synced, or seldom, compute the same as on the host.
//
// MESHARD_LOOPS=n runs n loops; MESHARD_NIGHTLY=1 runs 400. Loop k is drawn from the run's seed +
// k.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "meshard/meshard.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

constexpr std::int64_t kRows = 8, kColumns = 4, kSize = kRows * kColumns;

int loops_to_run() {
  if (const char* loops = std::getenv("MESHARD_LOOPS")) return std::atoi(loops);
  const char* nightly = std::getenv("MESHARD_NIGHTLY");
  return nightly != nullptr && std::string(nightly) == "1" ? 400 : 6;
}

// A value on the host.
using Host = std::vector<double>;

enum class Kind : std::uint8_t {
  kStep,      // x = tanh(x + 1) * 0.5
  kMix,       // x = (x + y) * 0.5
  kUpdate,    // x -= y * 0.01, in place
  kCounter,   // x = tanh(x + (step % 7))
  kSchedule,  // x = x * (1 / (1 + step))
  kMean,      // x = x - mean(x), by a reduction over all elements
  kByRows,    // x with the mean of its rows subtracted
  kSelect,    // x = where(x > y, x, y * 0.5)
  kCollect,   // keeps sum(x) in a list
  kUnused,    // computes something that nothing refers to
  kJitted,    // x = f(x), jitted
  kSlope,     // x = x - gradient of sum(tanh(x)) * 0.1
  kRemark,    // marks x again
};
constexpr int kKinds = 13;

struct Operation {
  Kind kind;
  std::size_t x, y;
};

struct Loop {
  std::vector<Operation> body;
  std::size_t values = 1;
  int steps = 0;
  bool on_mesh = false;
  // Each step that is a multiple does something more; 0: none.
  int read_every = 0, extra_every = 0;
};

Loop draw(TestRandom& random) {
  Loop loop;
  loop.values = static_cast<std::size_t>(random.between(1, 3));
  auto any = [&] {
    return static_cast<std::size_t>(random.between(0, static_cast<int>(loop.values) - 1));
  };
  for (auto i = random.between(1, 6); i-- > 0;) {
    auto kind = static_cast<Kind>(random.between(0, kKinds - 1));
    loop.body.push_back({kind, any(), any()});
  }
  loop.body.push_back({Kind::kStep, any(), 0});
  loop.steps = static_cast<int>(random.between(60, 700));
  loop.on_mesh = random.between(0, 1) == 1;
  if (random.between(0, 2) == 0) loop.read_every = static_cast<int>(random.between(50, 300));
  if (random.between(0, 2) == 0) loop.extra_every = static_cast<int>(random.between(20, 200));
  return loop;
}

std::string printed(const Loop& loop) {
  std::string text =
      cat(loop.steps, " steps of ", loop.values, " values", loop.on_mesh ? " on a mesh" : "",
          ", read every ", loop.read_every, ", extra every ", loop.extra_every, ":");
  for (const Operation& each : loop.body)
    append(text, cat(" ", static_cast<int>(each.kind), "(", each.x, ",", each.y, ")"));
  return text;
}

Tensor shrunk(Tensor x) { return x * 0.75f - 0.1f; }

class LoopRun {
 public:
  explicit LoopRun(const Loop& loop) : loop_(loop) {
    for (std::size_t i = 0; i < loop.values; ++i) {
      Host host(kSize);
      std::vector<float> data(kSize);
      for (std::size_t j = 0; j < host.size(); ++j)
        data[j] = static_cast<float>(host[j] = 0.25 * static_cast<double>((i + 3 * j) % 5) - 0.5);
      host_.push_back(host);
      Tensor value = from_host(data, {kRows, kColumns});
      ours_.push_back(loop.on_mesh ? mark_sharding(value, mesh_, i == 1 ? P("x", "y") : P("x"))
                                   : value);
    }
  }

  // Empty, or what differs.
  std::string run() {
    for (step_ = 0; step_ < loop_.steps; ++step_) {
      for (const Operation& each : loop_.body) apply(each);
      if (loop_.extra_every > 0 && step_ % loop_.extra_every == 7)
        apply({Kind::kMix, 0, loop_.values - 1});
      if (loop_.read_every > 0 && step_ % loop_.read_every == 9)
        if (std::string why = compare(0); !why.empty()) return why;
    }
    for (std::size_t i = 0; i < loop_.values; ++i)
      if (std::string why = compare(i); !why.empty()) return why;
    for (std::size_t i = 0; i < sums_.size(); i += 37)
      if (std::abs(sums_[i].item<float>() - host_sums_[i]) > 2e-3)
        return cat("sum ", i, " is ", sums_[i].item<float>(), ", not ", host_sums_[i]);
    return "";
  }

 private:
  std::string compare(std::size_t i) {
    std::vector<float> values = ours_[i].to_vector<float>();
    for (std::size_t j = 0; j < values.size(); ++j)
      if (!(std::abs(values[j] - host_[i][j]) <= 1e-3))
        return cat("after step ", step_, ", element ", j, " of value ", i, " is ", values[j],
                   ", not ", host_[i][j]);
    return "";
  }
  template <class F>
  void each(Host& x, F f) {
    for (double& value : x) value = f(value);
  }

  void apply(const Operation& operation) {
    Tensor& x = ours_[operation.x];
    apply_ours(operation, x, ours_[operation.y]);
    apply_host(operation, host_[operation.x], Host(host_[operation.y]));
  }
  void apply_ours(const Operation& operation, Tensor& x, const Tensor& y) {
    switch (operation.kind) {
      case Kind::kStep: x = tanh(x + 1) * 0.5f; break;
      case Kind::kMix: x = (x + y) * 0.5f; break;
      case Kind::kUpdate: x -= y * 0.01f; break;
      case Kind::kCounter: x = tanh(x + step_ % 7); break;
      case Kind::kSchedule: x = x * (1.0f / static_cast<float>(1 + step_)); break;
      case Kind::kMean: x = x - mean(x); break;
      case Kind::kByRows: x = x - mean(x, {1}, /*keepdims=*/true); break;
      case Kind::kSelect: x = where(greater(x, y), x, y * 0.5f); break;
      case Kind::kCollect: sums_.push_back(sum(x)); break;
      case Kind::kUnused: (void)exp(x + y); break;
      case Kind::kJitted: x = jitted_(x); break;
      case Kind::kSlope: x = x - grad([](Tensor t) { return sum(tanh(t)); })(x) * 0.1f; break;
      case Kind::kRemark:
        if (loop_.on_mesh) x = mark_sharding(x, mesh_, P("x"));
        break;
    }
  }
  void apply_host(const Operation& operation, Host& x, const Host& y) {
    switch (operation.kind) {
      case Kind::kStep: return each(x, [](double v) { return std::tanh(v + 1) * 0.5; });
      case Kind::kMix:
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = (x[i] + y[i]) * 0.5;
        return;
      case Kind::kUpdate:
        for (std::size_t i = 0; i < x.size(); ++i) x[i] -= y[i] * 0.01;
        return;
      case Kind::kCounter: return each(x, [&](double v) { return std::tanh(v + step_ % 7); });
      case Kind::kSchedule: return each(x, [&](double v) { return v / (1 + step_); });
      case Kind::kMean: {
        double total = 0;
        for (double v : x) total += v;
        return each(x, [&](double v) { return v - total / kSize; });
      }
      case Kind::kByRows:
        for (std::size_t row = 0; row < kRows; ++row) {
          double total = 0;
          for (std::size_t i = 0; i < kColumns; ++i) total += x[row * kColumns + i];
          for (std::size_t i = 0; i < kColumns; ++i) x[row * kColumns + i] -= total / kColumns;
        }
        return;
      case Kind::kSelect:
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = x[i] > y[i] ? x[i] : y[i] * 0.5;
        return;
      case Kind::kCollect: {
        double total = 0;
        for (double v : x) total += v;
        host_sums_.push_back(total);
        return;
      }
      case Kind::kUnused: return;
      case Kind::kJitted: return each(x, [](double v) { return v * 0.75 - 0.1; });
      case Kind::kSlope:
        return each(x, [](double v) { return v - (1 - std::tanh(v) * std::tanh(v)) * 0.1; });
      case Kind::kRemark: return;
    }
  }

  const Loop& loop_;
  Mesh mesh_{{{"x", 4}, {"y", 2}}};
  Jit<Tensor (*)(Tensor)> jitted_ = jit(&shrunk);
  std::vector<Host> host_;
  std::vector<double> host_sums_;
  std::vector<Tensor> ours_, sums_;
  int step_ = 0;
};

TEST(UnsyncedLoops, ComputeTheSameAsOnTheHost) {
  try {
    if (runtime_client().device_count() < 8) GTEST_SKIP() << "fewer than 8 devices";
  } catch (const Error& error) {
    GTEST_SKIP() << "no plugin: " << error.what();
  }
  for (int k = 0; k < loops_to_run(); ++k) {
    TestRandom random;
    random.seed(test_seed() + static_cast<std::uint64_t>(k));
    Loop loop = draw(random);
    EXPECT_EQ(LoopRun(loop).run(), "") << "loop " << k << ": " << printed(loop);
  }
}

}  // namespace
}  // namespace meshard
