#include "tools/conformance/txla/scenario/standing.h"

#include <algorithm>

#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/sharding_text.h"

namespace meshard::conformance {
namespace {

const Known kManual{Standing::kMarked, "{manual}"};

/// The fields by which the ops that mark name what they mark.
constexpr std::pair<const char*, const char*> kMarking[] = {
    {"mark", "t"},       {"mark", "out"},    {"annotate", "t"},     {"mark_with_gradients", "out"},
    {"spec_apply", "t"}, {"manual_on", "t"}, {"manual_off", "out"}, {"send_sharded", "out"}};

}  // namespace

std::string Standings::asked_by(const Json& step, std::size_t rank) const {
  const Mesh& mesh = meshes_.at(step.at("mesh"));
  return hlo_text(Sharding(mesh, spec_of(step.at("spec"), mesh), rank));
}

Known Standings::of(const std::string& name) const {
  auto found = known_.find(name);
  return found == known_.end() ? Known() : found->second;
}

bool Standings::any_on_host() const {
  return std::any_of(known_.begin(), known_.end(),
                     [](const auto& named) { return named.second.standing == Standing::kHost; });
}

void Standings::use(const Json& name) {
  if (name.is_string() && of(name).standing == Standing::kHost) known_[name] = Known();
}

void Standings::after_mark(const Json& step, std::size_t rank, bool refused) {
  for (const auto& [op, field] : kMarking)
    if (step.at("op") == op && step.contains(field))
      known_[step.at(field)] = {refused ? Standing::kResharded : Standing::kMarked,
                                asked_by(step, rank)};
  if (step.at("op") == "mark_with_gradients") known_[step.at("t")] = Known();
  if (step.at("op") == "manual_on") known_[step.at("out")] = kManual;
  if (step.at("op") == "manual_off" || step.at("op") == "mark_manual")
    known_[step.at("t")] = kManual;
}

void Standings::after_compute(const Json& step) {
  bool same_value = step.at("fn") == "clone" || step.at("fn") == "detach";
  for (const Json& arg : step.at("args")) use(arg);
  known_[step.at("out")] = same_value ? of(step.at("args").at(0)) : Known();
}

void Standings::after_change(const Json& step) {
  Known& known = known_[step.at("t")];
  if (known.standing != Standing::kMarked && known.standing != Standing::kResharded)
    known = Known();
  if (step.contains("arg")) use(step.at("arg"));
}

void Standings::after(const Json& step, std::size_t rank, bool refused) {
  const std::string& op = step.at("op").get_ref<const std::string&>();
  if (op == "mesh") meshes_.insert_or_assign(step.at("out"), mesh_of(step));
  if (op == "host") known_[step.at("out")] = {Standing::kHost, {}};
  if (op == "full" || op == "arange") known_[step.at("out")] = Known();
  if (op == "compute") after_compute(step);
  if (op == "inplace" || op == "copy_") after_change(step);
  if (op == "shards" || op == "load_shards") use(step.at("t"));
  if (op == "sync")
    for (auto& [name, known] : known_) use(name);
  if (op == "clear" && of(step.at("t")).standing != Standing::kHost)
    known_[step.at("t")] = {
        of(step.at("t")).standing == Standing::kMarked ? Standing::kCleared : Standing::kChosen,
        {}};
  after_mark(step, rank, refused);
}

}  // namespace meshard::conformance
