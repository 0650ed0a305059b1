#include <cmath>
#include <functional>

#include "examples/digits/data.h"
#include "examples/digits/train.h"
#include "examples/gpt/train.h"
#include "tests/faults/scenario.h"

namespace faults {

using namespace meshard;

std::vector<float> as_floats(const HostArray& array) {
  std::vector<float> values;
  if (array.dtype() == DType::f32)
    for (float value : array.data<float>()) values.push_back(value);
  else
    for (std::int32_t value : array.data<std::int32_t>())
      values.push_back(static_cast<float>(value));
  return values;
}

void Run::read(const Tensor& tensor, SourceLocation where) {
  std::vector<float> values = as_floats(tensor.to_host(where));
  values_.insert(values_.end(), values.begin(), values.end());
}

namespace {

// Numbers in [-1, 1) that depend only on the seed.
HostArray numbers(Shape shape, std::uint64_t seed) {
  HostArray array = HostArray::uninitialized({DType::f32, std::move(shape)});
  for (float& value : array.mutable_data<float>())
    value = static_cast<float>(std::ldexp(double(digits::next_random(seed) >> 11), -52) - 1);
  return array;
}

HostArray labels(std::int64_t count, std::int64_t classes) {
  HostArray array = HostArray::uninitialized({DType::i32, {count}});
  std::int32_t next = 0;
  for (std::int32_t& value : array.mutable_data<std::int32_t>())
    value = static_cast<std::int32_t>(next++ * 7 % classes);
  return array;
}

// A step of the digits example on a mesh of 2x4 devices; its state is not donated.
void train_digits(Run& run) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  digits::Training state = digits::make_training(mesh, 1);
  HostArray pixels = numbers({32, digits::kPixels}, 5), answers = labels(32, digits::kClasses);
  Tensor images = mark_sharding(from_host(pixels), mesh, P("data", none));
  Tensor right = mark_sharding(from_host(answers), mesh, P("data"));
  run.keep("images", images, pixels);
  run.keep("labels", right, answers);
  auto step = jit(&digits::train_step, {.name = "train_step"});
  auto [next, loss] = step(state, images, right);
  run.read(loss);
  auto [last, second] = step(next, images, right);
  run.read(second);
  run.read(last.model.head.w);
  run.read(last.model.columns.w);
}

struct HostTensor {
  HostArray value;
  Sharding sharding;
};

const gpt::Sizes kSizes{.layers = 1, .width = 16, .heads = 4, .hidden = 32};
const optim::AdamW kAdam{.rate = 1e-2};

gpt::Options gpt_options() {
  gpt::Options options;
  options.data_devices = 2;
  options.model_devices = 4;
  options.sizes = kSizes;
  return options;
}

// A step of the GPT example with donated state, and another step on its results.
void train_gpt(Run& run) {
  nn::AxisRules rules = gpt::rules_for(gpt_options().mesh(), false);
  // The initial state is made once per process, and transferred to the devices for each attempt.
  static std::vector<HostTensor> fresh;
  static gpt::Training form;
  if (fresh.empty()) {
    gpt::Training made;
    made.model = nn::create(rules, 1, [](nn::Maker& make) { return gpt::make_gpt(make, kSizes); });
    made.adam = optim::init(kAdam, made.model);
    std::vector<HostTensor> values;
    for (const Tensor& tensor : structure::tensors(made)) {
      HostArray value = tensor.to_host();
      values.push_back({value, tensor.sharding().value_or(Sharding::replicated(
                                   *rules.mesh(), static_cast<std::size_t>(tensor.rank())))});
    }
    form = made;
    fresh = std::move(values);
  }
  std::vector<Tensor> placed;
  for (const HostTensor& each : fresh) {
    placed.push_back(mark_sharding(from_host(each.value), each.sharding));
    run.keep_until_launch(cat("state ", placed.size() - 1), placed.back(), each.value);
  }
  gpt::Training state = structure::with_tensors(form, placed);
  HostArray bytes = HostArray::uninitialized({DType::i32, {4, 9}});
  std::int32_t next_byte = 0;
  for (std::int32_t& value : bytes.mutable_data<std::int32_t>()) value = next_byte++ * 11 % 256;
  Tensor windows = rules.mark(from_host(bytes), P("batch", none));
  run.keep("windows", windows, bytes);
  using Step = std::function<std::pair<gpt::Training, Tensor>(const gpt::Training&, const Tensor&)>;
  auto step =
      jit(Step([rules](const gpt::Training& at, const Tensor& batch) {
            auto loss_at = [&](const gpt::Gpt& model) { return gpt::loss_of(model, batch, rules); };
            auto [loss, gradients] = value_and_grad(loss_at)(at.model);
            auto [model, adam] = optim::update(kAdam, at.model, gradients, at.adam);
            return std::pair(gpt::Training{model, adam}, loss);
          }),
          {.name = "gpt_step", .donate = {0}});
  run.begin_launch();
  auto [second, loss] = step(state, windows);
  run.read(loss);
  auto [third, next_loss] = step(second, windows);
  run.read(next_loss);
  run.read(third.model.norm.scale);
}

// Values that are transferred between submeshes, with a computation on each.
void transfer_between_submeshes(Run& run) {
  Mesh left({{"x", 4}}, {0, 1, 2, 3}), right({{"x", 4}}, {7, 5, 6, 4}), few({{"x", 2}}, {1, 5});
  Mesh all({{"x", 8}});
  HostArray value = numbers({16, 8}, 3), large = numbers({512, 256}, 4);
  Tensor x = mark_sharding(from_host(value), left, P("x"));
  run.keep("x", x, value);
  Tensor big = mark_sharding(from_host(large), left, P("x"));
  run.keep("big", big, large);
  Tensor y = transfer(x * 2.0f, right, P("x"));
  run.read(y + 1.0f);
  Tensor z = transfer(y, few, P(none, "x"));
  run.read(z * z);
  Tensor w = transfer(z, all, P());
  run.read(sum(w));
  run.read(sum(transfer(big, right, P("x"))));
  run.read(sum(transfer(big, all, P("x"))));
}

// Values with several shardings, small and large, that the host reads.
void gather_to_host(Run& run) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  HostArray large = numbers({512, 512}, 8), small = numbers({16, 8}, 9), odd = numbers({7, 3}, 10);
  Tensor a = mark_sharding(from_host(large), mesh, P("data", "model"));
  Tensor b = mark_sharding(from_host(small), mesh, P("model", none));
  Tensor c = mark_sharding(from_host(odd), mesh, P("data", none));
  Tensor d = mark_sharding(from_host(small), mesh, P());
  run.keep("a", a, large);
  run.keep("b", b, small);
  run.keep("c", c, odd);
  run.keep("d", d, small);
  for (const Tensor& each : {a, b, c, d}) run.read(each);
  Tensor computed = a + 1.0f;
  sync(computed);
  run.read(computed);
  run.read(b * 2.0f);
}

struct Layer {
  Tensor w, b;
  MESHARD_FIELDS(w, b)
};

// A structure that is saved twice, and restored onto the same mesh and onto another.
void save_and_load(Run& run) {
  Mesh mesh({{"data", 2}, {"model", 4}}), other({{"data", 4}}, {3, 2, 1, 0});
  HostArray weight = numbers({32, 16}, 21), bias = numbers({16}, 22);
  Layer layer{mark_sharding(from_host(weight), mesh, P("data", "model")),
              mark_sharding(from_host(bias), mesh, P("model"))};
  run.keep("w", layer.w, weight);
  run.keep("b", layer.b, bias);
  std::string path = run.folder() + "/layer.safetensors";
  io::save(path, layer).value();
  Layer next{layer.w * 2.0f, layer.b + 1.0f};
  io::save(path, next).value();
  Layer same = io::restore(path, layer).value();
  run.read(same.w);
  run.read(same.b);
  Layer elsewhere{abstract_tensor({DType::f32, {32, 16}}, Sharding(other, P("data"))),
                  abstract_tensor({DType::f32, {16}}, Sharding(other, P()))};
  Layer moved = io::restore(path, elsewhere).value();
  run.read(moved.w + moved.b);
}

constexpr Scenario kScenarios[] = {
    {"digits", train_digits, true},
    {"gpt", train_gpt, false},
    {"transfer", transfer_between_submeshes, true},
    {"gather", gather_to_host, false},
    {"checkpoint", save_and_load, true},
};

}  // namespace

std::span<const Scenario> scenarios() { return kScenarios; }

}  // namespace faults
