// Our Python package beside JAX: recording, jitted calls, tracing a step, the first result.
#include <memory>
#include <string>
#include <vector>

#include "bench/peers/contest.h"
#include "bench/timing.h"
#include "meshard/base/cat.h"

namespace meshard::bench {
namespace {

struct PythonRow {
  std::string name, work, unit;
  double scale, allowed;
  const char* task;
  nlohmann::json with;
  int turns;
};

// The same work of two peers, in turns.
void python_row(Contest& contest, const PythonRow& row) {
  std::unique_ptr<Peer> python = contest.start("python"), jax = contest.start("jax");
  PeerWork ours(*python, row.task, row.with), theirs(*jax, row.task, row.with);
  std::vector<double> seconds =
      fastest_in_turns(row.turns, {[&] { return ours.run(); }, [&] { return theirs.run(); }});
  add_figures(contest, "jax",
              {.name = row.name,
               .work = row.work,
               .unit = row.unit,
               .ours = seconds[0] * row.scale,
               .theirs = seconds[1] * row.scale,
               .allowed = row.allowed});
}

// Recording has a goal of its own: 1 us.
void python_record_row(Contest& contest, bool number) {
  constexpr int kOps = 1000;
  std::unique_ptr<Peer> python = contest.start("python"), jax = contest.start("jax");
  nlohmann::json with{{"ops", kOps}, {"number", number}};
  PeerWork ours(*python, "record", with), theirs(*jax, "record", with);
  std::vector<double> seconds =
      fastest_in_turns(30, {[&] { return ours.run(); }, [&] { return theirs.run(); }});
  contest.report().add(
      {.name = number ? "python.record.number" : "python.record.add",
       .work = cat("record `y = y + ", number ? "1.0" : "x", "` from Python; JAX: trace it"),
       .unit = "us",
       .ours = seconds[0] * 1e6,
       .floor = seconds[1] * 1e6,
       .floor_name = contest.title("jax"),
       .goal = "at most 1 us",
       .bound = 1.0});
}

void python_start_row(Contest& contest) {
  auto once = [&](const char* peer) {
    nlohmann::json with{{"began", now() / 1e6}};
    std::unique_ptr<Peer> process = contest.start(peer);
    return PeerWork(*process, "first_result", with).facts();
  };
  Least ours, theirs;
  double value = 0, their_value = 0;
  for (int i = 0; i < 6; ++i) {
    nlohmann::json our = once("python"), their = once("jax");
    ours.take(our.at("since_start").get<double>());
    theirs.take(their.at("since_start").get<double>());
    value = our.at("value").get<double>();
    their_value = their.at("value").get<double>();
  }
  add_figures(contest, "jax",
              {.name = "python.start",
               .work = "process start, import, and a jitted product on 8 devices",
               .unit = "ms",
               .ours = ours.value * 1e3,
               .theirs = theirs.value * 1e3,
               .allowed = 1.0 / 3,
               .note = cat("results ", value, ", ", their_value)});
}

}  // namespace

void python_contest(Contest& contest) {
  if (!contest.has("python") || !contest.has("jax")) return;
  for (bool number : {false, true})
    contest.attempt("python.record", [&] { python_record_row(contest, number); });
  for (int devices : {1, 8})
    contest.attempt("python.loop", [&] {
      python_row(contest, {.name = cat("python.loop.devices", devices),
                           .work = cat("3,000 steps of three ops without a sync, on ", devices,
                                       devices == 1 ? " device" : " devices"),
                           .unit = "ms",
                           .scale = 1e3,
                           .allowed = 1.2,
                           .task = "loop",
                           .with = {{"steps", 3000}, {"devices", devices}},
                           .turns = 5});
    });
  for (int count : {2, 20, 200})
    for (bool chained : {false, true})
      contest.attempt(cat("python.call.", count), [&] {
        python_row(contest, {.name = cat("python.call.", count, chained ? ".chained" : ""),
                             .work = cat(count, " parameters on 8 devices, ",
                                         chained ? "donated, calls in a row" : "call and wait"),
                             .unit = "us",
                             .scale = 1e6,
                             .allowed = 0.5,
                             .task = "parameters",
                             .with = {{"count", count},
                                      {"devices", 8},
                                      {"donate", chained},
                                      {"chained", chained},
                                      {"calls", 24}},
                             .turns = 15});
      });
  contest.attempt("python.trace", [&] {
    python_row(contest, {.name = "python.trace",
                         .work = "trace and lower the training step of 12 layers",
                         .unit = "ms",
                         .scale = 1e3,
                         .allowed = 0.1,
                         .task = "trace_layers",
                         .with = {{"layers", 12}, {"batch", 8}, {"length", 128}},
                         .turns = 5});
  });
  contest.attempt("python.start", [&] { python_start_row(contest); });
}

}  // namespace meshard::bench
