#include "tools/conformance/devicemesh/mesh_ops/program.h"

#include <algorithm>

#include "tools/conformance/devicemesh/golden_error.h"
#include "tools/conformance/devicemesh/mesh_ops/facts.h"
#include "tools/conformance/devicemesh/mesh_ops/operations.h"

namespace meshard::conformance {
namespace {

enum class Kind { kConstruct, kDerive, kAsk, kUnknown };

Kind kind_of(const std::string& op) {
  for (const char* name : {"init", "mesh", "from_group"})
    if (op == name) return Kind::kConstruct;
  for (const char* name : {"slice", "flatten", "unflatten", "concat"})
    if (op == name) return Kind::kDerive;
  for (const char* name : {"all_submeshes", "root", "root_dim", "get_group", "all_groups",
                           "local_rank", "size", "eq", "flat_names"})
    if (op == name) return Kind::kAsk;
  return Kind::kUnknown;
}

Json run_op(const Json& op, int index, ProgramState& state) {
  std::string name = op.at("op");
  try {
    Kind kind = kind_of(name);
    if (kind == Kind::kAsk) return ask(op, index, state);
    MeshEntry entry = kind == Kind::kConstruct ? construct(op, state) : derive(op, state);
    std::string handle = op.at("as");
    Json facts = mesh_facts(entry, index, handle, state);
    state.handles.add(handle, std::move(entry));
    return facts;
  } catch (const UndefinedHandle&) {
    return {{"skipped", true}};
  } catch (const GoldenError& error) {
    return {{"error", error.json()}};
  } catch (const Error& error) {
    return {{"error", golden_error(error, name)}};
  }
}

}  // namespace

Json run_program(const Json& input) {
  const Json& ops = input.at("ops");
  bool known = std::all_of(ops.begin(), ops.end(),
                           [](const Json& op) { return kind_of(op.at("op")) != Kind::kUnknown; });
  if (!known) return {};
  ProgramState state;
  state.world_size = input.at("world_size");
  state.observers = input.at("observe").get<std::vector<std::int64_t>>();
  Json results = Json::array();
  Json first_error;
  for (const Json& op : ops) {
    int index = static_cast<int>(results.size());
    results.push_back(run_op(op, index, state));
    if (first_error.is_null() && results.back().contains("error")) {
      first_error = results.back().at("error");
      first_error["op"] = index;
    }
  }
  Json answer = {{"expect", std::move(results)}};
  if (!first_error.is_null()) answer["expect_error"] = first_error;
  return answer;
}

}  // namespace meshard::conformance
