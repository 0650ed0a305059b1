#include "meshard/topology/torus_assignment.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "meshard/base/error.h"
#include "meshard/topology/shares.h"

namespace meshard {
namespace {

using Chosen = InlineVector<std::size_t, 4>;  // directions, ascending

std::int64_t product_of(IntView sizes) { return IntTuple::flat(sizes).product(); }

TorusAssignment nothing_taken(std::size_t directions, std::size_t axes) {
  return {std::vector<IntVector>(directions, IntVector(axes, 1))};
}

// Finds the first combination of `count` free directions, from `first` on, whose sizes multiply to
// `size`.
bool choose_whole(IntView physical, const std::vector<bool>& free, std::int64_t size,
                  std::size_t count, std::size_t first, Chosen& chosen) {
  if (count == 0) return size == 1;
  for (std::size_t k = first; k < physical.size(); ++k) {
    if (!free[k] || size % physical[k] != 0) continue;
    chosen.push_back(k);
    if (choose_whole(physical, free, size / physical[k], count - 1, k + 1, chosen)) return true;
    chosen.pop_back();
  }
  return false;
}

std::optional<TorusAssignment> assign_whole(IntView physical, IntView logical, std::size_t most) {
  TorusAssignment assignment = nothing_taken(physical.size(), logical.size());
  std::vector<bool> free(physical.size(), true);
  for (std::size_t axis = logical.size(); axis-- > 0;) {
    Chosen chosen;
    bool found = false;
    for (std::size_t count = std::min(most, physical.size()); count > 0 && !found; --count)
      found = choose_whole(physical, free, logical[axis], count, 0, chosen);
    if (!found && logical[axis] > 1) return std::nullopt;
    for (std::size_t k : chosen) {
      assignment.taken[k][axis] = physical[k];
      free[k] = false;
    }
  }
  return assignment;
}

// Searches for the best shares of the directions for one axis, among all that multiply to its size.
class SplitChoice {
 public:
  SplitChoice(IntView physical, const TorusAssignment& assignment) : physical_(physical) {
    for (const IntVector& taken : assignment.taken) used_.push_back(product_of(taken));
  }

  IntVector best(std::int64_t size) {
    IntVector free;
    for (std::size_t k = 0; k < physical_.size(); ++k) free.push_back(physical_[k] / used_[k]);
    for_each_share(free, size, [this](const IntVector& parts) { consider(parts); });
    return best_;
  }

 private:
  using Merit = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

  // Parts come in ascending order, so the later of two equals has more of the first directions.
  void consider(const IntVector& parts) {
    std::int64_t whole = 1, wholes = 0, shared = 1;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (parts[k] == physical_[k]) whole *= parts[k];
      if (parts[k] == physical_[k] && parts[k] > 1) ++wholes;
      if (used_[k] > 1) shared *= parts[k];
    }
    if (Merit merit(whole, wholes, shared); best_.empty() || merit >= merit_) {
      merit_ = merit;
      best_ = parts;
    }
  }

  IntView physical_;
  IntVector used_;
  Merit merit_;
  IntVector best_;
};

TorusAssignment assign_split(IntView physical, IntView logical) {
  TorusAssignment assignment = nothing_taken(physical.size(), logical.size());
  for (std::size_t axis = logical.size(); axis-- > 0;) {
    IntVector parts = SplitChoice(physical, assignment).best(logical[axis]);
    // A share always exists: the sizes of the axes multiply to the number of places.
    internal_check(!parts.empty() || physical.empty(), "no share of a torus is left for an axis");
    for (std::size_t k = 0; k < parts.size(); ++k) assignment.taken[k][axis] = parts[k];
  }
  return assignment;
}

}  // namespace

TorusAssignment assign_torus(IntView physical, IntView logical, AxisSplit split,
                             std::size_t most_whole, SourceLocation where) {
  for (std::int64_t size : logical)
    if (size < 1) throw_invalid(where, "[torus] an axis has size ", size);
  for (std::int64_t size : physical)
    if (size < 1) throw_invalid(where, "[torus] a direction of the grid has size ", size);
  std::int64_t places = product_of(physical), positions = product_of(logical);
  std::optional<TorusAssignment> whole = assign_whole(physical, logical, most_whole);
  if (whole && places == positions) return *std::move(whole);
  if (whole)
    throw_invalid(where, "[torus] a mesh of ", join(logical, " x "), " leaves a part of the grid ",
                  join(physical, " x "), " without an axis");
  if (split == AxisSplit::kNever)
    throw Error(
        ErrorCode::kUnimplemented,
        cat("[torus] no combination of whole directions of the grid ", join(physical, " x "),
            " makes the axes of ", join(logical, " x "), "; allow AxisSplit::kWhereNeeded"),
        where);
  if (places != positions)
    throw_invalid(where, "[torus] a mesh of ", join(logical, " x "), " needs ", positions,
                  " devices, but the grid ", join(physical, " x "), " has ", places);
  return assign_split(physical, logical);
}

Layout TorusAssignment::layout(IntView physical) const {
  std::size_t axes = taken.empty() ? 0 : taken.front().size();
  IntVector strides(taken.size());
  for (std::int64_t k = std::ssize(taken) - 1, stride = 1; k >= 0; --k) {
    strides[static_cast<std::size_t>(k)] = stride;
    stride *= physical[static_cast<std::size_t>(k)];
  }
  std::vector<IntTuple> shape(axes), stride(axes);
  for (std::size_t axis = axes; axis-- > 0;) {
    IntVector sizes, steps;
    for (std::size_t k = 0; k < taken.size(); ++k) {
      sizes.push_back(taken[k][axis]);
      steps.push_back(strides[k]);
      strides[k] *= taken[k][axis];
    }
    shape[axis] = IntTuple::flat(sizes);
    stride[axis] = IntTuple::flat(steps);
  }
  return Layout(IntTuple(shape), IntTuple(stride));
}

std::vector<std::int64_t> in_mesh_order(const std::vector<std::int64_t>& ids,
                                        const TorusAssignment& assignment, IntView physical) {
  std::vector<std::int64_t> places = {0};
  Layout layout = assignment.layout(physical);
  std::span<const std::int64_t> sizes = layout.shape().leaves(), steps = layout.stride().leaves();
  for (std::size_t mode = 0; mode < sizes.size(); ++mode) {
    if (sizes[mode] == 1) continue;
    std::vector<std::int64_t> next;
    next.reserve(places.size() * static_cast<std::size_t>(sizes[mode]));
    for (std::int64_t place : places)
      for (std::int64_t i = 0; i < sizes[mode]; ++i) next.push_back(place + i * steps[mode]);
    places = std::move(next);
  }
  for (std::int64_t& place : places) place = ids[static_cast<std::size_t>(place)];
  return places;
}

}  // namespace meshard
