#include "tools/conformance/jax/module_shardings.h"

#include <string_view>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/lowering/lower.h"
#include "meshard/ops/identity.h"
#include "meshard/stablehlo/shardy_text.h"

namespace meshard::conformance {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kAttribute = "#sdy.sharding";

/// The text after each `begin`: a mesh or a sharding, which ends at the first `>`.
Json texts_after(std::string_view text, std::string_view begin) {
  Json found = Json::array();
  for (std::size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at)) {
    at += begin.size();
    found.push_back(std::string(text.substr(at, text.find('>', at) + 1 - at)));
  }
  return found;
}

Json with_prefix(std::string_view prefix, Json texts) {
  for (Json& text : texts) text = std::string(prefix) + text.get<std::string>();
  return texts;
}

struct ModuleText {
  std::string_view meshes, arguments, results, body;
};

ModuleText split_module(std::string_view text) {
  std::size_t main = text.find("@main("), arrow = text.find(" -> ", main);
  std::size_t body = text.find('\n', arrow);
  return {text.substr(0, main), text.substr(main, arrow - main), text.substr(arrow, body - arrow),
          text.substr(body)};
}

LoweredModule lowered(const Shape& shape, const std::optional<Sharding>& of_argument,
                      const std::optional<Sharding>& constraint) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, shape}, of_argument, {});
  Tensor y = constraint ? sharding_constraint(x, *constraint) : x;
  std::vector<Value> parameters = {x.value()}, results = {y.value()};
  return lower({.graph = Graph::build(parameters, results, scope.trace()), .donated = {}});
}

/// A module for one device has no shardings, and a tensor without elements is not split (the
/// partitioner would drop it). In these cases, the answer is what the printers would print.
bool has_no_text(const Sharding& sharding, const Shape& shape) {
  return sharding.mesh().size() == 1 || shape.size() == 0;
}

Json printed_mesh(const Mesh& mesh) { return {"@mesh = " + shardy_text(mesh)}; }

}  // namespace

Json identity_shardings(const Sharding& sharding, const Shape& shape) {
  if (has_no_text(sharding, shape))
    return {{"mesh_ops", printed_mesh(sharding.mesh())},
            {"args", {shardy_text(sharding)}},
            {"results", {shardy_text(sharding)}},
            {"constraints", Json::array()},
            {"num_partitions", sharding.mesh().size()}};
  LoweredModule module = lowered(shape, sharding, std::nullopt);
  ModuleText parts = split_module(module.text);
  return {{"mesh_ops", texts_after(parts.meshes, "sdy.mesh ")},
          {"args", with_prefix(kAttribute, texts_after(parts.arguments, kAttribute))},
          {"results", with_prefix(kAttribute, texts_after(parts.results, kAttribute))},
          {"constraints", texts_after(parts.body, "sdy.sharding_constraint %arg0 ")},
          {"num_partitions", module.num_partitions()}};
}

Json constraint_shardings(const Sharding& sharding, const Shape& shape) {
  if (has_no_text(sharding, shape))
    return {{"mesh_ops", printed_mesh(sharding.mesh())},
            {"constraints", {shardy_text(sharding).substr(kAttribute.size())}}};
  LoweredModule module = lowered(shape, std::nullopt, sharding);
  ModuleText parts = split_module(module.text);
  return {{"mesh_ops", texts_after(parts.meshes, "sdy.mesh ")},
          {"constraints", texts_after(parts.body, "sdy.sharding_constraint %arg0 ")}};
}

}  // namespace meshard::conformance
