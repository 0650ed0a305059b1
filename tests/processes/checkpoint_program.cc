// Saves and restores checkpoints over N devices, in one process or several. Started by
// check_checkpoints.py.
//
//   checkpoint_program DEVICES PATH COMMAND...
//
//   save, save-async, save-alone  a checkpoint of tensors with known elements
//   check            restores it onto several meshes and compares each element
//   copies           tensors that every device has
//   reads            restores a large tensor, and says how much of the files was read
//   loop             trains and saves until it is killed
//   check-loop       prints the step of a checkpoint of `loop`, all of which must be of one step
//   differ           the last process saves another tensor
//   absent           the last process does not save
//   full             the last process cannot write files of this size
//   end-async        ends while it is saved
//   unasked          a save fails in the background, and nobody asks
//   fail-async       ends with an error, while the others do not save
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "meshard/meshard.h"

namespace {

using namespace meshard;

int devices = 1;
std::string path;
int rank() { return processes().rank(); }
bool is_last() { return rank() == processes().size() - 1; }

void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

[[noreturn]] void wrong(const std::string& what) { throw InternalError(what); }

/// first, first + 1, ...
HostArray counted(DType dtype, Shape shape, double first) {
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<double>(i);
  return HostArray::from_vector(std::move(values), std::move(shape)).astype(dtype);
}

struct Known {
  HostArray array;
  std::optional<Sharding> sharding;
};

Mesh line() { return Mesh({{"x", devices}}); }
Mesh grid() { return Mesh({{"a", devices / 2}, {"b", 2}}); }

/// Tensors of the checkpoint; check_checkpoints.py knows the same names, types and elements.
std::map<std::string, Known> known_tensors() {
  std::map<std::string, Known> out;
  auto add = [&](const char* name, HostArray array, const Mesh& mesh, PartitionSpec spec) {
    auto tensor_rank = static_cast<std::size_t>(array.rank());
    out[name] = {std::move(array), Sharding(mesh, std::move(spec), tensor_rank)};
  };
  add("rows", counted(DType::f32, {10, 6}, 0), line(), P("x"));  // uneven
  add("columns", counted(DType::f32, {3, 8}, 100), line(), P(none, "x"));
  add("few", counted(DType::i32, {2}, 200), line(), P("x"));  // not every device has a part
  add("copies", counted(DType::f64, {5}, 300), line(), P());
  add("both", counted(DType::f32, {4, 2, 6}, 400), grid(), P("b", none, "a"));
  add("half", counted(DType::bf16, {4, 4}, 0), grid(), P("b"));  // copies along "a"
  add("last", counted(DType::i64, {3}, 500), Mesh({{"x", 1}}, {devices - 1}), P());
  add("empty", counted(DType::f32, {0, 4}, 0), line(), P(none, "x"));
  if (devices >= 4) add("some", counted(DType::u8, {4}, 60), Mesh({{"x", 2}}, {1, 3}), P("x"));
  out["host"] = {counted(DType::f32, {2, 2}, 700), std::nullopt};
  return out;
}

Tensor made(const Known& known) {
  Tensor tensor = from_host(known.array);
  return known.sharding ? mark_sharding(tensor, *known.sharding) : tensor;
}

std::map<std::string, Tensor> made_tensors() {
  std::map<std::string, Tensor> out;
  for (const auto& [name, known] : known_tensors()) out[name] = made(known);
  Tensor x = out.at("rows");
  out["recorded"] = x * 2;
  return out;
}

void save() { io::save(path, made_tensors(), {{"note", "known"}}).value(); }

void save_async() {
  std::map<std::string, Tensor> tensors = made_tensors();
  auto step = jit([](const Tensor& x) { return x + 1; }, {.donate = {0}});
  io::Saving saving = io::save_async(path, tensors, {{"note", "known"}});
  Tensor next = step(tensors.at("rows"));
  sync(next);
  saving.wait().value();
}

void expect_same(const std::string& name, const HostArray& expected, const Tensor& tensor) {
  if (tensor.type() != expected.type()) wrong(cat(name, " is ", tensor.type()));
  HostArray got = gather(tensor);
  if (!got.same_bits(expected)) wrong(cat(name, " is ", got, ", not ", expected));
  for (const LocalShard& shard : local_shards(tensor))
    if (!shard.data().same_bits(expected.slice(shard.box())))
      wrong(cat(name, ", ", shard, " is ", shard.data()));
}

void check() {
  std::map<std::string, Known> known = known_tensors();
  HostArray doubled = counted(DType::f64, {10, 6}, 0);
  for (double& value : doubled.mutable_data<double>()) value *= 2;
  known["recorded"] = {doubled.astype(DType::f32), std::nullopt};
  // Onto the shardings that they had on a mesh of this size, others, and the host.
  std::vector<std::function<std::optional<Sharding>(const Known&)>> places = {
      [](const Known& each) { return each.sharding; },
      [](const Known& each) {
        auto of_rank = static_cast<std::size_t>(each.array.rank());
        std::vector<std::int64_t> ids;
        for (int i = devices; i-- > 0;) ids.push_back(i);
        return Sharding(Mesh({{"z", devices}}, ids), P("z"), of_rank);
      },
      [](const Known& each) {
        auto of_rank = static_cast<std::size_t>(each.array.rank());
        if (devices < 2 || of_rank < 2) return Sharding(line(), P(), of_rank);
        return Sharding(grid(), P("b", "a"), of_rank);
      },
      [](const Known& each) {
        return Sharding(Mesh({{"x", 1}}, {0}), P(), static_cast<std::size_t>(each.array.rank()));
      },
      [](const Known&) { return std::optional<Sharding>(); }};
  for (const auto& place : places) {
    std::map<std::string, Tensor> like;
    for (const auto& [name, each] : known) {
      std::optional<Sharding> sharding = place(each);
      like[name] = sharding ? abstract_tensor(each.array.shape(), each.array.dtype(),
                                              sharding->mesh(), sharding->spec())
                            : Tensor();
    }
    std::map<std::string, Tensor> back = io::restore(path, like, {.strict = false}).value();
    for (const auto& [name, each] : known) expect_same(name, each.array, back.at(name));
  }
  if (io::Weights::open(path).value().metadata().at("note") != "known") wrong("no note");
  if (rank() == 0) say("all is there");
}

void copies() {
  std::map<std::string, Tensor> tensors;
  for (int i = 0; i < 2 * devices; ++i)
    tensors[cat("t", i)] = mark_sharding(from_host(counted(DType::f32, {1000}, i)), line(), P());
  io::save(path, tensors).value();
}

/// How many bytes of the checkpoint's files this process has read through their mappings.
std::int64_t bytes_read() {
  std::ifstream maps("/proc/self/smaps");
  std::string word, row;
  bool ours = false;
  std::int64_t kilobytes = 0;
  while (std::getline(maps, row)) {
    if (row.find("-of-0000") != std::string::npos) ours = true;
    if (ours && row.rfind("Rss:", 0) == 0) {
      kilobytes += std::atoll(row.c_str() + 4);
      ours = false;
    }
  }
  return kilobytes * 1024;
}

void reads() {
  constexpr std::int64_t kRows = 2048, kColumns = 1024;  // 8 MiB
  Tensor large =
      mark_sharding(from_host(counted(DType::f32, {kRows, kColumns}, 0)), line(), P("x"));
  io::save(path, {{"large", large}}).value();
  // Each process needs the rows that another has written.
  std::vector<std::int64_t> ids;
  for (int i = devices; i-- > 0;) ids.push_back(i);
  Mesh reversed({{"x", devices}}, ids);
  io::Weights weights = io::Weights::open(path).value();
  Tensor back = weights.placed("large", Sharding(reversed, P("x"), 2)).value();
  for (const LocalShard& shard : local_shards(back)) {
    HostArray data = shard.data();
    auto first = static_cast<double>(shard.box()[0].start * kColumns);
    if (!data.same_bits(counted(DType::f32, data.shape(), first))) wrong("other elements");
  }
  say(cat("process ", rank(), " of ", processes().size(), " has read ", bytes_read(), " of ",
          large.type().bytes()));
}

struct State {
  Tensor weights, moments, bias, number;
  MESHARD_FIELDS(weights, moments, bias, number)
};

State state_of(double value) {
  Mesh mesh = line();
  auto all = [&](Shape shape) { return from_host(HostArray::full({DType::f32, shape}, value)); };
  return {mark_sharding(all({512, 256}), mesh, P("x")),
          mark_sharding(all({512, 256}), mesh, P(none, "x")), mark_sharding(all({64}), mesh, P()),
          mark_sharding(all({}), mesh, P())};
}

void loop() {
  say(cat("process ", rank(), " has pid ", ::getpid()));
  State state = state_of(0);
  Mesh mesh = line();
  auto step = jit(
      [](const State& at) {
        // The mean of equal elements: the processes need one another in each step.
        Tensor next = mean(at.weights) + 1;
        return State{at.weights * 0 + next, at.moments * 0 + next, at.bias * 0 + next,
                     at.number + 1};
      },
      {.name = "step", .donate = {0}});
  io::Saving saving;
  for (int number = 0;; ++number) {
    saving.wait().value();
    if (rank() == 0 && number > 0) say(cat("saved ", number - 1));
    saving = io::save_async(path, state);
    state = step(state);
  }
}

void check_loop() {
  State like = state_of(0);
  State state = io::restore(path, like).value();
  auto number = state.number.item<float>();
  for (const Tensor& tensor : {state.weights, state.moments, state.bias})
    for (float value : tensor.to_vector<float>())
      if (value != number) wrong(cat("elements ", value, " and ", number, " in one checkpoint"));
  say(cat("step ", number));
}

void report(const Result<void>& saved) {
  say(cat("process ", rank(), ": ", saved.ok() ? "saved" : saved.error().what()));
}

void differ() {
  std::map<std::string, Tensor> tensors = made_tensors();
  if (is_last()) tensors["host"] = from_host(counted(DType::f32, {2, 3}, 0));
  report(io::save(path, tensors));
}

void absent() {
  if (!is_last()) report(io::save(path, made_tensors()));
  processes().barrier("the end").value();
}

void full() {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit small{16, 16};
  if (is_last()) ::setrlimit(RLIMIT_FSIZE, &small);
  report(io::save(path, made_tensors()));
}

void end_async() { (void)io::save_async(path, made_tensors(), {{"note", "known"}}); }

void unasked() { (void)io::save_async("/nonexistent/run", made_tensors()); }

void fail_async() {
  if (!is_last()) {
    processes().barrier("never").value();
    return;
  }
  std::map<std::string, Tensor> tensors{{"x", from_host(counted(DType::f32, {2}, 0))}};
  (void)io::save_async(path + ".alone", tensors, {}, {.this_process_only = true});
  (void)io::save_async(path, tensors);
  throw InternalError("on purpose");
}

void save_alone() {
  if (is_last()) {
    std::map<std::string, Tensor> tensors = made_tensors();
    Result<void> saved =
        io::save(path, {{"rows", tensors.at("rows")}}, {}, {.this_process_only = true});
    report(saved);
    io::save(path, {{"copies", tensors.at("copies")}, {"host", tensors.at("host")}}, {},
             {.this_process_only = true})
        .value();
  } else {
    (void)made_tensors();
  }
}

const std::map<std::string, void (*)()> kCommands = {
    {"save", save},
    {"save-async", save_async},
    {"save-alone", save_alone},
    {"check", check},
    {"copies", copies},
    {"reads", reads},
    {"loop", loop},
    {"check-loop", check_loop},
    {"differ", differ},
    {"absent", absent},
    {"full", full},
    {"end-async", end_async},
    {"unasked", unasked},
    {"fail-async", fail_async},
};

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count < 4) return 2;
    devices = std::atoi(arguments[1]);
    path = arguments[2];
    (void)initialize_processes().value();
    configure_runtime({.cpu_devices = devices}).value();
    for (int i = 3; i < count; ++i) kCommands.at(arguments[i])();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "process %d: %s\n", processes().rank(), error.what());
    return 1;
  }
}
