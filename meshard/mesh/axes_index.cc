#include "meshard/mesh/axes_index.h"

#include <algorithm>

namespace meshard {
namespace {

// Distance in positions between neighbors along an axis of the mesh.
std::int64_t axis_stride(const Mesh& mesh, std::size_t axis) {
  std::int64_t stride = 1;
  for (std::size_t i = axis + 1; i < mesh.rank(); ++i) stride *= mesh.shape()[i];
  return stride;
}

// The parts of one mesh axis that occur in `axes`, most significant first. Throws if two overlap,
// or if the gap between two is not a whole sub-axis.
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
                    " cannot be used together in ", mesh,
                    ": the factor between them is not a whole number");
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
    std::int64_t after = ref.is_whole() ? 1 : mesh.axes()[axis].size / (ref.pre_size * size);
    std::int64_t stride = axis_stride(mesh, axis) * after;
    push_back({size, stride});
  }
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
                   cat("[mesh] mode ", size, ":", stride, " is not an axis or sub-axis of ", mesh));
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
  MESHARD_RETURN_IF_ERROR(caught([&] { check_axes(mesh, axes); }));
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
