// lowered_modules.json: the modules of small programs, compared by their meaning.
#include "tools/conformance/difference.h"
#include "tools/conformance/jax/lowered/lowered_programs.h"
#include "tools/conformance/jax/lowered/module_facts.h"
#include "tools/conformance/jax/rules.h"

namespace meshard::conformance {
namespace lowered_modules_cases {

Json answer_to(const Json& test, const GoldenFile&) {
  try {
    std::optional<std::string> module = lowered_program(test);
    return module ? Json{{"module", *module}} : Json();
  } catch (const Error& error) {
    return {{"error", error.message()}};
  }
}

// The facts that are comparable. A program for one device splits nothing, whatever its shardings
// are. With explicit axes, both add different constraints on intermediate values, and only the
// boundary and products are compared.
Json comparable(const Json& test, Json facts) {
  const std::string id = test.at("id");
  if (facts.at("partitions") == 1)
    for (const char* field : {"arguments", "results"})
      for (Json& value : facts.at(field)) value["sharding"] = nullptr;
  if (id.starts_with("explicit_")) facts.erase("constraints");
  return facts;
}

Verdict judge_case(const Json& test, const Json& answer) {
  if (test.contains("error")) {
    if (answer.contains("error")) return {};
    return devices_in_any_order(answer.at("module").get<std::string>())
               ? Verdict::by(Rule::kDevicesInAnyOrder)
               : Verdict::failed(cat("recorded ", test.at("error").dump(), ", ours a module"));
  }
  if (answer.contains("error")) return Verdict::failed(cat("ours ", answer.at("error").dump()));
  Json ours = comparable(test, module_facts(answer.at("module").get<std::string>()));
  Json recorded = comparable(test, module_facts(test.at("module").get<std::string>()));
  std::string different = first_difference(ours, recorded);
  return different.empty() ? Verdict() : Verdict::failed(std::move(different));
}

}  // namespace lowered_modules_cases

Suite lowered_modules_suite() {
  using namespace lowered_modules_cases;
  return {"lowered_modules.json", answer_to, judge_case};
}

}  // namespace meshard::conformance
