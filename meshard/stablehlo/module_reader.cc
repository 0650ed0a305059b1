#include "meshard/stablehlo/module_reader.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "meshard/stablehlo/internal/bytecode.h"
#include "meshard/stablehlo/internal/module_facts.h"

namespace meshard::stablehlo {

std::int64_t ModuleMesh::size() const {
  if (axes.empty() && !device_ids.empty()) return 1;  // a mesh of one named device
  std::int64_t devices = 1;
  for (const auto& axis : axes) {
    if (axis.second < 1 || devices > std::numeric_limits<std::int64_t>::max() / axis.second)
      return 0;
    devices *= axis.second;
  }
  return devices;
}

bool is_collective_op(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "all_gather",         "all_reduce",     "all_to_all",       "collective_broadcast",
      "collective_permute", "reduce_scatter", "ragged_all_to_all"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

namespace {

// Ops inside the module may have shardings of the older partitioner when no argument has one.
ModuleFacts with_inner_shardings(ModuleFacts facts, std::string_view bytes) {
  if (!facts.uses_shardy && bytes.find("mhlo.sharding") != std::string_view::npos)
    facts.has_mhlo_shardings = true;
  return facts;
}

}  // namespace

Result<ModuleFacts> read_module(std::string_view bytes) {
  return caught([&]() -> Result<ModuleFacts> {
    if (bytes.empty()) return Error(ErrorCode::kDataLoss, "[read_module] the module is empty");
    if (Bytecode::is_bytecode(bytes))
      return with_inner_shardings(read_bytecode_module(bytes), bytes);
    if (bytes.find('\0') != std::string_view::npos)
      return Error(ErrorCode::kDataLoss,
                   "[read_module] the file is neither MLIR text nor MLIR bytecode nor an export of "
                   "JAX");
    return with_inner_shardings(read_text_module(bytes), bytes);
  });
}

}  // namespace meshard::stablehlo
