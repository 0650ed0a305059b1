// Numbers, shapes, specs and operands.
#include "tests/property/sharded_program/draw.h"

#include <algorithm>
#include <numeric>

namespace meshard::property {
namespace {

constexpr std::size_t kMostInputs = 5;
constexpr std::int64_t kMostElements = 256;

}  // namespace

DType Draw::number_dtype() {
  if (kind_ == Kind::kTransforms) return DType::f64;
  // Often the one that is used most; gradients are compared in wide types.
  if (program_.gradient) return one_in(3) ? DType::f64 : DType::f32;
  static constexpr DType kAll[] = {DType::f32,  DType::f32, DType::f32, DType::f32, DType::f64,
                                   DType::bf16, DType::f16, DType::i32, DType::i32, DType::i64,
                                   DType::u8,   DType::i8,  DType::u32};
  return one_of(kAll);
}

std::int64_t Draw::extent() {
  if (kind_ == Kind::kTransforms) return between(1, 4);
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
  if (element_wise_) return one_in(2) ? shape : Shape{};
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

// ---- Where values are put.

std::optional<Placement> Draw::placement(int rank) {
  std::vector<int> candidates;
  for (std::size_t i = 0; i < program_.meshes.size(); ++i)
    if (set_of_mesh_[i] == target_) candidates.push_back(static_cast<int>(i));
  if (stage_depth_ > 0) candidates = {region_.mesh};
  if (candidates.empty()) return std::nullopt;
  Placement placement{one_of(candidates), {}};
  auto is_free = [&](std::string_view name) {
    return stage_depth_ == 0 ||
           std::any_of(region_.left.begin(), region_.left.end(),
                       [&](std::int64_t axis) { return region_axis(axis).name == name; });
  };
  // Whole axes, and the two parts of an axis of 4, each to a dimension or to none.
  std::vector<AxisRef> parts;
  for (const MeshAxis& axis : meshes_[static_cast<std::size_t>(placement.mesh)].axes()) {
    if (!is_free(axis.name)) continue;
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
  bool some_open = kind_ != Kind::kExplicit && one_in(4);
  std::vector<DimensionSpec> dimensions;
  for (const AxisList& list : axes) dimensions.emplace_back(list, some_open && one_in(2));
  while (!dimensions.empty() && dimensions.back() == DimensionSpec() && one_in(2))
    dimensions.pop_back();
  placement.spec = PartitionSpec(std::move(dimensions));
  return placement;
}

std::optional<Placement> Draw::mark(int rank) {
  std::optional<Placement> where = placement(rank);
  if (where) meeting_.push_back({target_, false, false, true});
  return where;
}

void Draw::mark_input(Input& input) {
  std::vector<int> wider;
  for (std::size_t i = 0; i < meshes_.size(); ++i)
    if (set_of_mesh_[i] != target_ && target_ >= 0 && sets_.contains(set_of_mesh_[i], target_))
      wider.push_back(static_cast<int>(i));
  if (kind_ == Kind::kMeshes && !wider.empty() && one_in(4)) {
    input.mark = Placement{one_of(wider), PartitionSpec()};
    return;
  }
  input.mark = placement(input.type.rank());
  input.by_callback = input.mark && is_closed(input.mark->spec) && one_in(5);
}

Home Draw::home_of(const Placement& placement, int rank) const {
  return home_of_placement(placement, set_of_mesh_[static_cast<std::size_t>(placement.mesh)], rank);
}

// ---- Operands.

// Parts of values meet parts, and what is the same everywhere.
bool Draw::may_see(Ref ref, const Known& value) const {
  if (!sets_.may_come(value.home, target_)) return false;
  if (stage_depth_ > 0) return ref.level >= stage_depth_;
  if (!element_wise_ || ref.level == depth()) return true;
  // A body or a jitted function outside has names of its own for what it captures.
  bool is_data = ref.level == 0 && ref.is_input && depth() == 1 && !in_trace_;
  return is_data && value.home.is_free() && value.type().rank() == 0;
}

std::vector<Ref> Draw::fitting(const Wanted& wanted, int times_for_steps) const {
  std::vector<Ref> refs;
  for (int level = 0; level <= depth(); ++level)
    for (bool inputs : {true, false}) {
      const Frame& frame = frames_[static_cast<std::size_t>(level)];
      const std::vector<Known>& all = inputs ? frame.inputs : frame.steps;
      // Later values more often: chains grow long. So do a body's own.
      int times = (inputs ? 1 : times_for_steps) * (level > 0 && level == depth() ? 2 : 1);
      for (std::size_t i = 0; i < all.size(); ++i) {
        Ref ref{inputs, static_cast<int>(i), level};
        if (may_see(ref, all[i]) && wanted(all[i]))
          refs.insert(refs.end(), static_cast<std::size_t>(times), ref);
      }
    }
  return refs;
}

void Draw::use(Step& step, Ref ref) {
  step.operands.push_back(ref);
  if (!known(ref).home.is_free()) meeting_.push_back(known(ref).home);
}

bool Draw::take(Step& step, const Wanted& wanted) {
  std::vector<Ref> refs = fitting(wanted, 3);
  if (!refs.empty() && !one_in(8)) {
    use(step, one_of(refs));
    return true;
  }
  for (int turn = 0; turn < 8; ++turn) {
    TensorType type{one_in(12) ? DType::bool_ : number_dtype(), shape(one_in(12) ? 0 : 1, 3)};
    if ((program_.gradient || kind_ == Kind::kTransforms) && type.dtype == DType::bool_) continue;
    if (wanted({type, {8, 0}, {}})) return new_input(step, type);
  }
  return false;
}

bool Draw::take_type(Step& step, const TensorType& type) {
  std::vector<Ref> refs = fitting([&](const Known& value) { return value.type() == type; }, 1);
  if (refs.empty() || (one_in(4) && program_.inputs.size() < kMostInputs))
    return new_input(step, type);
  use(step, one_of(refs));
  return true;
}

bool Draw::take_from_elsewhere(Step& step) {
  std::vector<Ref> refs;
  for (bool inputs : {true, false}) {
    const std::vector<Known>& all = inputs ? frames_[0].inputs : frames_[0].steps;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!all[i].home.is_free() && all[i].home.set != target_)
        refs.push_back({inputs, static_cast<int>(i), 0});
  }
  if (refs.empty()) return false;
  step.operands.push_back(one_of(refs));
  return true;
}

bool Draw::new_input(Step& step, const TensorType& type) {
  if (program_.inputs.size() >= kMostInputs || type.size() > kMostElements) return false;
  if (stage_depth_ > 0) return false;
  if (element_wise_ && (type.rank() > 0 || in_trace_ || depth() > 1)) return false;
  Input input{type, static_cast<int>(program_.inputs.size()) + between(0, 9), {}, false};
  if (!one_in(3) && !element_wise_) mark_input(input);
  Home home;
  if (input.mark) home = home_of(*input.mark, type.rank());
  frames_[0].inputs.push_back({type, input_bounds(type.dtype), home});
  recorder_.add_input(type, input.seed);
  host_.add_input(input);
  program_.inputs.push_back(std::move(input));
  use(step, {true, static_cast<int>(program_.inputs.size()) - 1, 0});
  return true;
}

}  // namespace meshard::property
