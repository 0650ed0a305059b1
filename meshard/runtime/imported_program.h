// Programs that were exported by JAX or others, as functions of tensors.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "meshard/base/function_ref.h"
#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"
#include "meshard/stablehlo/export_tree.h"
#include "meshard/trace/jit.h"

namespace meshard {

class LoadedProgram;

/// A value: an argument or a result of an imported program.
struct ImportedValue {
  /// Where it is among the arguments or results: `[0]['w']`, `['scale']` of one that is passed by
  /// name; empty for a single result.
  std::string path = {};
  /// The name that the module gives it: `params['w']`; empty if it gives none.
  std::string name = {};
  /// None for keys of random numbers that the program does not use.
  std::optional<TensorType> type = std::nullopt;
  /// Over the module's mesh with devices 0..n-1. None if the program is for one device, or leaves
  /// the choice to the compiler.
  std::optional<Sharding> sharding = std::nullopt;
  /// Whether the program needs it. Arguments that it does not need are not sent.
  bool used = true;
  /// Whether its memory is taken for the results: the tensor is gone after the call.
  bool donated = false;
  /// `pinned_host`; empty: the device's memory.
  std::string memory_kind = {};

  /// `[0]['w']: f32[8,4] over P("x", none)`.
  std::string to_string() const;
};

/// A handle on a program that another framework exported: a function of tensors. Copies share the
/// compiled programs, one for each set of devices. May be called from several threads.
///
/// Arguments are placed as the module says: host values go straight to the devices that need them,
/// and values on devices are resharded or copied. Results have the module's shardings. The program
/// is compiled at its first call, and kept on disk like any program.
///
/// In a function that jit, grad or a loop records, a call is a part of the program, with the
/// module's shardings. It runs on the mesh of on(); without it, on the mesh of the first argument
/// whose mesh has the right size; otherwise on the first devices. Its derivative is vjp(). vmap,
/// manual(),
/// and a derivative that was not exported are errors.
///
/// ```
/// ImportedProgram step = load_program("step.bin").value();
/// std::vector<Tensor> results = step(params, x);           // on the first devices
/// results = step.on(mesh.submesh({...}))(params, x);       // or on others
/// ```
class ImportedProgram {
 public:
  /// `step on 8 devices: 5 arguments, 2 results`.
  std::string to_string() const;
  /// The name of the exported function, or of the module.
  const std::string& name() const;
  std::int64_t num_devices() const;
  /// The platforms that it was exported for: `cpu`; empty: any.
  const std::vector<std::string>& platforms() const;
  /// In the order of flat().
  const std::vector<ImportedValue>& arguments() const;
  const std::vector<ImportedValue>& results() const;
  /// The structure of the arguments, a tuple of those by position and a dict of those by name.
  const stablehlo::ExportTree& argument_tree() const;
  const stablehlo::ExportTree& result_tree() const;

  /// The same program on the devices of a mesh, in the order of its positions. The devices may have
  /// any ids. If the mesh has the axes of the module's, results have shardings over it; otherwise
  /// over a mesh with the module's axes on these devices.
  /// @error invalid argument: the mesh has another number of devices than the program
  ImportedProgram on(const Mesh& mesh, SourceLocation where = SourceLocation::current()) const;

  /// The same program with other shardings for its arguments, compiled once for each choice and
  /// kept like any program. It runs on the devices of these shardings' meshes. A module leaves an
  /// argument open if its sharding is none or has open dimensions; other arguments keep theirs
  /// unless the caller insists, since the module was written for it. arguments() returns the
  /// arguments of the module.
  /// @param shardings one for each of arguments(); none: as the module says
  /// @param insist true: also where the module says otherwise. Default: false
  /// @error invalid argument, with the path and both values: another number of shardings, a rank
  /// that is not the argument's, meshes of other sizes or with different devices, a sharding that
  /// does not divide the sizes, an argument that is not open. unimplemented: the program is for one
  /// device, or for the older partitioner
  ImportedProgram with_shardings(std::vector<std::optional<Sharding>> shardings,
                                 bool insist = false,
                                 SourceLocation where = SourceLocation::current()) const;

  /// Runs the program with structures of tensors: the k-th argument is the function's k-th. Fields
  /// of structs and keys of maps match the export's keys; the order does not matter. A C++ number
  /// takes the dtype of its argument. Returns the results in order. Errors have the line of on() or
  /// load_program().
  /// @error invalid argument: another structure, shape or dtype, with the path and both values.
  /// unimplemented: the program needs what is not here (see load_program). The compiler's and the
  /// plugin's errors.
  template <class... Arguments>
  std::vector<Tensor> operator()(const Arguments&... arguments) const {
    return with_names(std::forward_as_tuple(arguments...), std::map<std::string, Tensor>());
  }
  /// Runs the program with arguments by position, a tuple, and by name: a map, or a struct.
  /// @error the errors of operator()
  template <class... Arguments, class Named>
  std::vector<Tensor> with_names(const std::tuple<Arguments...>& arguments,
                                 const Named& named) const {
    return call(std::index_sequence_for<Arguments...>(), arguments, named);
  }
  /// Runs the program with tensors in the order of arguments().
  /// @error the errors of operator()
  std::vector<Tensor> flat(std::span<const Tensor> tensors,
                           SourceLocation where = SourceLocation::current()) const;

  /// The program on its devices, compiled if it was not, for reports (loaded_program.h). Calls are
  /// faster if this was called before.
  /// @error as operator()
  std::shared_ptr<const LoadedProgram> loaded(
      SourceLocation where = SourceLocation::current()) const;

  /// The devices of on(); none: the first ones.
  const std::optional<Mesh>& mesh() const { return place_.mesh; }
  /// The module as text. A program for several platforms is lowered for the default one; the first
  /// argument of its main function is then the platform's position in platforms().
  /// @error as load_program(); invalid argument: it was not exported for the default platform
  std::string module_text(SourceLocation where = SourceLocation::current()) const;

  /// The derivative, if it was exported (`serialize(vjp_order=1)`), on the same devices: a program
  /// that takes the arguments of this one in order, then the cotangents of its results, and returns
  /// the cotangents of the arguments. Cotangents of values that are not floating-point numbers are
  /// bools, which are ignored.
  /// @error invalid argument: it was exported without a derivative; says how to export one
  ImportedProgram vjp(SourceLocation where = SourceLocation::current()) const;

  struct State;
  /// Where it runs, and the shardings that were chosen for its arguments; empty: the module's.
  struct Place {
    std::optional<Mesh> mesh = std::nullopt;
    std::vector<std::optional<Sharding>> shardings = {};
    friend bool operator==(const Place&, const Place&) = default;
  };
  /// For load_program().
  ImportedProgram(std::shared_ptr<const State> state, SourceLocation where)
      : state_(std::move(state)), where_(where) {}

  /// Appends the paths of the tensors of a call: `[0][2].w` in the third argument by position,
  /// `[1]["scale"]` of one by name.
  using Describe = FunctionRef<void(std::vector<std::string>& paths)>;
  /// Runs the program for a call that was flattened; for bindings of other languages.
  /// @param numbers which of the tensors are numbers, of the widest dtype of their kind
  /// @error as operator()
  std::vector<Tensor> run(const internal::JitCall& call, std::span<const std::size_t> numbers,
                          Describe describe) const;

 private:
  template <std::size_t... I, class... Arguments, class Named>
  std::vector<Tensor> call(std::index_sequence<I...>, const std::tuple<Arguments...>& arguments,
                           const Named& named) const {
    std::array<Tensor, sizeof...(Arguments) + 1> numbers;
    internal::JitCall call;
    std::vector<std::size_t> number_positions;
    call.types = &internal::kTypeTag<std::remove_cvref_t<Arguments>..., Named>;
    auto add = [&](const auto& argument, std::size_t i) {
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(argument)>>)
        number_positions.push_back(call.tensors.size());
      internal::collect(argument, numbers[i], i, where_, call);
    };
    (add(std::get<I>(arguments), I), ...);
    add(named, sizeof...(Arguments));
    auto describe = [&](std::vector<std::string>& paths) {
      auto append = [&](const auto& leaf, const std::string& path) {
        if constexpr (structure::Leaf<std::remove_cvref_t<decltype(leaf)>>) paths.push_back(path);
      };
      auto append_all = [&](const auto& argument, const std::string& root) {
        if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(argument)>>)
          paths.push_back(root);
        else
          structure::for_each(argument, append, root);
      };
      (append_all(std::get<I>(arguments), cat("[0][", I, "]")), ...);
      append_all(named, "[1]");
    };
    return run(call, number_positions, describe);
  }

  std::shared_ptr<const State> state_;
  Place place_;
  SourceLocation where_;
};

/// Reads a program from a file: what `jax.export` serialized (calling conventions 9 and 10, of one
/// or several platforms), or a StableHLO module as text, bytecode or portable artifact. Nothing is
/// compiled, and no device is needed.
///
/// Refused with their reason: sizes that are variables, effects that need an order (printing),
/// programs for several replicas; and, when the platform is known, before compiling: calls of
/// Python, and of functions that neither the plugin nor LAPACK has.
/// @error not found and the system's errors; data loss: the file is damaged; unimplemented: an
/// unsupported op, with its line
Result<ImportedProgram> load_program(const std::string& path,
                                     SourceLocation where = SourceLocation::current());
/// The same from the contents of a file.
Result<ImportedProgram> load_program_from_bytes(std::string bytes,
                                                SourceLocation where = SourceLocation::current());

}  // namespace meshard
