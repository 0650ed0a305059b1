#include "tests/partitioned/programs.h"

#include <stdexcept>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

// Replaces `$N`, `$2N`, `$4N`, `$B` (devices / 2), `$U` (2 * devices + 1), and the groups `$ALL`,
// `$ROWS` (along b) and `$COLUMNS` (along a).
std::string fill(std::string text, int n) {
  auto groups = [](int count, int size, int stride_group, int stride) {
    std::string all;
    for (int g = 0; g < count; ++g) {
      std::string one;
      for (int k = 0; k < size; ++k) append(one, cat(k ? ", " : "", g * stride_group + k * stride));
      append(all, cat(g ? ", " : "", "[", one, "]"));
    }
    return cat("dense<[", all, "]> : tensor<", count, "x", size, "xi64>");
  };
  std::string ring;
  for (int k = 0; k < n; ++k) append(ring, cat(k ? ", " : "", "[", k, ", ", (k + 1) % n, "]"));
  const std::pair<std::string, std::string> names[] = {
      {"$ALL", groups(1, n, 0, 1)},
      {"$ROWS", groups(2, n / 2, n / 2, 1)},
      {"$COLUMNS", groups(n / 2, 2, 1, n / 2)},
      {"$RING", cat("dense<[", ring, "]> : tensor<", n, "x2xi64>")},
      {"$2N", cat(2 * n)},
      {"$4N", cat(4 * n)},
      {"$N", cat(n)},
      {"$B", cat(n / 2)},
      {"$U", cat(2 * n + 1)},
  };
  for (const auto& [name, value] : names)
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
      text.replace(at, name.size(), value);
  return text;
}

std::string sharding(const std::vector<std::string>& axes) {
  std::string text;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    std::string names;
    for (char axis : axes[d]) append(names, cat(names.empty() ? "" : ", ", "\"", axis, "\""));
    append(text, cat(d ? ", " : "", "{", names, "}"));
  }
  return cat("#sdy.sharding<@m, [", text, "]>");
}

struct Builder {
  int n;
  std::vector<ShardedProgram> programs;

  // `result` is the list of result types; `body` refers to the arguments as %0, %1, ... spelled
  // %a0, %a1. A function may follow the end of main.
  void add(std::string name, std::vector<ProgramArgument> arguments, const std::string& results,
           const std::string& body, double tolerance = 0, bool runs = true) {
    std::string parameters;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const ProgramArgument& each = arguments[i];
      std::string type;
      for (std::int64_t d : each.dimensions) append(type, cat(d, "x"));
      append(parameters, cat(i ? ", " : "", "%a", i, ": tensor<", type, each.element,
                             "> {sdy.sharding = ", sharding(each.axes)));
      if (each.donated_to >= 0)
        append(parameters, cat(", tf.aliasing_output = ", each.donated_to, " : i32"));
      append(parameters, "}");
    }
    std::string text = cat("module @", name, " {\n  sdy.mesh @m = <[\"a\"=2, \"b\"=", n / 2,
                           "]>\n  func.func public @main(", parameters, ") -> (", results, ") {\n",
                           body, "  }\n}\n");
    programs.push_back({std::move(name), std::move(arguments), fill(text, n), tolerance, runs});
  }
};

constexpr std::string_view kReplicated0 = "{sdy.sharding = #sdy.sharding<@m, []>}";

std::string sum_region(const std::string& type, const std::string& op = "add") {
  return cat("({\n      ^bb0(%l: tensor<", type, ">, %r: tensor<", type,
             ">):\n        %s = stablehlo.", op, " %l, %r : tensor<", type,
             ">\n        stablehlo.return %s : tensor<", type, ">\n      })");
}

// All-reduce, all-gather, ... inside a manual region.
std::string all_reduce(const std::string& result, const std::string& operand,
                       const std::string& type, const std::string& element, const std::string& op,
                       const std::string& groups, int channel) {
  return cat("      ", result, " = \"stablehlo.all_reduce\"(", operand, ") ",
             sum_region(element, op), " {replica_groups = ", groups,
             ", channel_handle = #stablehlo.channel_handle<handle = ", channel,
             ", type = 1>, use_global_device_ids} : (tensor<", type, ">) -> tensor<", type, ">\n");
}

void add_automatic(Builder& to) {
  std::int64_t n = to.n;
  to.add("data_parallel",
         {{"f32", {8, 4}, {"", ""}, 0}, {"f32", {4}, {""}, 1}, {"f32", {2 * n, 8}, {"ab", ""}}},
         cat("tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}, tensor<4xf32> "
             "{sdy.sharding = #sdy.sharding<@m, [{}]>}, tensor<f32> ",
             kReplicated0),
         R"(
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %rate = stablehlo.constant dense<0.01> : tensor<8x4xf32>
    %rate1 = stablehlo.constant dense<0.01> : tensor<4xf32>
    %d = stablehlo.dot_general %a2, %a0, contracting_dims = [1] x [0] : (tensor<$2Nx8xf32>, tensor<8x4xf32>) -> tensor<$2Nx4xf32>
    %bb = stablehlo.broadcast_in_dim %a1, dims = [1] : (tensor<4xf32>) -> tensor<$2Nx4xf32>
    %z = stablehlo.add %d, %bb : tensor<$2Nx4xf32>
    %y = stablehlo.tanh %z : tensor<$2Nx4xf32>
    %q = stablehlo.multiply %y, %y : tensor<$2Nx4xf32>
    %loss = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<$2Nx4xf32>, tensor<f32>) -> tensor<f32>
    %g = stablehlo.dot_general %a2, %y, contracting_dims = [0] x [0] : (tensor<$2Nx8xf32>, tensor<$2Nx4xf32>) -> tensor<8x4xf32>
    %gb = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<$2Nx4xf32>, tensor<f32>) -> tensor<4xf32>
    %gs = stablehlo.multiply %g, %rate : tensor<8x4xf32>
    %w = stablehlo.subtract %a0, %gs : tensor<8x4xf32>
    %gbs = stablehlo.multiply %gb, %rate1 : tensor<4xf32>
    %b = stablehlo.subtract %a1, %gbs : tensor<4xf32>
    return %w, %b, %loss : tensor<8x4xf32>, tensor<4xf32>, tensor<f32>
)",
         1e-5);
  to.add(
      "tensor_parallel",
      {{"f32", {4, 8}, {"a", ""}}, {"f32", {8, 4 * n}, {"", "b"}}, {"f32", {4 * n, 8}, {"b", ""}}},
      "tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"a\"}, {}]>}", R"(
    %h = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x$4Nxf32>) -> tensor<4x$4Nxf32>
    %t = stablehlo.tanh %h : tensor<4x$4Nxf32>
    %o = stablehlo.dot_general %t, %a2, contracting_dims = [1] x [0] : (tensor<4x$4Nxf32>, tensor<$4Nx8xf32>) -> tensor<4x8xf32>
    return %o : tensor<4x8xf32>
)",
      1e-5);
  to.add("reshard", {{"i32", {2 * n, 2 * n}, {"ab", ""}}, {"f32", {4, 2 * n}, {"a", "b"}}},
         "tensor<$2Nx$2Nxi32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"a\", \"b\"}]>}, "
         "tensor<$2Nx$2Nxi32> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}, "
         "tensor<4x$2Nxf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"b\", \"a\"}]>}, "
         "tensor<4x$2Nxf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"a\", \"b\"}]>}",
         R"(
    %0 = stablehlo.negate %a0 : tensor<$2Nx$2Nxi32>
    %1 = stablehlo.add %a0, %a0 : tensor<$2Nx$2Nxi32>
    %2 = stablehlo.negate %a1 : tensor<4x$2Nxf32>
    %3 = stablehlo.add %a1, %a1 : tensor<4x$2Nxf32>
    return %0, %1, %2, %3 : tensor<$2Nx$2Nxi32>, tensor<$2Nx$2Nxi32>, tensor<4x$2Nxf32>, tensor<4x$2Nxf32>
)");
  to.add("uneven", {{"f32", {2 * n + 1, 8}, {"", ""}}, {"f32", {8, 2 * n + 1}, {"", ""}}},
         "tensor<$Ux$Uxf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}, tensor<f32> " +
             std::string(kReplicated0),
         R"(
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %x = sdy.sharding_constraint %a0 <@m, [{"a", "b"}, {}]> : tensor<$Ux8xf32>
    %w = sdy.sharding_constraint %a1 <@m, [{}, {"b"}]> : tensor<8x$Uxf32>
    %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<$Ux8xf32>, tensor<8x$Uxf32>) -> tensor<$Ux$Uxf32>
    %t = stablehlo.tanh %d : tensor<$Ux$Uxf32>
    %c = sdy.sharding_constraint %t <@m, [{}, {"b", "a"}]> : tensor<$Ux$Uxf32>
    %s = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<$Ux$Uxf32>, tensor<f32>) -> tensor<f32>
    %r = stablehlo.reverse %c, dims = [1] : tensor<$Ux$Uxf32>
    return %r, %s : tensor<$Ux$Uxf32>, tensor<f32>
)",
         1e-5);
}

void add_control_flow(Builder& to) {
  std::int64_t n = to.n;
  to.add("scan", {{"f32", {4, 4 * n}, {"", "ab"}}, {"f32", {4 * n, 4 * n}, {"ab", ""}}},
         "tensor<4x$4Nxf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"a\", \"b\"}]>}, "
         "tensor<5xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}",
         R"(
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %losses = stablehlo.constant dense<0.0> : tensor<5xf32>
    %w:3 = stablehlo.while(%i = %zero, %h = %a0, %l = %losses) : tensor<i32>, tensor<4x$4Nxf32>, tensor<5xf32>
    cond {
      %c = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %d = stablehlo.dot_general %h, %a1, contracting_dims = [1] x [0] : (tensor<4x$4Nxf32>, tensor<$4Nx$4Nxf32>) -> tensor<4x$4Nxf32>
      %t = stablehlo.tanh %d : tensor<4x$4Nxf32>
      %k = sdy.sharding_constraint %t <@m, [{}, {"a", "b"}]> : tensor<4x$4Nxf32>
      %s = stablehlo.reduce(%k init: %f) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x$4Nxf32>, tensor<f32>) -> tensor<f32>
      %v = stablehlo.reshape %s : (tensor<f32>) -> tensor<1xf32>
      %u = stablehlo.dynamic_update_slice %l, %v, %i : (tensor<5xf32>, tensor<1xf32>, tensor<i32>) -> tensor<5xf32>
      %n = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %n, %k, %u : tensor<i32>, tensor<4x$4Nxf32>, tensor<5xf32>
    }
    return %w#1, %w#2 : tensor<4x$4Nxf32>, tensor<5xf32>
)",
         1e-4);
  to.add("loop_of_one_value", {{"f32", {2 * n}, {"ab"}}},
         "tensor<$2Nxf32> {sdy.sharding = #sdy.sharding<@m, [{\"a\", \"b\"}]>}", R"(
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %most = stablehlo.constant dense<1.0e6> : tensor<f32>
    %w = stablehlo.while(%x = %a0) : tensor<$2Nxf32>
    cond {
      %q = stablehlo.multiply %x, %x : tensor<$2Nxf32>
      %s = stablehlo.reduce(%q init: %f) applies stablehlo.add across dimensions = [0] : (tensor<$2Nxf32>, tensor<f32>) -> tensor<f32>
      %c = stablehlo.compare LT, %s, %most : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %r = stablehlo.reverse %x, dims = [0] : tensor<$2Nxf32>
      %t = stablehlo.constant dense<2.0> : tensor<$2Nxf32>
      %d = stablehlo.multiply %r, %t : tensor<$2Nxf32>
      %e = stablehlo.add %d, %x : tensor<$2Nxf32>
      %one = stablehlo.constant dense<1.0> : tensor<$2Nxf32>
      %g = stablehlo.add %e, %one : tensor<$2Nxf32>
      %k = sdy.sharding_constraint %g <@m, [{"a", "b"}]> : tensor<$2Nxf32>
      stablehlo.return %k : tensor<$2Nxf32>
    }
    return %w : tensor<$2Nxf32>
)",
         1e-5);
  for (int branch = 0; branch < 3; ++branch)
    to.add(cat("conditional_", branch),
           {{"f32", {2 * n, 4}, {"ab", ""}}, {"f32", {4, 4}, {"", ""}}},
           "tensor<$2Nx4xf32> {sdy.sharding = #sdy.sharding<@m, [{\"a\", \"b\"}, {}]>}, "
           "tensor<f32> {sdy.sharding = #sdy.sharding<@m, []>}",
           cat("    %which = stablehlo.constant dense<", branch, "> : tensor<i32>\n", R"(
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%a1 init: %f) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
    %no = stablehlo.constant dense<1.0e9> : tensor<f32>
    %p = stablehlo.compare GT, %sum, %no : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %pi = stablehlo.convert %p : (tensor<i1>) -> tensor<i32>
    %index = stablehlo.add %which, %pi : tensor<i32>
    %r:2 = "stablehlo.case"(%index) ({
      %d = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : (tensor<$2Nx4xf32>, tensor<4x4xf32>) -> tensor<$2Nx4xf32>
      %s = stablehlo.reduce(%d init: %f) applies stablehlo.add across dimensions = [0, 1] : (tensor<$2Nx4xf32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %d, %s : tensor<$2Nx4xf32>, tensor<f32>
    }, {
      stablehlo.return %a0, %f : tensor<$2Nx4xf32>, tensor<f32>
    }, {
      %v = stablehlo.reverse %a0, dims = [0] : tensor<$2Nx4xf32>
      %m = stablehlo.reduce(%v init: %f) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<$2Nx4xf32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %v, %m : tensor<$2Nx4xf32>, tensor<f32>
    }) : (tensor<i32>) -> (tensor<$2Nx4xf32>, tensor<f32>)
    return %r#0, %r#1 : tensor<$2Nx4xf32>, tensor<f32>
)"),
           1e-5);
  to.add("conditional_of_one_value", {{"f32", {2 * n}, {"ab"}}, {"i1", {}, {}}},
         "tensor<f32> {sdy.sharding = #sdy.sharding<@m, []>}", R"(
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %r = "stablehlo.if"(%a1) ({
      %s = stablehlo.reduce(%a0 init: %f) applies stablehlo.add across dimensions = [0] : (tensor<$2Nxf32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %s : tensor<f32>
    }, {
      stablehlo.return %f : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    return %r : tensor<f32>
)",
         1e-5);
  to.add("nested_loops", {{"f32", {2 * n, 2}, {"ab", ""}}},
         "tensor<$2Nx2xf32> {sdy.sharding = #sdy.sharding<@m, [{\"a\", \"b\"}, {}]>}, tensor<f32> "
         "{sdy.sharding = #sdy.sharding<@m, []>}",
         R"(
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %w:3 = stablehlo.while(%i = %zero, %x = %a0, %t = %f) : tensor<i32>, tensor<$2Nx2xf32>, tensor<f32>
    cond {
      %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %v:3 = stablehlo.while(%j = %zero, %y = %x, %s = %t) : tensor<i32>, tensor<$2Nx2xf32>, tensor<f32>
      cond {
        %c = stablehlo.compare LT, %j, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %odd = stablehlo.and %j, %one : tensor<i32>
        %p = stablehlo.compare EQ, %odd, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %q:2 = "stablehlo.if"(%p) ({
          %m = stablehlo.reverse %y, dims = [0] : tensor<$2Nx2xf32>
          stablehlo.return %m, %s : tensor<$2Nx2xf32>, tensor<f32>
        }, {
          %m = stablehlo.reduce(%y init: %s) applies stablehlo.add across dimensions = [0, 1] : (tensor<$2Nx2xf32>, tensor<f32>) -> tensor<f32>
          %h = stablehlo.constant dense<0.5> : tensor<$2Nx2xf32>
          %z = stablehlo.multiply %y, %h : tensor<$2Nx2xf32>
          stablehlo.return %z, %m : tensor<$2Nx2xf32>, tensor<f32>
        }) : (tensor<i1>) -> (tensor<$2Nx2xf32>, tensor<f32>)
        %n = stablehlo.add %j, %one : tensor<i32>
        stablehlo.return %n, %q#0, %q#1 : tensor<i32>, tensor<$2Nx2xf32>, tensor<f32>
      }
      %k = sdy.sharding_constraint %v#1 <@m, [{"a", "b"}, {}]> : tensor<$2Nx2xf32>
      %e = stablehlo.reduce(%k init: %v#2) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<$2Nx2xf32>, tensor<f32>) -> tensor<f32>
      %n = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %n, %k, %e : tensor<i32>, tensor<$2Nx2xf32>, tensor<f32>
    }
    return %w#1, %w#2 : tensor<$2Nx2xf32>, tensor<f32>
)",
         1e-5);
}

std::string manual(const std::string& in, const std::string& out, const std::string& parameters,
                   const std::string& body, const std::string& types, const std::string& operands,
                   int results) {
  return cat("    %r", results > 1 ? cat(":", results) : "", " = sdy.manual_computation(", operands,
             ") in_shardings=[", in, "] out_shardings=[", out, "] manual_axes={\"a\", \"b\"} (",
             parameters, ") {\n", body, "    } : ", types, "\n");
}

constexpr std::string_view kHandle = "channel_handle = #stablehlo.channel_handle<handle = ";

void add_manual(Builder& to) {
  std::int64_t n = to.n;
  std::string split = "<@m, [{\"a\", \"b\"}, {}]>";
  std::string type = "tensor<$2Nx4xf32>", local = "2x4xf32";
  std::string shard = "{sdy.sharding = #sdy.sharding<@m, [{\"a\", \"b\"}, {}]>}";
  auto result_types = [](const std::string& t, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) append(all, cat(i ? ", " : "", t));
    return all;
  };
  auto repeat = [](const std::string& t, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) append(all, cat(i ? ", " : "", t));
    return all;
  };
  auto values = [](int count) {
    std::string all;
    for (int i = 0; i < count; ++i)
      append(all, count == 1 ? std::string("%r") : cat(i ? ", " : "", "%r#", i));
    return all;
  };
  // Adds a program whose results all have the sharding and type of the argument.
  auto same = [&](const std::string& name, const std::string& body, int count,
                  double tolerance = 1e-6, bool runs = true, const std::string& element = "f32") {
    std::string t = cat("tensor<$2Nx4x", element, ">"), l = cat("2x4x", element);
    to.add(name, {{element, {2 * n, 4}, {"ab", ""}}}, result_types(cat(t, " ", shard), count),
           cat(manual(split, repeat(split, count), cat("%p: tensor<", l, ">"), body,
                      cat("(", t, ") -> (", repeat(t, count), ")"), "%a0", count),
               "    return ", values(count), " : ", repeat(t, count), "\n"),
           tolerance, runs);
  };
  same("manual_reductions",
       cat(all_reduce("%0", "%p", local, "f32", "add", "$ALL", 1),
           all_reduce("%1", "%p", local, "f32", "maximum", "$ROWS", 2),
           all_reduce("%2", "%p", local, "f32", "minimum", "$COLUMNS", 3),
           all_reduce("%3", "%p", local, "f32", "multiply", "$ROWS", 4),
           all_reduce("%4", "%2", local, "f32", "add", "$ROWS", 5),
           "      sdy.return %0, %1, %2, %3, %4 : ", repeat("tensor<2x4xf32>", 5), "\n"),
       5);
  same("manual_bits",
       cat(all_reduce("%0", "%p", "2x4xi32", "i32", "and", "$ALL", 1),
           all_reduce("%1", "%p", "2x4xi32", "i32", "or", "$ROWS", 2),
           all_reduce("%2", "%p", "2x4xi32", "i32", "xor", "$COLUMNS", 3),
           "      sdy.return %0, %1, %2 : ", repeat("tensor<2x4xi32>", 3), "\n"),
       3, 0, false, "i32");
  // Gather and scatter along each dimension, and over rows and columns of the mesh.
  std::string moves;
  for (int d = 0; d < 2; ++d)
    for (int along = 0; along < 2; ++along) {
      std::string k = cat(2 * d + along), groups = along ? "$COLUMNS" : "$ROWS";
      std::int64_t size = along ? 2 : n / 2;
      std::string wide = d == 0 ? cat(2 * size, "x4xf32") : cat("2x", 4 * size, "xf32");
      append(moves,
             cat("      %g", k, " = \"stablehlo.all_gather\"(%p) {all_gather_dim = ", d,
                 " : i64, replica_groups = ", groups, ", ", kHandle, 10 + 2 * d + along,
                 ", type = 1>, use_global_device_ids} : (tensor<2x4xf32>) -> tensor<", wide,
                 ">\n      %h", k, " = stablehlo.multiply %g", k, ", %g", k, " : tensor<", wide,
                 ">\n      %s", k, " = \"stablehlo.reduce_scatter\"(%h", k, ") ", sum_region("f32"),
                 " {scatter_dimension = ", d, " : i64, replica_groups = ", groups, ", ", kHandle,
                 20 + 2 * d + along, ", type = 1>, use_global_device_ids} : (tensor<", wide,
                 ">) -> tensor<2x4xf32>\n"));
    }
  same("manual_gather_scatter",
       cat(moves, "      sdy.return %s0, %s1, %s2, %s3 : ", repeat("tensor<2x4xf32>", 4), "\n"), 4);
  // Along the columns of the mesh, which have two devices; dimension 0 and 1.
  std::string exchange;
  for (int d = 0; d < 2; ++d) {
    append(exchange, cat("      %x", d, " = \"stablehlo.all_to_all\"(%p) {split_dimension = ", d,
                         " : i64, concat_dimension = ", d,
                         " : i64, split_count = 2 : i64, "
                         "replica_groups = $COLUMNS, ",
                         kHandle, 30 + d, ", type = 1>} : (tensor<2x4xf32>) -> tensor<2x4xf32>\n"));
  }
  append(
      exchange,
      cat("      %w = \"stablehlo.all_to_all\"(%p) {split_dimension = 1 : i64, concat_dimension = "
          "0 : i64, split_count = 2 : i64, replica_groups = $COLUMNS, ",
          kHandle, 33, ", type = 1>} : (tensor<2x4xf32>) -> tensor<4x2xf32>\n",
          "      %x2 = stablehlo.reshape %w : (tensor<4x2xf32>) -> tensor<2x4xf32>\n"));
  same("manual_all_to_all",
       cat(exchange, "      sdy.return %x0, %x1, %x2 : ", repeat("tensor<2x4xf32>", 3), "\n"), 3,
       0);
  same("manual_permute",
       cat("      %0 = \"stablehlo.collective_permute\"(%p) {source_target_pairs = $RING, ",
           kHandle, "40, type = 1>} : (tensor<2x4xf32>) -> tensor<2x4xf32>\n",
           "      %1 = \"stablehlo.collective_permute\"(%0) {source_target_pairs = dense<[[1, 0]]> "
           ": "
           "tensor<1x2xi64>, ",
           kHandle, "41, type = 1>} : (tensor<2x4xf32>) -> tensor<2x4xf32>\n",
           "      %2 = \"stablehlo.collective_permute\"(%p) {source_target_pairs = dense<[[0, 0], "
           "[1, "
           "1]]> : tensor<2x2xi64>, ",
           kHandle, "42, type = 1>} : (tensor<2x4xf32>) -> tensor<2x4xf32>\n",
           "      sdy.return %0, %1, %2 : ", repeat("tensor<2x4xf32>", 3), "\n"),
       3, 0);
  same("manual_partition_id",
       "      %i = stablehlo.partition_id : tensor<ui32>\n"
       "      %f = stablehlo.convert %i : (tensor<ui32>) -> tensor<f32>\n"
       "      %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2x4xf32>\n"
       "      %0 = stablehlo.add %p, %b : tensor<2x4xf32>\n"
       "      sdy.return %0 : tensor<2x4xf32>\n",
       1, 0);
  same("manual_broadcast",
       cat("      %0 = \"stablehlo.collective_broadcast\"(%p) {replica_groups = $ROWS, ", kHandle,
           "50, type = 1>} : (tensor<2x4xf32>) -> tensor<2x4xf32>\n",
           "      sdy.return %0 : tensor<2x4xf32>\n"),
       1, 0, false);
  // Devices of different rows of the mesh take different branches.
  same("manual_branches",
       cat("      %i = stablehlo.partition_id : tensor<ui32>\n"
           "      %h = stablehlo.constant dense<$B> : tensor<ui32>\n"
           "      %c = stablehlo.compare LT, %i, %h : (tensor<ui32>, tensor<ui32>) -> tensor<i1>\n"
           "      %0 = \"stablehlo.if\"(%c) ({\n",
           all_reduce("%x", "%p", local, "f32", "add", "$ROWS", 60),
           "        %y = stablehlo.negate %x : tensor<2x4xf32>\n",
           all_reduce("%z", "%y", local, "f32", "maximum", "$ROWS", 61),
           "        stablehlo.return %z : tensor<2x4xf32>\n      }, {\n",
           all_reduce("%x", "%p", local, "f32", "minimum", "$ROWS", 62),
           "        stablehlo.return %x : tensor<2x4xf32>\n      }) : (tensor<i1>) -> "
           "tensor<2x4xf32>\n",
           "      sdy.return %0 : tensor<2x4xf32>\n"),
       1);
  // Small programs run in one thread; the arrays of this one are large enough for several.
  std::string independent, sum = "%p", large = "2x256xf32";
  for (int k = 0; k < 24; ++k) {
    std::string scaled = cat("%q", k);
    append(independent, cat("      %k", k, " = stablehlo.constant dense<", k + 1,
                            ".0> : tensor<2x256xf32>\n      ", scaled,
                            " = stablehlo.multiply %p, %k", k, " : tensor<2x256xf32>\n"));
    if (k % 3 == 2)
      append(independent, cat("      %v", k, " = \"stablehlo.collective_permute\"(", scaled,
                              ") {source_target_pairs = $RING, ", kHandle, 100 + k,
                              ", type = 1>} : (tensor<2x256xf32>) -> tensor<2x256xf32>\n"));
    else
      append(independent,
             all_reduce(cat("%v", k), scaled, large, "f32", k % 4 < 2 ? "maximum" : "minimum",
                        k % 3 == 0 ? "$ROWS" : "$COLUMNS", 100 + k));
    append(independent,
           cat("      %t", k, " = stablehlo.add ", sum, ", %v", k, " : tensor<2x256xf32>\n"));
    sum = cat("%t", k);
  }
  to.add("independent", {{"f32", {2 * n, 256}, {"ab", ""}}}, cat("tensor<$2Nx256xf32> ", shard),
         cat(manual(split, split, "%p: tensor<2x256xf32>",
                    cat(independent, "      sdy.return ", sum, " : tensor<2x256xf32>\n"),
                    "(tensor<$2Nx256xf32>) -> tensor<$2Nx256xf32>", "%a0", 1),
             "    return %r : tensor<$2Nx256xf32>\n"),
         1e-6);
  for (std::string element : {"bf16", "f16", "f64", "i8", "ui16", "i64", "f8E4M3FN", "f8E5M2"})
    same(cat("dtype_", element),
         cat(all_reduce("%0", "%p", cat("2x4x", element), element, "add", "$ALL", 1),
             all_reduce("%1", "%p", cat("2x4x", element), element, "maximum", "$ROWS", 2),
             "      sdy.return %0, %1 : ", repeat(cat("tensor<2x4x", element, ">"), 2), "\n"),
         2,
         element == "bf16" || element == "f16" ? 1e-2
         : element[1] == '8'                   ? 0.2
                                               : 0,
         true, element);
  to.add("dtype_pred", {{"i1", {2 * n, 4}, {"ab", ""}}},
         result_types(cat("tensor<$2Nx4xi1> ", shard), 3),
         cat(manual(split, repeat(split, 3), "%p: tensor<2x4xi1>",
                    cat(all_reduce("%0", "%p", "2x4xi1", "i1", "and", "$ALL", 1),
                        all_reduce("%1", "%p", "2x4xi1", "i1", "or", "$ALL", 2),
                        all_reduce("%2", "%p", "2x4xi1", "i1", "maximum", "$ROWS", 3),
                        "      sdy.return %0, %1, %2 : ", repeat("tensor<2x4xi1>", 3), "\n"),
                    cat("(tensor<$2Nx4xi1>) -> (", repeat("tensor<$2Nx4xi1>", 3), ")"), "%a0", 3),
             "    return ", values(3), " : ", repeat("tensor<$2Nx4xi1>", 3), "\n"));
  to.add("empty", {{"f32", {2 * n, 0}, {"ab", ""}}},
         cat("tensor<$2Nx0xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}"),
         "    %0 = stablehlo.negate %a0 : tensor<$2Nx0xf32>\n    return %0 : tensor<$2Nx0xf32>\n");
  to.add("no_collectives", {{"f32", {2 * n, 4}, {"ab", ""}}}, cat(type, " ", shard),
         "    %0 = stablehlo.negate %a0 : tensor<$2Nx4xf32>\n    return %0 : tensor<$2Nx4xf32>\n");
}

}  // namespace

std::vector<ShardedProgram> sharded_programs(int devices) {
  Builder builder{devices, {}};
  add_automatic(builder);
  add_control_flow(builder);
  add_manual(builder);
  return std::move(builder.programs);
}

ShardedProgram sharded_program(const std::string& name, int devices) {
  for (ShardedProgram& each : sharded_programs(devices))
    if (each.name == name) return each;
  throw std::runtime_error("no program " + name);
}

}  // namespace meshard
