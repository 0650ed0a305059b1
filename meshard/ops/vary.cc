#include "meshard/ops/vary.h"

#include "meshard/graph/annotate.h"
#include "meshard/graph/record.h"
#include "meshard/ops/composite/manual.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/full_to_shard.h"
#include "meshard/ops/internal/collective.h"

namespace meshard {
using namespace internal;
extern const OpDef vary_op;
namespace {

AnnotationsPtr annotate_vary(const Node& node) {
  const AxisList& axes = node.attributes_as<VaryAttributes>().axes;
  const ManualAxes* place = manual_axes(node.operands()[0]);
  if (!place) fail_at(node, "takes a local value, not the full ", node.operands()[0].type());
  AxisSet more(place->mesh, axes, node.where());
  if (!place->axes.contains(more))
    fail_at(node, meshard::to_string(axes), " are not all manual here: the value is ", *place);
  return annotations_of(place->with_varying(place->varying | more));
}

// Widens x over the axes that it does not vary over yet.
Tensor varied(const Tensor& x, AxisSet more, SourceLocation where) {
  const ManualAxes& place = *manual_axes(x.value());
  more = more - place.varying;
  if (more.empty()) return x;
  return record(vary_op, make_attributes(VaryAttributes{more.of(place.mesh)}), {&x}, where);
}

}  // namespace

extern constinit const OpDef vary_op = element_wise::define({
    .name = "vary",
    .operands = "x",
    .doc = "The same local value, treated as varying over these manual axes.",
    .example = "manual(Mesh({{\"x\", 1}}), P(), P(\"x\"), [](Tensor t) { return vary(t, \"x\"); "
               "})(x)",
    .domain = DTypeDomain::kAny,
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.reshape").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = call.cotangents[0];  // one per device; the caller of the vjp sums them
        },
    .samples =
        [](SampleSource& source) {
          auto over = [](std::int64_t devices) {
            return [devices](std::span<const Tensor> x) {
              return manual(Mesh({{"x", devices}}), P(), P("x"),
                            [](const Tensor& local) { return vary(local, "x"); })(x[0]);
            };
          };
          return std::vector<OpSample>{
              {"one device", {source.uniform(DType::f32, {4, 8})}, over(1)},
              {"two devices", {source.uniform(DType::f32, {4, 8})}, over(2)},
              {"f64", {source.uniform(DType::f64, {3, 4})}, over(2)},
          };
        },
    .annotate = annotate_vary,
    .parse_attributes = parse_attributes<VaryAttributes>,
    .traits = {.recomputation = Recomputation::kFree},
});

Tensor vary(In x, const CollectiveAxes& axes) {
  Tensor operand = collective::local_operand(vary_op, x);
  const ManualAxes& place = *manual_axes(operand.value());
  return varied(operand, AxisSet(place.mesh, axes.list(), effective_source(x.where)), x.where);
}

Tensor widened(const Tensor& x, const ManualAxes& place) {
  Tensor local = x;
  for (std::size_t depth = manual_depth(x.value()) + 1; depth <= place.depth(); ++depth)
    local =
        full_to_shard(In(local, x.where()),
                      Sharding::replicated(place.mesh, static_cast<std::size_t>(x.shape().rank())),
                      place.at_depth(depth).own());
  return varied(local, place.varying, x.where());
}

}  // namespace meshard
