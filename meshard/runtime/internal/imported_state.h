// The state of an imported program.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "meshard/lowering/imported_call.h"
#include "meshard/lowering/lower.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/imported_program.h"
#include "meshard/stablehlo/module_reader.h"

namespace meshard {

struct Runtime;

struct ImportedProgram::State {
  // A structure of arguments and where each of its tensors belongs.
  struct KnownForm {
    const void* types = nullptr;
    std::vector<std::uint64_t> form;
    std::vector<std::size_t> order;
  };

  // The program for one set of devices.
  struct OnDevices {
    Place place;
    std::shared_ptr<const LoadedProgram> program;
  };

  // The program as a part of others, for one set of devices, and the shardings of its module's
  // arguments and results.
  struct Recorded {
    Place place;
    std::shared_ptr<const ImportedBody> body;
    std::vector<std::optional<Sharding>> arguments, results;
  };

  // Shared with the derivative.
  std::shared_ptr<const std::string> bytes;
  // A view of `bytes`, or the text as compilers take it.
  std::string_view module;
  std::string text;
  stablehlo::ModuleFacts facts;
  std::string name;
  std::int64_t devices = 1;
  std::vector<std::string> platforms;
  bool any_platform = true;
  std::vector<ImportedValue> arguments, results;
  stablehlo::ExportTree argument_tree, result_tree;
  // The arguments that the module has, in its order, after the platform's number.
  std::vector<std::size_t> kept;
  std::shared_ptr<const State> vjp;  // null: none was exported

  mutable std::mutex mutex;  // guards what follows
  mutable std::vector<OnDevices> loaded;
  mutable std::vector<std::shared_ptr<const Recorded>> recorded;
  mutable std::vector<KnownForm> forms;
  mutable std::map<std::int64_t, Tensor> platform_numbers;

  bool has_platform_number() const { return platforms.size() > 1; }
  std::optional<Mesh> first_devices(SourceLocation where) const;
  // The position of the client's platform among `platforms`. @error thrown: it is not there
  std::int64_t platform_number(const pjrt::Client& client, SourceLocation where) const;
  std::shared_ptr<const LoadedProgram> program_for(Runtime& runtime, const Place& place,
                                                   SourceLocation where) const;
  std::shared_ptr<const LoadedProgram> load(Runtime& runtime, const Place& place,
                                            SourceLocation where) const;
  std::vector<std::size_t> order_of(const internal::JitCall& call, Describe describe,
                                    SourceLocation where) const;
  void check(std::size_t i, const Tensor& tensor, SourceLocation where) const;
  std::vector<Tensor> call(const Place& place, std::span<const Tensor* const> given,
                           SourceLocation where) const;
  // Its module with the code of the client's platform, whose calls the client takes.
  std::string code_for(const pjrt::Client& client, SourceLocation where) const;

  // The module of code_for() on the devices of a place, with its shardings.
  LoweredModule lowered_on(const pjrt::Client& client, const Place& place,
                           SourceLocation where) const;
  // The position among the module's arguments of the k-th that it has.
  std::size_t position(std::size_t k) const { return k + (has_platform_number() ? 1 : 0); }

  // Shardings that callers choose (imported_shardings.cc).

  std::string with_chosen_shardings(std::string code, const Place& place,
                                    SourceLocation where) const;
  Sharding checked_sharding(std::size_t i, const Sharding& given, bool insist,
                            SourceLocation where) const;

  // Calls that are recorded (record_imported.cc).

  // Records a call with these arguments; those that operands() does not name may be undefined.
  std::vector<Tensor> record(const Place& place, std::span<const Tensor> given,
                             SourceLocation where) const;
  // The arguments that the program or its derivatives need, in order.
  std::vector<std::size_t> operands() const;
  std::shared_ptr<const Recorded> recorded_on(const Place& place, SourceLocation where) const;
  ImportedBody::Pullback pullback_on(const Place& place, SourceLocation where) const;
  std::string described(std::size_t i) const;
};

}  // namespace meshard
