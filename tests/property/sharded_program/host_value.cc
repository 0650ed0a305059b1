#include "tests/property/sharded_program/host_value.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace meshard::property {
namespace host {
namespace {

// The next coordinate in row-major order; false after the last.
bool advance(Dimensions& coordinate, const Shape& shape) {
  for (std::size_t d = coordinate.size(); d-- > 0;) {
    if (++coordinate[d] < shape[static_cast<int>(d)]) return true;
    coordinate[d] = 0;
  }
  return false;
}

Shape broadcast(const Shape& a, const Shape& b) {
  auto rank = static_cast<std::size_t>(std::max(a.rank(), b.rank()));
  Dimensions sizes(rank, 1);
  for (const Shape* each : {&a, &b})
    for (int d = 1; d <= each->rank(); ++d)
      if ((*each)[-d] != 1) sizes[rank - static_cast<std::size_t>(d)] = (*each)[-d];
  return Shape(sizes);
}
// The element that a broadcast value has at a coordinate of the result.
double broadcast_at(const HostValue& value, const Dimensions& coordinate) {
  auto rank = static_cast<std::size_t>(value.shape.rank());
  Dimensions own(coordinate.end() - static_cast<std::ptrdiff_t>(rank), coordinate.end());
  for (std::size_t d = 0; d < rank; ++d)
    if (value.shape[static_cast<int>(d)] == 1) own[d] = 0;
  return at(value, own);
}

template <class Combine>
HostValue binary(const HostArguments& args, Combine combine) {
  return make(broadcast(args[0].shape, args[1].shape), [&](const Dimensions& at) {
    return combine(broadcast_at(args[0], at), broadcast_at(args[1], at));
  });
}

// Sizes along the dimensions that are reduced, else 1; and the shape that is left.
struct Reduction {
  Shape reduced, left;
  std::vector<bool> gone;
};
Reduction reduction(const Shape& shape, const std::vector<std::int64_t>& dimensions, bool keep) {
  Reduction result;
  result.gone.assign(static_cast<std::size_t>(shape.rank()), false);
  for (std::int64_t d : dimensions) result.gone[static_cast<std::size_t>(d)] = true;
  Dimensions reduced, left;
  for (int d = 0; d < shape.rank(); ++d) {
    bool gone = result.gone[static_cast<std::size_t>(d)];
    reduced.push_back(gone ? shape[d] : 1);
    if (!gone)
      left.push_back(shape[d]);
    else if (keep)
      left.push_back(1);
  }
  result.reduced = Shape(reduced);
  result.left = Shape(left);
  return result;
}

HostValue reduced(const HostArguments& args, bool mean) {
  const HostValue& x = args[0];
  bool keep = args.number(1) != 0;
  Reduction over = reduction(x.shape, args.list(0), keep);
  return make(over.left, [&](const Dimensions& coordinate) {
    Dimensions from;
    std::size_t next = 0;
    for (bool gone : over.gone) from.push_back(gone && !keep ? 0 : coordinate[next++]);
    Dimensions offset(from.size(), 0);
    double sum = 0;
    do {
      Dimensions place = from;
      for (std::size_t d = 0; d < place.size(); ++d) place[d] += offset[d];
      sum += at(x, place);
    } while (advance(offset, over.reduced));
    return mean ? sum / static_cast<double>(over.reduced.size()) : sum;
  });
}

// Replaces the elements along dimension d, for all places of the other dimensions.
HostValue along(const HostValue& x, std::int64_t dimension,
                const std::function<void(std::vector<double>&)>& change) {
  HostValue result = x;
  auto d = static_cast<int>(dimension);
  std::int64_t size = x.shape[d], stride = 1;
  for (int e = d + 1; e < x.shape.rank(); ++e) stride *= x.shape[e];
  for (std::int64_t start = 0; start < x.shape.size(); ++start) {
    if (start / stride % size != 0) continue;
    std::vector<double> line;
    for (std::int64_t i = 0; i < size; ++i)
      line.push_back(x.values[static_cast<std::size_t>(start + i * stride)]);
    change(line);
    for (std::int64_t i = 0; i < size; ++i)
      result.values[static_cast<std::size_t>(start + i * stride)] =
          line[static_cast<std::size_t>(i)];
  }
  return result;
}

}  // namespace

HostValue scalar(double value) { return {Shape{}, {value}}; }

double at(const HostValue& value, const Dimensions& coordinate) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < coordinate.size(); ++d)
    offset = offset * value.shape[static_cast<int>(d)] + coordinate[d];
  return value.values.at(static_cast<std::size_t>(offset));
}

HostValue make(Shape shape, const std::function<double(const Dimensions&)>& element) {
  HostValue result{std::move(shape), {}};
  if (result.shape.size() == 0) return result;
  Dimensions coordinate(static_cast<std::size_t>(result.shape.rank()), 0);
  do result.values.push_back(element(coordinate));
  while (advance(coordinate, result.shape));
  return result;
}

HostValue slice(const HostValue& value, std::int64_t i) {
  Dimensions sizes(value.shape.begin() + 1, value.shape.end());
  HostValue result{Shape(sizes), {}};
  auto size = static_cast<std::ptrdiff_t>(result.shape.size());
  auto begin = value.values.begin() + static_cast<std::ptrdiff_t>(i) * size;
  result.values.assign(begin, begin + size);
  return result;
}

HostValue stacked(const std::vector<HostValue>& slices) {
  Dimensions sizes = slices.at(0).shape.sizes();
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(slices.size()));
  HostValue result{Shape(sizes), {}};
  for (const HostValue& each : slices)
    result.values.insert(result.values.end(), each.values.begin(), each.values.end());
  return result;
}

HostValue add(const HostValue& a, const HostValue& b, double times) {
  HostValue result = a;
  for (std::size_t i = 0; i < a.values.size(); ++i) result.values[i] += times * b.values.at(i);
  return result;
}

HostValue same(const HostArguments& args) { return args[0]; }
HostValue sum_of_two(const HostArguments& args) {
  return binary(args, [](double a, double b) { return a + b; });
}
HostValue difference(const HostArguments& args) {
  return binary(args, [](double a, double b) { return a - b; });
}
HostValue product(const HostArguments& args) {
  return binary(args, [](double a, double b) { return a * b; });
}

// By the rules of matmul: a vector is a row on the left, a column on the right.
HostValue matmul(const HostArguments& args) {
  HostValue a = args[0], b = args[1];
  bool row = a.shape.rank() == 1, column = b.shape.rank() == 1;
  if (row) a.shape = Shape{1, a.shape[0]};
  if (column) b.shape = Shape{b.shape[0], 1};
  Dimensions lead_a(a.shape.begin(), a.shape.end() - 2), lead_b(b.shape.begin(), b.shape.end() - 2);
  Dimensions sizes = broadcast(Shape(lead_a), Shape(lead_b)).sizes();
  sizes.push_back(a.shape[-2]);
  sizes.push_back(b.shape[-1]);
  HostValue result = make(Shape(sizes), [&](const Dimensions& at) {
    double sum = 0;
    for (std::int64_t k = 0; k < a.shape[-1]; ++k) {
      Dimensions in_a = at, in_b = at;
      in_a.back() = k;
      in_b[in_b.size() - 2] = k;
      sum += broadcast_at(a, in_a) * broadcast_at(b, in_b);
    }
    return sum;
  });
  if (row) sizes.erase(sizes.end() - 2);
  if (column) sizes.pop_back();
  result.shape = Shape(sizes);
  return result;
}

HostValue sum(const HostArguments& args) { return reduced(args, false); }
HostValue mean(const HostArguments& args) { return reduced(args, true); }
HostValue softmax(const HostArguments& args) {
  return along(args[0], args.number(0), [](std::vector<double>& line) {
    double sum = 0;
    for (double& x : line) sum += x = std::exp(x);
    for (double& x : line) x /= sum;
  });
}
HostValue cumulative_sum(const HostArguments& args) {
  return along(args[0], args.number(0), [](std::vector<double>& line) {
    std::partial_sum(line.begin(), line.end(), line.begin());
  });
}
HostValue sort(const HostArguments& args) {
  return along(args[0], args.number(0), [](std::vector<double>& line) {
    std::sort(line.begin(), line.end());
    for (std::size_t i = 1; i < line.size(); ++i)
      if (line[i] - line[i - 1] < 0.2) throw NotSmooth("sorted elements are close together");
  });
}

HostValue permute_dims(const HostArguments& args) {
  const std::vector<std::int64_t>& order = args.list(0);
  Dimensions sizes;
  for (std::int64_t d : order) sizes.push_back(args[0].shape[static_cast<int>(d)]);
  return make(Shape(sizes), [&](const Dimensions& coordinate) {
    Dimensions from(order.size());
    for (std::size_t d = 0; d < order.size(); ++d)
      from[static_cast<std::size_t>(order[d])] = coordinate[d];
    return at(args[0], from);
  });
}
HostValue reshape(const HostArguments& args) {
  return {Shape(Dimensions(args.list(0).begin(), args.list(0).end())), args[0].values};
}
HostValue broadcast_to(const HostArguments& args) {
  return make(Shape(Dimensions(args.list(0).begin(), args.list(0).end())),
              [&](const Dimensions& at) { return broadcast_at(args[0], at); });
}
HostValue slice_of(const HostArguments& args) {
  const auto &start = args.list(0), &stop = args.list(1), &stride = args.list(2);
  Dimensions sizes;
  for (std::size_t d = 0; d < start.size(); ++d)
    sizes.push_back((stop[d] - start[d] + stride[d] - 1) / stride[d]);
  return make(Shape(sizes), [&](Dimensions coordinate) {
    for (std::size_t d = 0; d < start.size(); ++d)
      coordinate[d] = start[d] + coordinate[d] * stride[d];
    return at(args[0], coordinate);
  });
}
HostValue flip(const HostArguments& args) {
  return make(args[0].shape, [&](Dimensions coordinate) {
    for (std::int64_t d : args.list(0)) {
      auto& i = coordinate[static_cast<std::size_t>(d)];
      i = args[0].shape[static_cast<int>(d)] - 1 - i;
    }
    return at(args[0], coordinate);
  });
}
HostValue concat(const HostArguments& args) {
  auto d = static_cast<std::size_t>(args.number(0));
  Dimensions sizes = args[0].shape.sizes();
  std::int64_t first = sizes[d];
  sizes[d] += args[1].shape[static_cast<int>(d)];
  return make(Shape(sizes), [&](Dimensions coordinate) {
    if (coordinate[d] < first) return at(args[0], coordinate);
    coordinate[d] -= first;
    return at(args[1], coordinate);
  });
}
HostValue stack(const HostArguments& args) {
  auto d = static_cast<std::ptrdiff_t>(args.number(0));
  Dimensions sizes = args[0].shape.sizes();
  sizes.insert(sizes.begin() + d, 2);
  return make(Shape(sizes), [&](Dimensions coordinate) {
    auto which = static_cast<std::size_t>(coordinate[static_cast<std::size_t>(d)]);
    coordinate.erase(coordinate.begin() + d);
    return at(args[which], coordinate);
  });
}
// The start is clamped, so that the window is inside.
HostValue dynamic_slice(const HostArguments& args) {
  auto d = static_cast<std::size_t>(args.number(0));
  Dimensions sizes = args[0].shape.sizes();
  std::int64_t most = sizes[d] - args.number(1);
  auto start = std::clamp(static_cast<std::int64_t>(args[1].values.at(0)), std::int64_t{0}, most);
  sizes[d] = args.number(1);
  return make(Shape(sizes), [&](Dimensions coordinate) {
    coordinate[d] += start;
    return at(args[0], coordinate);
  });
}

// Central differences of sixth order: Fornberg, Generation of finite difference formulas, 1988.
// Those of fourth order say how far they can be trusted.
HostValue derivative(const HostFunction& f, const HostValue& x, const HostValue& dx) {
  constexpr double kStep = 1.0 / 128, kMostApart = 1e-4;
  constexpr double kSixth[] = {3.0 / 4, -3.0 / 20, 1.0 / 60}, kFourth[] = {2.0 / 3, -1.0 / 12, 0};
  HostValue result, rough;
  for (int i = 1; i <= 3; ++i) {
    HostValue ahead = f(add(x, dx, i * kStep)), behind = f(add(x, dx, -i * kStep));
    if (i == 1) rough = result = {ahead.shape, std::vector<double>(ahead.values.size(), 0.0)};
    HostValue both = add(ahead, behind, -1);
    result = add(result, both, kSixth[i - 1] / kStep);
    rough = add(rough, both, kFourth[i - 1] / kStep);
  }
  for (std::size_t i = 0; i < result.values.size(); ++i)
    if (std::abs(result.values[i] - rough.values[i]) >
        kMostApart * (1 + std::abs(result.values[i])))
      throw NotSmooth("differences of two orders are apart");
  return result;
}

HostValue gradient(const HostFunction& f, const HostValue& x) {
  HostValue result = x;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    HostValue direction{x.shape, std::vector<double>(x.values.size(), 0.0)};
    direction.values[i] = 1;
    result.values[i] = derivative(f, x, direction).values.at(0);
  }
  return result;
}

}  // namespace host

namespace {

// Differences of differences of large numbers say nothing.
constexpr double kLargest = 200;
// So that a program takes no longer on the host than on the devices.
constexpr int kMostCalls = 30000;

}  // namespace

void HostEvaluator::add_input(const Input& input) {
  frames_[0].inputs.push_back(
      {input.type.shape,
       input_data(input.type, input.seed).astype(DType::f64).to_vector<double>()});
}

const HostValue& HostEvaluator::value(Ref ref) const {
  const Frame& frame = frames_.at(static_cast<std::size_t>(ref.level));
  return (ref.is_input ? frame.inputs : frame.steps).at(static_cast<std::size_t>(ref.index));
}

const HostValue& HostEvaluator::add(const Step& step) {
  if (frames_.size() == 1) calls_ = 0;
  std::vector<HostValue> operands;
  for (Ref ref : step.operands) operands.push_back(value(ref));
  HostArguments args{operands, step, [&](int body, std::vector<HostValue> arguments) {
                       return call(step.bodies.at(static_cast<std::size_t>(body)),
                                   std::move(arguments));
                     }};
  HostValue result = step.operation->on_host(args);
  for (double x : result.values)
    if (!(std::abs(x) <= kLargest)) throw NotSmooth("large values");
  frames_.back().steps.push_back(std::move(result));
  return frames_.back().steps.back();
}

std::vector<HostValue> HostEvaluator::call(const Body& body, std::vector<HostValue> arguments) {
  if (++calls_ > kMostCalls) throw NotSmooth("too many calls");
  struct Leave {
    std::vector<Frame>& frames;
    std::size_t depth = frames.size();
    ~Leave() { frames.resize(depth); }
  } leave{frames_};
  frames_.push_back({std::move(arguments), {}});
  for (const Step& step : body.steps) add(step);
  std::vector<HostValue> results;
  for (Ref ref : body.results) results.push_back(value(ref));
  return results;
}

void HostEvaluator::cut(std::size_t inputs, std::size_t steps) {
  frames_[0].inputs.resize(inputs);
  frames_[0].steps.resize(steps);
}

namespace {

bool all_on_host(const std::vector<Step>& steps) {
  return std::all_of(steps.begin(), steps.end(), [](const Step& step) {
    return step.operation->on_host != nullptr &&
           std::all_of(step.bodies.begin(), step.bodies.end(),
                       [](const Body& body) { return all_on_host(body.steps); });
  });
}

}  // namespace

// Doubles throughout: differences of anything less say little.
bool is_on_host(const Program& program) {
  if (program.gradient || !all_on_host(program.steps)) return false;
  for (const TensorType& type : step_types(program))
    if (is_floating(type.dtype) && type.dtype != DType::f64) return false;
  return std::all_of(program.inputs.begin(), program.inputs.end(), [](const Input& input) {
    return input.type.dtype == DType::f64 || input.type.dtype == DType::i32;
  });
}

std::optional<std::vector<HostArray>> values_on_host(const Program& program) {
  if (!is_on_host(program)) return std::nullopt;
  HostEvaluator evaluator;
  for (const Input& input : program.inputs) evaluator.add_input(input);
  try {
    for (const Step& step : program.steps) evaluator.add(step);
  } catch (const NotSmooth&) {
    if (takes_derivatives(program.steps)) throw;
    return std::nullopt;  // values do not need to be
  }
  std::vector<TensorType> types = step_types(program);
  std::vector<HostArray> results;
  for (Ref ref : program.results) {
    HostValue value = evaluator.value(ref);
    const auto i = static_cast<std::size_t>(ref.index);
    const TensorType& type = ref.is_input ? program.inputs[i].type : types[i];
    results.push_back(
        HostArray::from_vector(std::move(value.values), value.shape).astype(type.dtype));
  }
  return results;
}

}  // namespace meshard::property
