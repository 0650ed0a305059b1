// Tested in meshard/pjrt/client_options_test.cc.
#include "meshard/pjrt/named_value.h"

#include "meshard/base/cat.h"

namespace meshard::pjrt {
namespace {

// The CPU plugin packs device ids such that one process can have at most 2048 devices.
constexpr ClientOptionSpec kOptions[] = {
    {"cpu_device_count", "int64", "cpu", 1, 2048},
    {"asynchronous", "bool", "cpu"},
    {"process_id", "int64", "cpu", 0},
    {"platform_name", "string", "cuda"},
    {"allocator", "string", "cuda"},
    {"memory_fraction", "float", "cuda"},
    {"preallocate", "bool", "cuda"},
    {"collective_memory_size", "int64", "cuda", 0},
    {"visible_devices", "int64 list", "cuda"},
    {"node_id", "int64", "cuda", 0},
    {"num_nodes", "int64", "cuda", 1},
    {"should_stage_host_to_device_transfers", "bool", "cuda"},
    {"abort_collectives_on_failure", "bool", "cuda"},
    {"use_tfrt_gpu_client", "bool", "cuda"},
    {"enable_mock_nccl", "bool", "cuda"},
    {"mock_gpu_topology", "string", "cuda"},
    {"partition_index", "int64", "cuda", 0},
    {"max_inflight_computations", "int64", "cuda, tpu", 1},
    {"ml_framework_name", "string", "tpu"},
    {"ml_framework_version", "string", "tpu"},
    {"skip_megascale_pjrt_client", "bool", "tpu"},
};

const ClientOptionSpec* find(std::string_view name, std::span<const ClientOptionSpec> specs) {
  for (const ClientOptionSpec& spec : specs)
    if (spec.name == name) return &spec;
  return nullptr;
}

}  // namespace

std::string_view kind_of(const NamedValue::Value& value) {
  constexpr std::string_view kNames[] = {"string", "int64", "int64 list", "float", "bool"};
  return kNames[value.index()];
}

std::string NamedValue::value_string() const {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>)
          return cat("\"", v, "\"");
        else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
          return cat("[", join(v, ", "), "]");
        else
          return cat(v);
      },
      value);
}

std::string NamedValue::to_string() const { return cat(name, " = ", value_string()); }

Result<void> check_client_options(std::span<const NamedValue> options,
                                  std::span<const ClientOptionSpec> more) {
  auto invalid = [](auto... parts) {
    return Error(ErrorCode::kInvalidArgument, cat("[client options] ", parts...));
  };
  for (const NamedValue& option : options) {
    const ClientOptionSpec* spec = find(option.name, kOptions);
    if (spec == nullptr) spec = find(option.name, more);
    if (spec == nullptr) {
      std::vector<std::string_view> names;
      for (const ClientOptionSpec& known : kOptions) names.push_back(known.name);
      return invalid("unknown option \"", option.name, "\"; the known options are ",
                     join(names, ", "));
    }
    if (kind_of(option.value) != spec->kind)
      return invalid(option.name, " must have a value of type ", spec->kind, ", got ",
                     kind_of(option.value), " ", option.value_string());
    if (auto* number = std::get_if<std::int64_t>(&option.value))
      if (*number < spec->least || *number > spec->most)
        return invalid(option.name, " = ", *number, " is not in ", spec->least, "..", spec->most);
    for (const NamedValue& other : options)
      if (&other != &option && other.name == option.name)
        return invalid("option ", option.name, " is given twice");
  }
  return {};
}

}  // namespace meshard::pjrt
