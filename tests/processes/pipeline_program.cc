// Trains a pipeline over N devices, which check_pipelines.py starts in one process and in several,
// and whose output must be the same; or transfers random values between random shardings.
// usage: pipeline_program DEVICES STAGES SCHEDULE [tied] [clipped] [even]
//        pipeline_program DEVICES COUNT transfers SEED
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/meshard.h"

namespace {

using namespace meshard;

constexpr int kMicrobatches = 4, kSteps = 20, kWidth = 8;

std::set<std::string> options;
bool has(const char* option) { return options.contains(option); }

void say(const std::string& text) {
  if (processes().rank() != 0) return;
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

// The values, which all processes gather.
void show(const std::string& name, const Tensor& tensor) {
  std::string text = name + ":";
  for (double value : gather(tensor).astype(DType::f64).to_vector<double>())
    append(text, cat(" ", value));
  say(text);
}

Tensor numbers(Shape shape, double scale, double first) {
  std::vector<float> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(scale * std::sin(first + static_cast<double>(i)));
  return from_host(std::move(values), std::move(shape));
}

// Devices of the stages: equal parts, or one device for the first stage and the rest for the
// others, so that a stage may have devices of several processes.
std::vector<Mesh> meshes(int devices, int stages) {
  std::vector<Mesh> all;
  int next = 0;
  for (int s = 0; s < stages; ++s) {
    int left = stages - s, count = (devices - next) / left;
    if (!has("even") && s == 0) count = 1;
    std::vector<std::int64_t> ids;
    for (int i = 0; i < count; ++i) ids.push_back(next++);
    all.emplace_back(std::vector<MeshAxis>{{"x", count}}, ids);
  }
  return all;
}

PipelineSchedule schedule_of(const std::string& name, int stages) {
  if (name == "gpipe") return gpipe(stages, kMicrobatches);
  if (name == "1f1b") return one_forward_one_backward(stages, kMicrobatches);
  if (name == "interleaved") return interleaved(stages / 2, 2, kMicrobatches);
  if (name == "zb-h1") return zero_bubble(stages, kMicrobatches);
  throw InternalError("no schedule " + name);
}

void train(int devices, int stages, const std::string& schedule) {
  // Interleaved: each worker has two stages.
  int workers = schedule == "interleaved" ? stages / 2 : stages;
  std::vector<Mesh> places = meshes(devices, workers);
  Tensor tied = numbers({kWidth, kWidth}, 0.5, 1);
  std::vector<PipelineStage> all;
  for (int s = 0; s < stages; ++s) {
    bool is_first = s == 0, is_last = s + 1 == stages;
    Tensor weight =
        has("tied") && (is_first || is_last) ? tied : numbers({kWidth, kWidth}, 0.5, 1 + s);
    const Mesh& place = places[static_cast<std::size_t>(s % workers)];
    bool splits = kWidth % place.size() == 0;  // the weight; otherwise it is replicated
    PartitionSpec spec = splits ? P(none, "x") : P();
    if (is_last)
      all.emplace_back(place, weight, [=](const Tensor& w, const Tensor& h, const Tensor& x) {
        return mean(square(matmul(h, mark_sharding(w, place, spec)) - x));
      });
    else if (is_first)
      all.emplace_back(place, weight, [=](const Tensor& w, const Tensor& x) {
        return tanh(matmul(x, mark_sharding(w, place, spec)));
      });
    else
      all.emplace_back(place, weight, [=](const Tensor& w, const Tensor& h, const Tensor&) {
        return tanh(matmul(h, mark_sharding(w, place, spec)));
      });
  }
  PipelineOptions given{.optimizer = optim::Adam{.rate = 0.02},
                        .clip_norm = has("clipped") ? 0.05 : 0};
  Pipeline pipeline(all, schedule_of(schedule, stages), given);
  for (int i = 0; i < kSteps; ++i) {
    std::vector<Tensor> batch;
    for (int m = 0; m < kMicrobatches; ++m)
      batch.push_back(numbers({12, kWidth}, 0.8, i % 3 + 0.5 * m));
    say(cat("loss ", pipeline.step(batch).item<float>()));
  }
  for (int s = 0; s < stages; ++s) show(cat("stage ", s), pipeline.parameters<Tensor>(s));
}

// A random sharding over some of the devices, in any order.
Sharding random_sharding(std::mt19937& random, int devices, std::size_t rank) {
  auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::vector<std::int64_t> ids(static_cast<std::size_t>(devices));
  std::iota(ids.begin(), ids.end(), 0);
  for (std::size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[below(i)]);
  std::vector<std::pair<int, int>> shapes;
  for (int a = 1; a <= devices; ++a)
    for (int b = 1; a * b <= devices; ++b) shapes.emplace_back(a, b);
  auto [a, b] = shapes[below(shapes.size())];
  ids.resize(static_cast<std::size_t>(a) * static_cast<std::size_t>(b));
  std::vector<AxisList> dims(rank);
  for (const char* axis : {"a", "b"})
    if (std::size_t d = below(rank + 1); d < rank) dims[d].push_back(AxisRef(axis));
  std::vector<DimensionSpec> spec(dims.begin(), dims.end());
  return Sharding(Mesh({{"a", a}, {"b", b}}, ids), PartitionSpec(std::move(spec)), rank);
}

// Each value must arrive as it was sent, whatever the shardings.
void move_around(int devices, int count, unsigned seed) {
  std::mt19937 random(seed);
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    IntVector sizes;
    std::size_t rank = 1 + random() % 3;
    for (std::size_t d = 0; d < rank; ++d) sizes.push_back(1 + static_cast<int>(random() % 9));
    Tensor x = numbers(Shape(sizes), 1, i);
    std::vector<float> sent = x.to_host().to_vector<float>();
    Sharding from = random_sharding(random, devices, rank),
             to = random_sharding(random, devices, rank);
    Tensor there = transfer(mark_sharding(x, from.mesh(), from.spec()), to);
    std::vector<float> arrived = gather(there).to_vector<float>();
    if (arrived == sent) continue;
    ++wrong;
    say(cat("WRONG: number ", i, ", ", x.type(), " from ", from, " to ", to));
  }
  say(cat(count, " transfers, ", wrong, " wrong"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  int devices = std::atoi(argv[1]);
  for (int i = 4; i < argc; ++i) options.insert(argv[i]);
  try {
    initialize_processes().value();
    configure_runtime({.cpu_devices = devices}).value();
    if (std::string_view(argv[3]) == "transfers") {
      move_around(devices, std::atoi(argv[2]), static_cast<unsigned>(std::atoi(argv[4])));
      return 0;
    }
    say(cat("== ", argv[3], " with ", argv[2], " stages"));
    train(devices, std::atoi(argv[2]), argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "process %d: %s\n", processes().rank(), error.what());
    return 1;
  }
  return 0;
}
