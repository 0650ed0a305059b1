#include "meshard/explain/measured/trace_ops.h"

#include <gtest/gtest.h>

#include <map>

#include "meshard/base/whole_file.h"

namespace meshard {
namespace {

TEST(TraceOps, ReadsOperationsOfDevices) {
  Result<std::vector<TraceOp>> ops = read_trace_ops(R"({"displayTimeUnit": "ns", "traceEvents": [
    {"ph": "M", "pid": 7, "name": "process_name", "args": {"name": "/device:TPU:0"}},
    {"ph": "M", "pid": 7, "tid": 3, "name": "thread_name", "args": {"name": "XLA Ops"}},
    {"ph": "M", "pid": 7, "tid": 4, "name": "thread_name", "args": {"name": "Steps"}},
    {"ph": "X", "pid": 7, "tid": 3, "ts": 10, "dur": 2.5, "name": "fusion.1", "args": {"run_id": "5"}},
    {"ph": "X", "pid": 7, "tid": 4, "ts": 10, "dur": 90, "name": "1"},
    {"ph": "X", "pid": 8, "tid": 1, "ts": 20, "dur": 1, "name": "thunk {\"", "args":
      {"hlo_op": "all-reduce", "hlo_module": "jit_step", "device_ordinal": "3", "run_id": "-5"}},
    {}]})");
  ASSERT_TRUE(ops.ok()) << ops.error().message();
  ASSERT_EQ(ops->size(), 2u);
  EXPECT_EQ((*ops)[0].op, "fusion.1");
  EXPECT_EQ((*ops)[0].device, "/device:TPU:0");
  EXPECT_EQ((*ops)[0].run, "5");
  EXPECT_DOUBLE_EQ((*ops)[0].start, 10e-6);
  EXPECT_DOUBLE_EQ((*ops)[0].seconds, 2.5e-6);
  EXPECT_EQ((*ops)[1].op, "all-reduce");
  EXPECT_EQ((*ops)[1].module, "jit_step");
  EXPECT_EQ((*ops)[1].device, "8 3");
}

TEST(TraceOps, OtherForms) {
  // A bare array, cut off as the format allows.
  Result<std::vector<TraceOp>> ops = read_trace_ops(
      R"([{"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "name": "a", "args": {"hlo_op": "a"}},
          {"ph": "X", "pid": 1,)");
  ASSERT_TRUE(ops.ok());
  EXPECT_EQ(ops->size(), 1u);
  for (const char* wrong :
       {"", "{}", "{\"traceEvents\": 3}", "nothing", "[{\"ph\": }]", "\x1f\x8b damaged"})
    EXPECT_FALSE(read_trace_ops(wrong).ok()) << wrong;
}

// Recorded by jax.profiler.trace of JAX 0.10.2 on 8 CPU devices: three runs of a program of two
// layers, of which devices 0 and 5 are kept. The sums were computed from the file with Python.
TEST(TraceOps, ReadsATraceOfJax) {
  std::string file = read_whole_file(MESHARD_GOLDEN "/traces/jax_cpu.trace.json.gz").value();
  Result<std::vector<TraceOp>> ops = read_trace_ops(file);
  ASSERT_TRUE(ops.ok()) << ops.error().message();
  EXPECT_EQ(ops->size(), 60u);
  std::map<std::string, std::map<std::string, double>> seconds;  // by device and operation
  std::map<std::string, int> runs;
  for (const TraceOp& op : *ops) {
    EXPECT_EQ(op.module, "jit_step");
    seconds[op.device][op.op] += op.seconds;
    ++runs[op.run];
  }
  ASSERT_EQ(seconds.size(), 2u);
  EXPECT_EQ(seconds.begin()->first, "/host:CPU 0");
  EXPECT_EQ(runs.size(), 3u);
  EXPECT_NEAR(seconds["/host:CPU 5"]["all-reduce"], 7879.612e-6, 1e-12);
  EXPECT_NEAR(seconds["/host:CPU 5"]["all-reduce.2"], 204.554e-6, 1e-12);
}

}  // namespace
}  // namespace meshard
