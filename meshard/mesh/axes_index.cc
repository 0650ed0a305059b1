#include "meshard/mesh/axes_index.h"

#include <algorithm>

namespace meshard {
namespace {

// Distance in positions between neighbours along an axis of the mesh.
std::int64_t axis_stride(const Mesh& mesh, std::size_t axis) {
  return mesh.layout().stride().leaves()[axis];
}

// The parts of one mesh axis among `axes`, most significant first, checked to be disjoint and to
// leave whole parts between them.
InlineVector<AxisRef, 2> parts_of(const Mesh& mesh, std::size_t axis, const AxisList& axes) {
  const MeshAxis& own = mesh.axes()[axis];
  InlineVector<AxisRef, 2> parts;
  for (const AxisRef& ref : axes) {
    if (ref.name != own.name) continue;
    std::int64_t size = mesh.axis_size(ref);
    AxisRef part(ref.name, ref.is_whole() ? 1 : ref.pre_size, size);
    for (const AxisRef& other : parts)
      if (part.overlaps(other) || part == other)
        throw_invalid({}, "[mesh] axis ", ref, " is used twice in ", to_string(axes), " over ",
                      mesh);
    parts.push_back(part);
  }
  std::sort(parts.begin(), parts.end(),
            [](const AxisRef& a, const AxisRef& b) { return a.pre_size < b.pre_size; });
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (parts[i].pre_size % (parts[i - 1].pre_size * parts[i - 1].size) != 0)
      throw_invalid({}, "[mesh] sub-axes ", parts[i - 1], " and ", parts[i],
                    " cannot be used together in ", mesh, ": no whole part lies between them");
  return parts;
}

void check_axes(const Mesh& mesh, const AxisList& axes) {
  for (const AxisRef& ref : axes) {
    std::size_t axis = mesh.axis_index(ref.name);
    if (axes.size() > 1 || !ref.is_whole()) parts_of(mesh, axis, axes);
  }
}

}  // namespace

AxesIndex::AxesIndex(const Mesh& mesh, const AxisList& axes) {
  check_axes(mesh, axes);
  for (const AxisRef& ref : axes) {
    std::size_t axis = mesh.axis_index(ref.name);
    std::int64_t size = mesh.axis_size(ref);
    if (size == 1) continue;
    std::int64_t after = ref.is_whole() ? 1 : mesh.axes()[axis].size / (ref.pre_size * size);
    std::int64_t stride = axis_stride(mesh, axis) * after;
    size_ *= size;
    if (!digits_.empty() && digits_.back().stride == size * stride)
      digits_.back() = {digits_.back().size * size, stride};
    else
      digits_.push_back({size, stride});
  }
}

void AxesIndex::fill(std::span<std::int64_t> index_by_position) const {
  if (index_by_position.empty()) return;
  struct Weighted {
    Digit digit;
    std::int64_t weight;
  };
  InlineVector<Weighted, 3> by_stride;
  std::int64_t weight = 1;
  for (std::size_t i = digits_.size(); i-- > 0;) {
    by_stride.push_back({digits_[i], weight});
    weight *= digits_[i].size;
  }
  std::sort(by_stride.begin(), by_stride.end(),
            [](const Weighted& a, const Weighted& b) { return a.digit.stride < b.digit.stride; });

  // Positions below `done` are filled; each digit repeats them with its weight added.
  std::int64_t* out = index_by_position.data();
  std::int64_t done = 1, count = static_cast<std::int64_t>(index_by_position.size());
  out[0] = 0;
  auto repeat_until = [&](std::int64_t wanted) {
    for (std::int64_t start = done; start < wanted; start += done)
      std::copy_n(out, std::min(done, wanted - start), out + start);
    done = wanted;
  };
  for (const Weighted& w : by_stride) {
    repeat_until(w.digit.stride);
    for (std::int64_t k = 1; k < w.digit.size; ++k)
      for (std::int64_t i = 0; i < w.digit.stride; ++i)
        out[k * w.digit.stride + i] = out[i] + k * w.weight;
    done = w.digit.stride * w.digit.size;
  }
  repeat_until(count);
}

Layout AxesIndex::layout() const {
  IntVector sizes, strides;
  for (const Digit& digit : digits_) {
    sizes.push_back(digit.size);
    strides.push_back(digit.stride);
  }
  return Layout(IntTuple::flat(sizes), IntTuple::flat(strides));
}

AxisList remaining_axes(const Mesh& mesh, const AxisList& axes) {
  check_axes(mesh, axes);
  AxisList remaining;
  for (std::size_t axis = 0; axis < mesh.rank(); ++axis) {
    const MeshAxis& own = mesh.axes()[axis];
    InlineVector<AxisRef, 2> parts = parts_of(mesh, axis, axes);
    if (parts.empty()) {
      remaining.push_back(AxisRef(own.name));
      continue;
    }
    std::int64_t used = 1;
    for (const AxisRef& part : parts) {
      if (part.pre_size > used) remaining.push_back({own.name, used, part.pre_size / used});
      used = part.pre_size * part.size;
    }
    if (own.size > used) remaining.push_back({own.name, used, own.size / used});
  }
  return remaining;
}

Result<AxisList> axes_of(const Mesh& mesh, const Layout& layout) {
  AxisList axes;
  for (std::size_t i = 0; i < layout.shape().leaves().size(); ++i) {
    std::int64_t size = layout.shape().leaves()[i], stride = layout.stride().leaves()[i];
    if (size == 1) continue;
    auto failure = [&] {
      return Error(ErrorCode::kInvalidArgument,
                   cat("[mesh] ", size, " steps of ", stride,
                       " positions are no axis or sub-axis of ", mesh));
    };
    std::int64_t top;
    if (stride < 1 || __builtin_mul_overflow(stride, size, &top) || top > mesh.size())
      return failure();
    while (top > stride) {  // one mesh axis at a time, most significant first
      std::size_t axis = 0;
      while (axis_stride(mesh, axis) >= top) ++axis;
      std::int64_t below = axis_stride(mesh, axis), above = below * mesh.axes()[axis].size;
      std::int64_t bottom = std::max(below, stride);
      if (above % top != 0 || top % bottom != 0 || bottom % below != 0) return failure();
      push_axis(mesh, axes, {mesh.axes()[axis].name, above / top, top / bottom});
      top = bottom;
    }
  }
  try {
    check_axes(mesh, axes);
  } catch (const Error& error) {
    return error;
  }
  return axes;
}

void push_axis(const Mesh& mesh, AxisList& axes, const AxisRef& axis) {
  AxisRef merged = axis;
  if (!axis.is_whole() && !axes.empty() && axes.back().name == axis.name &&
      !axes.back().is_whole() && axes.back().pre_size * axes.back().size == axis.pre_size) {
    merged = {axis.name, axes.back().pre_size, axes.back().size * axis.size};
    axes.pop_back();
  }
  if (!merged.is_whole() && merged.size == mesh.axis_size(AxisRef(merged.name)))
    merged = AxisRef(merged.name);
  axes.push_back(std::move(merged));
}

}  // namespace meshard
