// Operations that move elements, and those that make them of nothing.
#include <algorithm>

#include "tests/property/sharded_program/draw.h"
#include "tests/property/sharded_program/host_value.h"

namespace meshard::property {
namespace {

using Known = Draw::Known;
using Numbers = std::vector<std::int64_t>;

bool has_dimensions(const Known& value) { return value.type().rank() > 0; }
bool draw_any(Draw& draw, Step& step) { return draw.take(step, has_dimensions); }

bool draw_permutation(Draw& draw, Step& step) {
  if (!draw_any(draw, step)) return false;
  step.lists.push_back(draw.permutation(draw.operand(step, 0).type().rank()));
  return true;
}

// Neighboring dimensions are merged, and one is split.
bool draw_reshape(Draw& draw, Step& step) {
  if (!draw_any(draw, step)) return false;
  Shape shape = draw.operand(step, 0).type().shape;
  Numbers sizes(shape.begin(), shape.end());
  if (sizes.size() > 1 && !draw.one_in(3)) {
    int d = draw.between(0, static_cast<int>(sizes.size()) - 2);
    sizes[d] *= sizes[d + 1];
    sizes.erase(sizes.begin() + d + 1);
  }
  if (sizes.size() < 4 && !draw.one_in(3)) {
    int d = draw.between(0, static_cast<int>(sizes.size()) - 1);
    std::int64_t part = draw.between(1, static_cast<int>(std::max<std::int64_t>(sizes[d], 1)));
    while (sizes[d] % part != 0) --part;
    sizes[d] /= part;
    sizes.insert(sizes.begin() + d + draw.between(0, 1), part);
  }
  step.lists.push_back(sizes);
  return true;
}

bool draw_broadcast(Draw& draw, Step& step) {
  if (!draw.take(step, [](const Known& value) { return value.type().rank() < 3; })) return false;
  Shape shape = draw.operand(step, 0).type().shape;
  Numbers sizes(shape.begin(), shape.end());
  for (std::int64_t& size : sizes)
    if (size == 1) size = draw.extent();
  sizes.insert(sizes.begin(), draw.extent());
  step.lists.push_back(sizes);
  return true;
}

bool draw_slice(Draw& draw, Step& step) {
  if (!draw_any(draw, step)) return false;
  Numbers start, stop, stride;
  for (std::int64_t size : draw.operand(step, 0).type().shape) {
    bool whole = draw.one_in(2);
    std::int64_t first = whole ? 0 : draw.between(0, static_cast<int>(size - 1));
    start.push_back(first);
    stop.push_back(whole ? size
                         : draw.between(static_cast<int>(first + 1), static_cast<int>(size)));
    stride.push_back(draw.one_in(3) ? draw.between(1, 3) : 1);
  }
  step.lists = {start, stop, stride};
  return true;
}

bool draw_some_dimensions(Draw& draw, Step& step) {
  if (!draw_any(draw, step)) return false;
  step.lists.push_back(draw.some_dimensions(draw.operand(step, 0).type().rank()));
  return true;
}

bool draw_concat(Draw& draw, Step& step) {
  if (!draw_any(draw, step)) return false;
  TensorType type = draw.operand(step, 0).type();
  int d = draw.between(0, type.rank() - 1);
  step.lists.push_back({d});
  return draw.take_type(step, {type.dtype, type.shape.with(d, draw.extent())});
}

bool draw_stack(Draw& draw, Step& step) {
  if (!draw.take(step, [](const Known& value) { return value.type().rank() < 3; })) return false;
  TensorType type = draw.operand(step, 0).type();
  step.lists.push_back({draw.between(0, type.rank())});
  return draw.take_type(step, type);
}

bool draw_take(Draw& draw, Step& step) {
  if (!draw_any(draw, step)) return false;
  step.lists.push_back({draw.between(0, draw.operand(step, 0).type().rank() - 1)});
  return draw.take_type(step, {DType::i32, draw.shape(1, 2)});
}

bool draw_take_along(Draw& draw, Step& step) {
  if (!draw_any(draw, step)) return false;
  Shape shape = draw.operand(step, 0).type().shape;
  int d = draw.between(0, shape.rank() - 1);
  step.lists.push_back({d});
  return draw.take_type(step, {DType::i32, shape.with(d, draw.extent())});
}

bool draw_one_hot(Draw& draw, Step& step) {
  step.lists.push_back({draw.between(1, 6)});
  return draw.take(step, [](const Known& value) {
    return is_integer(value.type().dtype) && value.type().rank() < 3;
  });
}

bool draw_triangle(Draw& draw, Step& step) {
  step.lists.push_back({draw.between(-1, 1)});
  return draw.take(step, [](const Known& value) {
    return value.type().rank() >= 2 && value.type().dtype != DType::bool_;
  });
}

bool draw_part(Draw& draw, Step& step) {
  if (!draw_any(draw, step)) return false;
  Shape shape = draw.operand(step, 0).type().shape;
  int d = draw.between(0, shape.rank() - 1);
  std::int64_t count = draw.between(1, static_cast<int>(shape[d]));
  while (shape[d] % count != 0) --count;
  step.lists = {{count}, {d}, {draw.between(0, static_cast<int>(count) - 1)}};
  return true;
}

// The order of inexact numbers would be a matter of luck, but on the host too.
bool draw_sort(Draw& draw, Step& step) {
  bool any = draw.kind() == Kind::kTransforms;
  if (!draw.take(step, [&](const Known& value) {
        return has_dimensions(value) && (any || value.bounds.error == 0);
      }))
    return false;
  step.lists.push_back({draw.between(0, draw.operand(step, 0).type().rank() - 1)});
  return true;
}
bool draw_window(Draw& draw, Step& step) {
  if (!draw_any(draw, step)) return false;
  Shape shape = draw.operand(step, 0).type().shape;
  int d = draw.between(0, shape.rank() - 1);
  std::int64_t size = draw.between(1, static_cast<int>(shape[d]));
  Shape window = shape.with(d, size);
  step.lists = {{d}, {size}, {window.begin(), window.end()}};
  return draw.take_type(step, {DType::i32, Shape{}});
}

bool draw_random(Draw& draw, Step& step) {
  // A key is a full value, which the bodies of a manual function may not capture.
  if (draw.in_stage()) return false;
  Shape shape = draw.shape(0, 3);
  step.lists = {{draw.between(0, 9)}, {shape.begin(), shape.end()}};
  return true;
}
bool draw_iota(Draw& draw, Step& step) {
  Shape shape = draw.shape(1, 3);
  DType dtype = draw.number_dtype();
  step.lists = {{static_cast<std::int64_t>(dtype)},
                {shape.begin(), shape.end()},
                {draw.between(0, shape.rank() - 1)}};
  return true;
}

Bounds half_unit(const Arguments&, const TensorType& result) { return rounded(result, 1, 0); }
Bounds standard_normal(const Arguments&, const TensorType& result) {
  return rounded(result, 6, 0, 64);
}
Bounds any_whole(const Arguments&, const TensorType& result) { return rounded(result, 1e300, 0); }
Bounds small_whole(const Arguments&, const TensorType&) { return {16, 0}; }

// Gradients through take are left out: they are scattered, and XLA's partitioner adds what is
// in the padding of uneven updates to the first element.
const Operation kMovements[] = {
    {"permute_dims", MESHARD_CALL(permute_dims(A(0), L(0))), draw_permutation, moved, true, 4,
     host::permute_dims},
    {"reshape", MESHARD_CALL(reshape(A(0), S(0))), draw_reshape, moved, true, 6, host::reshape},
    {"broadcast_to", MESHARD_CALL(broadcast_to(A(0), S(0))), draw_broadcast, moved, true, 3,
     host::broadcast_to},
    {"slice", MESHARD_CALL(slice(A(0), L(0), L(1), L(2))), draw_slice, moved, true, 4,
     host::slice_of},
    {"flip", MESHARD_CALL(flip(A(0), L(0))), draw_some_dimensions, moved, true, 2, host::flip},
    {"concat", MESHARD_CALL(concat({A(0), A(1)}, N(0))), draw_concat, moved, true, 4, host::concat},
    {"stack", MESHARD_CALL(stack({A(0), A(1)}, N(0))), draw_stack, moved, true, 2, host::stack},
    {"split", MESHARD_CALL(split(A(0), N(0), N(1)).at(N(2))), draw_part, moved, true},
    // Computed indices, because known ones that are out of range are errors.
    {"take", MESHARD_CALL(take(A(0), A(1) + 0, N(0))), draw_take, moved, true, 3},
    {"take_along_axis", MESHARD_CALL(take_along_axis(A(0), A(1) + 0, N(0))), draw_take_along, moved,
     true, 1},
    {"one_hot", MESHARD_CALL(one_hot(A(0), N(0))), draw_one_hot,
     [](const Arguments&, const TensorType&) {
       return Bounds{1, 0};
     },
     false, 1},
    {"tril", MESHARD_CALL(tril(A(0), N(0))), draw_triangle, moved, true, 1},
    {"sort", MESHARD_CALL(sort(A(0), N(0))), draw_sort, moved, true, 1, host::sort},
    {"dynamic_slice", MESHARD_CALL([&] {
       std::vector<In> starts;
       for (int d = 0; d < A(0).type().rank(); ++d) starts.push_back(d == N(0) ? In(A(1)) : In(0));
       return dynamic_slice(A(0), starts, L(2));
     }()),
     draw_window, [](const Arguments& args, const TensorType&) { return args.bounds[0]; }, true, 2,
     host::dynamic_slice},
    {"iota", MESHARD_CALL(iota(D(0), S(1), N(2))), draw_iota, small_whole, true},
    {"uniform", MESHARD_CALL(random::uniform(random::key(N(0)), S(1))), draw_random, half_unit,
     true, 1},
    {"normal", MESHARD_CALL(random::normal(random::key(N(0)), S(1))), draw_random, standard_normal,
     true, 1},
    {"bits", MESHARD_CALL(random::bits(random::key(N(0)), S(1))), draw_random, any_whole, false, 1},
};

}  // namespace

std::span<const Operation> movement_operations() { return kMovements; }

}  // namespace meshard::property
