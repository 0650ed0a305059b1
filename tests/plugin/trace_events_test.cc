// Traces of the runtime: their contents, and that they conform to Chrome's trace format.
#include "meshard/runtime/trace_events.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tests/error/fake_runtime.h"

namespace meshard {
namespace {

using Track = TraceEvent::Track;
using Json = nlohmann::json;

constexpr int kRunTime = 30'000;  // microseconds that a program takes on the fake plugin's devices

struct TraceEvents : testing::Test {
  static Tensor step(const Tensor& x) {
    static int number = 5000;  // a unique program for each call
    return mark_sharding(x * ++number, *x.sharding());
  }
  static Tensor on(std::vector<std::int64_t> ids) {
    auto size = static_cast<std::int64_t>(ids.size());
    return mark_sharding(f32({size, 4}), Mesh({{"x", size}}, std::move(ids)), P("x"));
  }
  static std::vector<TraceEvent> of(TraceSession& trace, std::string_view category) {
    std::vector<TraceEvent> found;
    for (const TraceEvent& event : trace.events())
      if (event.category == category) found.push_back(event);
    return found;
  }
  static std::uint64_t bytes_of(TraceSession& trace, std::string_view category) {
    std::uint64_t bytes = 0;
    for (const TraceEvent& event : of(trace, category)) bytes += event.bytes.value();
    return bytes;
  }
  static double end_of(const TraceEvent& event) { return event.start + event.duration; }
  void SetUp() override { control.set_run_time(0); }
  void TearDown() override {
    control.set_run_time(0);
    runtime_client().await_launches();
  }
  const FakeControl& control = fake_runtime();
};

TEST_F(TraceEvents, EveryDeviceHasItsExecutionsAndTheyEndWhenItIsThrough) {
  Tensor x = on({0, 1, 2, 3, 4, 5, 6, 7});
  auto f = jit([](Tensor t) { return step(t); }, {.name = "train"});
  std::string line = cat("trace_events_test.cc:", __LINE__ - 1);
  f(x);
  control.set_run_time(kRunTime);
  TraceSession trace = start_trace();
  f(x);
  f(x);
  std::map<int, std::vector<TraceEvent>> by_device;
  for (const TraceEvent& event : of(trace, "execute")) {
    EXPECT_EQ(event.track, Track::kDevice);
    EXPECT_EQ(event.what, "train");
    EXPECT_EQ(event.place, line);
    EXPECT_FALSE(event.failed);
    by_device[event.number].push_back(event);
  }
  ASSERT_EQ(by_device.size(), 8u);
  std::vector<TraceEvent> launches = of(trace, "launch");
  ASSERT_EQ(launches.size(), 2u);
  for (const auto& device : by_device) {
    ASSERT_EQ(device.second.size(), 2u);
    // The fake plugin completes each launch this long after its call.
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_GE(end_of(device.second[i]), launches[i].start + kRunTime);
    EXPECT_GE(device.second[1].start, end_of(device.second[0]))
        << "a device runs one program after the other";
  }
  EXPECT_TRUE(of(trace, "compile").empty()) << "it was compiled before";
}

TEST_F(TraceEvents, TransfersHaveTheBytesOfTheCounters) {
  TraceSession trace = start_trace();
  RuntimeCounters before = runtime_counters();
  Tensor x = on({0, 1, 2, 3});                                           // 4 sends of 16 bytes
  Tensor y = transfer(step(x), Mesh({{"x", 4}}, {4, 5, 6, 7}), P("x"));  // 4 moves
  (void)y.to_host();
  (void)local_shards(x)[2].padded_data();
  RuntimeCounters done = runtime_counters() - before;
  EXPECT_EQ(bytes_of(trace, "send"), done.bytes_sent);
  EXPECT_EQ(of(trace, "send").size(), done.buffers_sent);
  EXPECT_EQ(bytes_of(trace, "move"), done.bytes_moved);
  EXPECT_EQ(of(trace, "move").size(), 4u);
  EXPECT_EQ(bytes_of(trace, "read"), done.bytes_read);
  EXPECT_EQ(of(trace, "read").size(), done.buffers_read);
  EXPECT_EQ(bytes_of(trace, "place"), 4u * 16);
  std::set<int> sent_to, moved_to;
  for (const TraceEvent& event : of(trace, "send")) sent_to.insert(event.number);
  for (const TraceEvent& event : of(trace, "move")) moved_to.insert(event.number);
  EXPECT_EQ(sent_to, (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(moved_to, (std::set<int>{4, 5, 6, 7}));
  EXPECT_EQ(of(trace, "compile").size(), done.compiles);
  EXPECT_EQ(of(trace, "call").size(), done.launches);
}

TEST_F(TraceEvents, SendsAndReadsHaveTheLineTheyBelongTo) {
  TraceSession trace = start_trace();
  std::string sent = cat("trace_events_test.cc:", __LINE__ + 1);
  Tensor x = mark_sharding(f32({4, 4}), Mesh({{"x", 4}}), P("x"));
  std::string gathered = cat("trace_events_test.cc:", __LINE__ + 1);
  (void)x.to_host();
  std::string read = cat("trace_events_test.cc:", __LINE__ + 1);
  (void)local_shards(x)[2].padded_data();
  for (const TraceEvent& event : of(trace, "send")) EXPECT_EQ(event.place, sent);
  std::vector<TraceEvent> reads = of(trace, "read");
  ASSERT_EQ(of(trace, "send").size(), 4u);
  ASSERT_EQ(reads.size(), 5u);
  int whole = 0, one = 0;
  for (const TraceEvent& event : reads) {
    whole += event.place == gathered;
    one += event.place == read;
  }
  EXPECT_EQ(whole, 4);
  EXPECT_EQ(one, 1);
}

// Complete events of one track must follow one another or be nested.
void expect_sound_nesting(const Json& events) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> open;
  for (const Json& event : events) {
    if (event.at("ph") != "X") continue;
    double start = event.at("ts"), end = start + event.at("dur").get<double>();
    auto& outer = open[{event.at("pid"), event.at("tid")}];
    // One nanosecond, because sums of microseconds are rounded.
    while (!outer.empty() && outer.back().second <= start + 1e-3) outer.pop_back();
    if (!outer.empty()) {
      EXPECT_LE(end, outer.back().second + 1e-3) << event;
    }
    outer.emplace_back(start, end);
  }
}

TEST_F(TraceEvents, TheFileIsInChromesFormat) {
  control.set_run_time(kRunTime / 10);
  TraceSession trace = start_trace();
  Tensor x = on({0, 1, 2, 3, 4, 5, 6, 7});
  Tensor y = step(step(x));
  std::thread other([] { (void)step(on({2, 5})).to_host(); });
  (void)y.to_host();
  other.join();
  std::string path = testing::TempDir() + "/meshard_trace_events_test.json";
  trace.write(path).value();
  std::ifstream file(path);
  Json json = Json::parse(file);
  std::remove(path.c_str());

  std::map<std::pair<int, int>, std::string> threads;
  std::map<int, std::string> processes;
  std::size_t complete = 0;
  for (const Json& event : json.at("traceEvents")) {
    std::string phase = event.at("ph");
    ASSERT_TRUE(phase == "X" || phase == "M") << event;
    int process = event.at("pid"), thread = event.at("tid");
    if (phase == "M") {
      if (event.at("name") == "process_name") processes[process] = event.at("args").at("name");
      if (event.at("name") == "thread_name")
        threads[{process, thread}] = event.at("args").at("name");
      continue;
    }
    ++complete;
    EXPECT_GE(event.at("ts").get<double>(), 0);
    EXPECT_GE(event.at("dur").get<double>(), 0);
    EXPECT_TRUE(processes.count(process)) << event;
    EXPECT_TRUE(threads.count({process, thread})) << event;
  }
  EXPECT_EQ(complete, trace.events().size());
  std::set<std::string> devices, hosts;
  for (const auto& named : threads) {
    if (processes.at(named.first.first) == "devices") devices.insert(named.second);
    if (processes.at(named.first.first) == "host") hosts.insert(named.second);
  }
  EXPECT_EQ(devices.size(), 8u);
  EXPECT_TRUE(devices.count("device 7"));
  EXPECT_EQ(hosts, (std::set<std::string>{"thread 0", "thread 1"}));
  expect_sound_nesting(json.at("traceEvents"));
}

TEST_F(TraceEvents, OffAgainNothingIsRecorded) {
  TraceSession trace = start_trace();
  sync({step(on({0, 1}))});
  trace.stop();
  std::size_t events = trace.events().size();
  EXPECT_GT(events, 0u);
  sync({step(on({0, 1}))});
  EXPECT_EQ(trace.events().size(), events);
  EXPECT_FALSE(TraceSession(start_trace()).events().size());
}

TEST_F(TraceEvents, OneTraceAtATime) {
  TraceSession trace = start_trace();
  EXPECT_ERROR_HERE(start_trace(), ErrorCode::kFailedPrecondition, "a trace is already active");
  trace.stop();
  TraceSession next = start_trace();
  trace = std::move(next);  // ends the first trace, which had already ended, but not the second
  sync({step(on({0, 1}))});
  EXPECT_EQ(of(trace, "execute").size(), 2u);
}

TEST_F(TraceEvents, TooManyEventsAreCounted) {
  TraceSession trace = start_trace({.most_events = 3});
  sync({step(on({0, 1, 2, 3}))});
  EXPECT_EQ(trace.events().size(), 3u);
  EXPECT_GT(trace.left_out(), 0u);
}

TEST_F(TraceEvents, AFailedRunSaysSo) {
  Tensor x = on({6});
  TraceSession trace = start_trace();
  control.fail_runs(static_cast<int>(ErrorCode::kInternal));
  Tensor y = step(x);
  try {
    sync({y});
  } catch (const Error&) {
  }
  control.fail_runs(0);
  std::vector<TraceEvent> executions = of(trace, "execute");
  ASSERT_EQ(executions.size(), 1u);
  EXPECT_TRUE(executions[0].failed);
}

TEST_F(TraceEvents, AFileThatCannotBeWritten) {
  TraceSession trace = start_trace();
  Result<void> written = trace.write("/nowhere/at/all.json");
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message(), testing::HasSubstr("/nowhere/at/all.json"));
}

TEST_F(TraceEvents, ManyThreads) {
  TraceSession trace = start_trace();
  std::vector<std::thread> threads;
  std::atomic<int> launches = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      Tensor x = on({0, 1});
      auto f = jit([](Tensor a) { return a + a; });
      for (int i = 0; i < 50; ++i, ++launches) f(x);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(of(trace, "execute").size(), 2u * static_cast<std::size_t>(launches.load()));
  expect_sound_nesting(Json::parse(trace.to_json()).at("traceEvents"));
}

}  // namespace
}  // namespace meshard
