// Jitted calls with many parameters, and recorded ops.
#include <string>
#include <vector>

#include "bench/on_devices.h"
#include "bench/peers/contest.h"
#include "bench/timing.h"

namespace meshard::bench {
namespace {

std::vector<Tensor> halved_plus_one(std::vector<Tensor> parameters) {
  for (Tensor& each : parameters) each = each * 0.5f + 1.0f;
  return parameters;
}

struct CallCase {
  int count, devices;
  bool chained;  // and donated

  int calls() const { return count >= 2000 ? 4 : count >= 200 ? 8 : 24; }
  nlohmann::json json() const {
    return {{"count", count},
            {"devices", devices},
            {"donate", chained},
            {"chained", chained},
            {"calls", calls()}};
  }
};

// Each call has the results of the one before. Waits for each call, or only for the last one.
Side our_calls(const CallCase& given) {
  Mesh mesh({{"tp", given.devices}});
  std::vector<Tensor> state;
  for (int i = 0; i < given.count; ++i)
    state.push_back(mark_sharding(from_host(HostArray::full<float>({8, 8}, 1.0f)), mesh, P("tp")));
  JitOptions options{.name = "parameters"};
  if (given.chained) options.donate = {0};
  auto step = jit(&halved_plus_one, options);
  state = step(state);
  wait_for(state.back());
  return [given, step, state]() mutable {
    double begin = now();
    for (int i = 1; i <= given.calls(); ++i) {
      state = step(state);
      if (!given.chained || i == given.calls()) wait_for(state.back());
    }
    return (now() - begin) / given.calls() / 1e6;
  };
}

void add_call_row(Contest& contest, const std::string& peer, const CallCase& given, double ours,
                  double theirs) {
  add_figures(contest, peer,
              {.name = cat("call.", given.count, ".devices", given.devices,
                           given.chained ? ".chained" : "", peer == "jax" ? "" : "." + peer),
               .work = cat(given.count, " parameters on ", given.devices,
                           given.devices == 1 ? " device, " : " devices, ",
                           given.chained ? "donated, calls in a row" : "call and wait"),
               .unit = "us",
               .ours = ours * 1e6,
               .theirs = theirs * 1e6});
}

// 3,000 steps of three ops without a sync, against JAX's eager mode.
void loop_contest(Contest& contest) {
  constexpr int kSteps = 3000;
  for (int devices : {1, 8}) {
    Tensor x = from_host(HostArray::full<float>({8, 8}, 1.0f));
    if (devices > 1) x = mark_sharding(x, Mesh({{"tp", devices}}), P("tp"));
    std::unique_ptr<Peer> jax = contest.start("jax");
    PeerWork theirs(*jax, "loop", {{"steps", kSteps}, {"devices", devices}});
    std::vector<double> seconds = fastest_in_turns(5, {[&] {
                                                         Tensor y = x;
                                                         double begin = now();
                                                         for (int i = 0; i < kSteps; ++i)
                                                           y = tanh(y + 1) * 0.5f;
                                                         wait_for(y);
                                                         return (now() - begin) / 1e6;
                                                       },
                                                       [&] { return theirs.run(); }});
    add_figures(contest, "jax",
                {.name = cat("loop.devices", devices),
                 .work = cat("3,000 steps of three ops without a sync, on ", devices,
                             devices == 1 ? " device" : " devices"),
                 .unit = "ms",
                 .ours = seconds[0] * 1e3,
                 .theirs = seconds[1] * 1e3});
  }
}

}  // namespace

void call_contest(Contest& contest) {
  for (int devices : {1, 8})
    for (int count : {2, 20, 200, 2000})
      for (bool chained : {false, true}) {
        CallCase given{count, devices, chained};
        int turns = count >= 2000 ? 7 : 15;
        contest.attempt(cat("call.", count, ".devices", devices), [&] {
          if (!contest.has("jax")) return;
          std::unique_ptr<Peer> jax = contest.start("jax");
          PeerWork theirs(*jax, "parameters", given.json());
          std::vector<double> seconds =
              fastest_in_turns(turns, {our_calls(given), [&] { return theirs.run(); }});
          add_call_row(contest, "jax", given, seconds[0], seconds[1]);
        });
      }
  if (!contest.has("torch_xla")) return;
  std::unique_ptr<Peer> torch_xla = contest.start("torch_xla");
  for (int count : {2, 20, 200}) {
    CallCase given{count, 8, false};
    PeerWork theirs(*torch_xla, "parameters",
                    {{"count", count}, {"devices", 8}, {"calls", given.calls()}});
    std::vector<double> seconds =
        fastest_in_turns(7, {our_calls(given), [&] { return theirs.run(); }});
    add_call_row(contest, "torch_xla", given, seconds[0], seconds[1]);
  }
}

void record_contest(Contest& contest) {
  if (contest.has("jax")) loop_contest(contest);
  if (!contest.has("torch_xla")) return;
  constexpr int kOps = 500;  // a longer chain runs in parts while it is recorded
  Tensor x = from_host(HostArray::full<float>({64, 64}, 1.0f));
  std::unique_ptr<Peer> torch_xla = contest.start("torch_xla");
  PeerWork theirs(*torch_xla, "record", {{"ops", kOps}});
  std::vector<double> seconds = fastest_in_turns(15, {[&] {
                                                        Tensor y = x;
                                                        double begin = now();
                                                        for (int i = 0; i < kOps; ++i) y = y + x;
                                                        return (now() - begin) / kOps / 1e6;
                                                      },
                                                      [&] { return theirs.run(); }});
  add_figures(contest, "torch_xla",
              {.name = "record.add",
               .work = "record one op lazily, in a chain of 500 adds",
               .unit = "us",
               .ours = seconds[0] * 1e6,
               .theirs = seconds[1] * 1e6});
}

}  // namespace meshard::bench
