// Operations with bodies: loops, branches, and functions of functions.
#include <algorithm>

#include "tests/property/sharded_program/draw.h"
#include "tests/property/sharded_program/host_value.h"

namespace meshard::property {
namespace {

using Known = Draw::Known;
using Types = std::vector<TensorType>;
using AllBounds = std::vector<Bounds>;

const TensorType kIndex{DType::i32, Shape{}};
constexpr std::int64_t kLongest = 4;

bool is_differentiable(const Known& value) { return is_floating(value.type().dtype); }
bool has_slices(const Known& value) {
  return is_differentiable(value) && value.type().rank() > 0 && value.type().shape[0] <= kLongest;
}

TensorType slice_type(const TensorType& type) {
  return {type.dtype, Shape(Dimensions(type.shape.begin() + 1, type.shape.end()))};
}
// A value of a loop is not exact after the first turn.
Bounds inexact(Bounds bounds) { return {bounds.size, std::max(bounds.error, 1e-30)}; }

// ---- Loops.

bool draw_scan(Draw& draw, Step& step) {
  if (!draw.take(step, is_differentiable) || !draw.take(step, has_slices)) return false;
  Known carry = draw.operand(step, 0), xs = draw.operand(step, 1);
  step.lists = {{draw.between(0, 1)}, {draw.between(1, 2)}};
  return draw.body(step, {carry.type(), slice_type(xs.type())}, {inexact(carry.bounds), xs.bounds},
                   {carry.type(), std::nullopt});
}
bool draw_map(Draw& draw, Step& step) {
  if (!draw.take(step, has_slices)) return false;
  Known xs = draw.operand(step, 0);
  return draw.body(step, {slice_type(xs.type())}, {xs.bounds}, {std::nullopt});
}
bool draw_fori_loop(Draw& draw, Step& step) {
  if (!draw.take(step, is_differentiable)) return false;
  Known carry = draw.operand(step, 0);
  int low = draw.between(0, 2);
  step.lists = {{low}, {low + draw.between(0, 3)}};
  return draw.body(step, {kIndex, carry.type()}, {{8, 0}, inexact(carry.bounds)}, {carry.type()});
}
bool draw_repeat(Draw& draw, Step& step) {
  if (!draw.take(step, has_slices) || !draw.take(step, is_differentiable)) return false;
  Known params = draw.operand(step, 0), carry = draw.operand(step, 1);
  return draw.body(step, {slice_type(params.type()), carry.type()},
                   {params.bounds, inexact(carry.bounds)}, {carry.type()});
}
bool draw_repeat_count(Draw& draw, Step& step) {
  if (!draw.take(step, is_differentiable)) return false;
  Known carry = draw.operand(step, 0);
  step.lists = {{draw.between(0, 3)}};
  return draw.body(step, {carry.type()}, {inexact(carry.bounds)}, {carry.type()});
}
bool draw_index(Draw& draw, Step& step) { return draw.take_type(step, kIndex); }
bool draw_while_loop(Draw& draw, Step& step) {
  if (!draw_index(draw, step) || !draw.take(step, is_differentiable)) return false;
  Known carry = draw.operand(step, 1);
  return draw.body(step, {kIndex, carry.type()}, {{8, 0}, inexact(carry.bounds)}, {carry.type()});
}

Bounds after(const Arguments& args, std::int64_t turns, Bounds carry, AllBounds others,
             bool carry_first) {
  for (; turns > 0; --turns) {
    AllBounds given = others;
    given.insert(carry_first ? given.begin() : given.end(), carry);
    Bounds next = args.bound(0, given);
    carry = {std::max(carry.size, next.size), std::max(carry.error, next.error)};
  }
  return carry;
}
Bounds scan_bounds(const Arguments& args, const TensorType&) {
  return after(args, args.type(1).shape[0], args.bounds[0], {args.bounds[1]}, true);
}
Bounds repeat_bounds(const Arguments& args, const TensorType&) {
  return after(args, args.type(0).shape[0], args.bounds[1], {args.bounds[0]}, false);
}
Bounds fori_bounds(const Arguments& args, const TensorType&) {
  return after(args, 3, args.bounds[0], {{8, 0}}, false);
}
Bounds while_bounds(const Arguments& args, const TensorType&) {
  return after(args, 3, args.bounds[1], {{8, 0}}, false);
}
Bounds count_bounds(const Arguments& args, const TensorType&) {
  return after(args, args.number(0), args.bounds[0], {}, true);
}
Bounds one_call(const Arguments& args, const TensorType&) {
  return args.bound(0, AllBounds(args.bounds.begin(), args.bounds.end()));
}

template <bool kResults>
HostValue scan_on_host(const HostArguments& args) {
  HostValue carry = args[0];
  std::int64_t length = args[1].shape[0];
  std::vector<HostValue> results(static_cast<std::size_t>(length));
  for (std::int64_t i = 0; i < length; ++i) {
    std::int64_t k = args.number(0) != 0 ? length - 1 - i : i;
    std::vector<HostValue> both = args.call(0, {carry, host::slice(args[1], k)});
    carry = both.at(0);
    results[static_cast<std::size_t>(k)] = both.at(1);
  }
  return kResults ? host::stacked(results) : carry;
}
HostValue each_on_host(const HostArguments& args) {
  std::vector<HostValue> results;
  for (std::int64_t i = 0; i < args[0].shape[0]; ++i)
    results.push_back(args.body(0, {host::slice(args[0], i)}));
  return host::stacked(results);
}
HostValue counted(const HostArguments& args, std::int64_t low, std::int64_t high, HostValue carry) {
  for (std::int64_t i = low; i < high; ++i)
    carry = args.body(0, {host::scalar(static_cast<double>(i)), carry});
  return carry;
}
HostValue fori_on_host(const HostArguments& args) {
  return counted(args, args.number(0), args.number(1), args[0]);
}
std::int64_t index_on_host(const HostValue& value, std::int64_t modulus) {
  auto index = static_cast<std::int64_t>(value.values.at(0));
  return ((index % modulus) + modulus) % modulus;
}
HostValue while_on_host(const HostArguments& args) {
  return counted(args, 0, index_on_host(args[0], 4), args[1]);
}
HostValue repeat_on_host(const HostArguments& args) {
  HostValue carry = args[1];
  for (std::int64_t i = 0; i < args[0].shape[0]; ++i)
    carry = args.body(0, {host::slice(args[0], i), carry});
  return carry;
}
HostValue repeat_count_on_host(const HostArguments& args) {
  HostValue carry = args[0];
  for (std::int64_t i = 0; i < args.number(0); ++i) carry = args.body(0, {carry});
  return carry;
}

// ---- Branches.

template <int kBranches>
bool draw_branches(Draw& draw, Step& step) {
  if (!draw_index(draw, step) || !draw.take(step, is_differentiable)) return false;
  Known x = draw.operand(step, 1);
  for (int i = 0; i < kBranches; ++i)
    if (!draw.body(step, {x.type()}, {x.bounds}, {x.type()})) return false;
  return true;
}
template <int kBranches>
Bounds any_branch(const Arguments& args, const TensorType&) {
  Bounds all;
  for (int i = 0; i < kBranches; ++i) {
    Bounds each = args.bound(i, {args.bounds[1]});
    all = {std::max(all.size, each.size), std::max(all.error, each.error)};
  }
  return all;
}
HostValue cond_on_host(const HostArguments& args) {
  return args.body(index_on_host(args[0], 2) == 1 ? 0 : 1, {args[1]});
}
HostValue case_on_host(const HostArguments& args) {
  return args.body(static_cast<int>(index_on_host(args[0], 3)), {args[1]});
}

// ---- Functions of functions.

bool draw_call(Draw& draw, Step& step) {
  if (!draw.take(step, is_differentiable) || !draw.take(step, is_differentiable)) return false;
  Known a = draw.operand(step, 0), b = draw.operand(step, 1);
  return draw.body(step, {a.type(), b.type()}, {a.bounds, b.bounds}, {std::nullopt});
}
template <int Count>
bool draw_donation(Draw& draw, Step& step) {
  std::vector<TensorType> types;
  std::vector<Bounds> bounds;
  for (int i = 0; i < Count; ++i) {
    if (!draw.take(step, is_differentiable)) return false;
    types.push_back(draw.operand(step, i).type());
    bounds.push_back(draw.operand(step, i).bounds);
  }
  return draw.body(step, types, bounds, {types[0]});
}
HostValue call_on_host(const HostArguments& args) { return args.body(0, args.operands); }

// Elements for themselves, so that the parts of the result are those of the parts.
bool draw_manual(Draw& draw, Step& step) {
  if (!draw.take(step, is_differentiable)) return false;
  Known x = draw.operand(step, 0);
  Draw::BodyOptions options;
  options.manual = draw.manual_region(step, x);
  if (!options.manual) return false;
  return draw.body(step, {x.type()}, {x.bounds}, {x.type()}, options);
}
Tensor run_manual(const Arguments& args) {
  if (!args.meshes) return OneResult{&args, 0}(args.operands[0]);
  const Placement& where = args.step.placement;
  const Mesh& mesh = args.meshes->at(static_cast<std::size_t>(where.mesh));
  std::vector<std::string> names, axes;
  for (const MeshAxis& axis : mesh.axes()) names.push_back(axis.name);
  for (std::int64_t axis : args.step.lists.at(0))
    axes.push_back(names.at(static_cast<std::size_t>(axis)));
  return manual(mesh, where.spec, where.spec, OneResult{&args, 0},
                {.axes = axes, .out_shapes = {args.type(0).shape}, .pad = 1})(args.operands[0]);
}

// ---- Stages.

// A slice of x, which of them it is, and the whole of w.
bool draw_stages(Draw& draw, Step& step) {
  std::optional<std::pair<std::int64_t, Draw::Region>> region = draw.stage_region(step);
  if (!region) return false;
  Dimensions sizes{region->first};
  for (std::int64_t size : draw.shape(1, 3)) sizes.push_back(size);
  DType dtype = draw.number_dtype();
  if (!draw.take_type(step, {dtype, Shape(sizes)})) return false;
  if (!draw.take_type(step, {dtype, draw.shape(1, 3)})) return false;
  Known x = draw.operand(step, 0), w = draw.operand(step, 1);
  Draw::BodyOptions options;
  options.stage = std::move(region->second);
  return draw.body(step, {slice_type(x.type()), kIndex, w.type()}, {x.bounds, {8, 0}, w.bounds},
                   {std::nullopt}, options);
}
Tensor run_stages(const Arguments& args) {
  const Tensor &x = args.operands[0], &w = args.operands[1];
  OneResult f{&args, 0};
  if (!args.meshes) {
    std::vector<Tensor> results;
    for (std::int64_t i = 0; i < x.shape()[0]; ++i)
      results.push_back(f(x[i], Tensor(full({}, i, DType::i32)), w));
    return stack(results, 0);
  }
  const Placement& where = args.step.placement;
  const Mesh& mesh = args.meshes->at(static_cast<std::size_t>(where.mesh));
  std::vector<std::string> all, axes;
  AxisList names;
  for (const MeshAxis& axis : mesh.axes()) all.push_back(axis.name);
  for (std::int64_t axis : args.step.lists.at(0)) {
    axes.push_back(all.at(static_cast<std::size_t>(axis)));
    names.emplace_back(axes.back());
  }
  auto stage = [&](const Tensor& part, const Tensor& whole) {
    // A result that depends on no argument is not local yet.
    Tensor i = axis_index(names), result = f(part[0], i, vary(whole, names));
    return expand_dims(meshard::where(greater_equal(i, 0), result, zeros_like(result)), 0);
  };
  return manual(mesh, {where.spec, P()}, where.spec, stage, {.axes = axes})(x, w);
}
Bounds stage_bounds(const Arguments& args, const TensorType&) {
  return args.bound(0, {args.bounds[0], {8, 0}, args.bounds[1]});
}

// ---- Derivatives.

template <int kOperands>
bool draw_differentiated(Draw& draw, Step& step) {
  auto small = [](const Known& value) {
    return is_differentiable(value) && value.type().size() <= 12;
  };
  if (!draw.take(step, small)) return false;
  Known x = draw.operand(step, 0);
  if (kOperands == 2 && !draw.take_type(step, x.type())) return false;
  Draw::BodyOptions options;
  options.smooth = true;
  return draw.body(step, {x.type()}, {x.bounds}, {std::nullopt}, options);
}
// The cotangent has the result's type.
bool draw_vjp(Draw& draw, Step& step) {
  auto small = [](const Known& value) {
    return is_differentiable(value) && value.type().size() <= 12;
  };
  if (!draw.take(step, small)) return false;
  Known x = draw.operand(step, 0);
  Draw::BodyOptions options;
  options.smooth = true;
  return draw.body(step, {x.type()}, {x.bounds}, {x.type()}, options) &&
         draw.take_type(step, x.type());
}
Bounds derived(const Arguments& args, const TensorType&) {
  return {std::max(args.bounds[0].size, 4.0), 1e-9};
}
double squares(const HostValue& value) {
  double sum = 0;
  for (double x : value.values) sum += x * x;
  return sum;
}
host::HostFunction loss_on_host(const HostArguments& args) {
  return [&args](const HostValue& x) { return host::scalar(squares(args.body(0, {x}))); };
}
HostValue grad_on_host(const HostArguments& args) {
  return host::gradient(loss_on_host(args), args[0]);
}
HostValue value_and_grad_on_host(const HostArguments& args) {
  HostValue gradient = grad_on_host(args);
  double loss = squares(args.body(0, {args[0]}));
  for (double& x : gradient.values) x *= loss;
  return gradient;
}
HostValue jvp_on_host(const HostArguments& args) {
  return host::derivative([&](const HostValue& x) { return args.body(0, {x}); }, args[0], args[1]);
}
HostValue vjp_on_host(const HostArguments& args) {
  return host::gradient(
      [&](const HostValue& x) {
        HostValue result = args.body(0, {x});
        double sum = 0;
        for (std::size_t i = 0; i < result.values.size(); ++i)
          sum += result.values[i] * args[1].values.at(i);
        return host::scalar(sum);
      },
      args[0]);
}
HostValue hvp_on_host(const HostArguments& args) {
  return host::derivative([&](const HostValue& x) { return host::gradient(loss_on_host(args), x); },
                          args[0], args[1]);
}
// Of a function of a tensor: the first dimensions are the result's.
HostValue jacobian_on_host(const HostArguments& args) {
  const HostValue& x = args[0];
  std::vector<HostValue> columns;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    HostValue direction{x.shape, std::vector<double>(x.values.size(), 0.0)};
    direction.values[i] = 1;
    columns.push_back(
        host::derivative([&](const HostValue& at) { return args.body(0, {at}); }, x, direction));
  }
  Dimensions sizes = columns.at(0).shape.sizes();
  for (std::int64_t size : x.shape) sizes.push_back(size);
  HostValue result{Shape(sizes), {}};
  for (std::size_t row = 0; row < columns[0].values.size(); ++row)
    for (const HostValue& column : columns) result.values.push_back(column.values[row]);
  return result;
}

Operation derivative(const char* name, const char* code, Tensor (*run)(const Arguments&),
                     bool (*draw)(Draw&, Step&), OnHost on_host, int weight = 2) {
  return {name, code, run, draw, derived, true, weight, on_host, false, true};
}

const Operation kControlFlow[] = {
    {"scan", MESHARD_CALL(scan(G(0), A(0), A(1), {.reverse = B(0), .unroll = N(1)}).first),
     draw_scan, scan_bounds, true, 2, scan_on_host<false>},
    {"results of scan",
     MESHARD_CALL(scan(G(0), A(0), A(1), {.reverse = B(0), .unroll = N(1)}).second), draw_scan,
     [](const Arguments& args, const TensorType& result) {
       Bounds carry = scan_bounds(args, result);
       return args.bound(0, {carry, args.bounds[1]}, 1);
     },
     true, 2, scan_on_host<true>},
    {"map", MESHARD_CALL(map(F(0), A(0))), draw_map, one_call, true, 2, each_on_host},
    {"fori_loop", MESHARD_CALL(fori_loop(N(0), N(1), F(0), A(0))), draw_fori_loop, fori_bounds,
     true, 2, fori_on_host, true},
    {"repeat", MESHARD_CALL(repeat(A(0), A(1), F(0))), draw_repeat, repeat_bounds, true, 2,
     repeat_on_host},
    {"repeat some times", MESHARD_CALL(repeat(N(0), A(0), F(0))), draw_repeat_count, count_bounds,
     true, 1, repeat_count_on_host, true},
    {"while_loop", MESHARD_CALL(fori_loop(zeros({}, DType::i32), A(0) % 4, F(0), A(1))),
     draw_while_loop, while_bounds, false, 2, while_on_host},
    {"cond", MESHARD_CALL(cond(equal(A(0) % 2, 1), F(0), F(1), A(1))), draw_branches<2>,
     any_branch<2>, true, 2, cond_on_host},
    {"switch_case", MESHARD_CALL(switch_case(A(0) % 3, std::tuple(F(0), F(1), F(2)), A(1))),
     draw_branches<3>, any_branch<3>, true, 1, case_on_host},
    {"checkpoint", MESHARD_CALL(checkpoint(F(0))(A(0), A(1))), draw_call, one_call, true, 2,
     call_on_host, true},
    {"jit", MESHARD_CALL(jit(F(0))(A(0), A(1))), draw_call, one_call, true, 2, call_on_host, true},
    {"jit of a donated argument", MESHARD_CALL(jit(F(0), {.donate = {0}})(A(0) * 1)),
     draw_donation<1>, one_call, true, 1, call_on_host},
    {"jit of donated arguments", MESHARD_CALL(jit(F(0), {.donate = {0, 1}})(A(0) * 1, A(1) * 1)),
     draw_donation<2>, one_call, true, 1, call_on_host},
    {"vmap", MESHARD_CALL(vmap(F(0))(A(0))), draw_map, one_call, true, 2, each_on_host},
    {"manual", "by_hand(M, L(0), F(0), A(0))", run_manual, draw_manual, one_call, true, 4,
     call_on_host, true},
    {"stages", "by_stage(M, L(0), F(0), A(0), A(1))", run_stages, draw_stages, stage_bounds, true,
     2, nullptr, false, false, true},
    derivative("grad", MESHARD_CALL(grad([&](Tensor x) { return sum(square(F(0)(x))); })(A(0))),
               draw_differentiated<1>, grad_on_host, 4),
    derivative("value_and_grad", MESHARD_CALL([&] {
                 auto f = value_and_grad([&](Tensor x) { return sum(square(F(0)(x))); });
                 auto [value, gradient] = f(A(0));
                 return Tensor(value * gradient);
               }()),
               draw_differentiated<1>, value_and_grad_on_host, 1),
    derivative("jvp", MESHARD_CALL(jvp(F(0), A(0), A(1)).second), draw_differentiated<2>,
               jvp_on_host, 3),
    derivative("vjp", MESHARD_CALL(std::get<0>(vjp(F(0), A(0)).second(A(1)))), draw_vjp,
               vjp_on_host, 3),
    derivative("hvp", MESHARD_CALL(hvp([&](Tensor x) { return sum(square(F(0)(x))); }, A(0), A(1))),
               draw_differentiated<2>, hvp_on_host, 1),
    derivative("jacrev", MESHARD_CALL(jacrev(F(0))(A(0))), draw_differentiated<1>, jacobian_on_host,
               1),
    derivative("jacfwd", MESHARD_CALL(jacfwd(F(0))(A(0))), draw_differentiated<1>, jacobian_on_host,
               1),
};

}  // namespace

std::span<const Operation> control_flow_operations() { return kControlFlow; }

}  // namespace meshard::property
