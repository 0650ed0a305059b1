#include "meshard/nn/maker.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "meshard/base/cat.h"
#include "meshard/base/near_names.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/batching/vmap.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/reshape.h"

namespace meshard::nn {
namespace {

// The sharding of a parameter of all layers: each device has its part of every layer.
Sharding of_all_layers(const Sharding& one) {
  std::vector<DimensionSpec> dimensions(1);
  for (std::size_t d = 0; d < one.rank(); ++d) dimensions.emplace_back(one.axes(d), one.is_open(d));
  return Sharding(one.mesh(), PartitionSpec(std::move(dimensions)));
}

}  // namespace

Maker::Maker(AxisRules rules, Tensor key, DType dtype)
    : rules_(std::move(rules)), key_(std::move(key)), dtype_(dtype) {}
Maker::Maker(AxisRules rules, DType dtype) : rules_(std::move(rules)), dtype_(dtype) {}

Tensor Maker::operator()(const Shape& shape, const PartitionSpec& names,
                         const Initializer& initializer, const Fans& fans, SourceLocation where) {
  for (std::size_t d = 0; d < names.size(); ++d)
    for (const AxisRef& name : names[d].axes())
      if (!name.is_position()) names_.insert(std::string(name.name));
  CallScope line(where, "in nn::Maker");
  std::optional<Sharding> sharding = rules_.sharding(names);
  if (sharding) sharding = sharding->with_rank(static_cast<std::size_t>(shape.rank()));
  Dimensions sizes;
  for (const Stack& stack : stacks_) {
    sizes.push_back(stack.count);
    if (sharding) sharding = of_all_layers(*sharding);
  }
  for (std::int64_t size : shape) sizes.push_back(size);
  std::uint32_t number = made_++;
  if (!key_) return abstract_tensor({dtype_, Shape(std::move(sizes))}, sharding);
  // The key is an argument of the program that makes the value, so that parameters of the same
  // shape share one program.
  Tensor key = stacks_.empty() ? random::fold_in(*key_, number) : keys_of_layers(number);
  constexpr SourceLocation not_the_users;  // different shapes are different programs on purpose
  if (!only_recording()) compute({key}, not_the_users);
  Tensor value;
  if (stacks_.empty()) {
    value = initializer(key, shape, fans, dtype_);
  } else {
    auto one = [&](const Tensor& of_layer) { return initializer(of_layer, shape, fans, dtype_); };
    value = reshape(vmap(one)(key), Shape(std::move(sizes)));
  }
  if (sharding) value = mark_sharding(value, *sharding);
  if (!only_recording()) compute({value}, not_the_users);
  return value;
}

void Maker::check_rules(SourceLocation where) const {
  static constexpr std::string_view kOfLayers[] = {
      "batch",     "channels", "embed",    "expert", "filters", "head", "heads",     "hidden",
      "key_heads", "length",   "sequence", "time",   "tokens",  "rank", "vocabulary"};
  for (const AxisRules::Rule& rule : rules_.rules()) {
    if (names_.contains(rule.first) || rules_.mesh()->find_axis(rule.first) ||
        std::ranges::find(kOfLayers, rule.first) != std::end(kOfLayers))
      continue;
    std::vector<std::string> names(names_.begin(), names_.end());
    for (std::string_view name : kOfLayers)
      if (!names_.contains(std::string(name))) names.emplace_back(name);
    throw Error(ErrorCode::kNotFound,
                cat("[nn] no dimension of a parameter has the name \"", rule.first,
                    "\", for which there is a rule; ", nearest_text(rule.first, names),
                    ". Pass strict = false if only activations have it"),
                where);
  }
}

// The keys of parameter `first` of each layer, u32[layers, 2]: those that it would have if the
// layers were created one after the other.
Tensor Maker::keys_of_layers(std::uint32_t first) const {
  std::vector<std::uint32_t> numbers{first};
  for (const Stack& stack : stacks_) {
    std::vector<std::uint32_t> inner;
    for (std::uint32_t number : numbers)
      for (std::int64_t i = 0; i < stack.count; ++i)
        inner.push_back(number + static_cast<std::uint32_t>(i) * stack.parameters_per_layer);
    numbers = std::move(inner);
  }
  auto count = static_cast<std::int64_t>(numbers.size());
  if (only_recording()) {
    Tensor all = from_host(HostArray::from_vector(std::move(numbers), Shape{count}));
    return vmap([&](const Tensor& number) { return random::fold_in(*key_, number); })(all);
  }
  std::vector<std::uint32_t> keys;
  for (std::uint32_t number : numbers)
    for (std::uint32_t word : random::fold_in(*key_, number).to_vector<std::uint32_t>())
      keys.push_back(word);
  return from_host(HostArray::from_vector(std::move(keys), Shape{count, 2}));
}

Maker::Stacking::Stacking(Maker& make, std::int64_t count, const Maker& layer, SourceLocation where)
    : make_(make), first_(make.made_) {
  if (count <= 0)
    throw_invalid(effective_source(where),
                  "[nn.make_layers] the number of layers must be positive, not ", count);
  make.stacks_.push_back({count, layer.made_});
}

Maker::Stacking::~Stacking() {
  Stack stack = make_.stacks_.back();
  make_.stacks_.pop_back();
  make_.made_ = first_ + static_cast<std::uint32_t>(stack.count) * stack.parameters_per_layer;
}

}  // namespace meshard::nn
