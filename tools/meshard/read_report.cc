#include "tools/meshard/read_report.h"

#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "meshard/report/json.h"

namespace meshard::tool {
namespace {

using nlohmann::json;

// A JSON value, and its path for messages.
class Place {
 public:
  explicit Place(const json& value) : value_(&value) {}

  Place operator[](const char* key) const {
    auto found = value_->is_object() ? value_->find(key) : value_->end();
    if (!value_->is_object() || found == value_->end()) fail(cat("missing member `", key, "`"));
    return Place(*found, this, key, 0);
  }
  std::size_t size() const {
    if (!value_->is_array()) fail("expected an array");
    return value_->size();
  }
  Place element(std::size_t i) const { return Place((*value_)[i], this, nullptr, i); }

  bool has(const char* key) const { return value_->is_object() && value_->contains(key); }
  bool is_null() const { return value_->is_null(); }
  bool is_text() const { return value_->is_string(); }
  std::string text() const {
    if (!value_->is_string()) fail("expected a string");
    return value_->get<std::string>();
  }
  bool truth() const {
    if (!value_->is_boolean()) fail("expected true or false");
    return value_->get<bool>();
  }
  std::int64_t integer() const {
    bool fits = value_->is_number_integer() &&
                (!value_->is_number_unsigned() ||
                 value_->get<std::uint64_t>() <=
                     static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
    if (!fits) fail("expected a 64-bit integer");
    return value_->get<std::int64_t>();
  }
  /// An integer from low to high.
  template <class T = std::size_t>
  T index(std::int64_t low, std::int64_t high) const {
    std::int64_t number = integer();
    if (number < low || number > high)
      fail(cat("expected a number from ", low, " to ", high, ", got ", number));
    return static_cast<T>(number);
  }
  double number() const {
    if (value_->is_null()) return std::numeric_limits<double>::infinity();
    if (!value_->is_number()) fail("expected a number");
    return value_->get<double>();
  }
  /// The value whose to_string(T) is this text.
  template <class T>
  T one_of(std::initializer_list<T> all) const {
    std::string word = text();
    for (T each : all)
      if (to_string(each) == word) return each;
    fail(cat("unknown word `", word, "`"));
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kDataLoss, cat("[report] ", path(), path().empty() ? "" : ": ", what));
  }

 private:
  Place(const json& value, const Place* parent, const char* key, std::size_t index)
      : value_(&value), parent_(parent), key_(key), index_(index) {}
  std::string path() const {
    if (!parent_) return "";
    std::string before = parent_->path();
    if (!key_) return cat(before, "[", index_, "]");
    return cat(before, before.empty() ? "" : ".", key_);
  }

  const json* value_;
  const Place* parent_ = nullptr;  // on the caller's stack
  const char* key_ = nullptr;      // null: an array element
  std::size_t index_ = 0;
};

template <class Read>
auto read_list(const Place& at, const Read& read) {
  std::vector<decltype(read(at))> all;
  std::size_t size = at.size();
  all.reserve(size);
  for (std::size_t i = 0; i < size; ++i) all.push_back(read(at.element(i)));
  return all;
}

template <class Read>
auto read_maybe(const Place& at, const Read& read) {
  using T = decltype(read(at));
  return at.is_null() ? std::optional<T>() : std::optional<T>(read(at));
}

// Parses text with the library. Errors name the member that contains the text.
template <class T>
T parsed(const Place& at) {
  Result<T> value = T::parse(at.text());
  if (!value) at.fail(value.error().message());
  return std::move(value).value();
}

std::string text_of(const Place& at) { return at.text(); }
std::int64_t integer_of(const Place& at) { return at.integer(); }

AxisRef axis_of(const Place& at) {
  if (at.is_text()) return AxisRef(at.text());
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return AxisRef(at["axis"].text(), at["pre_size"].index<std::int64_t>(1, kMost),
                 at["size"].index<std::int64_t>(1, kMost));
}

AxisList axes_of(const Place& at) {
  std::vector<AxisRef> axes = read_list(at, axis_of);
  return AxisList(axes.begin(), axes.end());
}

TargetSummary target_of(const Place& at) {
  return {.name = at["name"].text(),
          .device_kind = at["device_kind"].text(),
          .devices = at["devices"].integer(),
          .compiler = at["compiler"].text(),
          .compile_seconds = at["compile_seconds"].number()};
}

Mesh mesh_of(const Place& at) { return parsed<Mesh>(at["text"]); }

Topology topology_of(const Place& at) {
  std::string kind = at["kind"].text();
  auto device_of = [&](const Place& device) {
    std::vector<std::int64_t> coords = read_list(device["coords"], integer_of);
    return DeviceAttributes{.id = device["id"].integer(),
                            .process_index = device["process"].integer(),
                            .slice_index = read_maybe(device["slice"], integer_of),
                            .coords = IntVector(coords.begin(), coords.end()),
                            .core_on_chip = device["core"].integer(),
                            .kind = device.has("kind") ? device["kind"].text() : kind};
  };
  std::vector<DeviceAttributes> devices = read_list(at["devices"], device_of);
  try {
    if (at["wrap"].is_null()) return Topology(std::move(devices));
    Topology::Wrap wrap;
    for (bool closes : read_list(at["wrap"], [](const Place& each) { return each.truth(); }))
      wrap.push_back(closes);
    return Topology(std::move(devices), wrap);
  } catch (const Error& error) {
    at.fail(error.message());
  }
}

Sharding sharding_of(const Place& at, const std::vector<Mesh>& meshes) {
  const Mesh& mesh = meshes[at["mesh"].index(0, std::ssize(meshes) - 1)];
  auto spec = parsed<PartitionSpec>(at["spec"]);
  AxisList replicated = axes_of(at["replicated"]), unreduced = axes_of(at["unreduced"]);
  try {
    Sharding sharding(mesh, spec, at["dimensions"].size());
    if (!replicated.empty()) sharding = sharding.with_replicated(replicated);
    return unreduced.empty() ? sharding : sharding.with_unreduced(unreduced);
  } catch (const Error& error) {
    at.fail(error.message());
  }
}

ValuePlacement value_of(const Place& at, const std::vector<Mesh>& meshes) {
  ValuePlacement value{
      .name = at["name"].text(),
      .place = at["place"].text(),
      .type = parsed<TensorType>(at["type"]),
      .padded = parsed<TensorType>(at["padded"]),
      .sharding =
          read_maybe(at["sharding"], [&](const Place& each) { return sharding_of(each, meshes); }),
      .chosen_by_compiler = at["chosen_by_compiler"].truth(),
      .donated = at["donated"].truth()};
  if (at.has("memory_kind")) value.memory_kind = at["memory_kind"].text();
  if (value.type.rank() != value.padded.rank())
    at.fail(cat("cannot pad ", value.type, " to ", value.padded));
  try {
    (void)value.shard();  // checks that the sharding is valid for the type
  } catch (const Error& error) {
    at.fail(error.message());
  }
  return value;
}

CollectiveOrigin origin_of(const Place& at) {
  using enum OriginCertainty;
  auto place_of = [](const Place& place) {
    auto node_of = [](const Place& node) {
      return node.index<std::uint32_t>(0, std::numeric_limits<std::uint32_t>::max());
    };
    return OriginPlace{.node = read_maybe(place["node"], node_of),
                       .op = place["op"].text(),
                       .place = place["place"].text(),
                       .path = {},
                       .via = place.has("via") ? place["via"].text() : std::string()};
  };
  return {.certainty = at["certainty"].one_of({kUnknown, kExact, kMerged, kInferred}),
          .places = read_list(at["places"], place_of)};
}

CollectiveCause cause_of(const Place& at) {
  if (at.text() == "unknown") return CollectiveCause::kUnknown;
  return at.one_of({CollectiveCause::kAsked, CollectiveCause::kInserted});
}

ProgramPhase phase_of(const Place& at) {
  using enum ProgramPhase;
  if (at.text() == "unknown") return kUnknown;
  return at.one_of({kForward, kBackward, kOptimizer});
}

CollectivePurpose purpose_of(const Place& at) {
  using enum PurposeKind;
  using Certainty = PurposeCertainty;
  return {.kind = at["kind"].one_of({kUnknown, kWeight, kArgument, kGradient, kUpdate, kResult,
                                     kActivations, kReshard, kUser}),
          .certainty = at["certainty"].one_of(
              {Certainty::kUnknown, Certainty::kExact, Certainty::kInferred}),
          .names = read_list(at["names"], text_of),
          .layer = at["layer"].text(),
          .phase = phase_of(at["phase"]),
          .from = at["from"].text(),
          .to = at["to"].text()};
}

Collective collective_of(const Place& at) {
  using enum CollectiveKind;
  using Form = CollectiveForm;
  auto shift_of = [](const Place& shift) {
    return AxisShift{.axes = axes_of(shift["axes"]),
                     .by = shift["by"].integer(),
                     .wraps = shift["wraps"].truth()};
  };
  return {
      .kind = at["kind"].one_of({kAllReduce, kAllGather, kReduceScatter, kAllToAll, kRaggedAllToAll,
                                 kCollectivePermute, kCollectiveBroadcast, kSend, kReceive}),
      .instruction = at["instruction"].text(),
      .axes = read_maybe(at["axes"], axes_of),
      .group_size = at["group_size"].integer(),
      .shifts = read_list(at["shifts"], shift_of),
      .bytes_in = at["bytes_in"].integer(),
      .bytes_out = at["bytes_out"].integer(),
      .channel = at["channel"].integer(),
      .loop_depth = at["loop_depth"].index<int>(0, std::numeric_limits<int>::max()),
      .executions = at["executions"].integer(),
      .executions_known = at["executions_known"].truth(),
      .conditional = at["conditional"].truth(),
      .form = at["form"].one_of(
          {Form::kPlain, Form::kFused, Form::kWindowedEinsum, Form::kAcrossSlices}),
      .continues = at["continues"].truth(),
      .across_processes = at.has("across_processes") && at["across_processes"].truth(),
      .tensor = at["tensor"].text(),
      .origin = origin_of(at["origin"]),
      .cause = cause_of(at["cause"]),
      .purpose = at.has("purpose") ? purpose_of(at["purpose"]) : CollectivePurpose()};
}

LogicalCollective logical_of(const Place& at) {
  return {.whole = collective_of(at["whole"]),
          .instructions = read_list(at["instructions"], text_of)};
}

Reshard reshard_of(const Place& at) {
  using enum ReshardKind;
  return {.kind = at["kind"].one_of({kGather, kExchange, kFullRematerialize}),
          .instruction = at["instruction"].text(),
          .type = at["type"].text(),
          .from = at["from"].text(),
          .to = at["to"].text(),
          .bytes = at["bytes"].integer(),
          .executions = at["executions"].integer(),
          .origin = origin_of(at["origin"]),
          .who = cause_of(at["who"]),
          .cause = at["cause"].text()};
}

// Members of later versions; 0 in reports that lack them.
std::int64_t maybe_integer(const Place& at, const char* key) {
  return at.has(key) ? at[key].integer() : 0;
}
double maybe_number(const Place& at, const char* key) { return at.has(key) ? at[key].number() : 0; }

std::optional<double> maybe_seconds(const Place& at, const char* key) {
  if (!at.has(key)) return std::nullopt;
  return read_maybe(at[key], [](const Place& each) { return each.number(); });
}

MemoryUse memory_of(const Place& at) {
  return {.arguments = at["arguments"].integer(),
          .outputs = at["outputs"].integer(),
          .aliased = at["aliased"].integer(),
          .temporaries = at["temporaries"].integer(),
          .code = at["code"].integer(),
          .peak = at["peak"].integer(),
          .host_arguments = maybe_integer(at, "host_arguments"),
          .host_outputs = maybe_integer(at, "host_outputs"),
          .host_temporaries = maybe_integer(at, "host_temporaries"),
          .capacity = read_maybe(at["capacity"], integer_of)};
}

BufferUse buffer_of(const Place& at) {
  using enum BufferRole;
  return {.role = at["role"].one_of({kArgument, kOutput, kTemporary, kConstant}),
          .name = at["name"].text(),
          .type = at["type"].text(),
          .bytes = at["bytes"].integer(),
          .place = at["place"].text()};
}

ProgramCost cost_of(const Place& at) {
  auto flops_of = [](const Place& flops) {
    return ProgramCost::Flops{.element_type = flops["element_type"].text(),
                              .matrix = flops["matrix"].number(),
                              .other = flops["other"].number()};
  };
  return {.flops = read_list(at["flops"], flops_of),
          .memory_bytes = at["memory_bytes"].number(),
          .transcendentals = at["transcendentals"].number(),
          .loops_known = at["loops_known"].truth()};
}

MeshProcesses processes_of(const Place& at) {
  return {.count = at["count"].integer(), .axes = read_list(at["axes"], text_of)};
}

Roofline roofline_of(const Place& at) {
  auto link_of = [](const Place& link) {
    return LinkTime{.axes = link["axes"].text(),
                    .link = link["link"].text(),
                    .bytes = link["bytes"].number(),
                    .seconds = link["seconds"].number()};
  };
  return {.compute_seconds = at["compute_seconds"].number(),
          .memory_seconds = at["memory_seconds"].number(),
          .links = read_list(at["links"], link_of),
          .communication_seconds = maybe_seconds(at, "communication_seconds"),
          .rates_known = !at.has("rates_known") || at["rates_known"].truth(),
          .sources = read_list(at["sources"], text_of)};
}

TimelineEntry entry_of(const Place& at) {
  using enum TimelineEntry::Kind;
  return {.kind = at["kind"].one_of({kCompute, kCollective, kCopy, kLoop, kOther}),
          .instruction = at["instruction"].text(),
          .opcode = at["opcode"].text(),
          .depth = at["depth"].index<int>(0, std::numeric_limits<int>::max()),
          .executions = at["executions"].integer(),
          .flops = at["flops"].number(),
          .memory_bytes = at["memory_bytes"].number(),
          .link_bytes = at["link_bytes"].number(),
          .host_bytes = maybe_number(at, "host_bytes"),
          .seconds = at["seconds"].number(),
          .hidden_seconds = maybe_number(at, "hidden_seconds"),
          .exposed_seconds = maybe_number(at, "exposed_seconds"),
          .measured_seconds = maybe_seconds(at, "measured_seconds"),
          .place = at["place"].text()};
}

TransferTime transfer_time_of(const Place& at) {
  return {.hidden_seconds = at["hidden_seconds"].number(),
          .exposed_seconds = at["exposed_seconds"].number()};
}

CommunicationTime communication_of(const Place& at) {
  return {.kind = at["kind"].text(),
          .axes = at["axes"].text(),
          .collectives = at["collectives"].integer(),
          .executions = at["executions"].integer(),
          .time = transfer_time_of(at)};
}

Schedule schedule_of(const Place& at) {
  return {.seconds = at["seconds"].number(),
          .busy_seconds = at["busy_seconds"].number(),
          .links = transfer_time_of(at["links"]),
          .host = transfer_time_of(at["host"]),
          .communication = read_list(at["communication"], communication_of)};
}

CustomCallUse custom_call_of(const Place& at) {
  using enum CustomCallSource;
  return {.name = at["name"].text(),
          .target = at["target"].text(),
          .count = at["count"].integer(),
          .executions = at["executions"].integer(),
          .operand_bytes = at["operand_bytes"].integer(),
          .result_bytes = at["result_bytes"].integer(),
          .source = at["source"].one_of({kUnknown, kCounted, kStated, kGiven}),
          .flops = at["flops"].number(),
          .memory_bytes = at["memory_bytes"].number(),
          .link_bytes = at["link_bytes"].number(),
          .communicates = at["communicates"].truth(),
          .place = at["place"].text()};
}

MeasuredRun measured_of(const Place& at) {
  return {.devices = at["devices"].integer(),
          .runs = at["runs"].integer(),
          .seconds = at["seconds"].number(),
          .links = transfer_time_of(at["links"]),
          .communication = read_list(at["communication"], communication_of),
          .matched_events = at["matched_events"].integer(),
          .unmatched_events = at["unmatched_events"].integer(),
          .unmatched = read_list(at["unmatched"], text_of)};
}

HostTransfers host_transfers_of(const Place& at) {
  return {.from_host = at["from_host"].number(),
          .to_host = at["to_host"].number(),
          .executions = at["executions"].integer(),
          .seconds = at["seconds"].number()};
}

ProgramReport report_of(const Place& at) {
  if (!at.has("schema") || at["schema"].text() != "meshard.report")
    at.fail("this is not a report: the member `schema` is not \"meshard.report\"");
  if (std::int64_t version = at["version"].integer(); version != kReportJsonVersion)
    at.fail(cat("unsupported report version ", version, "; this program reads version ",
                kReportJsonVersion));
  std::vector<Mesh> meshes = read_list(at["meshes"], mesh_of);
  auto value = [&](const Place& each) { return value_of(each, meshes); };
  auto mesh = [&](const Place& each) { return meshes[each.index(0, std::ssize(meshes) - 1)]; };
  ProgramReport::Parts parts{.name = at["name"].text(), .target = target_of(at["target"])};
  parts.mesh = read_maybe(at["mesh"], mesh);
  if (at.has("processes")) parts.processes = read_maybe(at["processes"], processes_of);
  parts.topology = read_maybe(at["topology"], topology_of);
  parts.arguments = read_list(at["arguments"], value);
  parts.num_captured = at["num_captured"].index(0, std::ssize(parts.arguments));
  parts.results = read_list(at["results"], value);
  parts.intermediates = read_list(at["intermediates"], value);
  parts.collectives = read_list(at["collectives"], collective_of);
  if (at.has("logical_collectives"))
    parts.logical_collectives = read_list(at["logical_collectives"], logical_of);
  parts.reshards = read_list(at["reshards"], reshard_of);
  parts.out_of_memory = at["out_of_memory"].text();
  parts.memory = read_maybe(at["memory"], memory_of);
  parts.largest_buffers = read_list(at["largest_buffers"], buffer_of);
  parts.cost = cost_of(at["cost"]);
  parts.roofline = read_maybe(at["roofline"], roofline_of);
  if (at.has("schedule")) parts.schedule = read_maybe(at["schedule"], schedule_of);
  if (at.has("custom_calls")) parts.custom_calls = read_list(at["custom_calls"], custom_call_of);
  if (at.has("host_transfers"))
    parts.host_transfers = read_maybe(at["host_transfers"], host_transfers_of);
  if (at.has("measured")) parts.measured = read_maybe(at["measured"], measured_of);
  parts.timeline = read_list(at["timeline"], entry_of);
  parts.notes = read_list(at["notes"], text_of);
  return ProgramReport(std::move(parts));
}

}  // namespace

Result<ProgramReport> read_report(std::string_view text) {
  try {
    json whole = json::parse(text);
    return report_of(Place(whole));
  } catch (const json::exception& error) {
    return Error(ErrorCode::kDataLoss, cat("[report] ", error.what()));
  } catch (const Error& error) {
    return error;
  }
}

Result<ProgramReport> read_report_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) return Error(ErrorCode::kNotFound, cat("cannot read ", path));
  Result<ProgramReport> report = read_report(text);
  if (!report) return report.error().with_note(cat("in ", path));
  return report;
}

}  // namespace meshard::tool
