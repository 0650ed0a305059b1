// Samples of ops that make, move and select elements.
#include "meshard/ops/all.h"
#include "tests/support/op_samples/op_samples.h"

namespace meshard {
using namespace internal;
namespace {

using Scatter = Tensor (*)(In, In, In, ScatterDimensions, bool, bool);

std::vector<OpSample> iota_samples(SampleSource&) {
  auto of = [](DType dtype, Shape shape, std::int64_t dimension) {
    return [=](std::span<const Tensor>) { return iota(dtype, shape, dimension); };
  };
  return {
      {"vector", {}, of(DType::i32, {8}, 0), false},
      {"rows", {}, of(DType::f32, {4, 8}, 0), false},
      {"columns", {}, of(DType::u32, {4, 8}, -1), false},
      {"middle of rank 3", {}, of(DType::i64, {4, 2, 8}, 1), false},
  };
}

std::vector<OpSample> gather_samples(SampleSource& source) {
  auto by = [](GatherDimensions dims, Dimensions slice_sizes, bool sorted = false) {
    return [=](std::span<const Tensor> x) { return gather(x[0], x[1], dims, slice_sizes, sorted); };
  };
  DType f32 = DType::f32, f64 = DType::f64, i32 = DType::i32;
  return {
      {"rows",
       {source.uniform(f64, {8, 4}), source.uniform(i32, {12}, 0, 7)},
       by({.offset_dims = {1},
           .collapsed_slice_dims = {0},
           .start_index_map = {0},
           .index_vector_dim = 1},
          {1, 4})},
      {"columns, outside",
       {source.uniform(f64, {4, 8}), source.uniform(i32, {4}, -3, 12)},
       by({.offset_dims = {0},
           .collapsed_slice_dims = {1},
           .start_index_map = {1},
           .index_vector_dim = 1},
          {4, 1})},
      {"points",
       {source.uniform(f64, {4, 8}), source.uniform(i32, {8, 2}, 0, 3)},
       by({.collapsed_slice_dims = {0, 1}, .start_index_map = {1, 0}, .index_vector_dim = 1},
          {1, 1})},
      {"boxes, outside",
       {source.uniform(f64, {6, 8}), source.uniform(DType::i8, {2, 4}, -2, 9)},
       by({.offset_dims = {1, 2}, .start_index_map = {0, 1}, .index_vector_dim = 0}, {2, 3})},
      {"batches",
       {source.uniform(f64, {4, 8, 2}), source.uniform(i32, {4, 3, 1}, 0, 7)},
       by({.offset_dims = {2},
           .collapsed_slice_dims = {1},
           .operand_batching_dims = {0},
           .start_indices_batching_dims = {0},
           .start_index_map = {1},
           .index_vector_dim = 2},
          {1, 1, 2})},
      {"one slice",
       {source.uniform(f32, {8, 4}), source.uniform(DType::i64, {}, 0, 7)},
       by({.offset_dims = {0}, .collapsed_slice_dims = {0}, .start_index_map = {0}}, {1, 4}, true)},
      {"unsigned",
       {source.uniform(f32, {8}), source.uniform(DType::u8, {4, 1}, 0, 9)},
       by({.collapsed_slice_dims = {0}, .start_index_map = {0}, .index_vector_dim = 1}, {1})},
  };
}

std::vector<OpSample> permute_dims_samples(SampleSource& source) {
  auto by = [](Dimensions permutation) {
    return [=](std::span<const Tensor> x) { return permute_dims(x[0], permutation); };
  };
  return {
      {"matrix", {source.uniform(DType::f64, {4, 8})}, by({1, 0})},
      {"cycle", {source.uniform(DType::f64, {4, 8, 12})}, by({2, 0, 1})},
      {"reversed",
       {source.uniform(DType::f32, {4, 8, 12})},
       [](std::span<const Tensor> x) { return permute_dims(x[0]); }},
      {"vector", {source.uniform(DType::f32, {8})}, by({0})},
      {"bools", {source.uniform(DType::bool_, {4, 8})}, by({-1, 0})},
      {"rank 4", {source.uniform(DType::f32, {2, 4, 1, 8})}, by({3, 1, 0, 2})},
  };
}

std::vector<OpSample> flip_samples(SampleSource& source) {
  auto along = [](DimensionList dimensions) {
    return [=](std::span<const Tensor> x) { return flip(x[0], dimensions); };
  };
  return {
      {"vector", {source.uniform(DType::f64, {8})}, along({})},
      {"rows", {source.uniform(DType::f64, {4, 8})}, along(0)},
      {"two of three", {source.uniform(DType::f32, {4, 8, 4})}, along({0, -1})},
      {"none", {source.uniform(DType::f32, {4, 8})}, along(Dimensions{})},
      {"bools", {source.uniform(DType::bool_, {8})}, along(0)},
  };
}

std::vector<OpSample> concat_samples(SampleSource& source) {
  auto along = [](std::int64_t dimension) {
    return [=](std::span<const Tensor> x) { return concat({x.begin(), x.end()}, dimension); };
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"vectors", {source.uniform(f64, {4}), source.uniform(f64, {8})}, along(0)},
      {"columns", {source.uniform(f64, {8, 4}), source.uniform(f64, {8, 4})}, along(1)},
      {"three",
       {source.uniform(f64, {4, 2}), source.uniform(f64, {8, 2}), source.uniform(f64, {3, 2})},
       along(0)},
      {"middle", {source.uniform(f32, {4, 4, 8}), source.uniform(f32, {4, 12, 8})}, along(-2)},
      {"one", {source.uniform(f32, {4, 8})}, along(0)},
      {"empty part", {source.uniform(f32, {4, 0}), source.uniform(f32, {4, 8})}, along(1)},
      {"promoted",
       {source.uniform(DType::i32, {4}, -9, 9), source.uniform(f32, {4})},
       along(0),
       false},
  };
}

std::vector<OpSample> pad_samples(SampleSource& source) {
  auto by = [](Dimensions low, Dimensions high, Dimensions interior) {
    return [=](std::span<const Tensor> x) { return pad(x[0], x[1], low, high, interior); };
  };
  auto value = [&](DType dtype) { return source.uniform(dtype, {}); };
  DType f64 = DType::f64, f32 = DType::f32;
  return {
      {"edges", {source.uniform(f64, {4, 8}), value(f64)}, by({1, 0}, {3, 0}, {})},
      {"doubled", {source.uniform(f32, {8}), value(f32)}, by({0}, {8}, {})},
      {"interior", {source.uniform(f64, {4, 4}), value(f64)}, by({1, 0}, {0, 2}, {2, 1})},
      {"negative", {source.uniform(f64, {8, 8}), value(f64)}, by({-2, 1}, {1, -3}, {0, 0})},
      {"negative in the gap", {source.uniform(f64, {5}), value(f64)}, by({-2}, {-1}, {2})},
      {"rank 3", {source.uniform(f32, {4, 2, 8}), value(f32)}, by({0, 1, 0}, {0, 1, 4}, {0, 0, 0})},
      {"nothing", {source.uniform(f64, {0, 4}), value(f64)}, by({2, 0}, {2, 0}, {1, 0})},
      {"scalar", {source.uniform(f32, {}), value(f32)}, by({}, {}, {})},
      {"by a number",
       {source.uniform(f64, {4, 8})},
       [](std::span<const Tensor> x) {
         return pad(x[0], 0.5, {0, 4}, {0, 4});
       }},
      {"edges and gaps by a number",
       {source.uniform(f64, {7})},
       [](std::span<const Tensor> x) { return pad(x[0], 0.5, {2}, {3}, {1}); }},
  };
}

std::vector<OpSample> broadcast_in_dim_samples(SampleSource& source) {
  auto to = [](Shape shape, Dimensions dimensions) {
    return [=](std::span<const Tensor> x) { return broadcast_in_dim(x[0], shape, dimensions); };
  };
  return {
      {"a row to rows", {source.uniform(DType::f32, {8})}, to({4, 8}, {1})},
      {"a column to columns", {source.uniform(DType::f64, {4})}, to({4, 8}, {0})},
      {"size 1", {source.uniform(DType::f64, {4, 1})}, to({4, 8}, {0, 1})},
      {"size 1 and new", {source.uniform(DType::f64, {1, 4})}, to({8, 2, 4}, {1, 2})},
      {"scalar", {source.uniform(DType::f64, {})}, to({4, 4}, {})},
      {"same shape", {source.uniform(DType::f32, {4, 1})}, to({4, 1}, {0, 1})},
      {"to nothing", {source.uniform(DType::f32, {1})}, to({0, 4}, {0})},
      {"integers", {source.uniform(DType::i32, {4}, -9, 9)}, to({4, 4}, {1})},
  };
}

std::vector<OpSample> scatter_samples(SampleSource& source, Scatter op) {
  auto by = [op](ScatterDimensions dims, bool unique = false) {
    return [=](std::span<const Tensor> x) { return op(x[0], x[1], x[2], dims, false, unique); };
  };
  DType f32 = DType::f32, f64 = DType::f64, i32 = DType::i32;
  // All elements are distinct: the derivative of the smallest and the largest jumps where they are
  // equal.
  auto of = [&](DType dtype, Shape operand, HostArray indices, Shape updates) {
    std::vector<double> all =
        source.distinct(DType::f64, {operand.size() + updates.size()}, 1).to_vector<double>();
    auto middle = all.begin() + operand.size();
    double scale = dtype == i32 ? 2 : 0.125;
    for (double& value : all) value *= scale;
    auto array = [&](auto begin, auto end, Shape& shape) {
      return HostArray::from_vector(std::vector<double>(begin, end), std::move(shape))
          .astype(dtype);
    };
    return std::vector<HostArray>{array(all.begin(), middle, operand), std::move(indices),
                                  array(middle, all.end(), updates)};
  };
  ScatterDimensions rows{.update_window_dims = {1},
                         .inserted_window_dims = {0},
                         .scatter_dims_to_operand_dims = {0},
                         .index_vector_dim = 1};
  ScatterDimensions batches{.update_window_dims = {2},
                            .inserted_window_dims = {1},
                            .input_batching_dims = {0},
                            .scatter_indices_batching_dims = {0},
                            .scatter_dims_to_operand_dims = {1},
                            .index_vector_dim = 2};
  HostArray apart = HostArray::from_vector<std::int32_t>({3, 0, 7, 4});
  return {
      {"rows apart", of(f64, {8, 4}, apart, {4, 4}), by(rows, true)},
      {"rows", of(f64, {8, 4}, source.uniform(i32, {12}, 0, 7), {12, 4}), by(rows)},
      {"rows, outside", of(f64, {4, 8}, source.uniform(i32, {8}, -2, 5), {8, 8}), by(rows)},
      {"integers", of(i32, {8, 4}, source.uniform(i32, {4}, 0, 7), {4, 4}), by(rows)},
      {"points", of(f64, {4, 8}, source.uniform(i32, {2, 8}, 0, 3), {8}),
       by({.inserted_window_dims = {0, 1}, .scatter_dims_to_operand_dims = {1, 0}})},
      {"boxes, outside", of(f64, {6, 8}, source.uniform(DType::i8, {4, 2}, -2, 7), {2, 4, 3}),
       by({.update_window_dims = {0, 2},
           .scatter_dims_to_operand_dims = {0, 1},
           .index_vector_dim = 1})},
      {"batches", of(f64, {4, 8, 2}, source.uniform(i32, {4, 3, 1}, 0, 7), {4, 3, 2}), by(batches)},
      {"one window of a batch of one",
       of(f64, {1, 8, 2}, source.uniform(i32, {1, 1, 1}, 0, 7), {1, 1, 2}), by(batches)},
      {"one window", of(f32, {8, 4}, source.uniform(i32, {}, 0, 7), {4}),
       by({.update_window_dims = {0},
           .inserted_window_dims = {0},
           .scatter_dims_to_operand_dims = {0}})},
  };
}

std::vector<OpSample> slice_samples(SampleSource& source) {
  auto take = [](Dimensions start, Dimensions stop, Dimensions stride) {
    return [=](std::span<const Tensor> x) { return slice(x[0], start, stop, stride); };
  };
  return {
      {"half", {source.uniform(DType::f64, {16})}, take({4}, {12}, {})},
      {"strided", {source.uniform(DType::f64, {16, 4})}, take({1, 0}, {16, 4}, {2, 1})},
      {"uneven stride", {source.uniform(DType::f64, {8, 7})}, take({0, 1}, {8, 6}, {1, 3})},
      {"a row", {source.uniform(DType::f32, {4, 8})}, take({2, 0}, {3, 8}, {1, 1})},
      {"box", {source.uniform(DType::f32, {4, 8, 12})}, take({1, 0, 2}, {3, 8, 11}, {1, 4, 3})},
      {"nothing", {source.uniform(DType::f64, {4, 8})}, take({2, 0}, {2, 8}, {3, 1})},
      {"integers", {source.uniform(DType::i32, {8}, -9, 9)}, take({2}, {6}, {1})},
  };
}

std::vector<OpSample> dynamic_slice_samples(SampleSource& source) {
  auto take = [](Dimensions sizes) {
    return [=](std::span<const Tensor> x) {
      return dynamic_slice(x[0], {x.begin() + 1, x.end()}, sizes);
    };
  };
  auto start = [&](double low, double high, DType dtype = DType::i32) {
    return source.uniform(dtype, {}, low, high);
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"vector", {source.uniform(f64, {16}), start(0, 8)}, take({8})},
      {"rows", {source.uniform(f64, {8, 4}), start(0, 4), start(0, 0)}, take({4, 4})},
      {"outside", {source.uniform(f64, {8, 4}), start(-9, -1), start(7, 9)}, take({2, 3})},
      {"all",
       {source.uniform(f32, {4, 8, 4}), start(0, 3), start(0, 3), start(0, 3)},
       take({4, 8, 4})},
      {"nothing", {source.uniform(f64, {4, 8}), start(0, 3), start(0, 3)}, take({0, 8})},
      {"narrow indices", {source.uniform(f32, {8}), start(0, 4, DType::u8)}, take({4})},
      {"integers", {source.uniform(DType::i32, {8}, -9, 9), start(0, 4)}, take({4})},
  };
}

std::vector<OpSample> dynamic_update_slice_samples(SampleSource& source) {
  auto call = [](std::span<const Tensor> x) {
    return dynamic_update_slice(x[0], x[1], {x.begin() + 2, x.end()});
  };
  auto start = [&](double low, double high) { return source.uniform(DType::i32, {}, low, high); };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"vector", {source.uniform(f64, {16}), source.uniform(f64, {8}), start(0, 8)}, call},
      {"a row",
       {source.uniform(f64, {8, 4}), source.uniform(f64, {1, 4}), start(0, 7), start(0, 0)},
       call},
      {"outside",
       {source.uniform(f64, {8, 4}), source.uniform(f64, {2, 3}), start(-9, -1), start(7, 9)},
       call},
      {"all",
       {source.uniform(f32, {4, 8}), source.uniform(f32, {4, 8}), start(0, 3), start(0, 3)},
       call},
      {"nothing", {source.uniform(f64, {4}), source.uniform(f64, {0}), start(0, 3)}, call},
  };
}

std::vector<OpSample> layer_slice_samples(SampleSource& source) {
  auto number = [](std::int64_t layer) {
    return [=](std::span<const Tensor> x) { return layer_slice(x[0], layer); };
  };
  return {
      {"first", {source.uniform(DType::f64, {4, 8})}, number(0)},
      {"last", {source.uniform(DType::f32, {4, 8, 12})}, number(3)},
      {"scalars", {source.uniform(DType::f64, {8})}, number(5)},
      {"one layer", {source.uniform(DType::f32, {1, 4, 8})}, number(0)},
      {"integers", {source.uniform(DType::i32, {4, 8}, -9, 9)}, number(2)},
  };
}

std::vector<OpSample> sort_samples(SampleSource& source) {
  auto along = [](std::int64_t dimension, bool descending = false) {
    return [=](std::span<const Tensor> x) { return sort(x[0], dimension, descending); };
  };
  auto second = [](std::span<const Tensor> x) { return sort({x[0], x[1]}, 0)[1]; };
  auto by_two = [](std::span<const Tensor> x) { return sort({x[0], x[1], x[2]}, 1, true, 2)[2]; };
  DType f32 = DType::f32, f64 = DType::f64, i32 = DType::i32;
  HostArray odd = HostArray::from_vector<float>({1, NAN, NAN, 1, 0, -0.0f, NAN, 1}, {2, 4});
  return {
      {"vector", {source.distinct(f64, {8})}, along(0)},
      {"rows", {source.distinct(f64, {4, 8})}, along(-1)},
      {"columns, descending", {source.distinct(f64, {4, 8})}, along(0, true)},
      {"middle", {source.distinct(f32, {4, 3, 8})}, along(1)},
      {"ties", {source.uniform(i32, {4, 8}, -2, 2)}, along(1, true)},
      {"bools", {source.uniform(DType::bool_, {8}, 0, 1)}, along(0)},
      {"bytes", {source.uniform(DType::u8, {8}, 0, 9)}, along(0)},
      {"by ties", {source.uniform(i32, {8, 4}, 0, 2), source.uniform(f64, {8, 4})}, second},
      {"by two keys",
       {source.uniform(i32, {4, 8}, 0, 2), source.uniform(i32, {4, 8}, 0, 2),
        source.uniform(f64, {4, 8})},
       by_two},
      {"by two keys with NaN",
       {odd, source.uniform(i32, {2, 4}, 0, 1), source.uniform(f32, {2, 4})},
       by_two},
      {"empty", {source.uniform(f32, {0, 4})}, along(0)},
  };
}

}  // namespace

const OpSampleTable& movement_samples() {
  static const OpSampleTable table{
      {"constant",
       [](SampleSource& source) {
         HostArray value = source.uniform(DType::f32, {4, 8});
         return std::vector<OpSample>{
             {"matrix", {}, [value](auto) { return constant(value); }, false},
             {"one value everywhere",
              {},
              [](auto) {
                return constant(HostArray::full<float>({4, 8}, 2.5f));
              },
              false},
             {"bools",
              {},
              [](auto) {
                return constant(HostArray::from_vector<bool>({true, false, true}));
              },
              false},
         };
       }},
      {"iota", iota_samples},
      {"gather", gather_samples},
      {"permute_dims", permute_dims_samples},
      {"flip", flip_samples},
      {"concat", concat_samples},
      {"pad", pad_samples},
      {"reshape",
       [](SampleSource& source) {
         auto to = [](Shape shape) {
           return [shape](std::span<const Tensor> x) { return reshape(x[0], shape); };
         };
         return std::vector<OpSample>{
             {"split", {source.uniform(DType::f32, {16})}, to({4, 4})},
             {"merge", {source.uniform(DType::f64, {4, 8})}, to({32})},
             {"merge and split", {source.uniform(DType::f32, {4, 6, 8})}, to({24, 2, 4})},
             {"uneven parts", {source.uniform(DType::f64, {6, 4, 8})}, to({4, 6, 8})},
             {"ones", {source.uniform(DType::f64, {1, 8, 1})}, to({8, 1})},
             {"to a scalar", {source.uniform(DType::f32, {1, 1})}, to({})},
             {"empty", {source.uniform(DType::f32, {0, 4})}, to({2, 0})},
             {"bools", {source.uniform(DType::bool_, {4, 2})}, to({8})},
         };
       }},
      {"broadcast_in_dim", broadcast_in_dim_samples},
      {"scatter_add", [](SampleSource& source) { return scatter_samples(source, scatter_add); }},
      {"scatter_set", [](SampleSource& source) { return scatter_samples(source, scatter_set); }},
      {"scatter_multiply",
       [](SampleSource& source) { return scatter_samples(source, scatter_multiply); }},
      {"scatter_min", [](SampleSource& source) { return scatter_samples(source, scatter_min); }},
      {"scatter_max", [](SampleSource& source) { return scatter_samples(source, scatter_max); }},
      {"slice", slice_samples},
      {"dynamic_slice", dynamic_slice_samples},
      {"dynamic_update_slice", dynamic_update_slice_samples},
      {"layer_slice", layer_slice_samples},
      {"sort", sort_samples},
  };
  return table;
}

}  // namespace meshard
