#include "meshard/runtime/imported_program.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/from_host.h"
#include "meshard/lowering/module_boundary.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/call_program.h"
#include "meshard/runtime/internal/imported_state.h"
#include "meshard/runtime/internal/outside_calls.h"
#include "meshard/runtime/internal/placement.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/tiles.h"
#include "meshard/stablehlo/compiler_text.h"
#include "meshard/stablehlo/custom_calls.h"
#include "meshard/stablehlo/jax_export.h"
#include "meshard/stablehlo/module_as_text.h"
#include "meshard/stablehlo/module_reader.h"
#include "meshard/stablehlo/platform_branch.h"

namespace meshard {
namespace {

// Structures of arguments that are remembered: usually there is one.
constexpr std::size_t kMostForms = 16;

Error refused(std::string_view name, std::string message) {
  return Error(ErrorCode::kUnimplemented, cat("[load_program] \"", name, "\" ", message));
}

// The path of an argument without the tuple of those by position and the dict of those by name.
std::string short_path(std::string_view path) {
  return std::string(path.substr(std::min(path.find(']') + 1, path.size())));
}

}  // namespace

// Reading.

namespace {

class ProgramReader {
 public:
  explicit ProgramReader(std::shared_ptr<const std::string> bytes)
      : state_(std::make_shared<ImportedProgram::State>()) {
    state_->bytes = std::move(bytes);
  }

  Result<std::shared_ptr<const ImportedProgram::State>> read() {
    state_->module = *state_->bytes;
    MESHARD_RETURN_IF_ERROR(stablehlo::check_not_hlo(state_->module));
    if (stablehlo::is_jax_export(state_->module)) {
      MESHARD_ASSIGN_OR_RETURN(stablehlo::JaxExport exported,
                               stablehlo::read_jax_export(state_->module));
      return read(std::move(exported));
    }
    MESHARD_RETURN_IF_ERROR(read_text());
    return read_facts();
  }

 private:
  Result<std::shared_ptr<const ImportedProgram::State>> read(stablehlo::JaxExport exported) {
    exported_ = std::move(exported);
    MESHARD_RETURN_IF_ERROR(take_export());
    if (exported_->vjp) {
      MESHARD_ASSIGN_OR_RETURN(state_->vjp, ProgramReader(state_->bytes).read(*exported_->vjp));
    }
    return read_facts();
  }

  Result<std::shared_ptr<const ImportedProgram::State>> read_facts() {
    MESHARD_ASSIGN_OR_RETURN(state_->facts, stablehlo::read_module(state_->module));
    if (exported_) stablehlo::describe_export(*exported_, state_->facts);
    if (state_->name.empty())
      state_->name = state_->facts.name.empty() ? "main" : state_->facts.name;
    MESHARD_RETURN_IF_ERROR(check_supported());
    state_->devices = devices_of_module(state_->facts);
    MESHARD_RETURN_IF_ERROR(read_values());
    return std::shared_ptr<const ImportedProgram::State>(std::move(state_));
  }

  Result<void> take_export() {
    const stablehlo::JaxExport& exported = *exported_;
    state_->module = exported.module;
    state_->name = exported.function;
    state_->platforms = exported.platforms;
    state_->any_platform = exported.any_platform;
    state_->kept = exported.kept;
    state_->argument_tree = exported.argument_tree;
    state_->result_tree = exported.result_tree;
    if (std::string symbolic = exported.symbolic_argument(); !symbolic.empty())
      return refused(exported.function, cat("has an argument of symbolic sizes ", symbolic,
                                            ": export it for the sizes that it runs with"));
    if (!exported.ordered_effects.empty())
      return refused(exported.function,
                     cat("has effects that need an order (", join(exported.ordered_effects, ", "),
                         "): export it without ordered=True"));
    return {};
  }

  Result<void> read_text() {
    if (!stablehlo::is_module_text(state_->module))
      return {};  // bytecode, or what read_module() refuses
    MESHARD_ASSIGN_OR_RETURN(stablehlo::CompilerText made,
                             stablehlo::text_for_compiler(state_->module));
    state_->text = std::move(made.text);
    state_->module = state_->text;
    return {};
  }

  Result<void> check_supported() const {
    const stablehlo::ModuleFacts& facts = state_->facts;
    if (facts.num_replicas > 1)
      return refused(state_->name, cat("is for ", facts.num_replicas,
                                       " replicas, whose collectives go across programs: export a "
                                       "program for a mesh (jit, shard_map) instead of pmap"));
    for (const auto* values : {&facts.arguments, &facts.results})
      for (const stablehlo::ModuleValue& value : *values)
        if (value.type.find("token") != std::string::npos)
          return refused(state_->name,
                         "has a token, since it has effects that need an order: export "
                         "it without them");
    return {};
  }

  // The devices 0..n-1.
  Result<std::optional<Mesh>> logical_devices() const {
    if (state_->devices == 1) return std::optional<Mesh>();
    return caught([&] { return std::optional(Mesh({{"devices", state_->devices}})); });
  }

  ImportedValue value_of(const stablehlo::ModuleValue& value, const LoweredValue& lowered) const {
    return {.name = value.name,
            .type = lowered.type,
            .sharding = lowered.sharding,
            .donated = value.donated,
            .memory_kind = value.memory_kind};
  }

  Result<void> read_values() {
    const stablehlo::ModuleFacts& facts = state_->facts;
    MESHARD_ASSIGN_OR_RETURN(std::optional<Mesh> mesh, logical_devices());
    MESHARD_ASSIGN_OR_RETURN(LoweredModule lowered, lowered_from_module("", facts, mesh));
    const std::size_t hidden = state_->has_platform_number() ? 1 : 0;
    if (!exported_) {
      for (std::size_t i = 0; i < facts.arguments.size(); ++i) state_->kept.push_back(i);
      state_->argument_tree = {.kind = stablehlo::ExportTree::Kind::kTuple,
                               .children = {stablehlo::ExportTree::leaves(facts.arguments.size()),
                                            {.kind = stablehlo::ExportTree::Kind::kDict}}};
      state_->result_tree = stablehlo::ExportTree::leaves(facts.results.size());
    }
    std::vector<std::string> paths = state_->argument_tree.leaf_paths();
    std::vector<std::string> results = state_->result_tree.leaf_paths();
    const auto differs = [&](auto... parts) {
      return Error(ErrorCode::kDataLoss, cat("[load_program] \"", state_->name, "\": ", parts...));
    };
    if (facts.arguments.size() != state_->kept.size() + hidden)
      return differs("the module has ", facts.arguments.size(), " arguments, but the export names ",
                     state_->kept.size() + hidden);
    if (results.size() != facts.results.size())
      return differs("the module has ", facts.results.size(), " results, but the export names ",
                     results.size());
    state_->arguments.resize(paths.size());
    for (std::size_t k = 0; k < state_->kept.size(); ++k) {
      std::size_t i = state_->kept[k];
      if (i >= paths.size()) return differs("there is no argument ", i);
      state_->arguments[i] = value_of(facts.arguments[k + hidden], lowered.arguments[k + hidden]);
    }
    MESHARD_RETURN_IF_ERROR(read_unused());
    for (std::size_t i = 0; i < paths.size(); ++i) state_->arguments[i].path = short_path(paths[i]);
    for (std::size_t i = 0; i < results.size(); ++i) {
      state_->results.push_back(value_of(facts.results[i], lowered.results[i]));
      state_->results[i].path = results[i];
    }
    return {};
  }

  Result<void> read_unused() {
    for (std::size_t i = 0; i < state_->arguments.size(); ++i) {
      ImportedValue& argument = state_->arguments[i];
      argument.used = std::ranges::find(state_->kept, i) != state_->kept.end();
      if (argument.used || !exported_ || i >= exported_->argument_sizes.size() ||
          exported_->argument_dtypes[i].empty())
        continue;
      std::string type = "tensor<";
      for (const std::string& size : exported_->argument_sizes[i]) append(type, cat(size, "x"));
      append(type, cat(exported_->argument_dtypes[i], ">"));
      // An argument that is not sent may have a type that meshard does not have.
      if (Result<TensorType> read = module_tensor_type(type); read.ok()) argument.type = *read;
    }
    return {};
  }

  std::shared_ptr<ImportedProgram::State> state_;
  std::optional<stablehlo::JaxExport> exported_;
};

}  // namespace

// Loading.

std::optional<Mesh> ImportedProgram::State::first_devices(SourceLocation where) const {
  if (devices == 1) return std::nullopt;
  const pjrt::Client& client = runtime_client(where);
  std::span<const pjrt::Device* const> all = client.addressable_devices();
  if (std::ssize(all) < devices)
    throw Error(ErrorCode::kInvalidArgument,
                cat("[load_program] \"", name, "\" is for ", devices, " devices, but platform ",
                    client.name(), " has ", all.size(),
                    client.platform() == "cpu" ? " (MESHARD_CPU_DEVICES sets their number)" : ""),
                where);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < devices; ++i) ids.push_back(all[static_cast<std::size_t>(i)]->id());
  return Mesh({{"devices", devices}}, std::move(ids));
}

std::int64_t ImportedProgram::State::platform_number(const pjrt::Client& client,
                                                     SourceLocation where) const {
  auto found = std::ranges::find(platforms, client.platform());
  if (found != platforms.end()) return std::distance(platforms.begin(), found);
  if (platforms.empty() || (any_platform && platforms.size() == 1)) return 0;
  throw Error(
      ErrorCode::kInvalidArgument,
      cat("[load_program] \"", name, "\" was exported for ", join(platforms, ", "), ", not for ",
          client.platform(), ": export it with platforms=(\"", client.platform(), "\", ...)"),
      where);
}

std::string ImportedProgram::State::code_for(const pjrt::Client& client,
                                             SourceLocation where) const {
  const std::int64_t number = platform_number(client, where);
  std::string code(module);
  if (has_platform_number()) code = stablehlo::choose_platform(module, number).value(where).module;
  if (Result<void> checked = prepare_calls(code, client, has_platform_number()); !checked.ok())
    throw Error(checked.error().code(),
                cat("[load_program] \"", name, "\": ", checked.error().message()), where);
  return code;
}

LoweredModule ImportedProgram::State::lowered_on(const pjrt::Client& client, const Place& place,
                                                 SourceLocation where) const {
  std::string code = stablehlo::bytecode_for_compiler(code_for(client, where)).value(where).text;
  if (!place.shardings.empty()) code = with_chosen_shardings(std::move(code), place, where);
  Result<LoweredModule> lowered = lowered_from_module(std::move(code), facts, place.mesh);
  if (!lowered.ok())
    throw Error(lowered.error().code(),
                cat("[load_program] \"", name, "\": ", lowered.error().message()), where);
  for (std::size_t k = 0; k < kept.size() && !place.shardings.empty(); ++k)
    if (const auto& chosen = place.shardings[kept[k]]) {
      lowered->arguments[position(k)].sharding = chosen;
      if (std::ranges::find(lowered->meshes, chosen->mesh()) == lowered->meshes.end())
        lowered->meshes.push_back(chosen->mesh());
    }
  lowered->name = name;
  return *std::move(lowered);
}

std::shared_ptr<const LoadedProgram> ImportedProgram::State::load(Runtime& runtime,
                                                                  const Place& place,
                                                                  SourceLocation where) const {
  const pjrt::Client& client =
      place.mesh ? runtime.platforms.client(*place.mesh, where) : runtime.platforms.client(where);
  return runtime.programs.get(lowered_on(client, place, where), where);
}

std::shared_ptr<const LoadedProgram> ImportedProgram::State::program_for(
    Runtime& runtime, const Place& place, SourceLocation where) const {
  const auto is_it = [&](const OnDevices& each) { return each.place == place; };
  {
    std::lock_guard lock(mutex);
    auto found = std::ranges::find_if(loaded, is_it);
    if (found != loaded.end() && found->program->is_current()) return found->program;
  }
  runtime.platforms.know_default(where);
  Place known = place;
  if (!known.mesh) known.mesh = first_devices(where);
  std::shared_ptr<const LoadedProgram> made = load(runtime, known, where);
  std::lock_guard lock(mutex);
  std::erase_if(loaded,
                [&](const OnDevices& each) { return is_it(each) || !each.program->is_current(); });
  loaded.push_back({place, made});
  return made;
}

// Calls.

std::string ImportedProgram::State::described(std::size_t i) const {
  const ImportedValue& argument = arguments[i];
  return cat("argument ", argument.path,
             argument.name.empty() ? "" : cat(" (", argument.name, ")"));
}

std::vector<std::size_t> ImportedProgram::State::order_of(const internal::JitCall& call,
                                                          Describe describe,
                                                          SourceLocation where) const {
  {
    std::lock_guard lock(mutex);
    for (const KnownForm& known : forms)
      if (known.types == call.types && known.form == call.form) return known.order;
  }
  std::vector<std::string> paths;
  describe(paths);
  Result<std::vector<std::size_t>> order = argument_tree.order_of(paths);
  if (!order.ok())
    throw_invalid(
        where, "[load_program] the arguments of \"", name,
        "\" differ from what was exported ([0] has those by position, [1] those by name): ",
        order.error().message());
  std::lock_guard lock(mutex);
  if (forms.size() < kMostForms) forms.push_back({call.types, call.form, *order});
  return *std::move(order);
}

void ImportedProgram::State::check(std::size_t i, const Tensor& tensor,
                                   SourceLocation where) const {
  if (!tensor.defined())
    throw_invalid(where, "[load_program] ", described(i), " of \"", name, "\" has no value");
  const ImportedValue& argument = arguments[i];
  if (argument.type && tensor.value().type() != *argument.type)
    throw_invalid(where, "[load_program] ", described(i), " of \"", name, "\" is ",
                  tensor.value().type(), ", but the program takes ", *argument.type);
}

std::vector<Tensor> ImportedProgram::State::call(const Place& place,
                                                 std::span<const Tensor* const> given,
                                                 SourceLocation where) const {
  Runtime& runtime = process_runtime();
  for (std::size_t i = 0; i < given.size(); ++i) check(i, *given[i], where);
  if (internal::recorded_in_place()) {
    std::vector<Tensor> tensors;
    for (const Tensor* tensor : given) tensors.push_back(*tensor);
    return record(place, tensors, where);
  }
  InlineVector<Value, 4> pending;
  for (std::size_t i : kept)
    if (!given[i]->value().storage()) pending.push_back(given[i]->value());
  if (!pending.empty())
    evaluator(where).evaluate(std::span<const Value>(pending.data(), pending.size()), where);
  std::shared_ptr<const LoadedProgram> program = program_for(runtime, place, where);

  InlineVector<const Tensor*, 256> all;
  std::vector<Tensor> made;
  made.reserve(kept.size() + 1);
  if (has_platform_number()) {
    std::int64_t number = platform_number(program->client(), where);
    std::lock_guard lock(mutex);
    Tensor& known = platform_numbers[number];
    if (!known.defined()) known = from_host(HostArray::scalar(static_cast<std::int32_t>(number)));
    all.push_back(&made.emplace_back(known));
  }
  for (std::size_t i : kept) {
    const Tensor* tensor = given[i];
    const std::optional<Sharding>& target = program->shardings().arguments[all.size()];
    const Storage& storage = computed_storage(tensor->value(), where);
    const Sharding* present = storage.sharding();
    // A call says where it runs, so a value from elsewhere is moved.
    if (target && present && !present->mesh().same_devices(target->mesh()) &&
        storage.gone().empty())
      tensor = &made.emplace_back(copy_with(runtime, tensor->value(), *target, where));
    all.push_back(tensor);
  }
  std::vector<Tensor> returned(results.size());
  (void)call_program(runtime, *program, std::span<const Tensor* const>(all.data(), all.size()),
                     returned, where);
  return returned;
}

// The public face.

std::string ImportedValue::to_string() const {
  std::string text = cat(path.empty() ? "value" : path, ": ", type ? cat(*type) : "unknown");
  if (sharding) append(text, cat(" over ", sharding->spec()));
  if (!used) append(text, ", unused");
  if (donated) append(text, ", donated");
  if (!memory_kind.empty()) append(text, cat(", in ", memory_kind));
  return text;
}

std::string ImportedProgram::to_string() const {
  const auto counted = [](std::size_t count, std::string_view what) {
    return cat(count, " ", what, count == 1 ? "" : "s");
  };
  return cat(name(), " on ", counted(static_cast<std::size_t>(num_devices()), "device"), ": ",
             counted(arguments().size(), "argument"), ", ", counted(results().size(), "result"));
}

const std::string& ImportedProgram::name() const { return state_->name; }
std::int64_t ImportedProgram::num_devices() const { return state_->devices; }
const std::vector<std::string>& ImportedProgram::platforms() const { return state_->platforms; }
const std::vector<ImportedValue>& ImportedProgram::arguments() const { return state_->arguments; }
const std::vector<ImportedValue>& ImportedProgram::results() const { return state_->results; }
const stablehlo::ExportTree& ImportedProgram::argument_tree() const {
  return state_->argument_tree;
}
const stablehlo::ExportTree& ImportedProgram::result_tree() const { return state_->result_tree; }

ImportedProgram ImportedProgram::on(const Mesh& mesh, SourceLocation where) const {
  if (mesh.size() != state_->devices)
    throw_invalid(where, "[load_program] \"", name(), "\" is for ", state_->devices,
                  state_->devices == 1 ? " device" : " devices", ", but ", mesh, " has ",
                  mesh.size());
  ImportedProgram other(state_, where);
  // Shardings over a part of a mesh belong to the whole mesh; the program knows only the part.
  other.place_ = {mesh.is_base() ? mesh : mesh.as_root(where), place_.shardings};
  return other;
}

std::vector<Tensor> ImportedProgram::flat(std::span<const Tensor> tensors,
                                          SourceLocation where) const {
  if (tensors.size() != state_->arguments.size())
    throw_invalid(where, "[load_program] \"", name(), "\" takes ", state_->arguments.size(),
                  " arguments, but ", tensors.size(), tensors.size() == 1 ? " is" : " are",
                  " given");
  InlineVector<const Tensor*, 256> given;
  for (const Tensor& tensor : tensors) given.push_back(&tensor);
  return state_->call(place_, std::span<const Tensor* const>(given.data(), given.size()), where);
}

std::vector<Tensor> ImportedProgram::run(const internal::JitCall& call,
                                         std::span<const std::size_t> numbers,
                                         Describe describe) const {
  std::vector<std::size_t> order = state_->order_of(call, describe, where_);
  InlineVector<const Tensor*, 256> given;
  std::vector<Tensor> converted;
  converted.reserve(numbers.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Tensor* tensor = call.tensors[order[i]];
    const std::optional<TensorType>& type = state_->arguments[i].type;
    bool is_number = std::ranges::find(numbers, order[i]) != numbers.end();
    if (is_number && type && type->rank() == 0 && type->dtype != tensor->dtype()) {
      if (!is_inexact(type->dtype) && is_inexact(tensor->dtype()))
        throw_invalid(where_, "[load_program] ", state_->described(i), " of \"", name(),
                      "\" is a number with a fraction, but the program takes ", *type);
      HostArray number = tensor->to_host(where_), made = number.astype(type->dtype);
      if (!is_inexact(type->dtype) && made.astype(number.dtype()) != number)
        throw_invalid(where_, "[load_program] ", state_->described(i), " of \"", name(), "\" is ",
                      number, ", which ", type->dtype, " does not hold");
      tensor = &converted.emplace_back(from_host(std::move(made), where_));
    }
    given.push_back(tensor);
  }
  return state_->call(place_, std::span<const Tensor* const>(given.data(), given.size()), where_);
}

ImportedProgram ImportedProgram::vjp(SourceLocation where) const {
  if (!state_->vjp)
    throw_invalid(where, "[load_program] \"", name(),
                  "\" was exported without its derivative: use exported.serialize(vjp_order=1)");
  ImportedProgram derivative(state_->vjp, where);
  derivative.place_.mesh = place_.mesh;
  return derivative;
}

std::string ImportedProgram::module_text(SourceLocation where) const {
  std::string module(state_->module);
  if (state_->has_platform_number()) {
    const std::int64_t number = state_->platform_number(runtime_client(where), where);
    module = stablehlo::choose_platform(module, number).value(where).module;
  }
  return stablehlo::module_as_text(module).value(where);
}

std::shared_ptr<const LoadedProgram> ImportedProgram::loaded(SourceLocation where) const {
  return state_->program_for(process_runtime(), place_, where);
}

Result<ImportedProgram> load_program_from_bytes(std::string bytes, SourceLocation where) {
  MESHARD_ASSIGN_OR_RETURN(
      std::shared_ptr<const ImportedProgram::State> state,
      ProgramReader(std::make_shared<const std::string>(std::move(bytes))).read());
  return ImportedProgram(std::move(state), where);
}

Result<ImportedProgram> load_program(const std::string& path, SourceLocation where) {
  MESHARD_ASSIGN_OR_RETURN(std::string bytes, read_whole_file(path));
  Result<ImportedProgram> program = load_program_from_bytes(std::move(bytes), where);
  if (!program.ok()) return program.error().with_note(cat("in ", path));
  return program;
}

}  // namespace meshard
