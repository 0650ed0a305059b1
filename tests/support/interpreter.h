// A test oracle for recorded programs: computes a graph with plain loops, op by op, independently
// of StableHLO and of any compiler. Supports the element-wise ops, bitcast_convert, iota, constant,
// reshape, broadcast_in_dim, slice, concat, permute_dims, flip, pad, sum, max, min, any, all,
// cumulative_sum, dot_general of floats and gather.
//
// Floats are computed in double and rounded to the dtype after each op; integers wrap.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/graph/op_def.h"
#include "meshard/graph/tensor.h"
#include "meshard/ops/constant.h"
#include "meshard/ops/cumulative.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/dot_general.h"
#include "meshard/ops/gather.h"
#include "meshard/ops/movement.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/slicing.h"
#include "tests/support/element_wise_table.h"

namespace meshard {

class Interpreter {
 public:
  /// The value of `tensor`; leaves must be host arrays.
  HostArray run(const Tensor& tensor) { return to_host(evaluate(tensor.value())); }

 private:
  // Only one of the lists is used: `real` for floats, `whole` for integers and bools.
  struct Array {
    TensorType type;
    std::vector<double> real;
    std::vector<std::int64_t> whole;
    std::size_t size() const { return static_cast<std::size_t>(type.size()); }
    bool floating() const { return is_floating(type.dtype); }
  };

  static HostArray to_host(const Array& array) {
    if (array.floating())
      return HostArray::from_vector(array.real, array.type.shape).astype(array.type.dtype);
    if (array.type.dtype == DType::u64) {
      std::vector<std::uint64_t> values(array.whole.begin(), array.whole.end());
      return HostArray::from_vector(std::move(values), array.type.shape);
    }
    return HostArray::from_vector(array.whole, array.type.shape).astype(array.type.dtype);
  }
  static Array from_host(const HostArray& host) {
    Array array{host.type(), {}, {}};
    if (array.floating()) {
      array.real = host.astype(DType::f64).to_vector<double>();
    } else if (host.dtype() == DType::u64) {
      for (std::uint64_t value : host.data<std::uint64_t>())
        array.whole.push_back(static_cast<std::int64_t>(value));
    } else {
      array.whole = host.astype(DType::i64).to_vector<std::int64_t>();
    }
    return array;
  }

  static double rounded(DType dtype, double value) {
    return visit_dtype(dtype, [&]<class T>() {
      if constexpr (requires(T z) { z.imag; })
        return static_cast<double>(T(static_cast<decltype(T::real)>(value)).real);
      else
        return static_cast<double>(static_cast<T>(value));
    });
  }
  static std::int64_t wrapped(DType dtype, std::int64_t value) {
    if (dtype == DType::bool_) return value & 1;
    int bits = 8 * static_cast<int>(size_in_bytes(dtype));
    if (bits == 64) return value;
    auto kept = static_cast<std::uint64_t>(value) << (64 - bits);
    return is_signed(dtype) ? static_cast<std::int64_t>(kept) >> (64 - bits)
                            : static_cast<std::int64_t>(kept >> (64 - bits));
  }

  // Not recursive, because recorded chains are long.
  const Array& evaluate(const Value& wanted) {
    std::vector<const Node*> waiting{wanted.node()};
    while (!waiting.empty()) {
      const Node* node = waiting.back();
      std::size_t before = waiting.size();
      if (!done_.count(node))
        for (const Value& operand : node->operands())
          if (!done_.count(operand.node())) waiting.push_back(operand.node());
      if (waiting.size() != before) continue;
      waiting.pop_back();
      if (!done_.count(node)) done_.emplace(node, compute(*node));
    }
    return value_of(wanted);
  }

  // Skips ops that pass several values through.
  const Array& value_of(const Value& wanted) const {
    const Node* node = wanted.node();
    std::string_view name = node->op().name;
    bool passes = !node->storage() && (name == "custom_vjp" || name == "optimization_barrier");
    return passes ? value_of(node->operands()[wanted.index()]) : done_.at(node);
  }

  Array compute(const Node& node) {
    if (Storage* storage = node.storage()) return from_host(storage->to_host({}));
    std::vector<const Array*> in;
    for (const Value& operand : node.operands()) in.push_back(&value_of(operand));
    Array out{node.type(), {}, {}};
    if (structural(node, in, out)) return out;
    std::string_view name = node.op().name;
    std::size_t count = out.size();
    auto fill = [&](auto element) {
      for (std::size_t i = 0; i < count; ++i) {
        if constexpr (std::is_same_v<decltype(element(i)), double>)
          out.real.push_back(rounded(out.type.dtype, element(i)));
        else
          out.whole.push_back(wrapped(out.type.dtype, static_cast<std::int64_t>(element(i))));
      }
    };
    if (name == "where") {
      auto chosen = [&](std::size_t i) { return in[0]->whole[i] ? in[1] : in[2]; };
      if (out.floating())
        fill([&](std::size_t i) { return chosen(i)->real[i]; });
      else
        fill([&](std::size_t i) { return chosen(i)->whole[i]; });
    } else if (name == "bitcast_convert") {
      HostArray host = to_host(*in[0]);
      return from_host(HostArray::copy_of(out.type, host.bytes()));
    } else if (name == "astype") {
      return from_host(to_host(*in[0]).astype(out.type.dtype));
    } else if (in.size() == 1 && in[0]->floating()) {
      auto f = function_of(unary_ops(), name, &UnaryOp::real);
      if (out.floating())
        fill([&](std::size_t i) { return f(in[0]->real[i]); });
      else
        fill([&](std::size_t i) { return f(in[0]->real[i]) != 0; });
    } else if (in.size() == 1) {
      auto f = function_of(unary_ops(), name, &UnaryOp::whole);
      DType dtype = in[0]->type.dtype;
      fill([&](std::size_t i) { return f(in[0]->whole[i], dtype); });
    } else if (in.size() == 2 && in[0]->floating()) {
      auto f = function_of(binary_ops(), name, &BinaryOp::real);
      if (out.floating())
        fill([&](std::size_t i) { return f(in[0]->real[i], in[1]->real[i]); });
      else
        fill([&](std::size_t i) { return f(in[0]->real[i], in[1]->real[i]) != 0; });
    } else if (in.size() == 2) {
      auto f = function_of(binary_ops(), name, &BinaryOp::whole);
      DType dtype = in[0]->type.dtype;
      fill([&](std::size_t i) { return f(in[0]->whole[i], in[1]->whole[i], dtype); });
    } else if (name == "clip" && out.floating()) {
      fill([&](std::size_t i) {
        return std::min(std::max(in[0]->real[i], in[1]->real[i]), in[2]->real[i]);
      });
    } else if (name == "clip") {
      auto smaller = row_of(binary_ops(), "minimum")->whole;
      auto larger = row_of(binary_ops(), "maximum")->whole;
      DType dtype = out.type.dtype;
      fill([&](std::size_t i) {
        return smaller(larger(in[0]->whole[i], in[1]->whole[i], dtype), in[2]->whole[i], dtype);
      });
    } else {
      unknown(name);
    }
    return out;
  }

  [[noreturn]] static void unknown(std::string_view name) {
    throw Error(ErrorCode::kUnimplemented, cat("[interpreter] does not know ", name));
  }

  // For ops that move elements: element i of the result is element `from[i]` of the operand.
  static void gather(const Array& in, Array& out, const std::vector<std::size_t>& from) {
    for (std::size_t i : from) {
      if (out.floating())
        out.real.push_back(in.real[i]);
      else
        out.whole.push_back(in.whole[i]);
    }
  }
  // The index of element `flat` along each dimension.
  static std::vector<std::int64_t> index_of(const Shape& shape, std::size_t flat) {
    std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
    auto rest = static_cast<std::int64_t>(flat);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      index[static_cast<std::size_t>(d)] = rest % shape[d];
      rest /= shape[d];
    }
    return index;
  }
  static std::size_t flat_of(const Shape& shape, const std::vector<std::int64_t>& index) {
    std::int64_t flat = 0;
    for (int d = 0; d < shape.rank(); ++d)
      flat = flat * shape[d] + index[static_cast<std::size_t>(d)];
    return static_cast<std::size_t>(flat);
  }

  static bool keeps_elements(std::string_view name) {
    return name == "reshape" || name == "stop_gradient" || name == "sharding_constraint" ||
           name == "custom_vjp" || name == "optimization_barrier";
  }

  static void iota_along(std::int64_t dimension, Array& out) {
    std::size_t count = out.size();
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t value = index_of(out.type.shape, i)[static_cast<std::size_t>(dimension)];
      if (out.floating())
        out.real.push_back(rounded(out.type.dtype, static_cast<double>(value)));
      else
        out.whole.push_back(wrapped(out.type.dtype, value));
    }
  }

  // Dimension i of the result is dimension permutation[i] of the operand.
  static void permute(const Array& in, const Dimensions& permutation, Array& out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::vector<std::int64_t> index = index_of(out.type.shape, i), source(index.size());
      for (std::size_t d = 0; d < index.size(); ++d)
        source[static_cast<std::size_t>(permutation[d])] = index[d];
      gather(in, out, {flat_of(in.type.shape, source)});
    }
  }

  static bool structural(const Node& node, const std::vector<const Array*>& in, Array& out) {
    std::string_view name = node.op().name;
    const Shape& shape = out.type.shape;
    std::size_t count = out.size();
    std::vector<std::size_t> from;
    if (name == "constant") {
      out = from_host(node.attributes_as<ConstantAttributes>().value);
    } else if (name == "iota") {
      iota_along(node.attributes_as<IotaAttributes>().dimension, out);
    } else if (keeps_elements(name)) {
      for (std::size_t i = 0; i < count; ++i) from.push_back(i);
      gather(*in[0], out, from);
    } else if (name == "broadcast_in_dim") {
      const Dimensions& to = node.attributes_as<BroadcastInDimAttributes>().dimensions;
      const Shape& small = in[0]->type.shape;
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<std::int64_t> index = index_of(shape, i), source;
        for (std::size_t d = 0; d < to.size(); ++d)
          source.push_back(
              small[static_cast<int>(d)] == 1 ? 0 : index[static_cast<std::size_t>(to[d])]);
        from.push_back(flat_of(small, source));
      }
      gather(*in[0], out, from);
    } else if (name == "permute_dims") {
      permute(*in[0], node.attributes_as<PermuteDimsAttributes>().permutation, out);
    } else if (name == "slice") {
      const auto& [start, stop, stride] = node.attributes_as<SliceAttributes>();
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<std::int64_t> index = index_of(shape, i);
        for (std::size_t d = 0; d < index.size(); ++d)
          index[d] = start[d] + index[d] * (stride.empty() ? 1 : stride[d]);
        from.push_back(flat_of(in[0]->type.shape, index));
      }
      gather(*in[0], out, from);
    } else if (name == "concat") {
      auto dimension = static_cast<std::size_t>(node.attributes_as<ConcatAttributes>().dimension);
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<std::int64_t> index = index_of(shape, i);
        std::size_t part = 0;
        while (index[dimension] >= in[part]->type.shape[static_cast<int>(dimension)])
          index[dimension] -= in[part++]->type.shape[static_cast<int>(dimension)];
        gather(*in[part], out, {flat_of(in[part]->type.shape, index)});
      }
    } else if (name == "flip" || name == "pad") {
      rearrange(node, *in[0], in.size() > 1 ? in[1] : nullptr, out);
    } else if (name == "sum" || name == "max" || name == "max_of_numbers" || name == "min" ||
               name == "any" || name == "all" || name == "cumulative_sum") {
      reduce(node, *in[0], out);
    } else if (name == "dot_general") {
      dot(node.attributes_as<DotGeneralAttributes>(), *in[0], *in[1], out);
    } else if (name == "gather") {
      gather_slices(node.attributes_as<GatherAttributes>(), *in[0], *in[1], out);
    } else {
      return false;
    }
    return true;
  }

  static void rearrange(const Node& node, const Array& in, const Array* padding, Array& out) {
    std::string_view name = node.op().name;
    std::size_t count = out.size();
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::int64_t> index = index_of(out.type.shape, i), source = index;
      bool inside = true;
      for (std::size_t d = 0; d < index.size(); ++d) {
        auto at = static_cast<int>(d);
        if (name == "flip") {
          const Dimensions& turned = node.attributes_as<FlipAttributes>().dimensions;
          if (std::find(turned.begin(), turned.end(), at) != turned.end())
            source[d] = in.type.shape[at] - 1 - index[d];
        } else {
          const auto& pad = node.attributes_as<PadAttributes>();
          std::int64_t step = 1 + (pad.interior.empty() ? 0 : pad.interior[d]);
          std::int64_t moved = index[d] - pad.low[d];
          source[d] = moved / step;
          inside &= moved >= 0 && moved % step == 0 && source[d] < in.type.shape[at];
        }
      }
      gather(inside ? in : *padding, out, {inside ? flat_of(in.type.shape, source) : 0});
    }
  }

  // sum, max and min along dimensions; any and all, which are max and min of bools; and
  // cumulative_sum, whose elements are partial sums.
  static void reduce(const Node& node, const Array& in, Array& out) {
    std::string_view name = node.op().name;
    bool running = name == "cumulative_sum", larger = name.starts_with("max") || name == "any";
    bool chooses = larger || name == "min" || name == "all";
    Dimensions gone;
    if (running)
      gone = {node.attributes_as<CumulativeAttributes>().dimension};
    else
      gone = node.attributes_as<ReductionAttributes>().dimensions;
    bool back = running && node.attributes_as<CumulativeAttributes>().reverse;
    std::vector<bool> begun(out.size(), false);
    out.real.assign(out.floating() ? out.size() : 0, 0);
    out.whole.assign(out.floating() ? 0 : out.size(), 0);
    auto add = [&](std::size_t to, std::size_t from) {
      auto combine = [&](auto& all, const auto& each) {
        if (!begun[to])
          all[to] = each[from];
        else if (chooses)
          all[to] = larger == (all[to] < each[from]) ? each[from] : all[to];
        else
          all[to] += each[from];
      };
      if (out.floating())
        combine(out.real, in.real);
      else
        combine(out.whole, in.whole);
      begun[to] = true;
    };
    for (std::size_t i = 0; i < in.size(); ++i) {
      std::vector<std::int64_t> index = index_of(in.type.shape, i), kept;
      auto d = static_cast<std::size_t>(gone.empty() ? 0 : gone[0]);
      for (; running && index[d] >= 0 && index[d] < in.type.shape[static_cast<int>(d)];
           index[d] += back ? -1 : 1)
        add(flat_of(out.type.shape, index), i);
      for (std::size_t k = 0; !running && k < index.size(); ++k)
        if (std::find(gone.begin(), gone.end(), static_cast<std::int64_t>(k)) == gone.end())
          kept.push_back(index[k]);
      if (!running) add(flat_of(out.type.shape, kept), i);
    }
  }

  // Sums over every pair of elements that agree along the batch and contracting dimensions.
  static void dot(const DotGeneralAttributes& dims, const Array& lhs, const Array& rhs,
                  Array& out) {
    out.real.assign(out.size(), 0);
    for (std::size_t i = 0; i < lhs.size(); ++i)
      for (std::size_t j = 0; j < rhs.size(); ++j) {
        std::vector<std::int64_t> a = index_of(lhs.type.shape, i), b = index_of(rhs.type.shape, j);
        std::vector<std::int64_t> at;
        bool agree = true;
        auto compare = [&](const Dimensions& left, const Dimensions& right, bool stays) {
          for (std::size_t d = 0; d < left.size(); ++d) {
            agree &= a[static_cast<std::size_t>(left[d])] == b[static_cast<std::size_t>(right[d])];
            if (stays) at.push_back(a[static_cast<std::size_t>(left[d])]);
          }
        };
        compare(dims.lhs_batch, dims.rhs_batch, true);
        compare(dims.lhs_contracting, dims.rhs_contracting, false);
        if (!agree) continue;
        for (std::size_t d = 0; d < a.size(); ++d)
          if (!holds(dims.lhs_batch, d) && !holds(dims.lhs_contracting, d)) at.push_back(a[d]);
        for (std::size_t d = 0; d < b.size(); ++d)
          if (!holds(dims.rhs_batch, d) && !holds(dims.rhs_contracting, d)) at.push_back(b[d]);
        out.real[flat_of(out.type.shape, at)] += lhs.real[i] * rhs.real[j];
      }
  }
  static bool holds(const Dimensions& list, std::size_t d) {
    return std::find(list.begin(), list.end(), static_cast<std::int64_t>(d)) != list.end();
  }

  // Follows StableHLO's specification of gather.
  static void gather_slices(const GatherAttributes& dims, const Array& in, const Array& starts,
                            Array& out) {
    const Shape &from = in.type.shape, &places = starts.type.shape;
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::vector<std::int64_t> index = index_of(out.type.shape, i), batch, offset;
      for (std::size_t d = 0; d < index.size(); ++d)
        (holds(dims.offset_dims, d) ? offset : batch).push_back(index[d]);
      std::vector<std::int64_t> source(static_cast<std::size_t>(from.rank()), 0), place = batch;
      auto vector_dim = static_cast<std::size_t>(dims.index_vector_dim);
      bool is_vector = dims.index_vector_dim < places.rank();
      if (is_vector) place.insert(place.begin() + dims.index_vector_dim, 0);
      for (std::size_t k = 0; k < dims.start_index_map.size(); ++k) {
        if (is_vector) place[vector_dim] = static_cast<std::int64_t>(k);
        auto d = static_cast<std::size_t>(dims.start_index_map[k]);
        std::int64_t last = from[static_cast<int>(d)] - dims.slice_sizes[d];
        source[d] = std::clamp<std::int64_t>(starts.whole[flat_of(places, place)], 0, last);
      }
      for (std::size_t k = 0; k < dims.operand_batching_dims.size(); ++k)
        source[static_cast<std::size_t>(dims.operand_batching_dims[k])] =
            place[static_cast<std::size_t>(dims.start_indices_batching_dims[k])];
      for (std::size_t d = 0, next = 0; d < source.size(); ++d)
        if (!holds(dims.collapsed_slice_dims, d) && !holds(dims.operand_batching_dims, d))
          source[d] += offset[next++];
      gather(in, out, {flat_of(from, source)});
    }
  }

  // A function of an op, from its row in the table.
  template <class Row, class Function>
  static Function function_of(std::span<const Row> rows, std::string_view name,
                              Function Row::*member) {
    const Row* row = row_of(rows, name);
    if (!row || !(row->*member)) unknown(name);
    return row->*member;
  }

  std::map<const Node*, Array> done_;
};

/// The value of a recorded tensor, computed by the Interpreter.
inline HostArray interpret(const Tensor& tensor) { return Interpreter().run(tensor); }

}  // namespace meshard
