#include "tools/conformance/devicemesh/mesh_ops/recorded.h"

#include "meshard/layout/modes.h"
#include "tools/conformance/devicemesh/layout_json.h"

namespace meshard::conformance {
namespace {

/// All integers of nested arrays, in order.
void collect(const Json& json, Json& integers) {
  if (!json.is_array()) return integers.push_back(json);
  for (const Json& element : json) collect(element, integers);
}

/// Reads `[sizes, strides]`.
Layout axis_layout(const Json& axis) { return Layout(tuple_of(axis[0]), tuple_of(axis[1])); }

std::optional<std::size_t> index_in(const Json& list, const Json& value) {
  for (std::size_t i = 0; list.is_array() && i < list.size(); ++i)
    if (list[i] == value) return i;
  return {};
}

}  // namespace

Json RecordedFacts::common(std::size_t op, const std::string& rank) const {
  const Json& result = results_[op];
  if (result.contains("common_by_rank")) return result.at("common_by_rank").value(rank, Json());
  return result.value("common", Json());
}

std::optional<std::size_t> RecordedFacts::maker(const Json& handle, std::size_t op) const {
  for (std::size_t i = 0; i < op; ++i)
    if (ops_[i].value("as", Json()) == handle && !mesh_facts(i).is_null()) return i;
  return {};
}

Json RecordedFacts::mesh_facts(std::size_t op) const {
  const Json& result = results_[op];
  Json facts = result.value("common", Json());
  if (result.contains("common_by_rank")) facts = *result.at("common_by_rank").begin();
  return facts.is_object() && facts.contains("layout") ? facts : Json();
}

std::optional<std::size_t> RecordedFacts::root_of(std::size_t op) const {
  Json facts = mesh_facts(op);
  if (facts.is_null()) return {};
  if (facts.at("root") != "self") return maker(facts.at("root"), op);
  if (facts.at("same_object_as").is_null()) return op;
  return maker(facts.at("same_object_as"), op);
}

std::optional<RecordedAxis> RecordedFacts::axis_of_query(std::size_t op) const {
  std::optional<std::size_t> made = maker(ops_[op].at("on"), op);
  if (!made) return {};
  Json facts = mesh_facts(*made);
  const Json& dim = ops_[op].at("dim");
  if (dim.is_null()) return RecordedAxis{*made, 0};
  if (dim.is_number()) {
    std::int64_t k = dim.get<std::int64_t>();
    return RecordedAxis{
        *made, static_cast<std::size_t>(k < 0 ? k + facts.at("ndim").get<std::int64_t>() : k)};
  }
  bool asks_for_groups = ops_[op].at("op") == "get_group" || ops_[op].at("op") == "local_rank";
  if (asks_for_groups)  // a name that flatten has registered at the root takes precedence
    for (std::size_t i = 0; i < op; ++i)
      if (ops_[i].at("op") == "flatten" && root_of(i) && root_of(i) == root_of(*made) &&
          mesh_facts(i).at("names") == Json::array({dim}))
        return RecordedAxis{i, 0};
  std::optional<std::size_t> k = index_in(facts.at("names"), dim);
  if (!k) return {};
  return RecordedAxis{*made, *k};
}

std::optional<RecordedAxis> RecordedFacts::axis_of_mesh(std::size_t op, std::size_t k) const {
  if (ops_[op].at("op") != "all_groups") return RecordedAxis{op, k};
  std::optional<std::size_t> made = maker(ops_[op].at("on"), op);
  if (!made) return {};
  return RecordedAxis{*made, k};
}

std::optional<GroupSighting> RecordedFacts::sighting(RecordedAxis axis,
                                                     const std::string& rank) const {
  std::optional<std::size_t> root = root_of(axis.op);
  if (!root || !results_[*root].at("views").contains(rank)) return {};
  GroupSighting sighting;
  sighting.rank = rank;
  sighting.root = ops_[*root].at("as");
  Json integers = Json::array();
  collect(results_[*root].at("views").at(rank).at("mesh"), integers);
  sighting.rank_map = integers.dump();
  sighting.axis = mesh_facts(axis.op).at("layout").at(axis.dim).dump();
  return sighting;
}

bool RecordedFacts::composed_wrongly(std::size_t op) const {
  std::optional<RecordedAxis> axis = axis_of_query(op);
  Json made = mesh_facts(op);
  if (!axis || made.is_null()) return false;
  std::vector<Layout> pieces;
  std::size_t count = ops_[op].at("sizes").size();
  for (std::size_t k = 0; k < count && axis->dim + k < made.at("layout").size(); ++k)
    pieces.push_back(axis_layout(made.at("layout").at(axis->dim + k)));
  Layout left = axis_layout(mesh_facts(axis->op).at("layout").at(axis->dim));
  Layout right(tuple_of(ops_[op].at("sizes")));
  return exact_composition(left, right, values_of(concatenate(pieces)));
}

}  // namespace meshard::conformance
