#include "meshard/trace/jit_cache.h"

#include <algorithm>
#include <optional>

#include "meshard/base/advice.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"

namespace meshard::internal {
namespace {

bool same_sharding(const std::optional<Sharding>& known, const Sharding* given) {
  return given ? known && *known == *given : !known;
}

// From then on it is no warm-up any more.
constexpr std::uint64_t kManyTraces = 8;

Advice advice_on_traces(const std::string& name, const JitStats& stats, SourceLocation where) {
  return {"jit.traces",
          cat("[jit] the function \"", name, "\" jitted here was traced and compiled ",
              stats.traces, " times, the last time because ", stats.reasons.back(),
              ". What varies should be a Tensor, or a number that is an argument of its own; a "
              "number inside a structure and a Static are constants of the program"),
          where};
}

std::string sharding_text(const Sharding* sharding) {
  return sharding ? cat("sharded ", *sharding) : std::string("not sharded");
}

}  // namespace

Tensor number_argument(const Scalar& number, std::size_t position, SourceLocation where) {
  DType dtype = number.kind == ScalarKind::kBool      ? DType::bool_
                : number.kind == ScalarKind::kInteger ? kDefaultInteger
                                                      : kDefaultFloat;
  try {
    return from_host(scalar_array(number, dtype, where), {});
  } catch (const Error& error) {
    throw error.with_note(cat("it is argument ", position,
                              " of a call of the function jitted here: a C++ number becomes ",
                              dtype, "; pass full({}, number, dtype) for another dtype"));
  }
}

std::size_t JitEntry::differing_static(const JitCall& call) const {
  std::size_t i = 0;
  while (i < statics.size() && call.statics[i].kind->equal(statics[i].get(), call.statics[i].value))
    ++i;
  return i;
}

bool JitEntry::matches(const JitCall& call) const {
  if (types != call.types || argument_types.size() != call.tensors.size()) return false;
  for (std::size_t i = 0; i < argument_types.size(); ++i) {
    const Value& value = call.tensors[i]->value();
    if (value.type() != argument_types[i]) return false;
    const Sharding* sharding = leaf_sharding(value);
    // The chosen one first: a result that comes back as an argument has that very object.
    if (!same_sharding(chosen[i], sharding) && !same_sharding(asked[i], sharding)) return false;
  }
  return form == call.form && statics.size() == call.statics.size() &&
         differing_static(call) == statics.size();
}

const JitEntry* JitCache::find_locked(const JitCall& call) const {
  // The newest first: a training loop asks for the same one again and again.
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
    if ((*entry)->matches(call)) return entry->get();
  return nullptr;
}

const JitEntry* JitCache::find(const JitCall& call) {
  std::lock_guard lock(mutex_);
  ++stats_.calls;
  return find_locked(call);
}

Graph trace_function(
    std::span<const Tensor* const> arguments,
    const std::function<std::vector<Tensor>(std::span<const Tensor> parameters)>& tracer,
    SourceLocation where) {
  TraceScope scope;
  std::vector<Tensor> parameters;
  std::vector<Value> parameter_values, result_values;
  for (const Tensor* argument : arguments) {
    const Sharding* sharding = leaf_sharding(argument->value());
    parameters.push_back(make_parameter(argument->value().type(),
                                        sharding ? std::optional(*sharding) : std::nullopt,
                                        argument->value()->where()));
    if (is_unplaced(argument->value())) parameters.back().value()->set_unplaced();
    parameter_values.push_back(parameters.back().value());
  }
  std::vector<Tensor> results = tracer(parameters);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined())
      throw_invalid(where, "[jit] tensor ", i, " of the function's result has no value");
    result_values.push_back(results[i].value());
  }
  return Graph::build(parameter_values, result_values, scope.trace());
}

std::vector<std::uint32_t> donated_parameters(const std::vector<std::size_t>& donate,
                                              const std::vector<std::size_t>& leaves,
                                              SourceLocation where) {
  std::vector<std::uint32_t> donated;
  for (std::size_t position : donate) {
    if (position >= leaves.size())
      throw_invalid(where, "[jit] argument ", position, " is to be donated, the function has ",
                    leaves.size());
    std::size_t first = 0;
    for (std::size_t i = 0; i < position; ++i) first += leaves[i];
    for (std::size_t i = 0; i < leaves[position]; ++i)
      donated.push_back(static_cast<std::uint32_t>(first + i));
  }
  return donated;
}

const JitEntry& JitCache::find_or_trace(const JitCall& call, const std::vector<std::size_t>& leaves,
                                        const JitPaths& paths, const Tracer& tracer) {
  std::unique_lock lock(mutex_);
  if (const JitEntry* known = find_locked(call)) return *known;

  auto entry = std::make_unique<JitEntry>();
  entry->types = call.types;
  entry->form = call.form;
  for (const StaticValue& each : call.statics)
    entry->statics.push_back(each.kind->keep(each.value));
  Program program;
  program.name = options_.name;
  for (const Tensor* argument : call.tensors) {
    const Sharding* sharding = leaf_sharding(argument->value());
    entry->argument_types.push_back(argument->value().type());
    entry->asked.push_back(sharding ? std::optional(*sharding) : std::nullopt);
  }
  program.graph = trace_function(
      std::span<const Tensor* const>(call.tensors.data(), call.tensors.size()),
      [&](std::span<const Tensor> parameters) { return tracer(parameters, *entry); }, where_);
  entry->num_results = program.graph.results().size();
  program.donated = donated_parameters(options_.donate, leaves, where_);
  program.parameter_names = paths.tensors;
  entry->graph = program.graph;
  entry->program = evaluator(where_).compile(std::move(program), where_);
  for (std::size_t i = 0; i < call.tensors.size(); ++i) {
    const Sharding* sharding = entry->program->parameter_sharding(i);
    entry->chosen.push_back(sharding ? std::optional(*sharding) : std::nullopt);
  }
  const JitEntry& made = *entry;
  add_entry(std::move(entry), call, paths);
  std::optional<Advice> advice;
  if (stats_.traces == kManyTraces) advice = advice_on_traces(options_.name, stats_, where_);
  lock.unlock();  // a handler may ask for the stats
  if (advice) advise(*std::move(advice));
  return made;
}

void JitCache::add_entry(std::unique_ptr<JitEntry> entry, const JitCall& call,
                         const JitPaths& paths) {
  if (!entries_.empty()) stats_.reasons.push_back(why_not(*entries_.back(), call, paths));
  ++stats_.traces;
  entries_.push_back(std::move(entry));
}

std::string JitCache::why_not(const JitEntry& entry, const JitCall& call,
                              const JitPaths& paths) const {
  if (entry.types != call.types) return "the arguments have other C++ types";
  if (entry.form != call.form || entry.argument_types.size() != call.tensors.size())
    return "the arguments have another structure";
  if (std::size_t i = entry.differing_static(call); i < entry.statics.size()) {
    auto text = call.statics[i].kind->text;
    return cat(paths.statics[i], " is ", text(call.statics[i].value), ", was ",
               text(entry.statics[i].get()));
  }
  for (std::size_t i = 0; i < call.tensors.size(); ++i) {
    const Value& value = call.tensors[i]->value();
    const std::string& path = paths.tensors[i];
    if (value.type() != entry.argument_types[i])
      return cat(path, " is ", value.type(), ", was ", entry.argument_types[i]);
    const Sharding* sharding = leaf_sharding(value);
    if (!same_sharding(entry.asked[i], sharding) && !same_sharding(entry.chosen[i], sharding))
      return cat(path, " is ", sharding_text(sharding), ", was ",
                 sharding_text(entry.asked[i] ? &*entry.asked[i] : nullptr));
  }
  return "no difference";
}

JitStats JitCache::stats() const {
  std::lock_guard lock(mutex_);
  for (; advised_ < entries_.size(); ++advised_)
    if (std::optional<RollingAdvice> advice = rolling_advice(entries_[advised_]->graph))
      stats_.rolling.push_back(std::move(*advice));
  return stats_;
}

std::vector<std::shared_ptr<CompiledProgram>> JitCache::programs() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<CompiledProgram>> programs;
  for (const auto& entry : entries_) programs.push_back(entry->program);
  return programs;
}

}  // namespace meshard::internal
