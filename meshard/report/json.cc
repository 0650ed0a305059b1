#include "meshard/report/json.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/json_fields.h"

namespace meshard {
namespace {

constexpr std::string_view kReportSchema = "meshard.report";

// Parses text with the library. Errors name the member that contains the text.
template <class T>
T parsed(const JsonPlace& at) {
  Result<T> value = T::parse(at.text());
  if (!value) at.fail(value.error().message());
  return std::move(value).value();
}

// Calls the library. Its errors name the member that the values are from.
template <class Make>
auto made(const JsonPlace& at, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    at.fail(error.message());
  }
}

// The types of a report that have no fields. Values refer to their mesh by its number in `meshes`.
class ReportForms : public JsonForms {
 public:
  using JsonForms::check;
  using JsonForms::read;
  using JsonForms::write;

  explicit ReportForms(std::vector<Mesh> meshes) : meshes_(std::move(meshes)) {}

  void write(JsonWriter& json, const TensorType& type) const { json.value(type.to_string()); }
  void read(const JsonPlace& at, TensorType& to) const { to = parsed<TensorType>(at); }

  void write(JsonWriter& json, const AxisRef& axis) const {
    if (axis.is_whole()) return static_cast<void>(json.value(axis.name));
    json.begin_object().member("axis", axis.name);
    json.member("pre_size", axis.pre_size).member("size", axis.size).end_object();
  }
  void read(const JsonPlace& at, AxisRef& to) const {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    to = at.is_text() ? AxisRef(at.text())
                      : AxisRef(at["axis"].text(), at["pre_size"].integer(1, kMost),
                                at["size"].integer(1, kMost));
  }

  void write(JsonWriter& json, const Mesh& mesh) const {
    json.value(std::ranges::find(meshes_, mesh) - meshes_.begin());
  }
  void write(JsonWriter& json, const std::vector<Mesh>& meshes) const {
    json.begin_array();
    for (const Mesh& mesh : meshes) {
      json.begin_object().member("text", mesh.to_string()).key("axes").begin_array();
      for (const MeshAxis& axis : mesh.axes()) {
        json.begin_object().member("name", axis.name).member("size", axis.size);
        json.member("kind", axis.kind == AxisKind::kExplicit ? "explicit" : "auto").end_object();
      }
      json.end_array().key("device_ids");
      write_json(json, mesh.device_ids(), *this);
      json.end_object();
    }
    json.end_array();
  }
  void read(const JsonPlace& at, std::optional<Mesh>& to) const {
    if (!at.is_null()) to = mesh_of(at);
  }

  void write(JsonWriter& json, const Topology& topology) const {
    json.begin_object().member("kind", topology.kind()).key("wrap");
    write_json(json, topology.wrap(), *this);
    json.key("devices").begin_array();
    for (const DeviceAttributes& device : topology.devices()) {
      json.begin_object().member("id", device.id).member("process", device.process_index);
      json.member("slice", device.slice_index).key("coords");
      write_json(json, device.coords, *this);
      json.member("core", device.core_on_chip);
      if (device.kind != topology.kind()) json.member("kind", device.kind);
      json.end_object();
    }
    json.end_array().end_object();
  }
  void read(const JsonPlace& at, std::optional<Topology>& to) const {
    if (at.is_null()) return;
    std::vector<DeviceAttributes> devices;
    JsonPlace list = at["devices"];
    for (std::size_t i = 0, size = list.size(); i < size; ++i)
      devices.push_back(device_of(list.element(i), at["kind"].text()));
    std::optional<Topology::Wrap> wrap;
    read_json(at["wrap"], wrap);
    to = made(at, [&] {
      return wrap ? Topology(std::move(devices), *wrap) : Topology(std::move(devices));
    });
  }

  void write(JsonWriter& json, const Sharding& sharding) const {
    json.begin_object().key("mesh");
    write(json, sharding.mesh());
    json.member("spec", sharding.spec().to_string()).key("dimensions").begin_array();
    for (std::size_t d = 0; d < sharding.rank(); ++d) {
      json.begin_object().key("axes");
      write_json(json, sharding.axes(d), *this);
      json.member("open", sharding.is_open(d)).end_object();
    }
    json.end_array().key("replicated");
    write_json(json, sharding.replicated_axes(), *this);
    json.key("unreduced");
    write_json(json, sharding.unreduced_axes(), *this);
    if (sharding.unreduced_kind() != UnreducedKind::kSum)
      json.member("unreduced_kind", enum_name(sharding.unreduced_kind()));
    json.end_object();
  }
  void read(const JsonPlace& at, std::optional<Sharding>& to) const {
    if (at.is_null()) return;
    Mesh mesh = mesh_of(at["mesh"]);
    auto spec = parsed<PartitionSpec>(at["spec"]);
    AxisList replicated, unreduced;
    read_json(at["replicated"], replicated, *this);
    read_json(at["unreduced"], unreduced, *this);
    UnreducedKind kind = UnreducedKind::kSum;
    if (at.has("unreduced_kind")) read_json(at["unreduced_kind"], kind, *this);
    std::size_t rank = at["dimensions"].size();
    to = made(at, [&] {
      Sharding sharding(mesh, spec, rank);
      if (!replicated.empty()) sharding = sharding.with_replicated(replicated);
      return unreduced.empty() ? sharding : sharding.with_unreduced(unreduced, kind);
    });
  }

  void check(const JsonPlace& at, const ValuePlacement& value) const {
    if (value.type.rank() != value.padded.rank())
      at.fail(cat("cannot pad ", value.type, " to ", value.padded));
    made(at, [&] { return value.shard(); });  // the sharding is valid for the type
  }
  void check(const JsonPlace& at, const ProgramReport::Parts& parts) const {
    at["num_captured"].integer(0, std::ssize(parts.arguments));
  }

 private:
  Mesh mesh_of(const JsonPlace& at) const {
    return meshes_[static_cast<std::size_t>(at.integer(0, std::ssize(meshes_) - 1))];
  }
  static DeviceAttributes device_of(const JsonPlace& at, const std::string& usual_kind) {
    DeviceAttributes device{.id = at["id"].integer(),
                            .process_index = at["process"].integer(),
                            .core_on_chip = at["core"].integer(),
                            .kind = at.has("kind") ? at["kind"].text() : usual_kind};
    read_json(at["slice"], device.slice_index);
    read_json(at["coords"], device.coords);
    return device;
  }

  std::vector<Mesh> meshes_;
};

ProgramReport report_at(const JsonPlace& at) {
  if (!at.has("schema") || at["schema"].text() != kReportSchema)
    at.fail(cat("this is not a report: the member `schema` is not \"", kReportSchema, "\""));
  if (std::int64_t version = at["version"].integer(); version != kReportJsonVersion)
    at.fail(cat("unsupported report version ", version, "; this program reads version ",
                kReportJsonVersion));
  std::vector<Mesh> meshes;
  JsonPlace list = at["meshes"];
  for (std::size_t i = 0, size = list.size(); i < size; ++i) {
    JsonPlace mesh = list.element(i);
    meshes.push_back(parsed<Mesh>(mesh["text"]));
  }
  ProgramReport::Parts parts;
  read_json(at, parts, ReportForms(std::move(meshes)));
  return ProgramReport(std::move(parts));
}

}  // namespace

std::string to_json(const ProgramReport& report, std::size_t indent) {
  JsonWriter json(indent);
  json.begin_object().member("schema", kReportSchema).member("version", kReportJsonVersion);
  write_json_members(json, report.parts(), ReportForms(report.parts().meshes()));
  json.end_object();
  return std::move(json).text();
}

Result<ProgramReport> read_report(std::string_view text) {
  Result<JsonValue> whole = read_json(text, "report");
  if (!whole.ok()) return Error(ErrorCode::kDataLoss, whole.error().message());
  return caught([&] { return report_at(JsonPlace(*whole, "report")); });
}

}  // namespace meshard
