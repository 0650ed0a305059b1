// One process of a run over a plugin that connects the processes itself: the fake plugin, which
// takes options and callbacks as XLA's GPU plugin does and returns each argument as the result with
// its number. check_plugin.py starts several of these. usage: plugin_program
// [keep_running] SCENARIO...
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "meshard/meshard.h"
#include "meshard/pjrt/client.h"

namespace {

using namespace meshard;

void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

int num_devices() { return static_cast<int>(runtime_client().device_count()); }
Mesh line() { return Mesh({{"x", num_devices()}}); }
Mesh grid() { return Mesh({{"a", 2}, {"b", num_devices() / 2}}); }

Tensor counting(Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return from_host(std::move(values), std::move(shape));
}
Tensor rows() { return counting({2 * num_devices()}); }

std::string numbers(const HostArray& array) {
  std::string text;
  for (double value : array.astype(DType::f64).to_vector<double>()) append(text, cat(" ", value));
  return text;
}

void show_shards(const char* name, const Tensor& tensor) {
  std::string text = name;
  for (const LocalShard& shard : local_shards(tensor))
    append(text, cat(" device ", shard.device_id(), ":", numbers(shard.data())));
  say(text);
}

void devices() {
  const pjrt::Client& client = runtime_client();
  std::string text = cat("process ", client.process_index(), " has");
  for (const pjrt::Device* device : client.addressable_devices())
    append(text, cat(" ", device->id()));
  append(text, cat(" of ", client.platform(), ":"));
  for (std::size_t i = 0; i < client.device_count(); ++i)
    append(text, cat(" ", client.device(i).id(), "/", client.device(i).process_index()));
  say(text);
}

void place() {
  Tensor x = mark_sharding(rows(), line(), P("x"));
  show_shards("from_host", x);
  ShardedTensor made = ShardedTensor::from_callback(
      {DType::f32, {num_devices(), 2}}, Sharding(line(), P("x", none)), [](const Box& box) {
        return HostArray::full({DType::f32, box_shape(box)}, double(box[0].start));
      });
  show_shards("from_callback", made.global());
  std::vector<Tensor> locals;
  for (std::size_t i = 0; i < runtime_client().addressable_devices().size(); ++i)
    locals.push_back(from_host(HostArray::full<float>(
        {1}, static_cast<float>(10 * processes().rank() + static_cast<int>(i)))));
  show_shards("from_local", ShardedTensor::from_local(locals, line(), P("x")).global());
  std::vector<HostArray> others(locals.size() + 1, HostArray::zeros({DType::f32, {1}}));
  try {
    ShardedTensor::from_shards(others, line(), P("x"));
    say("no error");
  } catch (const Error& error) {
    say(error.message());
  }
}

void step() {
  Tensor x = mark_sharding(rows(), line(), P("x"));
  auto f = jit([](Tensor in) { return mark_sharding(tanh(in), line(), P("x")); },
               {.name = "step", .donate = {0}});
  for (int i = 0; i < 3; ++i) {
    Tensor before = x;
    x = f(x);
    try {
      (void)before.to_host();
      say("not donated");
    } catch (const Error& error) {
      say(error.code() == ErrorCode::kFailedPrecondition ? "donated" : error.message());
    }
  }
  show_shards("step", x);
  Tensor w = mark_sharding(from_host(HostArray::full({DType::f32, {3}}, 7.0)), line(), P(none));
  auto launches = runtime_counters().launches;
  Tensor loss = jit([](Tensor in) { return mark_sharding(exp(in), line(), P(none)); })(w);
  say(cat("replicated", numbers(loss.to_host()), ", ", runtime_counters().launches - launches,
          " launch"));
}

void read() {
  Tensor x = mark_sharding(rows(), line(), P("x"));
  say(cat("to_host", numbers(x.to_host())));
  say(cat("gather", numbers(gather(x))));
  std::optional<HostArray> at_1 = gather_to(x, 1);
  say(cat("gather_to 1:", at_1 ? numbers(*at_1) : " nothing"));
  Tensor columns = mark_sharding(counting({4, num_devices()}), grid(), P("a", "b"));
  say(cat("grid", numbers(columns.to_host())));
  std::string printed = cat(x);
  say(cat("printed: ", printed.substr(0, printed.find('\n'))));
  // Each process has two of the four devices of a row, which hold the same.
  Tensor halves = mark_sharding(rows(), Mesh({{"p", num_devices() / 2}, {"q", 2}}), P("q"));
  auto launches = runtime_counters().launches;
  say(cat("local", numbers(halves.to_host()), ", ", runtime_counters().launches - launches,
          " launches"));
}

void submesh() {
  // The devices of process 1.
  std::vector<std::int64_t> ids = {2, 3};
  Mesh part({{"y", 2}}, ids);
  Tensor x = mark_sharding(counting({4}), part, P("y"));
  Tensor y = jit([&](Tensor in) { return mark_sharding(tanh(in), part, P("y")); })(x);
  say(cat("submesh ", y.sharding()->spec(), ", ", y.placement()));
  show_shards("submesh", y);
  try {
    say(cat("read", numbers(y.to_host())));
  } catch (const Error& error) {
    say(error.message());
  }
  Tensor all = mark_sharding(rows(), line(), P("x"));
  show_shards("moved", transfer(all, part, P("y")));
  try {
    (void)transfer(x, line(), P("x"));
    say("no error");
  } catch (const Error& error) {
    say(error.message());
  }
}

/// Process 0 has one part of the value, process 1 has all of them.
void unequal() {
  Tensor halves = mark_sharding(counting({4}), Mesh({{"p", 2}, {"q", 2}}, {1, 0, 2, 3}), P("q"));
  auto launches = runtime_counters().launches;
  std::string values = numbers(halves.to_host());
  say(cat("halves", values, ", ", runtime_counters().launches - launches, " launch"));
}

void explained() {
  Tensor x = mark_sharding(rows(), line(), P("x"));
  auto f = jit([](Tensor in) { return mark_sharding(tanh(in), line(), P("x")); });
  (void)f(x);
  ProgramReport report = explain(f);
  say(cat("explained for ", report.parts().target.devices, " devices"));
}

void differ() {
  Tensor x = mark_sharding(rows(), line(), P("x"));
  bool last = processes().rank() == processes().size() - 1;
  try {
    (void)jit([&](Tensor in) { return last ? exp(in) : log(in); }, {.name = "differs"})(x);
    say("no error");
  } catch (const Error& error) {
    say(error.message());
  }
}

void restart() {
  restart_runtime();
  devices();
}

/// Collectives between devices of processes meet by an id that the store carries.
void reduce() {
  Tensor x = mark_sharding(rows(), line(), P("x"));
  Tensor y = jit([](Tensor in) { return mark_sharding(in * sum(in), line(), P("x")); })(x);
  show_shards("reduce", y);
}

void wait_for_the_end() { (void)processes().barrier("the end").value(); }

const std::map<std::string, void (*)()> kScenarios = {
    {"devices", devices}, {"place", place},         {"step", step},           {"read", read},
    {"submesh", submesh}, {"differ", differ},       {"restart", restart},     {"reduce", reduce},
    {"unequal", unequal}, {"explained", explained}, {"end", wait_for_the_end}};

}  // namespace

int main(int count, char** arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing is left if the test is killed
  try {
    ProcessesOptions options;
    if (const char* local = std::getenv("MESHARD_FAKE_DEVICES"))
      options.local_devices = std::atoi(local);
    int first = 1;
    if (count > 1 && arguments[1] == std::string_view("keep_running")) {
      options.on_loss = [](const ProcessLoss&) {};  // otherwise, the process ends
      ++first;
    }
    (void)initialize_processes(options).value();
    say(cat("joined ", processes().rank()));
    for (int i = first; i < count; ++i) kScenarios.at(arguments[i])();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "process %d: %s\n", processes().rank(), error.what());
    return 3;
  }
}
