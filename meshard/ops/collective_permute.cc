#include "meshard/ops/collective_permute.h"

#include "meshard/graph/record.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/internal/collective.h"

namespace meshard {
using namespace internal;
namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

void check_members(const OpCall& call, std::string_view what,
                   const std::vector<std::int64_t>& members, std::int64_t size) {
  std::vector<bool> seen(static_cast<std::size_t>(size), false);
  for (std::int64_t member : members) {
    if (member < 0 || member >= size)
      call.fail(what, " ", member, " is outside 0..", size - 1, ", the members of a group");
    if (seen[static_cast<std::size_t>(member)])
      call.fail("member ", member, " appears twice as ", what);
    seen[static_cast<std::size_t>(member)] = true;
  }
}

void infer_collective_permute(const OpCall& call, ResultTypes& results) {
  const auto& attributes = call.as<CollectivePermuteAttributes>();
  if (attributes.sources.size() != attributes.targets.size())
    call.fail(attributes.sources.size(), " sources for ", attributes.targets.size(),
              " targets: give one source for each target");
  check_members(call, "source", attributes.sources, attributes.size);
  check_members(call, "target", attributes.targets, attributes.size);
  results.push_back(call.operand(0));
}

void emit_collective_permute(const OpCall& call, OpEmission& out) {
  const auto& attributes = call.as<CollectivePermuteAttributes>();
  if (attributes.size == 1 && attributes.sources.empty())
    return out.writer.splat(out.results[0].value, call.result(), 0, out.location);
  if (collective::write_alone(attributes.size, out)) return;
  std::vector<std::vector<std::int64_t>> pairs;
  for (const auto& group : collective::logical_groups(*out.mesh, attributes.axes, *out.numbering))
    for (std::size_t i = 0; i < attributes.sources.size(); ++i)
      pairs.push_back({group[static_cast<std::size_t>(attributes.sources[i])],
                       group[static_cast<std::size_t>(attributes.targets[i])]});
  stablehlo::OpWriter op = out.op("stablehlo.collective_permute");
  collective::write_channel(op, out)
      .raw("source_target_pairs", collective::rows_text(pairs))
      .done();
}

}  // namespace

extern constinit const OpDef collective_permute_op = {
    .name = "collective_permute",
    .operands = "x",
    .doc = "Sends local values from some devices along manual axes to others.",
    .example =
        "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(\"x\"), [](Tensor t) { return "
        "collective_permute(t, \"x\", {{0, 0}}); })(x)",
    .infer = infer_collective_permute,
    .sharding_rule = collective::rule,
    .emit = emit_collective_permute,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const auto& attributes = call.as<CollectivePermuteAttributes>();
          Pairs back;
          for (std::size_t i = 0; i < attributes.sources.size(); ++i)
            back.emplace_back(attributes.targets[i], attributes.sources[i]);
          out[0] = collective_permute(call.cotangents[0], attributes.axes, back);
        },
    .batch = batch_unchanged,
    .samples =
        [](SampleSource& source) {
          std::vector<OpSample> all = collective::samples(
              source, [](const Tensor& local) { return ring_shift(local, "x"); });
          for (OpSample& sample : collective::samples(source, [](const Tensor& local) {
                 return collective_permute(local, "x", {{0, 0}});
               }))
            all.push_back({"zeros for one, " + sample.name, sample.inputs, sample.call});
          return all;
        },
    .annotate = collective::annotate_same<CollectivePermuteAttributes>,
    .parse_attributes = parse_attributes<CollectivePermuteAttributes>,
    .traits = {.is_collective = true},
};

Tensor collective_permute(In x, const CollectiveAxes& axes, const Pairs& pairs) {
  Tensor operand = collective::local_operand(collective_permute_op, x);
  collective::Group group = collective::group_of(collective_permute_op, operand, axes, x.where);
  CollectivePermuteAttributes attributes{group.axes, group.size, {}, {}};
  for (const auto& [source, target] : pairs) {
    attributes.sources.push_back(source);
    attributes.targets.push_back(target);
  }
  operand = collective::varying_over(operand, group.axes);
  return record(collective_permute_op, make_attributes(std::move(attributes)), {&operand}, x.where);
}

Tensor ring_shift(In x, const CollectiveAxes& axes, std::int64_t by) {
  SourceScope line(x.where);
  Tensor operand = collective::local_operand(collective_permute_op, x);
  std::int64_t size = collective::group_of(collective_permute_op, operand, axes, x.where).size;
  Pairs pairs;
  for (std::int64_t i = 0; i < size; ++i) pairs.emplace_back(i, ((i + by) % size + size) % size);
  return collective_permute(In(operand, x.where), axes, pairs);
}

}  // namespace meshard
