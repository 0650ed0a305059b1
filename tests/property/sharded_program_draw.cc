#include "tests/property/sharded_program_draw.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace meshard::property {
namespace {

constexpr std::size_t kMostInputs = 5;
constexpr std::int64_t kMostElements = 256;
// Beyond this, 16-bit floats lose their meaning.
constexpr double kLargest = 1e4;
constexpr int kDevices = 8;

}  // namespace

// ---- Numbers and shapes.

DType Draw::number_dtype() {
  // Often the one that is used most; gradients are compared in wide types.
  if (program_.gradient) return one_in(3) ? DType::f64 : DType::f32;
  static constexpr DType kAll[] = {DType::f32,  DType::f32, DType::f32, DType::f32, DType::f64,
                                   DType::bf16, DType::f16, DType::i32, DType::i32, DType::i64,
                                   DType::u8,   DType::i8,  DType::u32};
  return one_of(kAll);
}

std::int64_t Draw::extent() {
  static constexpr int kSizes[] = {1, 2, 2, 3, 3, 4, 4, 4, 5, 6, 6, 7, 8, 8, 9};
  return one_of(kSizes);
}

Shape Draw::shape(int min_rank, int max_rank) {
  Dimensions sizes;
  for (int i = between(min_rank, max_rank); i > 0; --i) sizes.push_back(extent());
  Shape shape(sizes);
  return shape.size() <= kMostElements / 2 ? shape : Shape(sizes).with(0, 1);
}

Shape Draw::partner_shape(const Shape& shape) {
  if (one_in(2)) return shape;
  Dimensions sizes = shape.sizes();
  for (std::int64_t& size : sizes)
    if (one_in(3)) size = 1;
  int dropped = one_in(2) ? 0 : between(0, shape.rank());
  return Shape(Dimensions(sizes.begin() + dropped, sizes.end()));
}

std::vector<std::int64_t> Draw::some_dimensions(int rank) {
  std::vector<std::int64_t> dimensions;
  for (int d = 0; d < rank; ++d)
    if (one_in(2)) dimensions.push_back(d);
  if (dimensions.empty()) dimensions.push_back(between(0, rank - 1));
  return dimensions;
}

std::vector<std::int64_t> Draw::permutation(int rank) {
  std::vector<std::int64_t> dimensions(static_cast<std::size_t>(rank));
  std::iota(dimensions.begin(), dimensions.end(), std::int64_t{0});
  std::shuffle(dimensions.begin(), dimensions.end(), random_);
  return dimensions;
}

// ---- Meshes.

MeshSpec Draw::root_mesh(int home, std::vector<std::int64_t> devices) {
  MeshSpec spec;
  spec.home = home;
  auto left = static_cast<std::int64_t>(devices.size());
  const char* names = program_.meshes.size() % 2 == 0 ? "xyz" : "abc";
  for (int i = 0; i < 3 && (left > 1 || one_in(8)); ++i) {
    std::int64_t size =
        i == 2 ? left : between(1, static_cast<int>(std::min<std::int64_t>(left, 4)));
    while (left % size != 0 || left / size > 16) --size;
    left /= size;
    spec.axes.push_back({std::string(1, names[i]), size});
  }
  if (left > 1 || spec.axes.empty())
    spec.axes.push_back({std::string(1, names[spec.axes.size()]), left});
  spec.devices = std::move(devices);
  return spec;
}

void Draw::draw_meshes() {
  for (int home = 0; home < homes_; ++home) {
    std::vector<std::int64_t> ids(kDevices);
    std::iota(ids.begin(), ids.end(), std::int64_t{0});
    if (!one_in(3)) std::shuffle(ids.begin(), ids.end(), random_);
    static constexpr int kCounts[] = {1, 2, 2, 3, 4, 4, 4, 6, 6, 8, 8, 8};
    ids.resize(static_cast<std::size_t>(one_of(kCounts)));
    MeshSpec first = root_mesh(home, std::move(ids));
    if (first.axes.size() > 1 && one_in(6)) first.form = MeshSpec::kSubmesh;
    if (first.axes.size() > 1 && one_in(8)) first.form = MeshSpec::kFlat;
    program_.meshes.push_back(first);
    meshes_.push_back(first.make());
    if (!one_in(3)) continue;
    std::vector<std::int64_t> same;
    for (std::int64_t id : meshes_.back().device_ids()) same.push_back(id);
    if (one_in(2)) std::shuffle(same.begin(), same.end(), random_);
    program_.meshes.push_back(root_mesh(home, std::move(same)));
    meshes_.push_back(program_.meshes.back().make());
  }
}

std::optional<Placement> Draw::placement(int rank) {
  std::vector<int> candidates;
  for (std::size_t i = 0; i < program_.meshes.size(); ++i)
    if (program_.meshes[i].home == home_) candidates.push_back(static_cast<int>(i));
  if (candidates.empty()) return std::nullopt;
  Placement placement{one_of(candidates), {}};
  // Whole axes, and the two parts of an axis of 4, each to a dimension or to none.
  std::vector<AxisRef> parts;
  for (const MeshAxis& axis : meshes_[static_cast<std::size_t>(placement.mesh)].axes()) {
    if (axis.size == 4 && one_in(3)) {
      parts.emplace_back(axis.name, 1, 2);
      parts.emplace_back(axis.name, 2, 2);
    } else {
      parts.emplace_back(axis.name);
    }
  }
  std::shuffle(parts.begin(), parts.end(), random_);
  std::vector<AxisList> axes(static_cast<std::size_t>(rank));
  for (const AxisRef& part : parts)
    if (rank > 0 && !one_in(4))
      axes[static_cast<std::size_t>(between(0, rank - 1))].push_back(part);
  bool some_open = one_in(4);
  std::vector<DimensionSpec> dimensions;
  for (const AxisList& list : axes) dimensions.emplace_back(list, some_open && one_in(2));
  while (!dimensions.empty() && dimensions.back() == DimensionSpec() && one_in(2))
    dimensions.pop_back();
  placement.spec = PartitionSpec(std::move(dimensions));
  return placement;
}

// ---- Operands.

bool Draw::take(Step& step, const Wanted& wanted) {
  std::vector<Ref> fitting;
  for (bool inputs : {true, false}) {
    const std::vector<Known>& all = inputs ? inputs_ : steps_;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].home == home_ && wanted(all[i]))
        // Later values more often: chains grow long.
        for (int times = inputs ? 1 : 3; times > 0; --times)
          fitting.push_back({inputs, static_cast<int>(i)});
  }
  if (!fitting.empty() && !one_in(8)) {
    step.operands.push_back(one_of(fitting));
    return true;
  }
  for (int turn = 0; turn < 8; ++turn) {
    TensorType type{one_in(12) ? DType::bool_ : number_dtype(), shape(one_in(12) ? 0 : 1, 3)};
    if (program_.gradient && type.dtype == DType::bool_) continue;
    Known data{from_host(input_data(type, 0)), {8, 0}, home_};
    if (wanted(data)) return new_input(step, type);
  }
  return false;
}

bool Draw::take_type(Step& step, const TensorType& type) {
  std::vector<Ref> fitting;
  for (bool inputs : {true, false}) {
    const std::vector<Known>& all = inputs ? inputs_ : steps_;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].home == home_ && all[i].type() == type)
        fitting.push_back({inputs, static_cast<int>(i)});
  }
  if (fitting.empty() || one_in(4)) return new_input(step, type);
  step.operands.push_back(one_of(fitting));
  return true;
}

bool Draw::take_from_elsewhere(Step& step, int home) {
  std::vector<Ref> fitting;
  for (std::size_t i = 0; i < steps_.size(); ++i)
    if (steps_[i].home != home) fitting.push_back({false, static_cast<int>(i)});
  if (fitting.empty()) return false;
  step.operands.push_back(one_of(fitting));
  return true;
}

bool Draw::new_input(Step& step, const TensorType& type) {
  if (program_.inputs.size() >= kMostInputs || type.size() > kMostElements) return false;
  Input input{type, static_cast<int>(program_.inputs.size()) + between(0, 9), {}, false, home_};
  if (!one_in(3)) input.mark = placement(type.rank());
  bool closed = input.mark.has_value();
  if (closed)
    for (const DimensionSpec& dimension : input.mark->spec.dimensions())
      closed = closed && !dimension.is_open();
  input.by_callback = closed && one_in(5);
  bool is_bool = type.dtype == DType::bool_;
  inputs_.push_back({from_host(input_data(type, input.seed)),
                     {is_bool                   ? 1.0
                      : is_floating(type.dtype) ? 2.0
                                                : 8.0,
                      0},
                     home_});
  step.operands.push_back({true, static_cast<int>(program_.inputs.size())});
  program_.inputs.push_back(std::move(input));
  return true;
}

bool Draw::move_on() {
  if (home_ + 1 >= homes_) return false;
  ++home_;
  return true;
}

// ---- The program.

bool Draw::try_step() {
  static const std::vector<const Operation*> weighted = [] {
    std::vector<const Operation*> list;
    for (const Operation* operation : operations())
      for (int i = 0; i < operation->weight; ++i) list.push_back(operation);
    return list;
  }();
  Step step;
  step.operation = one_of(weighted);
  if (program_.gradient && !step.operation->smooth) return false;
  int home = home_;
  std::size_t inputs = inputs_.size();
  auto refuse = [&] {
    home_ = home;
    inputs_.resize(inputs);
    program_.inputs.resize(inputs);
    return false;
  };
  if (!step.operation->draw(*this, step)) return refuse();
  std::vector<Tensor> operands;
  std::vector<Bounds> bounds;
  for (Ref ref : step.operands) {
    operands.push_back(known(ref).tensor);
    bounds.push_back(known(ref).bounds);
  }
  step.home = home_;
  Arguments args{operands, bounds, step, nullptr};
  Tensor result = step.operation->run(args);
  Bounds got = step.operation->bounds(args, result.type());
  bool tame = !is_floating(result.dtype()) ||
              (got.size <= kLargest && got.error <= 0.1 * std::max(got.size, 1.0));
  if (!tame || result.size() > kMostElements || result.size() == 0) return refuse();
  if (!in_jit_ && !program_.gradient && one_in(8))
    step.look = one_in(2) ? Step::kSync : Step::kRead;
  steps_.push_back({result, got, home_});
  program_.steps.push_back(std::move(step));
  return true;
}

void Draw::choose_results() {
  if (program_.gradient) return;
  std::vector<bool> used(steps_.size(), false);
  for (const Step& step : program_.steps)
    for (Ref ref : step.operands)
      if (!ref.is_input) used[static_cast<std::size_t>(ref.index)] = true;
  for (std::size_t i = 0; i < steps_.size(); ++i)
    if (!used[i] || one_in(6)) program_.results.push_back({false, static_cast<int>(i)});
}

Program Draw::program() {
  program_.gradient = one_in(6);
  int steps = between(1, 7), jit_steps = one_in(2) ? 0 : one_in(3) ? between(1, steps) : steps;
  if (program_.gradient && jit_steps > 0) jit_steps = steps;
  homes_ = !program_.gradient && jit_steps < steps && one_in(2) ? 2 : 1;
  draw_meshes();
  for (int turns = 0; static_cast<int>(program_.steps.size()) < steps && turns < 200; ++turns) {
    in_jit_ = static_cast<int>(program_.steps.size()) < jit_steps;
    try_step();
  }
  program_.jit_steps = std::min(jit_steps, static_cast<int>(program_.steps.size()));
  choose_results();
  if (program_.gradient) {
    // Of the last value that is a float; the others feed it or are left out.
    for (std::size_t i = steps_.size(); i-- > 0 && program_.results.empty();)
      if (is_floating(steps_[i].type().dtype))
        program_.results.push_back({false, static_cast<int>(i)});
    bool float_input = false;
    for (const Input& input : program_.inputs)
      float_input = float_input || is_floating(input.type.dtype);
    if (program_.results.empty() || !float_input) {
      program_.gradient = false;
      choose_results();
    }
  }
  return std::move(program_);
}

Program draw_program(std::mt19937_64& random) { return Draw(random).program(); }

}  // namespace meshard::property
