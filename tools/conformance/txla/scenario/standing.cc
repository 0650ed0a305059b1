#include "tools/conformance/txla/scenario/standing.h"

#include <algorithm>

#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/sharding_text.h"

namespace meshard::conformance {
namespace {

const Known kManual{Standing::kMarked, "{manual}", {}};

/// The data that a step sends from the host.
std::vector<double> data_of(const Json& step) {
  DType dtype = dtype_named(step.value("dtype", "float32"));
  return host_array_of(step.at("data"), shape_of(step.at("shape")), dtype)
      .astype(DType::f64)
      .to_vector<double>();
}

/// For each op that marks: the field that names the tensor.
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
  if (name.is_string() && of(name).standing == Standing::kHost)
    known_[name].standing = Standing::kChosen;
}

void Standings::after_mark(const Json& step, std::size_t rank, bool refused) {
  for (const auto& [op, field] : kMarking)
    if (step.at("op") == op && step.contains(field)) {
      std::vector<double> data = step.contains("t") ? of(step.at("t")).data : std::vector<double>();
      known_[step.at(field)] = {refused ? Standing::kResharded : Standing::kMarked,
                                asked_by(step, rank), std::move(data)};
    }
  // The reference also changes its operand; ours makes a new value.
  bool changes = step.at("op") == "mark_with_gradients" || step.at("op") == "manual_off";
  if (changes) known_[step.at("t")].standing = Standing::kChosen;
  if (step.at("op") == "manual_on") known_[step.at("out")] = kManual;
}

void Standings::after_compute(const Json& step) {
  bool same_value = step.at("fn") == "clone" || step.at("fn") == "detach";
  for (const Json& arg : step.at("args")) use(arg);
  known_[step.at("out")] = same_value ? of(step.at("args").at(0)) : Known();
}

void Standings::after_change(const Json& step) {
  Known& known = known_[step.at("t")];
  if (known.standing != Standing::kMarked && known.standing != Standing::kResharded)
    known.standing = Standing::kChosen;
  known.data = step.contains("data") ? data_of(step) : std::vector<double>();
  if (step.contains("arg")) use(step.at("arg"));
}

void Standings::after_clear(const std::string& name) {
  Known& known = known_[name];
  if (known.standing == Standing::kHost) return;
  known.standing = known.standing == Standing::kMarked ? Standing::kCleared : Standing::kChosen;
  known.asked = {};
}

void Standings::after(const Json& step, std::size_t rank, bool refused) {
  const std::string& op = step.at("op").get_ref<const std::string&>();
  if (op == "mesh") meshes_.insert_or_assign(step.at("out"), mesh_of(step));
  if (op == "host") known_[step.at("out")] = {Standing::kHost, {}, data_of(step)};
  if (op == "full" || op == "arange") known_[step.at("out")] = Known();
  if (op == "compute") after_compute(step);
  if (op == "inplace" || op == "copy_" || op == "load_shards") after_change(step);
  if (op == "shards") use(step.at("t"));
  if (op == "sync")
    for (auto& [name, known] : known_) use(name);
  if (op == "clear") after_clear(step.at("t"));
  after_mark(step, rank, refused);
  if (op == "send_sharded") known_[step.at("out")].data = data_of(step);
}

}  // namespace meshard::conformance
