#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "meshard/base/whole_file.h"
#include "meshard/explain/measured/measured_run.h"
#include "meshard/pjrt/wire.h"

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

using pjrt::WireWriter;

// Fields as (number, value) pairs: a message from integers and bytes.
class Message {
 public:
  Message& number(int field, std::int64_t value) {
    writer_.add_varint(field, static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& bytes(int field, std::string_view value) {
    writer_.add_bytes(field, value);
    return *this;
  }
  const std::string& text() const { return writer_.bytes(); }

 private:
  WireWriter writer_;
};

std::string named(std::int64_t number, std::string_view name, std::string_view shown = {}) {
  Message value;
  value.number(1, number).bytes(2, name);
  if (!shown.empty()) value.bytes(4, shown);
  return Message().number(1, number).bytes(2, value.text()).text();
}

// As a TPU's: operations are the events of one line, whose names are their texts.
std::string tpu_space() {
  std::string event = Message()
                          .number(1, 7)
                          .number(2, 1500000)  // picoseconds
                          .number(3, 250000)
                          .bytes(4, Message().number(1, 2).number(7, 3).text())
                          .bytes(4, Message().number(1, 4).number(3, 12).text())
                          .text();
  std::string step = Message().number(1, 8).number(3, 999).text();
  std::string ops = Message().bytes(2, "XLA Ops").number(3, 1000).bytes(4, event).text();
  std::string steps = Message().bytes(2, "Steps").number(3, 990).bytes(4, step).text();
  std::string plane = Message()
                          .bytes(2, "/device:TPU:1")
                          .bytes(3, ops)
                          .bytes(3, steps)
                          .bytes(4, named(7, "%fusion.2 = f32[8] fusion(...)", "fusion.2"))
                          .bytes(4, named(8, "step 1"))
                          .bytes(5, named(2, "hlo_module"))
                          .bytes(5, named(3, "jit_step"))
                          .bytes(5, named(4, "run_id"))
                          .text();
  return Message().bytes(1, plane).bytes(4, "a host").text();
}

TEST(XSpace, OperationsAreTheEventsOfALine) {
  std::string space = tpu_space();
  EXPECT_TRUE(may_be_xspace(space));
  std::vector<TraceOp> ops = read_xspace_ops(space).value();
  ASSERT_EQ(ops.size(), 1u);
  EXPECT_EQ(ops[0].op, "fusion.2");
  EXPECT_EQ(ops[0].module, "jit_step");
  EXPECT_EQ(ops[0].device, "/device:TPU:1");
  EXPECT_EQ(ops[0].run, "12");
  // The first line starts at 990 ns, this one at 1000.
  EXPECT_NEAR(ops[0].start, 10e-9 + 1.5e-6, 1e-15);
  EXPECT_NEAR(ops[0].seconds, 0.25e-6, 1e-15);
  EXPECT_EQ(read_trace_ops(space).value(), ops);
}

TEST(XSpace, DamagedBytes) {
  std::string space = tpu_space();
  for (std::size_t size = 1; size + 8 < space.size(); ++size)  // the host's name has 8 bytes
    EXPECT_FALSE(read_xspace_ops(space.substr(0, size)).ok()) << size;
  std::string inside = Message().bytes(1, Message().bytes(3, "\x0a\x7f").text()).text();
  EXPECT_EQ(read_xspace_ops(inside).error().code(), ErrorCode::kDataLoss);
  for (const char* other : {"", "{}", "\n{\"traceEvents\": []}", "[]", "text"})
    EXPECT_FALSE(may_be_xspace(other)) << other;
}

// Recorded by jax.profiler.trace of JAX 0.10.2 on 8 CPU devices: three runs of a program of two
// layers, without the threads of Python. The expected sums are those of jax.profiler.ProfileData,
// which rounds each event to nanoseconds.
TEST(XSpace, ReadsATraceOfJax) {
  std::string file = read_whole_file(MESHARD_GOLDEN "/traces/jax_cpu.xplane.pb.gz").value();
  std::vector<TraceOp> ops = read_trace_ops(file).value();
  EXPECT_EQ(ops.size(), 144u);
  std::map<std::string, std::map<std::string, double>> seconds;  // by device and operation
  std::set<std::string> runs;
  double first = 1, last = 0;
  for (const TraceOp& op : ops) {
    EXPECT_EQ(op.module, "jit_step");
    seconds[op.device][op.op] += op.seconds;
    runs.insert(op.run);
    first = std::min(first, op.start);
    last = std::max(last, op.start + op.seconds);
  }
  EXPECT_EQ(seconds.size(), 8u);
  EXPECT_EQ(runs, (std::set<std::string>{"-1310091411", "-1310091412", "-1310091413"}));
  EXPECT_NEAR(last - first, 1934006e-9, 2e-9);
  EXPECT_EQ(seconds["/host:CPU 0"].size(), 6u);
  EXPECT_NEAR(seconds["/host:CPU 0"]["all-reduce"], 1569633e-9, 3e-9);
  EXPECT_NEAR(seconds["/host:CPU 3"]["ynn_fusion.1"], 25468e-9, 3e-9);
  EXPECT_NEAR(seconds["/host:CPU 7"]["wrapped_tanh"], 3245e-9, 3e-9);
}

}  // namespace

}  // namespace meshard
