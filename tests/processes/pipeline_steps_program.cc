// Pipelines over devices of several processes, which check_pipeline_steps.py starts under mpirun.
// usage: pipeline_steps_program SCENARIO ARGUMENTS...
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "meshard/meshard.h"

namespace {

using namespace meshard;

constexpr std::int64_t kVocabulary = 9, kWidth = 12, kLength = 3, kRows = 24;
constexpr int kSteps = 20, kMicrobatches = 4, kLayers = 6;

void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

Tensor numbers(Shape shape, int seed) {
  std::vector<float> all(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = 0.03f * static_cast<float>((static_cast<int>(i) * 7 + seed * 13) % 23 - 11);
  return from_host(std::move(all), std::move(shape));
}

// A language model: an embedding, layers with a skip around each, and logits.
struct Layer {
  Tensor weight, bias;
  MESHARD_FIELDS(weight, bias)
  Tensor operator()(const Tensor& h) const { return h + tanh(matmul(h, weight) + bias); }
};

struct Part {
  std::vector<Tensor> table;  // of the first and the last part
  std::vector<Layer> layers;
  MESHARD_FIELDS(table, layers)
  Tensor through(Tensor h) const {
    for (const Layer& layer : layers) h = layer(h);
    return h;
  }
};

struct Batch {
  Tensor tokens, next;
  MESHARD_FIELDS(tokens, next)
};

Tensor embedded(const Tensor& tokens, const Tensor& table) {
  return matmul(one_hot(tokens, kVocabulary), table);
}

Tensor loss_of(const Tensor& h, const Tensor& table, const Tensor& next) {
  return cross_entropy(matmul(h, matrix_transpose(table)), next);
}

Batch batch_of(int step) {
  std::vector<std::int32_t> tokens, next;
  for (std::int64_t i = 0; i < kRows * kLength; ++i) {
    auto at = static_cast<std::int32_t>((i * 5 + i / 7 + step) % kVocabulary);
    tokens.push_back(at);
    next.push_back((at * 2 + 1) % static_cast<std::int32_t>(kVocabulary));
  }
  return {from_host(std::move(tokens), {kRows, kLength}),
          from_host(std::move(next), {kRows, kLength})};
}

std::vector<Batch> microbatches_of(const Batch& batch) {
  std::vector<Batch> all;
  constexpr std::int64_t rows = kRows / kMicrobatches;
  for (std::int64_t m = 0; m < kMicrobatches; ++m) {
    auto part = [&](const Tensor& whole) {
      return from_host(whole.to_host().slice(Box{{m * rows, (m + 1) * rows}, {0, kLength}}));
    };
    all.push_back({part(batch.tokens), part(batch.next)});
  }
  return all;
}

struct Options {
  bool tied = false;
  double clip = 0;
  // Called in each forward pass of the last stage, in its processes.
  std::function<void()> forward = {};
};

std::vector<Layer> layers() {
  std::vector<Layer> all;
  for (int i = 0; i < kLayers; ++i)
    all.push_back({numbers({kWidth, kWidth}, i), numbers({kWidth}, i + 50)});
  return all;
}

// What a training run gives.
struct Outcome {
  std::vector<double> losses, parameters;
  void add(const HostArray& values) {
    for (double value : values.astype(DType::f64).to_vector<double>()) parameters.push_back(value);
  }
};

const optim::AdamW kOptimizer{.rate = 0.01, .decay_rank = 2};

// Without stages, computed by each process for itself.
Outcome undivided(const Options& options) {
  Part model{{numbers({kVocabulary, kWidth}, 7)}, layers()};
  if (!options.tied) model.table.push_back(numbers({kVocabulary, kWidth}, 8));
  auto state = optim::init(kOptimizer, model);
  auto step = jit([&](const Part& now, const decltype(state)& before, const Batch& batch) {
    auto [loss, gradients] = value_and_grad([](const Part& all, const Batch& given) {
      Tensor h = all.through(embedded(given.tokens, all.table.front()));
      return loss_of(h, all.table.back(), given.next);
    })(now, batch);
    if (options.clip > 0) gradients = optim::clip_by_global_norm(gradients, options.clip).first;
    return std::pair(loss, optim::update(kOptimizer, now, gradients, before));
  });
  Outcome outcome;
  for (int k = 0; k < kSteps; ++k) {
    auto [loss, next] = step(model, state, batch_of(k));
    outcome.losses.push_back(loss.template item<float>());
    model = next.first;
    state = next.second;
  }
  outcome.add(model.table.front().to_host());
  for (const Layer& layer : model.layers) {
    outcome.add(layer.weight.to_host());
    outcome.add(layer.bias.to_host());
  }
  outcome.add(model.table.back().to_host());
  return outcome;
}

using Workers = std::vector<std::vector<std::int64_t>>;  // the devices of each

// `0/1,2,3`
Workers workers_of(const std::string& text) {
  Workers all(1, {0});
  for (char each : text)
    if (each == '/')
      all.push_back({0});
    else if (each == ',')
      all.back().push_back(0);
    else
      all.back().back() = all.back().back() * 10 + (each - '0');
  return all;
}

// Zeros, for which the program calls a function.
Tensor observed(const Tensor& h, const std::function<void()>& function) {
  auto call = [function](std::span<const HostArray> of) {
    function();
    return std::vector{HostArray::zeros(of[0].type())};
  };
  return stop_gradient(pure_callback(call, {h}, {h.type()})[0]);
}

std::vector<PipelineStage> stages_of(const Workers& workers, int count, const Options& options) {
  std::vector<Layer> all = layers();
  Tensor table = numbers({kVocabulary, kWidth}, 7);
  Tensor other = options.tied ? table : numbers({kVocabulary, kWidth}, 8);
  std::vector<PipelineStage> stages;
  for (int s = 0; s < count; ++s) {
    const auto& devices = workers[static_cast<std::size_t>(s) % workers.size()];
    Mesh mesh({{"data", std::ssize(devices)}}, devices);
    auto at = [&](int stage) { return kLayers * stage / count; };
    Part part{{}, {all.begin() + at(s), all.begin() + at(s + 1)}};
    for (Layer& layer : part.layers)
      layer.weight = mark_sharding(layer.weight, mesh, P(none, "data"));
    if (s == 0) {
      part.table.push_back(table);
      stages.emplace_back(mesh, part, [mesh](const Part& own, const Batch& batch) {
        Tensor tokens = mark_sharding(batch.tokens, mesh, P("data", none));
        return own.through(embedded(tokens, own.table[0]));
      });
    } else if (s + 1 < count) {
      stages.emplace_back(mesh, part, [](const Part& own, const Tensor& h, const Batch&) {
        return own.through(h);
      });
    } else {
      part.table.push_back(other);
      stages.emplace_back(
          mesh, part,
          [forward = options.forward](const Part& own, const Tensor& h, const Batch& batch) {
            Tensor in = forward ? h + observed(stop_gradient(h), forward) : h;
            return loss_of(own.through(in), own.table[0], batch.next);
          });
    }
  }
  return stages;
}

PipelineSchedule schedule_of(const std::string& name, int workers) {
  if (name == "gpipe") return gpipe(workers, kMicrobatches);
  if (name == "1f1b") return one_forward_one_backward(workers, kMicrobatches);
  if (name == "interleaved") return interleaved(workers, 2, kMicrobatches);
  if (name == "zero_bubble") return zero_bubble(workers, kMicrobatches);
  throw InternalError(cat("no schedule ", name));
}

Outcome divided(const Workers& workers, const PipelineSchedule& schedule, const Options& options) {
  const int count = schedule.stages();
  Pipeline pipeline(stages_of(workers, count, options), schedule,
                    {.optimizer = kOptimizer, .clip_norm = options.clip});
  Outcome outcome;
  std::optional<double> last;
  for (int k = 0; k < kSteps; ++k) {
    Tensor loss = pipeline.step(microbatches_of(batch_of(k)));
    // Each process reads it, and not all in each step.
    if (k % processes().size() == processes().rank() || k + 1 == kSteps) last = loss.item<float>();
    outcome.losses.push_back(gather(loss).item<float>());
    if (last && *last != outcome.losses.back()) throw InternalError("the losses differ");
    last.reset();
  }
  std::vector<Part> parts;
  for (int s = 0; s < count; ++s) parts.push_back(pipeline.parameters<Part>(s));
  outcome.add(gather(parts.front().table[0]));
  for (const Part& part : parts)
    for (const Layer& layer : part.layers) {
      outcome.add(gather(layer.weight));
      outcome.add(gather(layer.bias));
    }
  outcome.add(gather(parts.back().table[0]));
  return outcome;
}

void expect_equal(const char* what, const std::vector<double>& got,
                  const std::vector<double>& expected) {
  if (got.size() != expected.size())
    throw InternalError(cat(got.size(), " ", what, ", not ", expected.size()));
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - expected[i]) <= 1e-6 * std::max(1.0, std::abs(expected[i]))))
      throw InternalError(cat(what, " number ", i, " is ", got[i], ", not ", expected[i]));
}

/// training WORKERS SCHEDULE...: losses and parameters are those of the model without stages, in
/// each process.
void training(const std::vector<std::string>& arguments) {
  const Workers workers = workers_of(arguments.at(0));
  for (const Options& options : {Options{}, Options{.tied = true, .clip = 0.2}}) {
    const Outcome expected = undivided(options);
    if (!(expected.losses.back() < expected.losses.front() - 0.1))
      throw InternalError("the model learns nothing");
    for (std::size_t i = 1; i < arguments.size(); ++i) {
      PipelineSchedule schedule = schedule_of(arguments[i], static_cast<int>(workers.size()));
      Outcome got = divided(workers, schedule, options);
      expect_equal("losses", got.losses, expected.losses);
      expect_equal("parameters", got.parameters, expected.parameters);
      say(cat("process ", processes().rank(), " has trained by ", schedule.name(),
              options.tied ? ", tied" : ""));
    }
  }
}

// What a step throws, on one line.
std::string error_of(Pipeline& pipeline) {
  try {
    pipeline.step(microbatches_of(batch_of(0)));
  } catch (const std::exception& error) {
    std::string text = error.what();
    std::ranges::replace(text, '\n', '|');
    return text;
  }
  return "no error";
}

void say_error(const char* what, const std::string& text) {
  say(cat("process ", processes().rank(), " ", what, ": ", text));
}

/// failing WORKERS PROCESS: the last stage fails in its second forward pass in this process.
void failing(const std::vector<std::string>& arguments) {
  const Workers workers = workers_of(arguments.at(0));
  const bool fails = processes().rank() == std::stoi(arguments.at(1));
  Options options;
  options.forward = [fails, calls = std::make_shared<int>(0)] {
    if (++*calls == 2 && fails) throw Error(ErrorCode::kDataLoss, "the function fails here");
  };
  const int count = static_cast<int>(workers.size());
  Pipeline pipeline(stages_of(workers, count, options), one_forward_one_backward(count, 4),
                    {.optimizer = kOptimizer});
  say_error("fails", error_of(pipeline));
  say_error("fails again", error_of(pipeline));
  // Nothing has changed.
  const Part first = pipeline.parameters<Part>(0);
  if (processes().rank() == 0) {
    Outcome now, before;
    for (std::size_t i = 0; i < first.layers.size(); ++i) {
      now.add(first.layers[i].bias.to_host());
      before.add(layers()[i].bias.to_host());
    }
    expect_equal("parameters", now.parameters, before.parameters);
  }
}

/// absent WORKERS PROCESS: this process takes one step less than the others.
void absent(const std::vector<std::string>& arguments) {
  const Workers workers = workers_of(arguments.at(0));
  const int count = static_cast<int>(workers.size());
  Pipeline pipeline(stages_of(workers, count, {}), one_forward_one_backward(count, 4),
                    {.optimizer = kOptimizer});
  pipeline.step(microbatches_of(batch_of(0)));
  if (processes().rank() != std::stoi(arguments.at(1))) say_error("fails", error_of(pipeline));
  (void)processes().barrier("the end").value();
}

/// ahead WORKERS: one process after the other launches all of its work before the next one has
/// begun. Nothing that a process launches waits for another one.
void ahead(const std::vector<std::string>& arguments) {
  const Workers workers = workers_of(arguments.at(0));
  const int count = static_cast<int>(workers.size());
  Pipeline pipeline(stages_of(workers, count, {}), one_forward_one_backward(count, 4));
  const auto microbatches = microbatches_of(batch_of(0));
  const float expected = pipeline.backward(microbatches).item<float>();
  const int size = processes().size();
  for (int first = 0; first < size; ++first) {
    Tensor loss;
    for (int turn = 0; turn < size; ++turn) {
      if ((first + turn) % size == processes().rank()) loss = pipeline.backward(microbatches);
      processes().barrier("turn", std::chrono::seconds(60)).value();
    }
    if (loss.item<float>() != expected) throw InternalError("another loss");
  }
  say(cat("process ", processes().rank(), " was ahead"));
}

// Draws the same in each process.
struct Draw : std::mt19937_64 {
  using std::mt19937_64::mt19937_64;
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>((*this)() % static_cast<std::uint64_t>(high - low + 1));
  }
  Sharding sharding(const char* first, const char* second, std::size_t rank, int devices) {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(devices));
    std::iota(ids.begin(), ids.end(), 0);
    for (std::size_t i = ids.size(); i > 1; --i)
      std::swap(ids[i - 1], ids[static_cast<std::size_t>(between(0, std::int64_t(i) - 1))]);
    std::int64_t rows = between(1, std::min(3, devices)), columns = between(1, devices / rows);
    ids.resize(static_cast<std::size_t>(rows * columns));
    std::vector<AxisList> split(rank);
    for (const char* name : {first, second})
      if (auto d = static_cast<std::size_t>(between(0, std::int64_t(rank))); d < rank)
        split[d].push_back(AxisRef(name));
    std::vector<DimensionSpec> dimensions;
    for (AxisList& each : split) dimensions.emplace_back(std::move(each));
    return Sharding(Mesh({{first, rows}, {second, columns}}, ids),
                    PartitionSpec(std::move(dimensions)));
  }
};

struct Moved {
  Tensor tensor;
  HostArray whole;
  std::string what;
};

// Each device of this process has its part of the value.
void expect_placed(const Moved& moved) {
  const Mesh& mesh = moved.tensor.sharding()->mesh();
  const ProcessInfo& own = processes().members()[static_cast<std::size_t>(processes().rank())];
  std::int64_t count = 0;
  for (std::int64_t id : mesh.device_ids())
    count += processes().size() == 1 ||
             (id >= own.first_device && id < own.first_device + own.local_devices);
  const std::vector<LocalShard> shards = local_shards(moved.tensor);
  if (std::ssize(shards) != count) throw InternalError(cat(shards.size(), " shards, not ", count));
  for (const LocalShard& shard : shards)
    if (!(shard.data() == moved.whole.slice(shard.box())))
      throw InternalError(cat(moved.what, ": ", shard.to_string(), " is wrong"));
}

/// transfers SEED COUNT DEVICES: values of random types move between random shardings. Several are
/// under way at the same time; the processes wait for them in orders of their own.
void transfers(const std::vector<std::string>& arguments) {
  Draw draw(std::stoull(arguments.at(0)));
  const int count = std::stoi(arguments.at(1)), devices = std::stoi(arguments.at(2));
  const DType dtypes[] = {DType::f32, DType::bf16, DType::bool_, DType::i8,
                          DType::u64, DType::c64,  DType::f64,   DType::f8e4m3fn};
  std::mt19937 own(static_cast<unsigned>(processes().rank()));
  std::vector<Moved> under_way;
  for (int k = 0; k < count; ++k) {
    const auto rank = static_cast<std::size_t>(draw.between(0, 3));
    Dimensions sizes;
    for (std::size_t d = 0; d < rank; ++d) sizes.push_back(draw.between(1, k % 8 == 0 ? 60 : 7));
    const DType dtype = dtypes[draw.between(0, 7)];
    Shape shape(sizes);
    std::vector<float> values(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(k)) % 53);
    HostArray whole = from_host(std::move(values), shape).to_host().astype(dtype);
    const Sharding source = draw.sharding("a", "b", rank, devices),
                   target = draw.sharding("r", "c", rank, devices);
    Tensor placed = mark_sharding(from_host(whole), source);
    Tensor moved = transfer(placed, target);
    // What has been sent may be donated at once.
    auto changed = [](const Tensor& t) {
      return t.dtype() == DType::bool_ ? logical_not(t) : t + t;
    };
    if (k % 16 == 1) jit(changed, {.donate = {0}})(placed);
    under_way.push_back(
        {moved, whole, cat(whole.type(), " from ", source, " to ", target, ", number ", k)});
    if (under_way.size() < 8 && k + 1 < count) continue;
    std::ranges::shuffle(under_way, own);
    for (const Moved& each : under_way) expect_placed(each);
    under_way.clear();
  }
  say(cat("process ", processes().rank(), " has moved ", count, " values"));
}

/// A program without stages, to find out whether there is a plugin.
void plugin(const std::vector<std::string>&) { say(cat(sum(ones({4})).item<float>())); }

const std::map<std::string, void (*)(const std::vector<std::string>&)> kScenarios = {
    {"training", training},   {"failing", failing}, {"absent", absent}, {"ahead", ahead},

    {"transfers", transfers}, {"plugin", plugin},
};

}  // namespace

int main(int count, char** arguments) {
  try {
    (void)initialize_processes().value();
    kScenarios.at(count > 1 ? arguments[1] : "")({arguments + 2, arguments + count});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "process %d: %s\n", processes().rank(), error.what());
    return 1;
  }
}
