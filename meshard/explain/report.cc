#include "meshard/explain/report.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/saturating.h"
#include "meshard/explain/byte_text.h"
#include "meshard/explain/module_layout.h"
#include "meshard/mesh/picture.h"

namespace meshard {
namespace {

using Parts = ProgramReport::Parts;

// Appends up to `most` lines.
template <class Range, class Print>
void append_lines(std::string& out, const Range& range, std::size_t most, std::string_view what,
                  const Print& print) {
  std::size_t count = range.size();
  std::size_t shown = most == 0 || count <= most ? count : most;
  for (std::size_t i = 0; i < shown; ++i) append(out, "  ", print(i), "\n");
  if (shown < count) append(out, "  and ", count - shown, " more ", what, "\n");
}

std::string counted(std::size_t count, std::string_view what) {
  return cat(count, " ", what, count == 1 ? "" : "s");
}

// For a mesh with a long list of devices, only the axes.
std::string mesh_text(const Mesh& mesh) {
  constexpr std::size_t kLong = 100;
  std::string text = mesh.to_string();
  if (text.size() <= kLong) return text;
  return cat("mesh<", axes_text(mesh.axes(), ", "), "> of ", mesh.size(), " devices");
}

void append_target(std::string& out, const TargetSummary& target) {
  if (target.name.empty()) return;
  append(out, "target ", target.name, ": ", target.devices,
         target.device_kind.empty() ? " devices" : " x ", target.device_kind);
  if (!target.compiler.empty()) append(out, "; ", target.compiler);
  if (target.compile_seconds > 0) append(out, ", compiled in ", time_text(target.compile_seconds));
  append(out, "\n");
}

void append_memory(std::string& out, const MemoryUse& memory) {
  if (std::optional<std::int64_t> spare = memory.spare()) {
    std::string_view verdict = *spare >= 0 ? "fits: " : "does not fit: ";
    append(out, verdict, byte_text(memory.total()), " of ", byte_text(*memory.capacity), ", ",
           byte_text(*spare >= 0 ? *spare : -*spare), *spare >= 0 ? " to spare\n" : " too much\n");
  }
  append(out, memory, "\n");
}

void append_links(std::string& out, const Roofline& roofline) {
  std::vector<std::string> links;
  for (const LinkTime& link : roofline.links)
    links.push_back(cat(link.link, link.axes.empty() ? "" : " along ", link.axes, " ",
                        time_text(link.seconds)));
  if (links.size() > 1 || !roofline.rates_known)
    append(out, "  ", links.empty() ? "no link whose figures are known" : join(links, ", "), "\n");
}

void append_roofline(std::string& out, const Roofline& roofline, const ProgramCost& cost) {
  std::string_view loops = cost.loops_known ? "" : "; a loop of unknown length counts once";
  if (!roofline.rates_known) {
    append(out, "communication at least ", time_text(roofline.link_seconds()),
           " a run; the rates of the device are unknown", loops, "\n");
    return append_links(out, roofline);
  }
  append(out, "at least ", time_text(roofline.seconds()), " a run, bound by ", roofline.bound_by(),
         ": compute ", time_text(roofline.compute_seconds), ", memory ",
         time_text(roofline.memory_seconds), ", communication ", time_text(roofline.link_seconds()),
         "; at least ", time_text(roofline.seconds_in_sequence()), " if nothing overlaps", loops,
         "\n");
  append_links(out, roofline);
}

void append_schedule(std::string& out, const Schedule& schedule, std::size_t most) {
  append(out, "estimated ", time_text(schedule.seconds),
         " a run: ", time_text(schedule.busy_seconds), " compute and memory, ",
         time_text(schedule.links.exposed_seconds), " exposed communication (",
         time_text(schedule.links.hidden_seconds), " hidden)");
  if (schedule.host != TransferTime())
    append(out, ", ", time_text(schedule.host.exposed_seconds), " exposed host transfers (",
           time_text(schedule.host.hidden_seconds), " hidden)");
  append(out, "\n");
  append_lines(out, schedule.communication, most, "kinds of communication", [&](std::size_t i) {
    const CommunicationTime& one = schedule.communication[i];
    return cat(one.kind, one.axes.empty() ? "" : " along ", one.axes, ": ",
               time_text(one.time.exposed_seconds), " exposed, ",
               time_text(one.time.hidden_seconds), " hidden");
  });
}

void append_collectives(std::string& out, const ProgramReport& report, std::size_t most) {
  std::size_t count = report.logical_collectives().size();
  std::size_t instructions = report.collectives().size();
  if (count == 0) {
    append(out, "no collectives\n");
    return;
  }
  append(out, counted(count, "collective"), ", ", byte_text(report.collective_bytes()),
         " per device");
  if (instructions != count) append(out, ", in ", instructions, " instructions");
  append(out, "\n");
  std::vector<CollectiveGroup> groups = report.groups();
  if (most > 0 && groups.size() > most)  // then the most important ones are shown
    std::ranges::stable_sort(groups, std::ranges::greater{}, &CollectiveGroup::total_bytes);
  append_lines(out, groups, most, "lines of collectives",
               [&](std::size_t i) { return groups[i].to_string(); });
}

void append_layers(std::string& out, const ProgramReport& report, std::size_t most) {
  std::vector<LayerTraffic> layers = report.layers();
  if (layers.empty()) return;
  append(out, "collectives by layer\n");
  if (most > 0 && layers.size() > most)  // then the most important ones are shown
    std::ranges::stable_sort(layers, std::ranges::greater{}, &LayerTraffic::total_bytes);
  append_lines(out, layers, most, "lines of layers",
               [&](std::size_t i) { return layers[i].to_string(); });
}

void append_reshards(std::string& out, std::vector<Reshard> reshards, std::size_t most) {
  if (reshards.empty()) return;
  auto moved = [](const Reshard& one) { return saturating_multiply(one.bytes, one.executions); };
  std::ranges::stable_sort(reshards,
                           [&](const Reshard& a, const Reshard& b) { return moved(a) > moved(b); });
  auto full = std::ranges::count(reshards, ReshardKind::kFullRematerialize, &Reshard::kind);
  append(out, counted(reshards.size(), "reshard"));
  if (full > 0) append(out, ", ", full, " by full rematerialization");
  append(out, "\n");
  append_lines(out, reshards, most, "reshards",
               [&](std::size_t i) { return reshards[i].to_string(); });
}

// Values that have the same sharding.
struct SameSharding {
  std::string sharding;
  const ValuePlacement* example = nullptr;
  std::size_t example_number = 0;
  std::size_t count = 0;
  std::int64_t bytes = 0;  // per device

  std::string to_string() const {
    std::string name = example->name.empty() ? cat("number ", example_number) : example->name;
    return cat(count, " x ", sharding, ", ", byte_text(bytes), ", such as ", name, " ",
               example->type);
  }
};

// Values grouped by sharding, largest first.
std::vector<SameSharding> by_sharding(const std::vector<ValuePlacement>& values) {
  std::vector<SameSharding> all;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ValuePlacement& value = values[i];
    std::string text = "not sharded";
    if (value.sharding) {
      text = value.sharding->spec().to_string();
      if (!value.sharding->unreduced_axes().empty())
        append(text, " unreduced ", value.sharding->unreduced_text());
    }
    auto found = std::ranges::find(all, text, &SameSharding::sharding);
    if (found == all.end()) {
      all.push_back({.sharding = std::move(text), .example = &value, .example_number = i});
      found = all.end() - 1;
    }
    ++found->count;
    found->bytes = saturating_add(found->bytes, std::min(value.shard().bytes(), kMostCounted));
  }
  std::ranges::stable_sort(all, std::ranges::greater{}, &SameSharding::bytes);
  return all;
}

// One line for each value; if there are more than `most`, one for each sharding.
void append_values(std::string& out, const std::vector<ValuePlacement>& values,
                   std::size_t captured, std::string_view what, std::size_t most) {
  append(out, what, " (", values.size(), ")");
  std::size_t own = values.size() - captured;
  if (most == 0 || values.size() <= most) {
    append(out, "\n");
    append_lines(out, values, 0, what, [&](std::size_t i) {
      return cat(i, i < own ? "" : " (captured)", values[i].name.empty() ? "" : " ", values[i].name,
                 ": ", values[i]);
    });
    return;
  }
  std::vector<SameSharding> shardings = by_sharding(values);
  append(out, " by sharding, with the bytes on one device\n");
  append_lines(out, shardings, most, "shardings",
               [&](std::size_t i) { return shardings[i].to_string(); });
}

void append_rest(std::string& out, const Parts& parts) {
  std::vector<std::string> rest;
  if (!parts.intermediates.empty())
    rest.push_back(counted(parts.intermediates.size(), "intermediate value"));
  if (!parts.timeline.empty())
    rest.push_back(cat(counted(parts.timeline.size(), "step"), " of the timeline"));
  if (!rest.empty()) append(out, "not listed: ", join(rest, ", "), "\n");
}

// The part of a value that a device receives.
std::string part_of(const ValuePlacement& value, std::int64_t device) {
  if (!value.sharding || value.sharding->is_fully_replicated()) return "all";
  std::optional<std::int64_t> position = value.sharding->mesh().position(device);
  if (!position) return "none";
  std::vector<std::string> ranges;
  for (const DimensionSlice& slice : value.sharding->slice(value.type.shape, *position)) {
    if (slice.size() == 0) return "empty";
    ranges.push_back(slice.to_string());
  }
  return join(ranges, ",");
}

std::string padded_to(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

}  // namespace

ProgramReport::ProgramReport(Parts parts) : parts_(std::move(parts)) {
  if (parts_.logical_collectives.empty())
    parts_.logical_collectives = merge_fragments(parts_.collectives);
  groups_ = group_collectives(whole_collectives(parts_.logical_collectives));
}

std::vector<Mesh> ProgramReport::Parts::meshes() const {
  std::vector<Mesh> all;
  auto add = [&](const Mesh& one) {
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  };
  if (mesh) add(*mesh);
  for (const auto* list : {&arguments, &results, &intermediates})
    for (const ValuePlacement& value : *list)
      if (value.sharding) add(value.sharding->mesh());
  return all;
}

bool ProgramReport::Parts::fits() const {
  if (!out_of_memory.empty()) return false;
  return !memory || memory->spare().value_or(0) >= 0;
}

std::vector<Collective> ProgramReport::collectives(CollectiveKind kind) const {
  std::vector<Collective> found;
  std::ranges::copy_if(parts_.collectives, std::back_inserter(found),
                       [&](const Collective& one) { return one.kind == kind; });
  return found;
}

std::vector<Collective> ProgramReport::collectives(CollectiveKind kind,
                                                   const AxisList& axes) const {
  std::vector<Collective> found = collectives(kind);
  std::erase_if(found, [&](const Collective& one) { return !one.axes || *one.axes != axes; });
  return found;
}

std::int64_t ProgramReport::collective_bytes() const {
  std::int64_t sum = 0;
  for (const LogicalCollective& one : parts_.logical_collectives)
    sum = saturating_add(sum, one.whole.total_bytes());
  return sum;
}

std::string ProgramReport::to_string(const ExplainOptions& options) const {
  std::size_t most = options.most_lines, half = most == 0 ? 0 : std::max<std::size_t>(1, most / 2);
  std::string out = cat("program ", parts_.name);
  append(out, parts_.mesh ? cat(" on ", mesh_text(*parts_.mesh), "\n")
                          : std::string(" on one device\n"));
  append_target(out, parts_.target);
  if (parts_.processes) append(out, *parts_.processes, "\n");
  if (options.mesh_picture && parts_.mesh) append(out, picture(*parts_.mesh));
  if (!parts_.out_of_memory.empty())
    append(out, "the compiler rejects the program: ", parts_.out_of_memory, "\n");
  if (parts_.memory) append_memory(out, *parts_.memory);
  if (parts_.roofline) append_roofline(out, *parts_.roofline, parts_.cost);
  if (parts_.schedule) append_schedule(out, *parts_.schedule, half);
  if (parts_.measured) append(out, parts_.measured->to_string(parts_.schedule), "\n");
  if (parts_.host_transfers) append(out, *parts_.host_transfers, "\n");
  if (parts_.out_of_memory.empty()) append_collectives(out, *this, most);
  append_layers(out, *this, half);
  if (!parts_.custom_calls.empty()) {
    append(out, "custom calls\n");
    append_lines(out, parts_.custom_calls, half, "lines of custom calls",
                 [&](std::size_t i) { return parts_.custom_calls[i].to_string(); });
  }
  append_reshards(out, parts_.reshards, half);
  append_values(out, parts_.arguments, parts_.num_captured, "arguments", most);
  if (options.argument_matrix) append(out, argument_matrix(*this));
  append_values(out, parts_.results, 0, "results", most);
  if (!parts_.largest_buffers.empty()) {
    append(out, "largest buffers on one device\n");
    append_lines(out, parts_.largest_buffers, half, "buffers",
                 [&](std::size_t i) { return parts_.largest_buffers[i].to_string(); });
  }
  if (!parts_.notes.empty()) {
    append(out, "notes\n");
    append_lines(out, parts_.notes, half, "notes", [&](std::size_t i) { return parts_.notes[i]; });
  }
  append_rest(out, parts_);
  return out;
}

std::string argument_matrix(const ProgramReport& report, std::size_t most_devices) {
  const std::vector<ValuePlacement>& arguments = report.arguments();
  std::vector<std::int64_t> devices{0};
  std::size_t left_out = 0;
  if (const std::optional<Mesh>& mesh = report.mesh()) {
    auto all = static_cast<std::size_t>(mesh->size());
    std::size_t shown = most_devices == 0 ? all : std::min(all, most_devices);
    left_out = all - shown;
    devices.resize(shown);
    for (std::size_t i = 0; i < shown; ++i)
      devices[i] = mesh->rank_map()[static_cast<std::int64_t>(i)];
  }
  std::vector<std::vector<std::string>> columns{{"device"}};
  for (std::int64_t device : devices)
    columns[0].push_back(report.mesh() ? cat(device) : std::string("single"));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view name = arguments[i].name;
    columns.push_back({name.empty() ? cat(i) : cat(i, ' ', name)});
    for (std::int64_t device : devices) columns.back().push_back(part_of(arguments[i], device));
  }
  std::string out;
  for (std::size_t row = 0; row <= devices.size(); ++row) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      std::size_t width = 0;
      for (const std::string& text : columns[c]) width = std::max(width, text.size());
      bool last = c + 1 == columns.size();
      append(out, last ? columns[c][row] : padded_to(columns[c][row], width + 2));
    }
    append(out, '\n');
  }
  if (left_out > 0) append(out, "and ", left_out, " more devices\n");
  return out;
}

TensorType ValuePlacement::shard() const {
  if (!sharding) return type;
  Dimensions sizes;
  for (std::int64_t size : sharding->shard_shape(padded.shape)) sizes.push_back(size);
  return {type.dtype, Shape(std::move(sizes))};
}

std::int64_t ValuePlacement::padding_bytes() const {
  std::int64_t copies = sharding ? sharding->num_replicas() : 1;
  return (padded.bytes() - type.bytes()) * copies;
}

std::string ValuePlacement::to_string() const {
  std::string where = memory_kind.empty() ? "" : cat(", in ", memory_kind, " memory");
  if (!sharding) return cat(type, ", ", byte_text(type.bytes()), where);
  TensorType part = shard();
  std::string text = cat(type, " ", sharding->spec());
  if (!sharding->unreduced_axes().empty()) append(text, " unreduced ", sharding->unreduced_text());
  append(text, ", shard ", part, ", ", byte_text(part.bytes()), where);
  if (padded != type)
    append(text, ", padded to ", padded, " (", byte_text(padding_bytes()), " wasted)");
  if (chosen_by_compiler) append(text, ", the compiler's choice");
  return text;
}

}  // namespace meshard
