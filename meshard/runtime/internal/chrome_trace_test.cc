#include "meshard/runtime/internal/chrome_trace.h"

#include <gmock/gmock.h>

#include "meshard/base/packed_fields.h"

namespace meshard::internal {
namespace {

using testing::HasSubstr;
using Track = TraceEvent::Track;

TraceEvent host_event(const char* what, double start, double duration, int thread = 0) {
  return {.category = "barrier",
          .what = what,
          .place = {},
          .number = thread,
          .start = start,
          .duration = duration};
}

ProcessTrace process(int rank, double begin) {
  ProcessTrace trace{.rank = rank, .host = "alpha", .pid = 100 + rank, .begin = begin};
  trace.precision = rank;
  trace.events = {host_event("step", 10, 5), host_event("other", 20, 1, 3)};
  trace.events.push_back({.track = Track::kDevice,
                          .category = "execute",
                          .what = "train",
                          .place = "train.cc:42",
                          .number = rank,
                          .platform = "cpu",
                          .start = 30,
                          .duration = 2.5});
  for (double start : {40.0, 41.0})  // they overlap
    trace.events.push_back({.track = Track::kTransfer,
                            .category = "send",
                            .what = "f32[4]",
                            .place = {},
                            .number = rank,
                            .platform = "cpu",
                            .start = start,
                            .duration = 10,
                            .bytes = 16,
                            .failed = start == 41});
  return trace;
}

TEST(ChromeTrace, OfARunHasOneTimeAxis) {
  std::string text = chrome_trace_of_run({process(0, 1000), process(1, 700)});
  // The second trace began first, 300 us before the other.
  EXPECT_THAT(
      text,
      HasSubstr(
          R"x("name":"barrier step","cat":"barrier","ph":"X","pid":0,"tid":1,"ts":310,"dur":5)x"));
  EXPECT_THAT(
      text,
      HasSubstr(
          R"x("name":"barrier step","cat":"barrier","ph":"X","pid":1,"tid":1,"ts":10,"dur":5)x"));
  EXPECT_THAT(
      text,
      HasSubstr(
          R"x("name":"process_name","ph":"M","pid":1,"tid":0,"args":{"name":"process 1 on alpha"})x"));
  // Host threads, then the device, then its transfers.
  EXPECT_THAT(
      text,
      HasSubstr(R"x("name":"thread_name","ph":"M","pid":0,"tid":2,"args":{"name":"thread 3"})x"));
  EXPECT_THAT(
      text,
      HasSubstr(
          R"x("name":"execute train","cat":"execute","ph":"X","pid":1,"tid":3,"ts":30,"dur":2.5,"args":{"place":"train.cc:42"})x"));
  EXPECT_THAT(text, HasSubstr(R"x("pid":1,"tid":4,"args":{"name":"transfers of device 1"})x"));
  EXPECT_THAT(text, HasSubstr(R"x("pid":1,"tid":5,"args":{"name":"transfers of device 1 (2)"})x"));
  EXPECT_THAT(text,
              HasSubstr(R"x("pid":1,"tid":5,"ts":41,"dur":10,"args":{"bytes":16,"failed":true})x"));
  EXPECT_THAT(
      text,
      HasSubstr(R"x("rank":0,"host":"alpha","pid":100,"begin_us":300,"clock_precision_us":0)x"));
  EXPECT_THAT(
      text,
      HasSubstr(R"x("rank":1,"host":"alpha","pid":101,"begin_us":0,"clock_precision_us":1)x"));
}

TEST(ChromeTrace, BytesComeBackAsTheyWere) {
  ProcessTrace trace = process(3, -1.25);
  trace.left_out = 7;
  ProcessTrace back = from_packed<ProcessTrace>(to_packed(trace), "trace").value();
  EXPECT_EQ(back.pid, 103);
  EXPECT_EQ(back.begin, -1.25);
  EXPECT_EQ(back.left_out, 7u);
  EXPECT_EQ(chrome_trace_of_run({back}), chrome_trace_of_run({trace}));
}

TEST(ChromeTrace, DamagedBytesAreRefused) {
  std::string bytes = to_packed(process(3, 0));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(from_packed<ProcessTrace>(bytes.substr(0, size), "trace").ok()) << size;
  EXPECT_FALSE(from_packed<ProcessTrace>(bytes + "x", "trace").ok());
}

}  // namespace
}  // namespace meshard::internal
