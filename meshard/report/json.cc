#include "meshard/report/json.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "meshard/base/json_writer.h"
#include "meshard/report/json_times.h"

namespace meshard {
namespace {

// Numbers the meshes that shardings refer to.
class MeshTable {
 public:
  explicit MeshTable(const ProgramReport::Parts& parts) {
    if (parts.mesh) number(*parts.mesh);
    for (const auto* list : {&parts.arguments, &parts.results, &parts.intermediates})
      for (const ValuePlacement& value : *list)
        if (value.sharding) number(value.sharding->mesh());
  }
  std::size_t number(const Mesh& mesh) {
    auto found = std::find(meshes_.begin(), meshes_.end(), mesh);
    if (found == meshes_.end()) found = meshes_.insert(meshes_.end(), mesh);
    return static_cast<std::size_t>(found - meshes_.begin());
  }
  const std::vector<Mesh>& meshes() const { return meshes_; }

 private:
  std::vector<Mesh> meshes_;
};

void write(JsonWriter& json, const AxisRef& axis) {
  if (axis.is_whole()) {
    json.value(axis.name);
    return;
  }
  json.begin_object().member("axis", axis.name);
  json.member("pre_size", axis.pre_size).member("size", axis.size).end_object();
}

void write(JsonWriter& json, const AxisList& axes) {
  json.begin_array();
  for (const AxisRef& axis : axes) write(json, axis);
  json.end_array();
}

template <class Range>
void write_values(JsonWriter& json, const Range& range) {
  json.begin_array();
  for (const auto& each : range) json.value(each);
  json.end_array();
}

void write(JsonWriter& json, const TargetSummary& target) {
  json.begin_object();
  json.member("name", target.name).member("device_kind", target.device_kind);
  json.member("devices", target.devices).member("compiler", target.compiler);
  json.member("compile_seconds", target.compile_seconds).end_object();
}

void write(JsonWriter& json, const Mesh& mesh) {
  json.begin_object().member("text", mesh.to_string());
  json.key("axes").begin_array();
  for (const MeshAxis& axis : mesh.axes()) {
    json.begin_object().member("name", axis.name).member("size", axis.size);
    json.member("kind", axis.kind == AxisKind::kExplicit ? "explicit" : "auto").end_object();
  }
  json.end_array();
  json.key("device_ids");
  write_values(json, mesh.device_ids());
  json.end_object();
}

void write(JsonWriter& json, const DeviceAttributes& device, const std::string& usual_kind) {
  json.begin_object().member("id", device.id).member("process", device.process_index);
  json.member("slice", device.slice_index).key("coords");
  write_values(json, device.coords);
  json.member("core", device.core_on_chip);
  if (device.kind != usual_kind) json.member("kind", device.kind);
  json.end_object();
}

void write(JsonWriter& json, const Topology& topology) {
  json.begin_object().member("kind", topology.kind()).key("wrap");
  if (topology.wrap()) {
    write_values(json, *topology.wrap());
  } else {
    json.value(nullptr);
  }
  json.key("devices").begin_array();
  for (const DeviceAttributes& device : topology.devices()) write(json, device, topology.kind());
  json.end_array().end_object();
}

void write(JsonWriter& json, const MeshProcesses& processes) {
  json.begin_object().member("count", processes.count).key("axes");
  write_values(json, processes.axes);
  json.end_object();
}

void write(JsonWriter& json, const Sharding& sharding, MeshTable& meshes) {
  json.begin_object().member("mesh", meshes.number(sharding.mesh()));
  json.member("spec", sharding.spec().to_string());
  json.key("dimensions").begin_array();
  for (std::size_t d = 0; d < sharding.rank(); ++d) {
    json.begin_object().key("axes");
    write(json, sharding.axes(d));
    json.member("open", sharding.is_open(d)).end_object();
  }
  json.end_array().key("replicated");
  write(json, sharding.replicated_axes());
  json.key("unreduced");
  write(json, sharding.unreduced_axes());
  json.end_object();
}

void write(JsonWriter& json, const ValuePlacement& value, MeshTable& meshes) {
  TensorType shard = value.shard();
  json.begin_object().member("name", value.name).member("place", value.place);
  json.member("type", value.type.to_string()).member("padded", value.padded.to_string());
  json.key("sharding");
  if (value.sharding) {
    write(json, *value.sharding, meshes);
  } else {
    json.value(nullptr);
  }
  json.member("chosen_by_compiler", value.chosen_by_compiler).member("donated", value.donated);
  json.member("shard", shard.to_string()).member("shard_bytes", shard.bytes());
  json.member("padding_bytes", value.padding_bytes());
  json.member("memory_kind", value.memory_kind).end_object();
}

void write(JsonWriter& json, const CollectiveOrigin& origin) {
  json.begin_object().member("certainty", to_string(origin.certainty));
  json.key("places").begin_array();
  for (const OriginPlace& place : origin.places) {
    json.begin_object().member("node", place.node);
    json.member("op", place.op).member("place", place.place).member("via", place.via).end_object();
  }
  json.end_array().end_object();
}

std::string_view name_of(CollectiveCause cause) {
  return cause == CollectiveCause::kUnknown ? "unknown" : to_string(cause);
}

std::string_view name_of(ProgramPhase phase) {
  return phase == ProgramPhase::kUnknown ? "unknown" : to_string(phase);
}

void write(JsonWriter& json, const CollectivePurpose& purpose) {
  json.begin_object().member("kind", to_string(purpose.kind));
  json.member("certainty", to_string(purpose.certainty)).key("names");
  write_values(json, purpose.names);
  json.member("layer", purpose.layer).member("phase", name_of(purpose.phase));
  json.member("from", purpose.from).member("to", purpose.to).end_object();
}

void write(JsonWriter& json, const Collective& one) {
  json.begin_object().member("kind", to_string(one.kind)).member("instruction", one.instruction);
  json.key("axes");
  if (one.axes) {
    write(json, *one.axes);
  } else {
    json.value(nullptr);
  }
  json.member("group_size", one.group_size).key("shifts").begin_array();
  for (const AxisShift& shift : one.shifts) {
    json.begin_object().key("axes");
    write(json, shift.axes);
    json.member("by", shift.by).member("wraps", shift.wraps).end_object();
  }
  json.end_array();
  json.member("bytes_in", one.bytes_in).member("bytes_out", one.bytes_out);
  json.member("channel", one.channel).member("loop_depth", one.loop_depth);
  json.member("executions", one.executions).member("executions_known", one.executions_known);
  json.member("conditional", one.conditional).member("form", to_string(one.form));
  json.member("continues", one.continues).member("across_processes", one.across_processes);
  json.member("tensor", one.tensor).key("origin");
  write(json, one.origin);
  json.member("cause", name_of(one.cause)).key("purpose");
  write(json, one.purpose);
  json.end_object();
}

void write(JsonWriter& json, const LogicalCollective& one) {
  json.begin_object().key("whole");
  write(json, one.whole);
  json.key("instructions");
  write_values(json, one.instructions);
  json.end_object();
}

void write(JsonWriter& json, const LayerTraffic& row) {
  json.begin_object().member("layer", row.layer).member("phase", name_of(row.phase));
  json.member("purpose", to_string(row.purpose)).member("count", row.count);
  json.member("executions", row.executions).member("total_bytes", row.total_bytes).end_object();
}

void write(JsonWriter& json, const Reshard& reshard) {
  json.begin_object().member("kind", to_string(reshard.kind));
  json.member("instruction", reshard.instruction).member("type", reshard.type);
  json.member("from", reshard.from).member("to", reshard.to);
  json.member("bytes", reshard.bytes).member("executions", reshard.executions).key("origin");
  write(json, reshard.origin);
  json.member("who", name_of(reshard.who)).member("cause", reshard.cause).end_object();
}

void write(JsonWriter& json, const MemoryUse& memory) {
  json.begin_object().member("arguments", memory.arguments).member("outputs", memory.outputs);
  json.member("aliased", memory.aliased).member("temporaries", memory.temporaries);
  json.member("code", memory.code).member("peak", memory.peak);
  json.member("host_arguments", memory.host_arguments);
  json.member("host_outputs", memory.host_outputs);
  json.member("host_temporaries", memory.host_temporaries);
  json.member("capacity", memory.capacity).member("total", memory.total());
  json.member("spare", memory.spare()).end_object();
}

void write(JsonWriter& json, const BufferUse& buffer) {
  json.begin_object().member("role", to_string(buffer.role)).member("name", buffer.name);
  json.member("type", buffer.type).member("bytes", buffer.bytes);
  json.member("place", buffer.place).end_object();
}

void write(JsonWriter& json, const ProgramCost& cost) {
  json.begin_object().key("flops").begin_array();
  for (const ProgramCost::Flops& flops : cost.flops) {
    json.begin_object().member("element_type", flops.element_type);
    json.member("matrix", flops.matrix).member("other", flops.other).end_object();
  }
  json.end_array().member("memory_bytes", cost.memory_bytes);
  json.member("transcendentals", cost.transcendentals);
  json.member("loops_known", cost.loops_known).end_object();
}

void write(JsonWriter& json, const Roofline& roofline) {
  json.begin_object().member("compute_seconds", roofline.compute_seconds);
  json.member("memory_seconds", roofline.memory_seconds).key("links").begin_array();
  for (const LinkTime& link : roofline.links) {
    json.begin_object().member("axes", link.axes).member("link", link.link);
    json.member("bytes", link.bytes).member("seconds", link.seconds).end_object();
  }
  json.end_array().member("communication_seconds", roofline.communication_seconds);
  json.member("rates_known", roofline.rates_known).key("sources");
  write_values(json, roofline.sources);
  json.member("seconds", roofline.seconds());
  json.member("seconds_in_sequence", roofline.seconds_in_sequence());
  json.member("bound_by", roofline.bound_by()).end_object();
}

void write(JsonWriter& json, const TimelineEntry& entry) {
  json.begin_object().member("kind", to_string(entry.kind));
  json.member("instruction", entry.instruction).member("opcode", entry.opcode);
  json.member("depth", entry.depth).member("executions", entry.executions);
  json.member("flops", entry.flops).member("memory_bytes", entry.memory_bytes);
  json.member("link_bytes", entry.link_bytes).member("seconds", entry.seconds);
  json.member("host_bytes", entry.host_bytes);
  json.member("hidden_seconds", entry.hidden_seconds);
  json.member("exposed_seconds", entry.exposed_seconds);
  json.member("measured_seconds", entry.measured_seconds);
  json.member("place", entry.place).end_object();
}

template <class Range, class... More>
void write_list(JsonWriter& json, std::string_view name, const Range& range, More&... more) {
  json.key(name).begin_array();
  for (const auto& each : range) write(json, each, more...);
  json.end_array();
}

template <class T>
void write_maybe(JsonWriter& json, std::string_view name, const std::optional<T>& maybe) {
  json.key(name);
  if (maybe) {
    write(json, *maybe);
  } else {
    json.value(nullptr);
  }
}

}  // namespace

std::string to_json(const ProgramReport& report, std::size_t indent) {
  const ProgramReport::Parts& parts = report.parts();
  MeshTable meshes(parts);
  JsonWriter json(indent);
  json.begin_object().member("schema", "meshard.report").member("version", kReportJsonVersion);
  json.member("name", parts.name).key("target");
  write(json, parts.target);
  write_list(json, "meshes", meshes.meshes());
  json.key("mesh");
  if (parts.mesh) {
    json.value(meshes.number(*parts.mesh));
  } else {
    json.value(nullptr);
  }
  write_maybe(json, "topology", parts.topology);
  write_maybe(json, "processes", parts.processes);
  write_list(json, "arguments", parts.arguments, meshes);
  json.member("num_captured", parts.num_captured);
  write_list(json, "results", parts.results, meshes);
  write_list(json, "intermediates", parts.intermediates, meshes);
  write_list(json, "collectives", parts.collectives);
  write_list(json, "logical_collectives", parts.logical_collectives);
  write_list(json, "layers", report.layers());
  write_list(json, "reshards", parts.reshards);
  json.member("out_of_memory", parts.out_of_memory).member("fits", report.fits());
  write_maybe(json, "memory", parts.memory);
  write_list(json, "largest_buffers", parts.largest_buffers);
  json.key("cost");
  write(json, parts.cost);
  write_maybe(json, "roofline", parts.roofline);
  write_times(json, parts);
  write_list(json, "timeline", parts.timeline);
  json.key("notes");
  write_values(json, parts.notes);
  json.end_object();
  return std::move(json).text();
}

}  // namespace meshard
