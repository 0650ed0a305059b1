#include "meshard/trace/internal/jit_cache.h"

#include <algorithm>
#include <functional>

#include "meshard/base/stall_report.h"
#include "meshard/graph/leaf.h"
#include "meshard/trace/trace_function.h"

namespace meshard::internal {
namespace {

bool same_sharding(const std::optional<Sharding>& known, const Sharding* given) {
  return given ? known && *known == *given : !known;
}

// From this number of traces on, retracing is not considered warm-up.
constexpr std::uint64_t kManyTraces = 8;

constexpr std::size_t kMostReasons = 100, kMostDifferences = 20;

Advice advice_on_traces(const std::string& name, const JitStats& stats, SourceLocation where) {
  return {
      "jit.traces",
      cat("[jit] the function \"", name, "\" jitted here was traced and compiled ", stats.traces,
          " times, the last time because ", stats.reasons.back(),
          ". Pass what varies as a Tensor or as a separate number argument: a Static, and a number "
          "inside a structure, are constants of the program"),
      where};
}

// The type of a number as the function sees it; it is passed in the widest dtype of its kind.
TensorType seen_type(const TensorType& type, bool is_number) {
  if (!is_number || type.dtype == DType::bool_) return type;
  return {type.dtype == DType::f64 ? DType::f32 : DType::i32, type.shape};
}

std::string sharding_text(const Sharding* sharding) {
  return sharding ? cat("sharded ", *sharding) : std::string("not sharded");
}

}  // namespace

bool JitEntry::has_form_of(const JitCall& call) const {
  return types == call.types && form == call.form && argument_types.size() == call.tensors.size() &&
         statics.size() == call.statics.size();
}

std::vector<std::string> JitEntry::differences(const JitCall& call, const JitPaths& paths) const {
  if (types != call.types) return {"the C++ types of the arguments changed"};
  if (!has_form_of(call)) return {"the structure of the arguments changed"};
  std::vector<std::string> all;
  for (std::size_t i = 0; i < statics.size(); ++i) {
    const StaticValue& given = call.statics[i];
    if (!given.kind->equal(statics[i].get(), given.value))
      all.push_back(cat(paths.statics[i], " is ", given.kind->text(given.value), ", was ",
                        given.kind->text(statics[i].get())));
  }
  for (std::size_t i = 0; i < call.tensors.size(); ++i) {
    const Value& value = call.tensors[i]->value();
    const Sharding* sharding = leaf_sharding(value);
    if (value.type() != argument_types[i]) {
      bool is_number =
          std::find(paths.numbers.begin(), paths.numbers.end(), i) != paths.numbers.end();
      all.push_back(cat(paths.tensors[i], " is ", seen_type(value.type(), is_number), ", was ",
                        seen_type(argument_types[i], is_number)));
    } else if (!same_sharding(asked[i], sharding) && !same_sharding(chosen[i], sharding)) {
      all.push_back(cat(paths.tensors[i], " is ", sharding_text(sharding), ", was ",
                        sharding_text(asked[i] ? &*asked[i] : nullptr)));
    }
  }
  return all;
}

bool JitEntry::matches(const JitCall& call) const {
  if (types != call.types || argument_types.size() != call.tensors.size()) return false;
  for (std::size_t i = 0; i < argument_types.size(); ++i) {
    const Value& value = call.tensors[i]->value();
    // The argument of the last call again, or a result that is passed back as an argument.
    const ShardedType* stored = stored_type(value);
    if (stored && matched[i] && stored->is_copy_of(*matched[i])) continue;
    if (value.type() != argument_types[i]) return false;
    const Sharding* sharding = leaf_sharding(value);
    if (!same_sharding(chosen[i], sharding) && !same_sharding(asked[i], sharding)) return false;
    if (stored) matched[i] = *stored;
  }
  if (form != call.form || statics.size() != call.statics.size()) return false;
  for (std::size_t i = 0; i < statics.size(); ++i)
    if (!call.statics[i].kind->equal(statics[i].get(), call.statics[i].value)) return false;
  return true;
}

JitCache::JitCache(JitOptions options, SourceLocation where)
    : options_(std::move(options)),
      where_(where),
      entries_(std::max<std::size_t>(1, options_.most_programs)) {}

std::shared_ptr<const JitEntry> JitCache::find(const JitCall& call) {
  return entries_.find([&] { return call.hash(); },
                       [&](const JitEntry& entry) { return entry.matches(call); });
}

std::shared_ptr<JitEntry> JitCache::signature_of(const JitCall& call) const {
  auto entry = std::make_shared<JitEntry>();
  entry->types = call.types;
  entry->form = call.form;
  for (const StaticValue& each : call.statics)
    entry->statics.push_back(each.kind->keep(each.value));
  for (const Tensor* argument : call.tensors) {
    const Sharding* sharding = leaf_sharding(argument->value());
    entry->argument_types.push_back(argument->value().type());
    entry->asked.push_back(sharding ? std::optional(*sharding) : std::nullopt);
  }
  entry->chosen = entry->asked;
  entry->matched.resize(call.tensors.size());
  return entry;
}

Graph JitCache::recorded(const JitCall& call, const JitFunction& function,
                         std::shared_ptr<const void>& prototype) const {
  return trace_function(
      std::span<const Tensor* const>(call.tensors.data(), call.tensors.size()),
      [&](std::span<const Tensor> parameters) { return function.trace(parameters, prototype); },
      where_);
}

void JitCache::record_again(const JitCall& call, const JitFunction& function) const {
  std::shared_ptr<const void> unused;
  static_cast<void>(recorded(call, function, unused));
}

void JitCache::make(JitEntry& entry, const JitCall& call, const JitPaths& paths,
                    const JitFunction& function) const {
  Program program;
  program.name = options_.name;
  program.keep_on_disk = options_.keep_on_disk;
  program.graph = recorded(call, function, entry.prototype);
  entry.num_results = program.graph.results().size();
  program.donated = donated_parameters(options_.donate, paths.leaves, where_);
  program.parameter_names = paths.tensors;
  entry.program = evaluator(where_).compile(std::move(program), where_);
  for (std::size_t i = 0; i < call.tensors.size(); ++i) {
    const Sharding* sharding = entry.program->parameter_sharding(i);
    entry.chosen[i] = sharding ? std::optional(*sharding) : std::nullopt;
    if (const ShardedType* type = entry.program->parameter_type(i)) entry.matched[i] = *type;
  }
}

std::shared_ptr<const JitEntry> JitCache::find_or_trace(const JitCall& call,
                                                        const JitFunction& function) {
  WaitPlace place(where_);
  JitPaths paths;
  function.describe(paths);
  std::optional<Advice> advice;
  std::shared_ptr<const JitEntry> signature = signature_of(call);
  std::shared_ptr<const JitEntry> found = entries_.find_or_make(
      call.hash(), [&](const JitEntry& entry) { return entry.matches(call); }, signature,
      [&] {
        auto entry = std::make_shared<JitEntry>(*signature);
        make(*entry, call, paths, function);
        advice = count_trace(entry, call, paths);
        return entry;
      },
      SingleFlight<JitEntry>::Waits{
          [&] { return cat("another thread to trace and compile \"", options_.name, "\""); },
          [&] {
            throw Error(ErrorCode::kFailedPrecondition,
                        cat("[jit] the function \"", options_.name,
                            "\" jitted here calls itself with the same types while it is traced"),
                        where_);
          }});
  if (advice) advise(*std::move(advice));  // without a lock: a handler may call stats()
  return found;
}

std::optional<Advice> JitCache::count_trace(std::shared_ptr<const JitEntry> entry,
                                            const JitCall& call, const JitPaths& paths) {
  std::lock_guard lock(stats_mutex_);
  if (newest_) stats_.reasons.push_back(why_not(call, paths));
  if (stats_.reasons.size() > kMostReasons) stats_.reasons.erase(stats_.reasons.begin());
  newest_ = std::move(entry);
  if (++stats_.traces != kManyTraces) return std::nullopt;
  return advice_on_traces(options_.name, stats_, where_);
}

std::string JitCache::why_not(const JitCall& call, const JitPaths& paths) const {
  // The newest one may have left the cache. Among equally near ones, the newest counts.
  std::vector<std::string> nearest = newest_->differences(call, paths);
  bool comparable = newest_->has_form_of(call);
  entries_.for_each_oldest_first([&](std::uint64_t, const auto& entry) {
    if (entry == newest_ || (comparable && !entry->has_form_of(call))) return;
    std::vector<std::string> other = entry->differences(call, paths);
    const bool is_nearer =
        (!comparable && entry->has_form_of(call)) || other.size() < nearest.size();
    if (!is_nearer || other.empty()) return;
    nearest = std::move(other);
    comparable = entry->has_form_of(call);
  });
  if (nearest.empty()) return "no difference";
  const std::size_t left = nearest.size() - std::min(nearest.size(), kMostDifferences);
  nearest.resize(nearest.size() - left);
  return cat(join(nearest, "; "), left > 0 ? cat("; and ", left, " more") : "");
}

JitStats JitCache::stats() const {
  std::lock_guard lock(stats_mutex_);
  stats_.calls = entries_.num_finds();
  entries_.for_each_oldest_first([&](std::uint64_t number, const auto& entry) {
    if (number < advised_) return;
    const Graph& graph = entry->program->source().graph;
    if (std::optional<RollingAdvice> advice = rolling_advice(graph))
      stats_.rolling.push_back(*advice);
    for (const UnrolledLayers& layers : graph.unrolled_layers()) stats_.unrolled.push_back(layers);
    advised_ = number + 1;
  });
  return stats_;
}

std::vector<std::shared_ptr<CompiledProgram>> JitCache::programs() const {
  std::vector<std::shared_ptr<CompiledProgram>> programs;
  entries_.for_each_oldest_first(
      [&](std::uint64_t, const auto& entry) { programs.push_back(entry->program); });
  return programs;
}

}  // namespace meshard::internal
