// A program over N devices, which check_across.py and check_devices.py start in one process and in
// several, and whose output must be the same. usage: across_program DEVICES SCENARIO...
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "meshard/meshard.h"

namespace {

using namespace meshard;

int devices = 1;
bool is_first() { return processes().rank() == 0; }

/// Whether a device is in this process.
bool has(int device) {
  if (processes().size() == 1) return true;
  const ProcessInfo& own = processes().members()[static_cast<std::size_t>(processes().rank())];
  return device >= own.first_device && device < own.first_device + own.local_devices;
}

void say(const std::string& text) {
  if (!is_first()) return;
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

/// The values of a tensor, which all processes read.
void show(const char* name, const Tensor& tensor) {
  std::vector<double> values = tensor.to_host().astype(DType::f64).to_vector<double>();
  std::string text = cat(name, " ", tensor.type(), ":");
  for (double value : values) append(text, cat(" ", value));
  say(text);
}

Mesh line() { return Mesh({{"x", devices}}); }
Mesh grid() { return Mesh({{"a", devices / 2}, {"b", 2}}); }

Tensor numbers(Shape shape, double scale = 1) {
  std::vector<float> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(scale * std::sin(1.0 + static_cast<double>(i)));
  return from_host(std::move(values), std::move(shape));
}

struct Model {
  Tensor up, down;
  MESHARD_FIELDS(up, down)
};

void train() {
  Mesh mesh = grid();
  Model model{mark_sharding(numbers({12, 16}, 0.4), mesh, P(none, "b")),
              mark_sharding(numbers({16, 5}, 0.4), mesh, P("b", none))};
  optim::Adam adam{.rate = 1e-2};
  auto state = optim::init(adam, model);
  auto step = jit(
      [&](Model now, decltype(state) moments, Tensor in, Tensor out) {
        auto loss_of = [&](Model at) {
          return mean(square(matmul(tanh(matmul(in, at.up)), at.down) - out));
        };
        auto [loss, gradient] = value_and_grad(loss_of)(now);
        auto [next, after] = optim::update(adam, now, gradient, moments);
        return std::tuple(next, after, loss);
      },
      {.name = "train", .donate = {0, 1}});
  for (int i = 0; i < 12; ++i) {
    Tensor x = mark_sharding(numbers({16, 12}, 1 + i % 3), mesh, P("a", none));
    Tensor y = mark_sharding(numbers({16, 5}, 1), mesh, P("a", none));
    auto [next, after, loss] = step(model, state, x, y);
    model = next;
    state = after;
    say(cat("loss ", loss.item<float>()));
  }
  show("up", model.up);
}

void uneven() {
  Mesh mesh = line();
  Tensor x = mark_sharding(numbers({7, 3}), mesh, P("x", none));
  Tensor y = jit([](Tensor in) { return cumulative_sum(in * 2, 0) - mean(in); })(x);
  show("uneven", y);
  show("first rows", index(y, {range(0, 2), whole}));
  show("gradient", grad([](Tensor in) { return sum(square(in) * 0.5f); })(x));
}

void resharding() {
  Mesh mesh = grid();
  Tensor x = mark_sharding(numbers({8, 6}), mesh, P("a", "b"));
  show("marked again", mark_sharding(x, mesh, P("b", "a")));
  show("columns", mark_sharding(x, mesh, P(none, axes("a", "b"))));
  show("replicated", mark_sharding(x, mesh, P(none, none)) + 1);
  show("transposed", matmul(matrix_transpose(x), x));
}

void submeshes() {
  Mesh mesh({{"x", 2}}, {1, 3}), all = line();
  Tensor a = mark_sharding(numbers({4, 3}), mesh, P("x", none));
  Tensor b = tanh(a) * 2;
  sync(b);
  // The others know nothing of this.
  if (has(1) || has(3))
    if (float most = max(abs(b)).item<float>(); most < 1.5f || most > 2)
      throw InternalError(cat("the largest is ", most));
  std::optional<HostArray> at_0 = gather_to(b, 0);
  if (at_0) say(cat("gathered ", at_0->to_string()));
  say(cat("everywhere ", gather(b).to_string()));
  Tensor moved = transfer(b, Mesh({{"y", 2}}, {0, 2}), P(none, "y"));
  say(cat("moved ", gather(exp(moved)).to_string()));
  show("spread", transfer(b, all, P("x", none)) + 1);
  Tensor loss = sum(b);
  show("a number elsewhere", mark_sharding(numbers({4}), all, P("x")) * loss);
}

void explicit_axes() {
  Mesh mesh({{"a", devices / 2, AxisKind::kExplicit}, {"b", 2, AxisKind::kExplicit}});
  Tensor x = mark_sharding(numbers({8, 4}), mesh, P("a", none));
  Tensor w = mark_sharding(numbers({4, 6}), mesh, P(none, "b"));
  Tensor v = mark_sharding(numbers({6, 4}), mesh, P("b", none));
  auto f = jit([&](Tensor in, Tensor first, Tensor second) {
    Tensor hidden = tanh(matmul(in, first));
    return matmul(hidden, second, Sharding(mesh, P("a", none)));
  });
  Tensor y = f(x, w, v);
  say(cat("sharded ", y.sharding()->spec()));
  show("explicit", y);
}

void loops() {
  Mesh mesh = grid();
  Tensor x = mark_sharding(numbers({8, 8}), mesh, P("a", "b"));
  auto f = jit([](Tensor in) {
    auto is_large = [](Tensor at) { return greater(max(abs(at)), 0.01f); };
    return while_loop(
        is_large, [](Tensor at) { return matmul(at, at) * 0.2f; }, in);
  });
  show("while", f(x));
  auto g = jit(grad([](Tensor in) {
    Tensor y = repeat(5, in, [](Tensor at) { return tanh(at) + mean(at); });
    auto squares = [](Tensor at) { return sum(square(at)); };
    return cond(
        greater(sum(y), 0.f), squares, [](Tensor at) { return sum(at); }, y);
  }));
  show("gradient of a loop", g(x));
}

void parts() {
  Mesh mesh = line();
  ShardedTensor table = ShardedTensor::from_callback(
      {DType::f32, {devices * 2 + 1, 3}}, Sharding(mesh, P("x", none)), [](const Box& box) {
        return HostArray::full({DType::f32, box_shape(box)}, double(box[0].start));
      });
  show("from_callback", table.global() * 2);
  std::vector<Tensor> locals;
  for (int i = 0; i < devices; ++i)
    if (has(i)) locals.push_back(full({2, 2}, i));
  ShardedTensor joined = ShardedTensor::from_local(locals, mesh, P("x", none));
  show("from_local", joined.global() + 1);
  for (const LocalShard& shard : joined.local_shards())
    if (shard.device_id() == 0) say(shard.to_string());
  if (joined.local_shards().size() != locals.size()) throw InternalError("other shards");
}

void lazy() {
  Mesh mesh = line();
  Tensor x = mark_sharding(ones({devices, 4}), mesh, P("x", none));
  Tensor kept = x * 3;
  for (int i = 0; i < 3; ++i) {
    x = x + kept * 0.5f;
    say(cat("sum ", sum(x).item<float>()));
  }
  show("kept", kept);
  Tensor noise = random::normal(random::key(7), {devices, 4});
  show("noise", mark_sharding(noise, mesh, P("x")) + x);
  x += 1;
  show("in place", x);
}

void collectives() {
  Mesh mesh = grid();
  Tensor x = mark_sharding(numbers({8, 4}), mesh, P("a", "b"));
  show("all_reduce", all_reduce(x, mesh, "b"));
  show("all_gather", all_gather(x, mesh, "a"));
  show("all_to_all", all_to_all(x, mesh, "b", 0, 1));
  Tensor integers = astype(x * 10, DType::i32);
  show("integers", matmul(matrix_transpose(integers), integers));
  show("any", any(greater(x, 0.99f), 0));
}

void printing() {
  Mesh mesh = line();
  Tensor x = mark_sharding(arange(devices * 2.0), mesh, P("x"));
  say(cat(x));
  say(x.placement());
  say(cat(sum(x)));
}

/// Every process prints the lines of its own device, if that is the first with the value.
void host_calls() {
  Mesh mesh = line();
  Tensor x = mark_sharding(arange(devices * 2.0), mesh, P("x"));
  auto f = jit([](Tensor in) {
    debug_print("sum {} of {}", sum(in), in);
    return in * 2;
  });
  show("printed", f(x));
  auto halves = [](std::span<const HostArray> of) {
    HostArray half = HostArray::uninitialized(of[0].type());
    for (std::int64_t i = 0; i < half.size(); ++i)
      half.mutable_data<float>()[static_cast<std::size_t>(i)] =
          of[0].data<float>()[static_cast<std::size_t>(i)] / 2;
    return std::vector{half};
  };
  auto g = jit([&](Tensor in) {
    return pure_callback(halves, {in}, {{DType::f32, in.shape()}})[0] + sum(in);
  });
  show("callback", g(x));
}

/// A NaN on one device is the same error in all processes.
void nans() {
  Mesh mesh = line();
  Tensor x = mark_sharding(arange(devices * 2.0), mesh, P("x"));
  set_check_nans(true);
  auto f = jit([](Tensor in) { return exp(log(in - 1)) * 2; });
  try {
    (void)f(x);
    std::printf("no error in process %d\n", processes().rank());
  } catch (const Error& error) {
    std::printf("process %d: %s\n", processes().rank(), error.what());
  }
  set_check_nans(false);
  show("after", x + 1);
}

/// A function that fails in one process: this process ends, and the others with it.
void failing_callback() {
  Tensor x = mark_sharding(arange(devices * 2.0), line(), P("x"));
  bool fails = processes().rank() == processes().size() - 1;
  auto refuse = [fails](std::span<const HostArray> of) {
    if (fails) throw Error(ErrorCode::kDataLoss, "the function fails here");
    return std::vector{of[0]};
  };
  auto f = jit([&](Tensor in) {
    return sum(pure_callback(refuse, {in}, {{DType::f32, in.shape()}})[0] * in);
  });
  std::printf("%g\n", static_cast<double>(f(x).item<float>()));
}

/// Two programs that the last process launches in another order. Their collectives fit each other,
/// so nothing hangs, and the values are wrong.
void out_of_order() {
  Tensor x = mark_sharding(arange(devices * 2.0), line(), P("x"));
  auto f = jit([](Tensor in) { return in * sum(in); }, {.name = "first"});
  auto g = jit([](Tensor in) { return in * sum(exp(in)); }, {.name = "second"});
  f(x), g(x);
  bool last = processes().rank() == processes().size() - 1;
  for (int i = 0; i < 1'000'000; ++i) last ? sync(g(x), f(x)) : sync(f(x), g(x));
}

/// The same with collectives that do not fit.
/// The steps of a loop, `fewer` less in the last process.
void loop(int steps, int fewer, const std::function<void(int, const Tensor&)>& after) {
  Tensor x = mark_sharding(arange(static_cast<double>(8 * devices)), line(), P("x"));
  auto step = jit([](Tensor now) { return now - mean(now); }, {.name = "step"});
  if (processes().rank() == processes().size() - 1) steps -= fewer;
  for (int i = 0; i < steps; ++i) {
    x = step(x);
    sync(x);
    after(i, x);
  }
}
bool is_last() { return processes().rank() == processes().size() - 1; }

void ends_early() {
  loop(8, 2, [](int, const Tensor&) {});
}
void evaluates_alone() {
  loop(8, 0, [](int i, const Tensor& x) {
    if (i == 5 && is_last()) std::printf("%g\n", static_cast<double>(sum(x).item<float>()));
  });
}
void saves_alone() {
  loop(8, 0, [](int i, const Tensor& x) {
    if (i == 5 && is_last()) io::save("/tmp/meshard_never_saved.safetensors", {{"x", x}}).value();
  });
}
void other_barrier() {
  loop(2, 0, [](int, const Tensor&) {});
  processes().barrier(is_last() ? "odd" : "even").value();
}
void waits_for_a_value() {
  loop(2, 0, [](int, const Tensor&) {});
  if (is_first()) (void)processes().store().get("never").value();
}
/// Takes long, also between collectives: nobody is lost.
void slow_process() {
  loop(4, 0, [](int i, const Tensor&) {
    if (i == 1 && is_last()) std::this_thread::sleep_for(std::chrono::seconds(5));
  });
  say("done");
}

void stuck() {
  Tensor x = mark_sharding(arange(devices * 1000.0), line(), P("x"));
  auto f = jit([](Tensor in) { return in * sum(in); }, {.name = "first"});
  auto g =
      jit([](Tensor in) { return mark_sharding(tanh(in), line(), P(none)); }, {.name = "second"});
  f(x), g(x);
  bool last = processes().rank() == processes().size() - 1;
  for (int i = 0; i < 1'000'000; ++i) last ? sync(g(x), f(x)) : sync(f(x), g(x));
}

void hosts() {
  std::string text;
  for (const ProcessInfo& member : processes().members()) append(text, cat(member.host, " "));
  say(text);
}

/// Trains until the process ends.
void endless() {
  Mesh mesh = grid();
  Model model{mark_sharding(numbers({12, 16}, 0.4), mesh, P(none, "b")),
              mark_sharding(numbers({16, 5}, 0.4), mesh, P("b", none))};
  auto step = jit(
      [&](Model now, Tensor in, Tensor out) {
        auto loss_of = [&](Model at) {
          return mean(square(matmul(tanh(matmul(in, at.up)), at.down) - out));
        };
        auto [loss, gradient] = value_and_grad(loss_of)(now);
        return std::pair(Model{now.up - gradient.up * 0.01f, now.down - gradient.down * 0.01f},
                         loss);
      },
      {.name = "train", .donate = {0}});
  Tensor x = mark_sharding(numbers({16, 12}), mesh, P("a", none));
  Tensor y = mark_sharding(numbers({16, 5}), mesh, P("a", none));
  const ProcessInfo& own = processes().members()[static_cast<std::size_t>(processes().rank())];
  for (int i = 0;; ++i) {
    auto [next, loss] = step(model, x, y);
    model = next;
    if (i == 0 || i % 50 == 49) (void)loss.item<float>();
    if (i == 0) std::printf("%s trains\n", own.to_string().c_str()), std::fflush(stdout);
  }
}

/// Meshes with some of a process's devices, with all of them, and in other orders.
void some_devices() {
  const std::vector<std::vector<std::int64_t>> sets = {{0, 2}, {1, 3}, {0, 1, 2}, {3, 0, 2, 1},
                                                       {2, 3}, {0},    {3},       {1, 2}};
  Tensor total = mark_sharding(zeros({12, 2}), line(), P("x", none));
  for (int turn = 0; turn < 2; ++turn)
    for (const auto& ids : sets) {
      Mesh mesh({{"s", static_cast<std::int64_t>(ids.size())}}, ids);
      Tensor x = mark_sharding(numbers({12, 2}, 1 + turn), mesh, P("s", none));
      Tensor y = jit([](Tensor in) { return cumulative_sum(in, 0) + max(in); })(x);
      total = total + transfer(y, line(), P("x", none));
      if (has(static_cast<int>(ids[0]))) sync(y);
    }
  show("total", total);
  Mesh wide({{"a", 2}, {"b", 2}}), turned({{"b", 2}, {"a", 2}}, {3, 1, 2, 0});
  Tensor x = mark_sharding(numbers({4, 4}), wide, P("a", "b"));
  show("on a turned mesh", mark_sharding(x * 2, turned, P("a", "b")) + x);
  Tensor copies = transfer(x, Mesh({{"r", 3}}, {1, 2, 3}), P(none, none));
  say(cat("copies ", gather(copies * 3).to_string()));
  // Large enough to be copied by the host where all devices are in one process.
  Tensor large = mark_sharding(numbers({512, 512}), Mesh({{"l", 2}}, {2, 3}), P("l", none));
  Tensor columns = mark_sharding(large, Mesh({{"l", 2}}, {2, 3}), P(none, "l"));
  say(cat("large ", gather(index(columns, {whole, range(0, 2)}) + 1).to_string()));
}

/// Each row of the mesh does its own number of rounds.
void rounds() {
  Mesh mesh = grid();
  Tensor x = mark_sharding(numbers({8, 6}), mesh, P("a", "b"));
  auto f = jit(manual(mesh, P("a", "b"), P("a", "b"), [](Tensor part) {
    using State = std::pair<Tensor, Tensor>;
    auto more = [](const State& at) { return greater(at.first, 0); };
    auto round = [](const State& at) {
      const auto& [left, now] = at;
      return std::pair(left - 1, all_reduce(now, "b") * 0.25f + mean(all_gather(now, "b", 1)));
    };
    return while_loop(more, round, State(axis_index("a") * 3 + 1, part)).second;
  }));
  show("rounds", f(x));
}

/// Writes `model` into the working directory.
void checkpoint() {
  Mesh mesh = grid();
  Model model{mark_sharding(numbers({12, 16}), mesh, P("a", "b")),
              mark_sharding(numbers({7, 5}), mesh, P("b", none))};
  const std::string path = "model";
  io::save(path, model).value();
  (void)processes().barrier("saved").value();
  Model like{mark_sharding(zeros({12, 16}), line(), P(none, "x")),
             mark_sharding(zeros({7, 5}), line(), P("x", none))};
  Model restored = io::restore(path, like).value();
  show("up", restored.up - model.up);
  show("down", restored.down);
  // One process has all of it, and writes it alone.
  Mesh last({{"l", 2}}, {devices - 2, devices - 1});
  Tensor some = mark_sharding(numbers({8, 2}), last, P("l", none));
  io::save(path, {{"some", some}}).value();
  (void)processes().barrier("saved again").value();
  show("some", mark_sharding(io::load(path).value().at("some"), line(), P("x", none)));
}

void disk_hits() { say(cat("disk hits: ", runtime_counters().disk_hits)); }

/// The last process runs another op.
void differ() {
  Tensor x = mark_sharding(numbers({8}), line(), P("x"));
  bool last = processes().rank() == processes().size() - 1;
  auto f = jit(
      [&](Tensor in) {
        Tensor y = tanh(in);
        if (last) return exp(y) * sum(y);
        return log(y) * sum(y);
      },
      {.name = "differs"});
  try {
    f(x);
    std::printf("no error in process %d\n", processes().rank());
  } catch (const Error& error) {
    std::printf("process %d: %s\n", processes().rank(), error.what());
  }
}

/// The last process evaluates something else.
void other_program() {
  Tensor x = mark_sharding(numbers({8}), line(), P("x"));
  say(cat("first ", sum(x).item<float>()));
  try {
    if (processes().rank() == processes().size() - 1) {
      Tensor y = x * 2;
      sync(y);
    } else {
      (void)sum(exp(x)).item<float>();
    }
    std::printf("no error in process %d\n", processes().rank());
  } catch (const Error& error) {
    std::printf("process %d: %s\n", processes().rank(), error.what());
  }
}

/// The last process runs no second program.
void absent() {
  Tensor x = mark_sharding(numbers({8}), line(), P("x"));
  say(cat("first ", sum(x).item<float>()));
  if (processes().rank() == processes().size() - 1) {
    (void)processes().barrier("the end").value();
    return;
  }
  try {
    (void)sum(exp(x)).item<float>();
    std::printf("no error in process %d\n", processes().rank());
  } catch (const Error& error) {
    std::printf("process %d: %s\n", processes().rank(), error.what());
  }
  (void)processes().barrier("the end").value();
}

/// The last process has other host data.
void other_data() {
  float last = processes().rank() == processes().size() - 1 ? 2 : 1;
  try {
    mark_sharding(from_host(HostArray::full({DType::f32, {8}}, last)), line(), P("x"));
    std::printf("no error in process %d\n", processes().rank());
  } catch (const Error& error) {
    std::printf("process %d: %s\n", processes().rank(), error.what());
  }
}

const std::map<std::string, void (*)()> kScenarios = {
    {"train", train},
    {"uneven", uneven},
    {"resharding", resharding},
    {"submeshes", submeshes},
    {"explicit_axes", explicit_axes},
    {"loops", loops},
    {"parts", parts},
    {"lazy", lazy},
    {"collectives", collectives},
    {"printing", printing},
    {"host_calls", host_calls},
    {"nans", nans},
    {"failing_callback", failing_callback},
    {"out_of_order", out_of_order},
    {"stuck", stuck},
    {"ends_early", ends_early},
    {"evaluates_alone", evaluates_alone},
    {"saves_alone", saves_alone},
    {"other_barrier", other_barrier},
    {"waits_for_a_value", waits_for_a_value},
    {"slow_process", slow_process},
    {"endless", endless},
    {"hosts", hosts},
    {"some_devices", some_devices},
    {"rounds", rounds},
    {"checkpoint", checkpoint},
    {"disk_hits", disk_hits},
    {"differ", differ},
    {"other_program", other_program},
    {"absent", absent},
    {"other_data", other_data},
};

}  // namespace

int main(int count, char** arguments) {
  try {
    devices = count > 1 ? std::atoi(arguments[1]) : 0;
    (void)initialize_processes().value();
    configure_runtime({.cpu_devices = devices}).value();
    for (int i = 2; i < count; ++i) {
      say(cat("== ", arguments[i]));
      kScenarios.at(arguments[i])();
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "process %d: %s\n", processes().rank(), error.what());
    return 1;
  }
}
