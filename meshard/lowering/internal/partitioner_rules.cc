#include "meshard/lowering/internal/partitioner_rules.h"

#include <algorithm>
#include <typeinfo>

#include "meshard/graph/body.h"
#include "meshard/ops/convolution.h"
#include "meshard/ops/cumulative.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/fft.h"
#include "meshard/ops/gather.h"
#include "meshard/ops/reduce_window.h"
#include "meshard/ops/scatter.h"

namespace meshard {
namespace {

constexpr std::string_view kThreeCpuPlugins =
    "CPU plugins fastatomstruct-xla-cpu 2026.6.23, lammps-jax-pjrt-cpu, xla-cpu-pjrt (PJRT API "
    "0.81)";

template <class... T>
bool has_attributes(const Node& node) {
  if (!node.attributes()) return false;
  const std::type_info& type = node.attributes()->type();
  return ((type == typeid(T)) || ...);
}

bool is_convolution(const Node& node, const ManualAxes&) {
  return has_attributes<ConvolutionAttributes>(node);
}

bool is_lookup(const Node& node, const ManualAxes&) {
  return has_attributes<GatherAttributes, ScatterAttributes>(node);
}

bool is_window(const Node& node, const ManualAxes&) {
  return has_attributes<ReduceWindowAttributes, CumulativeAttributes,
                        SelectAndScatterAddAttributes>(node);
}

bool is_transform(const Node& node, const ManualAxes&) {
  return has_attributes<FftAttributes>(node);
}

// Whether the op, or one in its bodies, is a permutation between devices.
bool permutes(const Node& node) {
  if (&node.op() == &collective_permute_op) return true;
  std::span<const Body> bodies = bodies_of(node);
  return std::any_of(bodies.begin(), bodies.end(), [](const Body& body) {
    std::span<const Node* const> nodes = body.graph().nodes();
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const Node* each) { return permutes(*each); });
  });
}

// Whether devices may take different branches, or leave the loop at different turns.
bool predicate_varies(const Node& node) {
  auto varies = [](const Value& predicate) {
    const ManualAxes* place = manual_axes(predicate);
    return place && !place->varying.empty();
  };
  if (&node.op() == &switch_case_op) return varies(node.operands()[0]);
  if (&node.op() == &while_loop_op) return varies(bodies_of(node)[0].graph().results()[0]);
  return false;
}

bool may_permute_in_branch(const Node& node, const ManualAxes& place) {
  return predicate_varies(node) && (automatic_size(place) > 1 || permutes(node));
}

constexpr PartitionerRule kPartitionerRules[] = {
    {.name = "convolutions",
     .rewrite = Rewrite::kWhole,
     .platform = "",
     .seen = kThreeCpuPlugins,
     .reason =
         "With a further axis along which the operands are copies, partial sums are added once "
         "for each copy; groups of features are mixed (openxla/xla#4340, jax-ml/jax#24848).",
     .matches = is_convolution},
    {.name = "lookups",
     .rewrite = Rewrite::kWhole,
     .platform = "",
     .seen = kThreeCpuPlugins,
     .reason =
         "Groups of devices for split operands and indices do not cover all devices: a failed "
         "check ends the process (openxla/xla#4340, openxla/xla#15048).",
     .matches = is_lookup},
    {.name = "windows",
     .rewrite = Rewrite::kWhole,
     .platform = "",
     .seen = kThreeCpuPlugins,
     .reason = "Overlapping windows of split dimensions lose elements or do not compile "
               "(openxla/xla#4340, jax-ml/jax#21403).",
     .matches = is_window},
    {.name = "Fourier transforms",
     .rewrite = Rewrite::kWhole,
     .platform = "",
     .seen = kThreeCpuPlugins,
     .reason = "A failed check ends the process (fft_handler.cc: size_per_partition % "
               "num_partitions).",
     .matches = is_transform},
    {.name = "branches and loops whose predicate varies",
     .rewrite = Rewrite::kByAllDevices,
     .platform = "cpu",
     .seen = kThreeCpuPlugins,
     .reason = "A collective-permute, which the partitioner may insert for any op, waits for all "
               "devices, also for those in another branch (jax-ml/jax#15780).",
     .matches = may_permute_in_branch},
};

}  // namespace

std::span<const PartitionerRule> partitioner_rules() { return kPartitionerRules; }

std::int64_t automatic_size(const ManualAxes& place) {
  std::int64_t size = place.mesh.size();
  for (std::size_t a = 0; a < place.mesh.rank(); ++a)
    if (place.axes.contains(a)) size /= place.mesh.axes()[a].size;
  return size;
}

const PartitionerRule* partitioner_rule(const Node& node, const ManualAxes& place,
                                        bool for_xla_cpu) {
  for (const PartitionerRule& rule : kPartitionerRules) {
    if (rule.platform == "cpu" && !for_xla_cpu) continue;
    if (rule.rewrite == Rewrite::kWhole && automatic_size(place) == 1) continue;
    if (rule.matches(node, place)) return &rule;
  }
  return nullptr;
}

}  // namespace meshard
