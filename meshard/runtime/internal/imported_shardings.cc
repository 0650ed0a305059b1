// Tested in meshard/runtime/imported_program_test.cc.
// Shardings that callers choose for the arguments of imported programs.
#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/lowering/module_boundary.h"
#include "meshard/runtime/internal/imported_state.h"
#include "meshard/stablehlo/argument_shardings.h"
#include "meshard/stablehlo/module_as_text.h"
#include "meshard/stablehlo/shardy_text.h"

namespace meshard {
namespace {

// Whether two shardings are the same, whatever the devices of their meshes.
bool same_axes(const Sharding& a, const Sharding& b) {
  const auto same_axis = [](const MeshAxis& x, const MeshAxis& y) {
    return x.name == y.name && x.size == y.size;
  };
  return a.spec() == b.spec() && std::ranges::equal(a.mesh().axes(), b.mesh().axes(), same_axis);
}

}  // namespace

std::string ImportedProgram::State::with_chosen_shardings(std::string code, const Place& place,
                                                          SourceLocation where) const {
  std::string written = stablehlo::module_as_text(code).value(where), added;
  std::vector<std::pair<Mesh, std::string>> meshes;
  for (const stablehlo::ModuleMesh& own : facts.meshes)
    if (std::optional<Mesh> placed = mesh_on(own, *place.mesh))
      meshes.emplace_back(*std::move(placed), own.name);
  std::map<std::size_t, std::string> shardings;
  for (std::size_t k = 0; k < kept.size(); ++k) {
    const std::optional<Sharding>& chosen = place.shardings[kept[k]];
    if (!chosen) continue;
    auto known = std::ranges::find(meshes, chosen->mesh(), &std::pair<Mesh, std::string>::first);
    if (known == meshes.end()) {
      std::string mesh = cat("meshard_", meshes.size());
      append(added, cat(added.empty() ? "" : "\n  ", "sdy.mesh @", mesh, " = ",
                        shardy_text(chosen->mesh(), *place.mesh)));
      meshes.emplace_back(chosen->mesh(), mesh);
      known = std::prev(meshes.end());
    }
    shardings[position(k)] = shardy_text(*chosen, known->second);
  }
  return stablehlo::with_argument_shardings(written, shardings, added).value(where);
}

// The sharding with the rank of argument i.
Sharding ImportedProgram::State::checked_sharding(std::size_t i, const Sharding& given, bool insist,
                                                  SourceLocation where) const {
  const auto fail = [&](auto... parts) {
    throw_invalid(where, "[load_program] ", described(i), " of \"", name, "\": ", parts...);
  };
  const TensorType& type = *arguments[i].type;
  const auto rank = static_cast<std::size_t>(type.rank());
  if (given.mesh().size() != devices)
    fail("the program is for ", devices, " devices, but ", given.mesh(), " has ",
         given.mesh().size());
  if (given.rank() > rank || !given.unreduced_axes().empty())
    fail("the sharding ", given.spec(), " does not fit ", type);
  Sharding sharding = given.rank() < rank ? given.with_rank(rank, where) : given;
  if (!sharding.is_even(type.shape.sizes()))
    fail("the sharding ", sharding.spec(), " does not divide ", type, " evenly");
  const auto at = std::ranges::find(kept, i) - kept.begin();
  const stablehlo::ModuleValue& own = facts.arguments[position(static_cast<std::size_t>(at))];
  const std::optional<Sharding>& present = arguments[i].sharding;
  if (!insist && own.has_closed_sharding() && !(present && same_axes(*present, sharding)))
    fail("the module was written for the sharding ", present ? cat(present->spec()) : own.sharding,
         ", and ", sharding.spec(), " is another one: pass insist = true to use it");
  return sharding;
}

ImportedProgram ImportedProgram::with_shardings(std::vector<std::optional<Sharding>> shardings,
                                                bool insist, SourceLocation where) const {
  const auto refuse = [&](std::string_view why) {
    return Error(ErrorCode::kUnimplemented,
                 cat("[load_program] other shardings for \"", name(), "\": ", why), where);
  };
  if (shardings.size() != arguments().size())
    throw_invalid(where, "[load_program] \"", name(), "\" has ", arguments().size(),
                  " arguments, but ", shardings.size(),
                  shardings.size() == 1 ? " sharding is" : " shardings are", " given");
  if (num_devices() == 1)
    throw refuse("it is for one device. Export it with a mesh (jax.jit with shardings over one)");
  if (!state_->facts.is_for_shardy())
    throw refuse("it was exported for the older partitioner (jax_use_shardy_partitioner)");
  ImportedProgram other(state_, where);
  other.place_.mesh = place_.mesh;
  for (std::size_t i = 0; i < shardings.size(); ++i) {
    std::optional<Sharding>& sharding = shardings[i];
    if (!arguments()[i].used) sharding.reset();
    if (!sharding) continue;
    sharding = state_->checked_sharding(i, *sharding, insist, where);
    const Mesh& mesh = sharding->mesh();
    std::optional<Mesh>& there = other.place_.mesh;
    if (!there) there = mesh.is_base() ? mesh : mesh.as_root(where);
    if (!there->same_devices(mesh))
      throw_invalid(where, "[load_program] ", state_->described(i), " of \"", name(),
                    "\": the sharding is over ", mesh, ", but the program runs on ", *there);
  }
  other.place_.shardings = std::move(shardings);
  return other;
}

}  // namespace meshard
