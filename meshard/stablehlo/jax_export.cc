#include "meshard/stablehlo/jax_export.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/flat_table.h"

namespace meshard::stablehlo {
namespace {

constexpr std::string_view kBytecode = "ML\xefR";

// Calling conventions that jax.export 0.10 reads (jax/_src/export/_export.py).
constexpr std::int64_t kOldestConvention = 9, kNewestConvention = 10;

// The number of a field in its table, in the order of jax/_src/export/serialization.fbs.
enum ExportedField {
  kFunctionName = 1,
  kInTree = 2,
  kInAvals = 3,
  kOutTree = 4,
  kNumDevicesShort = 6,
  kInShardings = 7,
  kOutShardings = 8,
  kPlatforms = 9,
  kOrderedEffects = 10,
  kDisabledChecks = 12,
  kModule = 13,
  kCallingConvention = 14,
  kKept = 15,
  kVjp = 17,
  kNumDevices = 18,
  kUniqueAvals = 19,
  kUniqueMeshes = 20,
  kInAvalNumbers = 22,
};
enum TreeField { kTreeKind = 0, kChildren = 1, kKeys = 2, kCustomName = 3, kCustomData = 4 };
enum EffectField { kEffectName = 0 };
enum AvalField { kShape = 1, kDType = 2 };
enum MeshField { kAxisSizes = 0, kAxisNames = 1 };
enum NamedShardingField { kShardingMesh = 0 };
enum ShardingField { kNamedSharding = 2 };
enum CheckField { kCheckKind = 0 };
constexpr std::uint64_t kPlatformCheck = 0;

// By number of DType in the schema; float0 is i1 in a module.
constexpr std::string_view kDTypes[] = {
    "i1",         "i8",   "i16",    "i32",           "i64",       "ui8",          "ui16",
    "ui32",       "ui64", "f16",    "f32",           "f64",       "complex<f32>", "complex<f64>",
    "bf16",       "i4",   "ui4",    "f8E4M3B11FNUZ", "f8E4M3FN",  "f8E4M3FNUZ",   "f8E5M2",
    "f8E5M2FNUZ", "i1",   "f8E4M3", "f8E3M4",        "f8E8M0FNU", "f4E2M1FN"};
// Trees in trees, and derivatives of derivatives. The limits keep damaged bytes from exhausting the
// stack.
constexpr int kDeepestTree = 500, kHighestDerivative = 16;

[[noreturn]] void fail_export(std::string message) {
  throw Error(ErrorCode::kDataLoss, cat("[jax.export] ", message));
}

class ExportReader {
 public:
  explicit ExportReader(std::string_view bytes)
      : root_(FlatTable::root(bytes)), work_left_(16 * bytes.size() + 1024) {}
  ExportReader(FlatTable table, std::size_t work, int derivative)
      : root_(std::move(table)), work_left_(work), derivative_(derivative) {}

  JaxExport read() {
    read_.function = root_.string(kFunctionName);
    read_.module = root_.bytes(kModule);
    if (!read_.module.starts_with(kBytecode)) fail_export("there is no module");
    read_.calling_convention = static_cast<std::int64_t>(root_.u16(kCallingConvention));
    if (read_.calling_convention < kOldestConvention ||
        read_.calling_convention > kNewestConvention)
      throw Error(ErrorCode::kUnimplemented,
                  cat("[jax.export] the program has calling convention ", read_.calling_convention,
                      "; conventions ", kOldestConvention, " to ", kNewestConvention,
                      " are supported: export it with another version of JAX"));
    std::uint64_t devices = root_.u32(kNumDevices);
    if (devices == 0) devices = root_.u16(kNumDevicesShort);
    read_.devices = static_cast<std::int64_t>(devices);
    for (std::string_view platform : root_.strings(kPlatforms))
      read_.platforms.emplace_back(platform);
    for (std::uint64_t kept : root_.numbers(kKept, 2))
      read_.kept.push_back(static_cast<std::size_t>(kept));
    for (const FlatTable& check : root_.tables(kDisabledChecks))
      read_.any_platform = read_.any_platform || check.u8(kCheckKind) == kPlatformCheck;
    for (const FlatTable& effect : root_.tables(kOrderedEffects))
      read_.ordered_effects.emplace_back(effect.string(kEffectName));
    read_meshes();
    read_types();
    if (auto tree = root_.table(kInTree)) read_.argument_tree = tree_of(*tree, 0);
    if (auto tree = root_.table(kOutTree)) read_.result_tree = tree_of(*tree, 0);
    for (std::size_t kept : read_.kept)
      if (kept >= read_.argument_sizes.size())
        fail_export(cat("the module has argument ", kept, " of ", read_.argument_sizes.size()));
    if (auto vjp = root_.table(kVjp); vjp && derivative_ < kHighestDerivative)
      read_.vjp =
          std::make_shared<const JaxExport>(ExportReader(*vjp, work_left_, derivative_ + 1).read());
    return std::move(read_);
  }

 private:
  // Limits the elements that are read: a damaged buffer may refer to the same bytes many times.
  void work(std::size_t elements) {
    if (elements > work_left_) fail_export("the buffer is damaged: its parts overlap");
    work_left_ -= elements;
  }

  ModuleMesh mesh_of(const FlatTable& table) {
    ModuleMesh mesh;
    std::vector<std::uint64_t> sizes = table.numbers(kAxisSizes, 4);
    std::vector<std::string_view> names = table.strings(kAxisNames);
    work(sizes.size());
    if (sizes.size() != names.size()) fail_export("a mesh has axes without names");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      work(names[i].size());
      mesh.axes.emplace_back(names[i], static_cast<std::int64_t>(sizes[i]));
      append(mesh.text, cat(i == 0 ? "<[\"" : ", \"", names[i], "\"=", sizes[i]));
    }
    mesh.text += sizes.empty() ? "<[]>" : "]>";
    return mesh;
  }

  ExportTree tree_of(const FlatTable& table, int depth) {
    work(1);
    if (depth > kDeepestTree) fail_export("the structure of the arguments is nested too deeply");
    ExportTree tree;
    std::uint64_t kind = table.u8(kTreeKind);
    if (kind > static_cast<std::uint64_t>(ExportTree::Kind::kCustom))
      fail_export(cat("there is no structure of kind ", kind));
    tree.kind = static_cast<ExportTree::Kind>(kind);
    for (std::string_view key : table.strings(kKeys)) {
      work(1 + key.size());
      tree.keys.emplace_back(key);
    }
    for (const FlatTable& child : table.tables(kChildren))
      tree.children.push_back(tree_of(child, depth + 1));
    if (tree.kind == ExportTree::Kind::kDict && tree.keys.size() != tree.children.size())
      fail_export("a dict has values without keys");
    tree.custom_name = table.string(kCustomName);
    tree.custom_data = table.bytes(kCustomData);
    work(tree.custom_name.size() + tree.custom_data.size());
    return tree;
  }

  // Since version 10, the arguments' types are numbers of unique ones.
  void read_types() {
    bool numbered = root_.has(kInAvalNumbers);
    std::vector<FlatTable> avals = root_.tables(numbered ? kUniqueAvals : kInAvals);
    std::vector<std::uint64_t> which = root_.numbers(kInAvalNumbers, 4);
    if (!numbered)
      for (std::size_t i = 0; i < avals.size(); ++i) which.push_back(i);
    for (std::uint64_t number : which) {
      if (number >= avals.size()) fail_export(cat("there is no type ", number));
      std::vector<std::string>& sizes = read_.argument_sizes.emplace_back();
      const FlatTable& aval = avals[static_cast<std::size_t>(number)];
      std::uint64_t dtype = aval.u8(kDType);
      read_.argument_dtypes.emplace_back(dtype < std::size(kDTypes) ? kDTypes[dtype] : "");
      for (std::string_view size : aval.strings(kShape)) {
        work(1 + size.size());
        sizes.emplace_back(size);
      }
    }
  }

  // Before version 10, each sharding has its own mesh.
  void read_meshes() {
    for (const FlatTable& mesh : root_.tables(kUniqueMeshes)) read_.meshes.push_back(mesh_of(mesh));
    if (!read_.meshes.empty()) return;
    for (int values : {kInShardings, kOutShardings})
      for (const FlatTable& sharding : root_.tables(values))
        if (std::optional<FlatTable> named = sharding.table(kNamedSharding))
          if (std::optional<FlatTable> mesh = named->table(kShardingMesh))
            read_.meshes.push_back(mesh_of(*mesh));
  }

  FlatTable root_;
  std::size_t work_left_;
  int derivative_ = 0;
  JaxExport read_;
};

}  // namespace

std::string JaxExport::symbolic_argument() const {
  for (const std::vector<std::string>& sizes : argument_sizes)
    for (const std::string& size : sizes)
      if (size.find_first_not_of("0123456789") != std::string::npos)
        return cat("(", join(sizes, ", "), ")");
  return "";
}

bool is_jax_export(std::string_view bytes) {
  return !bytes.starts_with(kBytecode) && bytes.find('\0') != std::string_view::npos &&
         bytes.find(kBytecode) != std::string_view::npos;
}

Result<JaxExport> read_jax_export(std::string_view bytes) {
  return caught([&] { return ExportReader(bytes).read(); });
}

void describe_export(const JaxExport& exported, ModuleFacts& facts) {
  facts.origin = ModuleOrigin::kJax;
  if (!facts.num_partitions) facts.num_partitions = exported.devices;
  if (!facts.meshes.empty()) return;  // the module has them
  // All meshes of an export number the devices alike.
  for (const ModuleMesh& mesh : exported.meshes)
    if (mesh.size() == exported.devices) {
      facts.meshes.push_back(mesh);
      return;
    }
}

}  // namespace meshard::stablehlo
