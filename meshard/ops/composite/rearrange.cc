#include "meshard/ops/composite/rearrange.h"

#include <algorithm>
#include <utility>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {

Tensor squeeze(In x, DimensionList dimensions) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("squeeze", x);
  const Shape& shape = operand.shape();
  Dimensions gone = dimensions.resolve(shape.rank(), "squeeze", where), sizes;
  for (int d = 0; d < shape.rank(); ++d) {
    if (!holds(gone, d))
      sizes.push_back(shape[d]);
    else if (shape[d] != 1)
      throw_invalid(where, "[squeeze] dimension ", d, " = ", shape[d], " of ", operand.type(),
                    " does not have size 1");
  }
  return reshape(In(operand, where), std::move(sizes));
}

Tensor squeeze(In x) {
  Tensor operand = operand_tensor("squeeze", x);
  Dimensions sizes;
  for (std::int64_t size : operand.shape())
    if (size != 1) sizes.push_back(size);
  return reshape(In(operand, x.where), std::move(sizes));
}

Tensor expand_dims(In x, std::int64_t dimension) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("expand_dims", x);
  Dimensions sizes = operand.shape().sizes();
  int at = normalize_dimension(dimension, operand.shape().rank() + 1, "expand_dims", where);
  sizes.insert(sizes.begin() + at, 1);
  return reshape(In(operand, where), std::move(sizes));
}

Tensor flatten(In x) {
  Tensor operand = operand_tensor("flatten", x);
  return reshape(In(operand, x.where), {operand.size()});
}

Tensor swapaxes(In x, std::int64_t a, std::int64_t b) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("swapaxes", x);
  int rank = operand.shape().rank();
  Dimensions order;
  for (int d = 0; d < rank; ++d) order.push_back(d);
  std::swap(order[static_cast<std::size_t>(normalize_dimension(a, rank, "swapaxes", where))],
            order[static_cast<std::size_t>(normalize_dimension(b, rank, "swapaxes", where))]);
  return permute_dims(In(operand, where), std::move(order));
}

Tensor moveaxis(In x, Dimensions source, Dimensions destination) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("moveaxis", x);
  int rank = operand.shape().rank();
  if (source.size() != destination.size())
    throw_invalid(where, "[moveaxis] ", source.size(), " sources for ", destination.size(),
                  " destinations: give one source for each destination");
  // -1 marks a dimension of the result to which nothing was moved.
  Dimensions order(static_cast<std::size_t>(rank), -1), moved;
  for (std::size_t i = 0; i < source.size(); ++i) {
    int from = normalize_dimension(source[i], rank, "moveaxis", where);
    int to = normalize_dimension(destination[i], rank, "moveaxis", where);
    std::int64_t& place = order[static_cast<std::size_t>(to)];
    if (place != -1 || holds(moved, from))
      throw_invalid(where, "[moveaxis] a dimension is named twice: from [", join(source, ", "),
                    "] to [", join(destination, ", "), "]");
    place = from;
    moved.push_back(from);
  }
  std::int64_t next = 0;
  for (std::int64_t& place : order) {
    if (place != -1) continue;
    while (holds(moved, next)) ++next;
    place = next++;
  }
  return permute_dims(In(operand, where), std::move(order));
}

Tensor moveaxis(In x, std::int64_t source, std::int64_t destination) {
  return moveaxis(x, Dimensions{source}, Dimensions{destination});
}

Tensor stack(const std::vector<Tensor>& tensors, std::int64_t dimension, SourceLocation where) {
  SourceScope line(where);
  where = effective_source(where);
  if (tensors.empty()) throw_invalid(where, "[stack] takes at least one tensor");
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Tensor part = operand_tensor("stack", In(tensors[i], where));
    if (part.shape() != tensors[0].shape())
      throw_invalid(where, "[stack] shapes differ: tensor 0 is ", tensors[0].type(), ", tensor ", i,
                    " is ", part.type());
    parts.push_back(expand_dims(part, dimension));
  }
  return concat(parts, dimension, where);
}

std::vector<Tensor> unstack(In x, std::int64_t dimension) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("unstack", x);
  int along = normalize_dimension(dimension, operand.shape().rank(), "unstack", where);
  Dimensions ones(static_cast<std::size_t>(operand.shape()[along]), 1);
  std::vector<Tensor> slices = split_sizes(operand, std::move(ones), along);
  for (Tensor& each : slices) each = squeeze(each, along);
  return slices;
}

std::vector<Tensor> split_sizes(In x, Dimensions sizes, std::int64_t dimension) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("split_sizes", x);
  const Shape& shape = operand.shape();
  int along = normalize_dimension(dimension, shape.rank(), "split_sizes", where);
  std::int64_t total = 0;
  for (std::int64_t size : sizes) {
    if (size < 0) throw_invalid(where, "[split_sizes] size ", size, " is negative");
    total += size;
  }
  if (total != shape[along])
    throw_invalid(where, "[split_sizes] sizes [", join(sizes, ", "), "] add up to ", total,
                  ", but dimension ", along, " of ", operand.type(), " is ", shape[along]);
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (std::int64_t size : sizes) {
    parts.push_back(slice_along(operand, along, start, start + size));
    start += size;
  }
  return parts;
}

std::vector<Tensor> split(In x, std::int64_t count, std::int64_t dimension) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("split", x);
  int along = normalize_dimension(dimension, operand.shape().rank(), "split", where);
  std::int64_t size = operand.shape()[along];
  if (count < 1 || size % count != 0)
    throw_invalid(where, "[split] dimension ", along, " = ", size, " of ", operand.type(),
                  " cannot be cut into ", count, " equal parts");
  return split_sizes(In(operand, where), Dimensions(static_cast<std::size_t>(count), size / count),
                     along);
}

namespace {

// Inserts a dimension of size `times` before dimension `before` of x, with a copy for each index.
Tensor with_copies(const Tensor& x, std::int64_t before, std::int64_t times) {
  Dimensions sizes = x.shape().sizes(), kept;
  for (std::int64_t d = 0; d < x.rank(); ++d) kept.push_back(d < before ? d : d + 1);
  sizes.insert(sizes.begin() + before, times);
  return broadcast_in_dim(x, Shape(std::move(sizes)), std::move(kept));
}

void check_repetitions(std::string_view name, std::int64_t times, SourceLocation where) {
  if (times < 0)
    throw_invalid(where, "[", name, "] ", times,
                  " repetitions are invalid: the number cannot be negative");
}

// The operand and the dimension to repeat along.
std::pair<Tensor, int> slices_of(std::string_view name, const In& x,
                                 std::optional<std::int64_t> dimension, SourceLocation where) {
  Tensor operand = operand_tensor(name, x);
  if (!dimension) return {flatten(operand), 0};
  return {operand, normalize_dimension(*dimension, operand.shape().rank(), name, where)};
}

}  // namespace

Tensor repeat(In x, std::int64_t repeats, std::optional<std::int64_t> dimension) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  check_repetitions("repeat", repeats, where);
  auto [operand, along] = slices_of("repeat", x, dimension, where);
  Dimensions sizes = operand.shape().sizes();
  sizes[static_cast<std::size_t>(along)] *= repeats;
  return reshape(with_copies(operand, along + 1, repeats), std::move(sizes));
}

Tensor repeat(In x, const Dimensions& repeats, std::optional<std::int64_t> dimension) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  auto [operand, along] = slices_of("repeat", x, dimension, where);
  std::int64_t size = operand.shape()[along];
  if (static_cast<std::int64_t>(repeats.size()) != size)
    throw_invalid(where, "[repeat] ", repeats.size(), " numbers of repetitions for dimension ",
                  along, " = ", size, " of ", operand.type());
  std::vector<std::int32_t> from;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    check_repetitions("repeat", repeats[i], where);
    from.insert(from.end(), static_cast<std::size_t>(repeats[i]), static_cast<std::int32_t>(i));
  }
  if (from.empty()) return slice_along(operand, along, 0, 0);
  return take(operand, constant(HostArray::from_vector(std::move(from))), along);
}

Tensor tile(In x, Dimensions repetitions) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("tile", x);
  Dimensions sizes = operand.shape().sizes();
  while (sizes.size() < repetitions.size()) sizes.insert(sizes.begin(), 1);
  while (repetitions.size() < sizes.size()) repetitions.insert(repetitions.begin(), 1);
  Tensor result = reshape(operand, sizes);
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    check_repetitions("tile", repetitions[d], where);
    if (repetitions[d] == 1) continue;
    sizes[d] *= repetitions[d];
    result = reshape(with_copies(result, static_cast<std::int64_t>(d), repetitions[d]), sizes);
  }
  return result;
}

Tensor roll(In x, std::int64_t shift, std::optional<std::int64_t> dimension) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  auto [operand, along] = slices_of("roll", x, dimension, where);
  std::int64_t size = operand.shape()[along];
  std::int64_t by = size == 0 ? 0 : ((shift % size) + size) % size;
  Tensor moved = operand;
  if (by != 0)
    moved = concat(
        {slice_along(operand, along, size - by, size), slice_along(operand, along, 0, size - by)},
        along);
  return dimension ? moved : reshape(moved, operand_tensor("roll", x).shape());
}

Tensor roll(In x, Dimensions shifts, Dimensions dimensions) {
  SourceScope line(x.where);
  if (shifts.size() != dimensions.size())
    throw_invalid(effective_source(x.where), "[roll] ", shifts.size(), " shifts for ",
                  dimensions.size(), " dimensions");
  Tensor result = operand_tensor("roll", x);
  for (std::size_t i = 0; i < shifts.size(); ++i) result = roll(result, shifts[i], dimensions[i]);
  return result;
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, GridOrder order,
                             SourceLocation where) {
  SourceScope line(where);
  where = effective_source(where);
  Dimensions sizes, along;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const TensorType& type = vectors[i].type(where);
    if (type.rank() != 1 || type.dtype != vectors[0].dtype())
      throw_invalid(where, "[meshgrid] takes vectors of one dtype: vector 0 is ", vectors[0].type(),
                    ", vector ", i, " is ", type);
    sizes.push_back(type.shape[0]);
    along.push_back(static_cast<std::int64_t>(i));
  }
  if (order == GridOrder::kXy && vectors.size() >= 2) {
    std::swap(sizes[0], sizes[1]);
    std::swap(along[0], along[1]);
  }
  std::vector<Tensor> grids;
  for (std::size_t i = 0; i < vectors.size(); ++i)
    grids.push_back(broadcast_in_dim(vectors[i], Shape(sizes), {along[i]}));
  return grids;
}

Shape broadcast_shapes(const std::vector<Shape>& shapes, SourceLocation where) {
  Dimensions sizes;  // in reverse order: the last dimension first
  std::vector<std::size_t> from;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    const Dimensions& own = shapes[k].sizes();
    for (std::size_t i = 0; i < own.size(); ++i) {
      std::int64_t size = own[own.size() - 1 - i];
      if (i == sizes.size()) {
        sizes.push_back(size);
        from.push_back(k);
      } else if (sizes[i] == 1) {
        sizes[i] = size;
        from[i] = k;
      } else if (size != 1 && size != sizes[i]) {
        throw_invalid(effective_source(where), "[broadcast_shapes] shape ", from[i], " = ",
                      shapes[from[i]], " and shape ", k, " = ", shapes[k],
                      " do not broadcast: ", sizes[i], " and ", size);
      }
    }
  }
  std::reverse(sizes.begin(), sizes.end());
  return Shape(std::move(sizes));
}

std::vector<Tensor> broadcast_arrays(const std::vector<Tensor>& tensors, SourceLocation where) {
  SourceScope line(where);
  std::vector<Shape> shapes;
  for (const Tensor& tensor : tensors) shapes.push_back(tensor.shape(where));
  Shape shape = broadcast_shapes(shapes, where);
  std::vector<Tensor> stretched;
  for (const Tensor& tensor : tensors) stretched.push_back(broadcast_to(tensor, shape));
  return stretched;
}

}  // namespace meshard
