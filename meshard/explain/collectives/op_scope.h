// What the name of an op says about it: the layer and the phase of training.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/graph/program_phases.h"

namespace meshard {

template <>
struct EnumNames<ProgramPhase> {
  using enum ProgramPhase;
  static constexpr EnumName<ProgramPhase> kNames[] = {{kUnknown, "unknown"},
                                                      {kForward, "forward"},
                                                      {kBackward, "backward"},
                                                      {kOptimizer, "optimizer"}};
};

/// `forward`, `backward`, `optimizer`; empty if unknown
std::string_view to_string(ProgramPhase phase);

/// Appends a value that the list does not have.
template <class T>
void add_once(std::vector<T>& list, T value) {
  for (const auto& each : list)
    if (each == value) return;
  list.push_back(std::move(value));
}

/// The phase that an op_name of JAX states: `transpose(jvp())` marks the backward pass, `jvp()` the
/// forward pass of a function that is differentiated. Files of meshard's own modules have `jvp()/`,
/// `transpose(jvp())/` and `optimizer()/` before an op's name. Unknown for other names.
ProgramPhase phase_of_op(std::string_view op_name);

/// The name without the phase that a file of a meshard module has before it: `matmul` for
/// `transpose(jvp())/matmul`. Names of JAX begin with a function, and stay.
std::string_view without_phase(std::string_view op_name);

/// The named scopes in an op_name of JAX, which are the layers: `MLP/b0_up` for
/// `jit(step)/transpose(jvp(MLP))/b0_up/dot_general`. Names of functions, loops, checkpoints and
/// einsums are not scopes. Empty if there is none.
std::string op_scope(std::string_view op_name);

/// The scope that contains both: `MLP` for `MLP/b0` and `MLP/b1`.
std::string common_scope(std::string_view a, std::string_view b);

/// The op within its layer, the same for the forward and the backward pass: `attn/btd,dhk->bthk/
/// dot_general` for `jit(step)/transpose(jvp())/while/body/attn/btd,dhk->bthk/dot_general`. Empty
/// for a name that is not a path.
std::string op_in_layer(std::string_view op_name);

/// The keys of a value in a tree: `blocks`, `3` and `w1` for `params['blocks'][3]['w1']`. Empty for
/// a value outside every tree.
std::vector<std::string> tree_keys(std::string_view name);

/// The folder of a parameter in a tree: `blocks/3/mlp` for `params['blocks'][3]['mlp']['w1']`,
/// `b0_up` for `p['b0_up']['kernel']`. Empty if there is none.
std::string scope_of_parameter(std::string_view name);

}  // namespace meshard
