#include "meshard/plan/module_flow.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "meshard/plan/internal/flow_ops.h"
#include "meshard/sharding/shardy_text.h"

namespace meshard {

struct ModuleFlow::State {
  std::map<std::string, internal::FlowFunction> functions;
};

namespace {

using internal::FlowFunction;
using internal::FlowKind;
using internal::FlowOp;

// For each dimension, the numbers of the axes that shard it, most significant first.
using Split = std::vector<std::vector<int>>;

bool uses(const Split& split, int axis) {
  for (const std::vector<int>& dimension : split)
    if (std::find(dimension.begin(), dimension.end(), axis) != dimension.end()) return true;
  return false;
}

bool is_prefix(const std::vector<int>& a, const std::vector<int>& b) {
  return a.size() <= b.size() && std::equal(a.begin(), a.end(), b.begin());
}

// Propagates one candidate's shardings through the functions, and sums the bytes moved.
class FlowRun {
 public:
  FlowRun(const std::map<std::string, FlowFunction>& functions, const std::vector<MeshAxis>& axes)
      : functions_(functions), axes_(axes) {}

  double bytes = 0;

  std::vector<Split> run(const FlowFunction& function, std::vector<Split> arguments, int depth) {
    std::vector<Split> values(function.types.size());
    for (std::size_t v = 0; v < values.size(); ++v)
      values[v].resize(function.types[v] ? static_cast<std::size_t>(function.types[v]->rank()) : 0);
    for (std::size_t i = 0; i < function.parameters.size() && i < arguments.size(); ++i)
      set(values[at(function.parameters[i])], std::move(arguments[i]));
    return run_ops(function, function.ops, values, depth);
  }

  // Adds the bytes for changing a value's sharding from `from` to `to`.
  void move(const std::optional<TensorType>& type, const Split& from, const Split& to) {
    if (!type || from.size() != to.size()) return;
    Split kept = from;
    bool gathered = false;
    for (std::size_t d = 0; d < from.size(); ++d) {
      if (is_prefix(from[d], to[d])) continue;
      std::size_t same = 0;
      while (same < from[d].size() && same < to[d].size() && from[d][same] == to[d][same]) ++same;
      kept[d].resize(same);
      gathered = true;
    }
    if (gathered) add(shard_of(*type, kept));
  }

  Split split_of(const PartitionSpec& spec, std::size_t rank) const {
    Split split(rank);
    for (std::size_t d = 0; d < std::min(rank, spec.size()); ++d)
      for (const AxisRef& axis : spec[d].axes())
        for (std::size_t i = 0; i < axes_.size(); ++i)
          if (axes_[i].name == axis.name && axes_[i].size > 1)
            split[d].push_back(static_cast<int>(i));
    return split;
  }

 private:
  static std::size_t at(int value) { return static_cast<std::size_t>(value); }
  static void set(Split& value, Split made) {
    if (value.size() == made.size()) value = std::move(made);
  }
  double tiles(const Split& split) const {
    double product = 1;
    for (const std::vector<int>& dimension : split)
      for (int axis : dimension) product *= static_cast<double>(axes_[at(axis)].size);
    return product;
  }
  double shard_of(const TensorType& type, const Split& split) const {
    return static_cast<double>(type.bytes()) / tiles(split);
  }
  void add(double moved) { bytes += moved * repeats_; }

  std::vector<Split> run_ops(const FlowFunction& function, const std::vector<FlowOp>& ops,
                             std::vector<Split>& values, int depth) {
    for (const FlowOp& op : ops) {
      if (op.kind == FlowKind::kReturn) return gathered(op.operands, values);
      run_op(function, op, values, depth);
    }
    return {};
  }

  static std::vector<Split> gathered(const std::vector<int>& operands,
                                     const std::vector<Split>& values) {
    std::vector<Split> out;
    for (int operand : operands) out.push_back(operand < 0 ? Split() : values[at(operand)]);
    return out;
  }

  void run_op(const FlowFunction& function, const FlowOp& op, std::vector<Split>& values,
              int depth) {
    std::vector<Split> made;
    if (op.kind == FlowKind::kCall) {
      auto called = functions_.find(op.text);
      // Bounds the depth: a valid module has no recursion, but a malformed one may.
      if (called != functions_.end() && depth < 16)
        made = run(called->second, gathered(op.operands, values), depth + 1);
    } else if (op.kind == FlowKind::kLoop) {
      for (std::size_t i = 0; i < op.parameters.size(); ++i)
        if (op.operands[i] >= 0) set(values[at(op.parameters[i])], values[at(op.operands[i])]);
      double before = repeats_;
      repeats_ *= static_cast<double>(op.trips);
      made = run_ops(function, op.body, values, depth);
      repeats_ = before;
    } else if (!op.results.empty() && function.types[at(op.results[0])]) {
      made.push_back(simple(function, op, values));
    }
    for (std::size_t i = 0; i < op.results.size() && i < made.size(); ++i)
      set(values[at(op.results[i])], std::move(made[i]));
  }

  // The operand's type, if known.
  static const TensorType* type_of(const FlowFunction& function, const FlowOp& op, std::size_t i) {
    if (i >= op.operands.size() || op.operands[i] < 0) return nullptr;
    const std::optional<TensorType>& type = function.types[at(op.operands[i])];
    return type ? &*type : nullptr;
  }

  Split simple(const FlowFunction& function, const FlowOp& op, const std::vector<Split>& values) {
    const TensorType& result = *function.types[at(op.results[0])];
    Split none(static_cast<std::size_t>(result.rank()));
    const TensorType* first = type_of(function, op, 0);
    if (!first) return none;
    const Split& split = values[at(op.operands[0])];
    switch (op.kind) {
      case FlowKind::kProduct: {
        const TensorType* second = type_of(function, op, 1);
        if (!second || op.dimensions.size() != 4) return none;
        return product(*first, split, *second, values[at(op.operands[1])], op, result);
      }
      case FlowKind::kTranspose: return permuted(split, op.dimensions[0], none);
      case FlowKind::kBroadcast: return broadcast(*first, split, op.dimensions[0], result, none);
      case FlowKind::kReduce: return reduced(*first, split, op.dimensions[0], result, none);
      case FlowKind::kReshape: return reshaped(*first, split, result, none);
      case FlowKind::kConstraint: return constrained(*first, split, op.text);
      default: return by_shape(function, op, values, result, none);
    }
  }

  static Split permuted(const Split& split, const std::vector<std::int64_t>& from, Split out) {
    for (std::size_t d = 0; d < out.size() && d < from.size(); ++d)
      if (from[d] >= 0 && from[d] < std::ssize(split))
        out[d] = split[static_cast<std::size_t>(from[d])];
    return out;
  }

  static Split broadcast(const TensorType& type, const Split& split,
                         const std::vector<std::int64_t>& to, const TensorType& result, Split out) {
    for (std::size_t d = 0; d < split.size() && d < to.size(); ++d)
      if (to[d] >= 0 && to[d] < std::ssize(out) &&
          type.shape[static_cast<std::int64_t>(d)] == result.shape[to[d]])
        out[static_cast<std::size_t>(to[d])] = split[d];
    return out;
  }

  Split reduced(const TensorType& type, const Split& split, const std::vector<std::int64_t>& over,
                const TensorType& result, Split out) {
    std::size_t next = 0;
    bool summed = false;
    for (std::size_t d = 0; d < static_cast<std::size_t>(type.rank()); ++d) {
      if (std::find(over.begin(), over.end(), static_cast<std::int64_t>(d)) != over.end())
        summed = summed || !split[d].empty();
      else if (next < out.size())
        out[next++] = split[d];
    }
    if (summed) add(shard_of(result, out));
    return out;
  }

  // Matches groups of dimensions with equal products: the first dimension of a group keeps its
  // axes.
  Split reshaped(const TensorType& type, const Split& split, const TensorType& result, Split out) {
    std::size_t i = 0, o = 0, in_rank = split.size(), out_rank = out.size();
    Split kept(in_rank);
    while (i < in_rank && o < out_rank) {
      auto size = [](const TensorType& of, std::size_t d) {
        return of.shape[static_cast<std::int64_t>(d)];
      };
      std::size_t first_in = i, first_out = o;
      std::int64_t left = size(type, i++), right = size(result, o++);
      while (left != right && (left < right ? i < in_rank : o < out_rank)) {
        if (left < right)
          left *= size(type, i++);
        else
          right *= size(result, o++);
      }
      if (left != right || left == 0) break;
      // Skips leading dimensions of size 1 in a group.
      while (first_in + 1 < i && size(type, first_in) == 1) ++first_in;
      while (first_out + 1 < o && size(result, first_out) == 1) ++first_out;
      double parts = tiles({split[first_in]});
      if (size(result, first_out) % static_cast<std::int64_t>(parts) == 0)
        kept[first_in] = out[first_out] = split[first_in];
    }
    move(type, split, kept);
    return out;
  }

  Split constrained(const TensorType& type, const Split& split, const std::string& text) {
    Result<Sharding> wanted = parse_shardy_sharding(text, Mesh(axes_));
    if (!wanted.ok()) return split;
    Split to = split_of(wanted->spec(), split.size());
    for (std::size_t d = 0; d < to.size() && d < wanted->rank(); ++d)
      if (wanted->is_open(d) && is_prefix(to[d], split[d])) to[d] = split[d];
    move(type, split, to);
    return to;
  }

  // Element-wise if operands have the result's shape; resized if the first has only its rank.
  Split by_shape(const FlowFunction& function, const FlowOp& op, const std::vector<Split>& values,
                 const TensorType& result, Split none) {
    std::vector<std::size_t> alike;
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      if (const TensorType* type = type_of(function, op, i); type && type->shape == result.shape)
        alike.push_back(i);
    if (!alike.empty()) {
      std::size_t leader = alike[0];
      for (std::size_t i : alike)
        if (tiles(values[at(op.operands[i])]) > tiles(values[at(op.operands[leader])])) leader = i;
      const Split& wanted = values[at(op.operands[leader])];
      for (std::size_t i : alike)
        move(*type_of(function, op, i), values[at(op.operands[i])], wanted);
      return wanted;
    }
    const TensorType* first = type_of(function, op, 0);
    if (!first || first->rank() != result.rank()) return none;
    const Split& split = values[at(op.operands[0])];
    for (std::size_t d = 0; d < none.size(); ++d)
      if (first->shape[static_cast<std::int64_t>(d)] == result.shape[static_cast<std::int64_t>(d)])
        none[d] = split[d];
    move(*first, split, none);
    return none;
  }

  // Removes an axis from the operand with the smaller shard, which is gathered along the axis.
  void settle(const TensorType& left_type, Split& left, const TensorType& right_type, Split& right,
              int axis) {
    bool take_left = shard_of(left_type, left) < shard_of(right_type, right);
    Split& taken = take_left ? left : right;
    for (std::vector<int>& dimension : taken)
      dimension.erase(std::remove(dimension.begin(), dimension.end(), axis), dimension.end());
    add(shard_of(take_left ? left_type : right_type, taken));
  }

  Split product(const TensorType& left_type, Split left, const TensorType& right_type, Split right,
                const FlowOp& op, const TensorType& result) {
    // Pairs of corresponding dimensions: contracting, then batch.
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t list : {0u, 2u})
      for (std::size_t k = 0; k < op.dimensions[list].size(); ++k) {
        if (k >= op.dimensions[list + 1].size())
          return Split(static_cast<std::size_t>(result.rank()));
        pairs.emplace_back(static_cast<std::size_t>(op.dimensions[list][k]),
                           static_cast<std::size_t>(op.dimensions[list + 1][k]));
        if (pairs.back().first >= left.size() || pairs.back().second >= right.size())
          return Split(static_cast<std::size_t>(result.rank()));
      }
    for (int axis = 0; axis < std::ssize(axes_); ++axis) {
      if (!uses(left, axis) || !uses(right, axis)) continue;
      bool same = std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
        return uses({left[pair.first]}, axis) && uses({right[pair.second]}, axis);
      });
      if (!same) settle(left_type, left, right_type, right, axis);
    }
    for (const auto& [l, r] : pairs) {
      std::vector<int>& a = left[l];
      std::vector<int>& b = right[r];
      if (is_prefix(a, b))
        a = b;  // sliced at no cost
      else if (is_prefix(b, a))
        b = a;
      else if (Split whole = right; true) {
        whole[r].clear();
        move(right_type, right, whole);
        b = a;
      }
    }
    return product_result(left, right, pairs, op, result);
  }

  Split product_result(const Split& left, const Split& right,
                       const std::vector<std::pair<std::size_t, std::size_t>>& pairs,
                       const FlowOp& op, const TensorType& result) {
    std::size_t contracting = op.dimensions[0].size();
    std::vector<bool> left_used(left.size()), right_used(right.size());
    Split out;
    bool summed = false;
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      left_used[pairs[k].first] = right_used[pairs[k].second] = true;
      if (k < contracting)
        summed = summed || !left[pairs[k].first].empty();
      else
        out.push_back(left[pairs[k].first]);
    }
    for (std::size_t d = 0; d < left.size(); ++d)
      if (!left_used[d]) out.push_back(left[d]);
    for (std::size_t d = 0; d < right.size(); ++d)
      if (!right_used[d]) out.push_back(right[d]);
    if (summed) add(shard_of(result, out));
    return out;
  }

  const std::map<std::string, FlowFunction>& functions_;
  const std::vector<MeshAxis>& axes_;
  double repeats_ = 1;
};

template <class Count>
void count_ops(const std::vector<FlowOp>& ops, const FlowFunction& function, const Count& count) {
  for (const FlowOp& op : ops) {
    count(function, op);
    count_ops(op.body, function, count);
  }
}

}  // namespace

Result<ModuleFlow> ModuleFlow::parse(std::string_view text) {
  try {
    auto state = std::make_shared<State>();
    state->functions = internal::read_flow(text);
    return ModuleFlow(std::move(state));
  } catch (const Error& error) {
    return error;
  }
}

double ModuleFlow::communication(const std::vector<MeshAxis>& axes,
                                 const std::vector<std::optional<PartitionSpec>>& arguments,
                                 const std::vector<std::optional<PartitionSpec>>& results) const {
  const FlowFunction& main = state_->functions.at("main");
  FlowRun run(state_->functions, axes);
  std::vector<Split> given;
  for (std::size_t i = 0; i < main.parameters.size(); ++i) {
    const std::optional<TensorType>& type =
        main.types[static_cast<std::size_t>(main.parameters[i])];
    auto rank = type ? static_cast<std::size_t>(type->rank()) : 0;
    given.push_back(i < arguments.size() && arguments[i] ? run.split_of(*arguments[i], rank)
                                                         : Split(rank));
  }
  std::vector<Split> made = run.run(main, std::move(given), 0);
  const FlowOp* last = main.ops.empty() ? nullptr : &main.ops.back();
  for (std::size_t i = 0; i < made.size() && i < results.size(); ++i)
    if (results[i] && last && i < last->operands.size() && last->operands[i] >= 0)
      run.move(main.types[static_cast<std::size_t>(last->operands[i])], made[i],
               run.split_of(*results[i], made[i].size()));
  return run.bytes;
}

std::size_t ModuleFlow::all_ops() const {
  std::size_t count = 0;
  for (const auto& [name, function] : state_->functions)
    count_ops(function.ops, function, [&](const FlowFunction&, const FlowOp&) { ++count; });
  return count;
}

std::size_t ModuleFlow::known_ops() const {
  std::size_t count = 0;
  for (const auto& [name, function] : state_->functions)
    count_ops(function.ops, function, [&](const FlowFunction& of, const FlowOp& op) {
      if (op.kind != FlowKind::kOther || op.operands.empty()) {
        ++count;
        return;
      }
      if (op.results.empty()) return;
      const std::optional<TensorType>& result = of.types[static_cast<std::size_t>(op.results[0])];
      for (int operand : op.operands)
        if (operand >= 0 && result && of.types[static_cast<std::size_t>(operand)] &&
            of.types[static_cast<std::size_t>(operand)]->rank() == result->rank()) {
          ++count;
          return;
        }
    });
  return count;
}

}  // namespace meshard
