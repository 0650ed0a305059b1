#include "meshard/report/sample_report_testutil.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/topology/tpu_topology.h"

namespace meshard {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

std::vector<std::int64_t> ids_of(const Topology& topology) {
  std::vector<std::int64_t> ids;
  for (const DeviceAttributes& device : topology.devices()) ids.push_back(device.id);
  return ids;
}

ValuePlacement placed(std::string name, const char* type, const Mesh& mesh,
                      const PartitionSpec& spec) {
  TensorType parsed = TensorType::parse(type).value();
  return {.name = std::move(name),
          .place = "gpt.py:17",
          .type = parsed,
          .padded = parsed,
          .sharding = Sharding(mesh, spec, static_cast<std::size_t>(parsed.rank()))};
}

CollectiveOrigin origin(const char* op, const char* place, OriginCertainty certainty) {
  return {.certainty = certainty, .places = {{.node = 7, .op = op, .place = place}}};
}

void add_arguments(ProgramReport::Parts& parts, const Mesh& mesh) {
  auto& all = parts.arguments;
  for (int layer = 0; layer < 12; ++layer) {
    std::string at = cat("params['layers'][", layer, "]");
    all.push_back(placed(cat(at, ".wq"), "bf16[4096,32,128]", mesh, P("data", "model", none)));
    all.push_back(placed(cat(at, ".w_in"), "bf16[4096,16384]", mesh, P("data", "model")));
    all.push_back(placed(cat(at, ".w_out"), "bf16[16384,4096]", mesh, P("model", "data")));
    all.push_back(placed(cat(at, ".scale"), "f32[4096]", mesh, P(none)));
    for (std::size_t i = all.size() - 4; i < all.size(); ++i) all[i].donated = true;
  }
  all.push_back(placed("params['embed'] µ→", "bf16[50257,4096]", mesh, P("model", none)));
  all.back().padded = TensorType::parse("bf16[50260,4096]").value();
  all.push_back(placed("tokens", "i32[256,2048]", mesh, P({"dcn", "data"}, none)));
  all.push_back(placed("mask", "bool[8,4,64,64]", mesh, P("data", "model", "dcn", none)));
  all.push_back({.name = "learning_rate",
                 .type = {DType::f32, {}},
                 .padded = {DType::f32, {}},
                 .sharding = std::nullopt});
  parts.num_captured = 1;
  parts.results = {placed("loss", "f32[]", mesh, P()),
                   placed("updated", "bf16[4096,32,128]", mesh, P("data", "model", none))};
  parts.results[1].chosen_by_compiler = true;
  parts.results[1].place = "gpt.py:88";
  AxisRef half("model", 2, 2);
  parts.intermediates = {
      placed("dot_general.7", "bf16[256,2048,4096]", mesh, P({"dcn", "data"}, none, half)),
      placed("partial sums", "f32[64,64]", mesh, P("data", unconstrained))};
  parts.intermediates[0].chosen_by_compiler = true;
  parts.intermediates[1].sharding =
      parts.intermediates[1].sharding->with_unreduced({"model"}).with_replicated({"dcn"});
}

// A permutation, a send, and an exchange in groups that match no axes.
void add_moves(ProgramReport::Parts& parts) {
  using enum CollectiveKind;
  std::vector<Collective> moves = {
      {.kind = kCollectivePermute,
       .instruction = "collective-permute.4",
       .axes = AxisList{"model"},
       .shifts = {{.axes = {"model"}, .by = -1, .wraps = false}},
       .bytes_in = 2 * kMiB,
       .bytes_out = 2 * kMiB,
       .channel = 4,
       .loop_depth = 2,
       .executions = 48,
       .executions_known = false,
       .form = CollectiveForm::kWindowedEinsum,
       .continues = true,
       .origin = origin("dot_general", "", OriginCertainty::kInferred)},
      {.kind = kSend,
       .instruction = "send.1",
       .axes = AxisList{"dcn"},
       .group_size = 2,
       .bytes_in = 512 * kMiB,
       .bytes_out = 0,
       .channel = 5,
       .form = CollectiveForm::kAcrossSlices,
       .origin = origin("psum", "gpt.py:90", OriginCertainty::kExact),
       .cause = CollectiveCause::kAsked},
      {.kind = kAllToAll,
       .instruction = "all-to-all.7",
       .axes = std::nullopt,
       .group_size = 3,
       .bytes_in = 96,
       .bytes_out = 96,
       .conditional = true}};
  parts.collectives.insert(parts.collectives.end(), moves.begin(), moves.end());
}

// The logical collectives; the send of another slice's part is one with the reduce-scatter.
void merge(ProgramReport::Parts& parts) {
  parts.logical_collectives = merge_fragments(parts.collectives);
  auto sent = std::find_if(
      parts.logical_collectives.begin(), parts.logical_collectives.end(),
      [](const LogicalCollective& one) { return one.whole.kind == CollectiveKind::kSend; });
  if (sent == parts.logical_collectives.end()) return;
  sent->whole.kind = CollectiveKind::kAllReduce;
  sent->whole.axes = AxisList{"dcn", "data"};
  sent->instructions.push_back("all-gather.9");
}

void add_collectives(ProgramReport::Parts& parts) {
  using enum CollectiveKind;
  CollectiveOrigin ffn = origin("dot_general", "gpt.py:42", OriginCertainty::kExact);
  ffn.places[0].via = "linear.py:287";
  CollectiveOrigin two = origin("dot_general", "gpt.py:51", OriginCertainty::kMerged);
  two.places.push_back({.node = 9, .op = "add", .place = "gpt.py:52"});
  parts.collectives = {{.kind = kAllGather,
                        .instruction = "all-gather.1",
                        .axes = AxisList{"data"},
                        .group_size = 4,
                        .bytes_in = 8 * kMiB,
                        .bytes_out = 32 * kMiB,
                        .channel = 1,
                        .loop_depth = 1,
                        .executions = 12,
                        .tensor = "params['layers'].w_in bf16[4096,16384]",
                        .origin = ffn,
                        .cause = CollectiveCause::kInserted,
                        .purpose = {.kind = PurposeKind::kWeight,
                                    .certainty = PurposeCertainty::kExact,
                                    .names = {"params['layers'].w_in"},
                                    .layer = "loop/ffn",
                                    .phase = ProgramPhase::kForward,
                                    .from = "P(\"data\", \"model\")",
                                    .to = "P(none, \"model\")"}},
                       {.kind = kAllGather,
                        .instruction = "all-gather.2",
                        .axes = AxisList{"data"},
                        .group_size = 4,
                        .bytes_in = 8 * kMiB,
                        .bytes_out = 32 * kMiB,
                        .channel = 2,
                        .loop_depth = 1,
                        .executions = 12,
                        .origin = ffn,
                        .cause = CollectiveCause::kInserted},
                       {.kind = kReduceScatter,
                        .instruction = "fusion.9",
                        .axes = AxisList{"data", AxisRef("model", 2, 2)},
                        .group_size = 8,
                        .bytes_in = 64 * kMiB,
                        .bytes_out = 8 * kMiB,
                        .channel = 3,
                        .loop_depth = 1,
                        .executions = 12,
                        .form = CollectiveForm::kFused,
                        .origin = two,
                        .cause = CollectiveCause::kInserted,
                        .purpose = {.kind = PurposeKind::kGradient,
                                    .certainty = PurposeCertainty::kInferred,
                                    .names = {"params['layers'].w_in", "params['layers'].w_out"},
                                    .layer = "loop/ffn",
                                    .phase = ProgramPhase::kBackward}}};
  add_moves(parts);
  merge(parts);
}

void add_timeline(ProgramReport::Parts& parts) {
  using Kind = TimelineEntry::Kind;
  auto add = [&](Kind kind, const char* name, const char* opcode, int depth, std::int64_t times,
                 double microseconds) {
    parts.timeline.push_back(
        {.kind = kind,
         .instruction = name,
         .opcode = opcode,
         .depth = depth,
         .executions = times,
         .flops = kind == Kind::kCompute ? 3.5e9 : 0,
         .memory_bytes = 1.5e6,
         .link_bytes = kind == Kind::kCollective ? 3.3e7 : 0,
         .host_bytes = kind == Kind::kCopy ? 4e6 : 0,
         .seconds = microseconds * 1e-6,
         .hidden_seconds = kind == Kind::kCollective ? microseconds * 0.75e-6 : 0,
         .exposed_seconds = kind == Kind::kCollective ? microseconds * 0.25e-6 : 0,
         .measured_seconds =
             kind == Kind::kCompute ? std::optional(microseconds * 1.5e-6) : std::nullopt,
         .place = "gpt.py:42"});
  };
  add(Kind::kCopy, "copy.1", "copy", 0, 1, 20);
  add(Kind::kCompute, "embed.3", "fusion", 0, 1, 110);
  add(Kind::kLoop, "while.2", "while", 0, 1, 0);
  add(Kind::kCollective, "all-gather.1", "all-gather", 1, 12, 180);
  add(Kind::kCompute, "fusion.7", "fusion", 1, 12, 640);
  add(Kind::kLoop, "while.3", "while", 1, 12, 0);
  add(Kind::kCompute, "dot.5", "dot", 2, 48, 60);
  add(Kind::kCollective, "collective-permute.4", "collective-permute", 2, 48, 45);
  add(Kind::kCollective, "fusion.9", "fusion", 1, 12, 210);
  add(Kind::kCompute, "logits.8", "dot", 0, 1, 900);
  add(Kind::kCollective, "send.1", "send", 0, 1, 2100);
  add(Kind::kOther, "tuple.1", "tuple", 0, 1, 0.5);
}

void add_memory(ProgramReport::Parts& parts) {
  parts.memory = MemoryUse{.arguments = 6 * kGiB,
                           .outputs = 5 * kGiB,
                           .aliased = 4 * kGiB,
                           .temporaries = 7 * kGiB + 300 * kMiB,
                           .code = 40 * kMiB,
                           .peak = 15 * kGiB,
                           .host_arguments = 3 * kMiB,
                           .host_outputs = 2 * kMiB,
                           .host_temporaries = kMiB,
                           .capacity = 16 * kGiB};
  parts.largest_buffers = {{.role = BufferRole::kTemporary,
                            .name = "fusion.7",
                            .type = "bf16[32,2048,16384]",
                            .bytes = 2 * kGiB,
                            .place = "gpt.py:42"},
                           {.role = BufferRole::kArgument,
                            .name = "params['embed'] µ→",
                            .type = "bf16[12565,4096]",
                            .bytes = 98 * kMiB + 1,
                            .place = ""},
                           {.role = BufferRole::kOutput,
                            .name = "updated",
                            .type = "bf16[1024,8,128]",
                            .bytes = 2 * kMiB,
                            .place = "gpt.py:88"},
                           {.role = BufferRole::kConstant,
                            .name = "iota",
                            .type = "s32[1024]",
                            .bytes = 4096,
                            .place = ""}};
}

void add_times(ProgramReport::Parts& parts) {
  parts.cost.flops = {{.element_type = "bf16", .matrix = 3.25e12, .other = 1e9},
                      {.element_type = "f32", .matrix = 0, .other = 2.5e10}};
  parts.cost.memory_bytes = 9.1e9;
  parts.cost.transcendentals = 1.5e8;
  parts.cost.loops_known = false;
  parts.roofline =
      Roofline{.compute_seconds = 0.0165,
               .memory_seconds = 0.0111,
               .links = {{.axes = "\"data\"", .link = "ICI", .bytes = 1.6e9, .seconds = 0.0089},
                         {.axes = "\"dcn\"", .link = "DCN", .bytes = 5.4e8, .seconds = 0.0215}},
               .communication_seconds = 0.0215,
               .sources = {"matrix rate 197 Tflop/s (bf16): TPU v5e system architecture",
                           "memory 819 GB/s: TPU v5e system architecture"}};
  parts.schedule =
      Schedule{.seconds = 0.0312,
               .busy_seconds = 0.0188,
               .links = {.hidden_seconds = 0.0181, .exposed_seconds = 0.0123},
               .host = {.hidden_seconds = 0.0004, .exposed_seconds = 0.0001},
               .communication = {{.kind = "send",
                                  .axes = "\"dcn\"",
                                  .collectives = 1,
                                  .executions = 1,
                                  .time = {.hidden_seconds = 0.0094, .exposed_seconds = 0.0121}},
                                 {.kind = "all-gather",
                                  .axes = "\"data\"",
                                  .collectives = 2,
                                  .executions = 24,
                                  .time = {.hidden_seconds = 0.0087, .exposed_seconds = 0.0002}}}};
  parts.custom_calls = {{.name = "flash_attention",
                         .target = "tpu_custom_call",
                         .count = 2,
                         .executions = 24,
                         .operand_bytes = 96 * kMiB,
                         .result_bytes = 32 * kMiB,
                         .source = CustomCallSource::kStated,
                         .flops = 2.5e11,
                         .memory_bytes = 1.3e8,
                         .link_bytes = 4096,
                         .communicates = true,
                         .place = "gpt.py:51"},
                        {.name = "TopK",
                         .target = "TopK",
                         .count = 1,
                         .executions = 1,
                         .operand_bytes = 4096,
                         .result_bytes = 128,
                         .place = ""}};
  parts.measured = MeasuredRun{
      .devices = 8,
      .runs = 3,
      .seconds = 0.0401,
      .links = {.hidden_seconds = 0.0102, .exposed_seconds = 0.0155},
      .communication = {{.kind = "all-gather",
                         .axes = "\"data\"",
                         .collectives = 2,
                         .executions = 24,
                         .time = {.hidden_seconds = 0.0102, .exposed_seconds = 0.0155}}},
      .matched_events = 240,
      .unmatched_events = 2,
      .unmatched = {"infeed.1"}};
  parts.host_transfers =
      HostTransfers{.from_host = 4e6, .to_host = 2e6, .executions = 2, .seconds = 0.0003};
  parts.reshards = {
      {.kind = ReshardKind::kGather,
       .instruction = "all-gather.1",
       .type = "bf16[4096,16384]",
       .from = "P(\"data\", \"model\")",
       .to = "P(none, \"model\")",
       .bytes = 32 * kMiB,
       .executions = 12,
       .origin = origin("dot_general", "gpt.py:42", OriginCertainty::kExact),
       .who = CollectiveCause::kInserted,
       .cause = "dot_general at gpt.py:42 needs all of dimension 0, which is split by \"data\""},
      {.kind = ReshardKind::kFullRematerialize,
       .instruction = "copy.77",
       .type = "f32[256,2048,4096]",
       .from = "P({\"dcn\", \"data\"}, none, none)",
       .to = "P(none, \"data\", \"model\")",
       .bytes = 8 * kGiB,
       .origin = origin("reshape", "gpt.py:61", OriginCertainty::kInferred),
       .cause = "no collective leads from one sharding to the other"}};
}

}  // namespace

ProgramReport::Parts sample_parts() {
  Topology topology = tpu_topology("v5e:4x4*2").value();
  Mesh mesh({{"dcn", 2}, {"data", 4}, {"model", 4, AxisKind::kExplicit}}, ids_of(topology));
  ProgramReport::Parts parts;
  parts.name = "train_step";
  parts.target = {.name = "v5e:4x4*2",
                  .device_kind = "TPU v5 lite",
                  .devices = 32,
                  .compiler = "libtpu 0.0.51",
                  .compile_seconds = 12.25};
  parts.mesh = mesh;
  parts.topology = topology;
  add_arguments(parts, mesh);
  add_collectives(parts);
  add_memory(parts);
  add_times(parts);
  add_timeline(parts);
  parts.processes = MeshProcesses{.count = 8, .axes = {"dcn", "data"}};
  for (std::size_t i = 0; i < 3; ++i) parts.collectives[i].across_processes = true;
  merge(parts);
  parts.notes = {"3 all-reduces were written as a reduce-scatter and an all-gather each",
                 "the trip count of while.3 is not known: it counts once"};
  return parts;
}

ProgramReport::Parts sample_gpu_parts(std::int64_t nodes) {
  std::vector<DeviceAttributes> devices;
  for (std::int64_t i = 0; i < nodes * 8; ++i)
    devices.push_back({.id = i, .process_index = i / 8, .slice_index = i / 8, .kind = "H100"});
  Mesh mesh({{"dcn", 2}, {"data", nodes}, {"model", 4}});
  ProgramReport::Parts parts;
  parts.name = "train_step";
  parts.target = {.name = cat("h100:", nodes, "x8"),
                  .device_kind = "H100",
                  .devices = nodes * 8,
                  .compiler = "XLA, CUDA 13"};
  parts.mesh = mesh;
  parts.topology = Topology(std::move(devices));
  add_arguments(parts, mesh);
  add_collectives(parts);
  add_memory(parts);
  parts.memory->capacity = 10 * kGiB;
  parts.out_of_memory = "ran out of memory: 14.3G of 10G used";
  return parts;
}

ProgramReport::Parts large_parts(std::size_t entries) {
  Topology topology = tpu_topology("v5e:16x16").value();
  std::vector<DeviceAttributes> devices;
  for (std::int64_t slice = 0; slice < 2; ++slice)
    for (DeviceAttributes device : topology.devices()) {
      device.id += slice * 1000;
      device.slice_index = slice;
      devices.push_back(std::move(device));
    }
  topology = Topology(std::move(devices));
  Mesh mesh({{"data", 32}, {"model", 16}}, ids_of(topology));
  ProgramReport::Parts parts;
  parts.name = "large";
  parts.target = {.name = "v5e:16x16*2",
                  .device_kind = "TPU v5 lite",
                  .devices = 512,
                  .compiler = "libtpu 0.0.51"};
  parts.mesh = mesh;
  parts.topology = topology;
  for (int i = 0; i < 300; ++i)
    parts.arguments.push_back(placed(cat("w", i), "bf16[4096,4096,8]", mesh,
                                     i % 2 == 0 ? P("data", "model", none) : P("model")));
  for (std::size_t i = 0; i < entries; ++i) {
    bool collective = i % 4 == 3;
    using Kind = TimelineEntry::Kind;
    parts.timeline.push_back({.kind = collective ? Kind::kCollective : Kind::kCompute,
                              .instruction = cat(collective ? "all-reduce." : "fusion.", i),
                              .opcode = collective ? "all-reduce" : "fusion",
                              .seconds = 1e-6 * static_cast<double>(1 + i % 7),
                              .place = cat("large.py:", i % 50)});
    if (collective)
      parts.collectives.push_back({.kind = CollectiveKind::kAllReduce,
                                   .instruction = cat("all-reduce.", i),
                                   .axes = AxisList{i % 8 == 3 ? "data" : "model"},
                                   .group_size = i % 8 == 3 ? 32 : 16,
                                   .bytes_in = static_cast<std::int64_t>(i + 1) * 1024,
                                   .bytes_out = static_cast<std::int64_t>(i + 1) * 1024});
  }
  merge(parts);
  return parts;
}

ProgramReport::Parts hostile_parts() {
  const std::string bad =
      "</script><script>document.title='broken'</script><img src=x onerror=alert(1)>\"'&\\"
      "<!--\x01\xff\xe2\x80\xa8";
  ProgramReport::Parts parts = sample_parts();
  parts.name = bad;
  parts.target.name = parts.target.device_kind = parts.target.compiler = bad;
  parts.arguments[0].name = parts.arguments[0].place = bad;
  for (Collective& one : parts.collectives) {
    one.instruction = one.tensor = bad;
    one.origin.places = {{.node = 1, .op = bad, .place = bad, .path = {}, .via = bad}};
    one.purpose.names = {bad};
    one.purpose.layer = one.purpose.from = one.purpose.to = bad;
  }
  merge(parts);
  for (Reshard& one : parts.reshards)
    one.instruction = one.type = one.from = one.to = one.cause = bad;
  for (BufferUse& one : parts.largest_buffers) one.name = one.type = one.place = bad;
  for (TimelineEntry& one : parts.timeline) one.instruction = one.opcode = one.place = bad;
  parts.cost.flops[0].element_type = bad;
  parts.roofline->links[0].axes = parts.roofline->links[0].link = bad;
  parts.roofline->sources = {bad};
  parts.schedule->communication[0].kind = parts.schedule->communication[0].axes = bad;
  parts.measured->unmatched = {bad};
  for (CustomCallUse& use : parts.custom_calls) use.name = use.target = use.place = bad;
  parts.notes = {bad};
  parts.out_of_memory = bad;
  return parts;
}

bool same_report(const ProgramReport::Parts& a, const ProgramReport::Parts& b) {
  bool same_topology = a.topology.has_value() == b.topology.has_value() &&
                       (!a.topology || (a.topology->devices() == b.topology->devices() &&
                                        a.topology->wrap() == b.topology->wrap()));
  return a.name == b.name && a.target == b.target && a.mesh == b.mesh && same_topology &&
         a.processes == b.processes && a.arguments == b.arguments &&
         a.num_captured == b.num_captured && a.results == b.results &&
         a.intermediates == b.intermediates && a.collectives == b.collectives &&
         a.logical_collectives == b.logical_collectives && a.reshards == b.reshards &&
         a.out_of_memory == b.out_of_memory && a.memory == b.memory &&
         a.largest_buffers == b.largest_buffers && a.cost == b.cost && a.roofline == b.roofline &&
         a.schedule == b.schedule && a.custom_calls == b.custom_calls &&
         a.host_transfers == b.host_transfers && a.measured == b.measured &&
         a.timeline == b.timeline && a.notes == b.notes;
}

}  // namespace meshard
