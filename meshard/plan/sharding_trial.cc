#include "meshard/plan/sharding_trial.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/near_names.h"
#include "meshard/target/compile_workers.h"

namespace meshard {
namespace {

Error invalid_trial(std::string message) {
  return Error(ErrorCode::kInvalidArgument, cat("[try] ", message));
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The spec in the notation of PartitionSpec::parse(): axes in quotation marks, several in braces.
std::string in_spec_notation(std::string_view text) {
  std::string out, closing;  // what closes the open parentheses
  for (std::size_t at = 0; at < text.size();) {
    char c = text[at];
    if (c == '"' || c == '\'') {
      std::size_t end = std::min(text.find(c, at + 1), text.size());
      append(out, "\"", text.substr(at + 1, end - at - 1), "\"");
      at = end + 1;
      continue;
    }
    if (is_word(c) && !std::isdigit(static_cast<unsigned char>(c))) {
      std::size_t end = at;
      while (end < text.size() && is_word(text[end])) ++end;
      std::string word(text.substr(at, end - at));
      if (word == "None") word = "none";
      bool is_plain = word == "none" || word == "unconstrained" || (closing.empty() && word == "P");
      append(out, is_plain ? word : cat("\"", word, "\""));
      at = end;
      continue;
    }
    // Parentheses after a colon are part of a sub-axis: `"x":(1)2`. Others in a spec are tuples.
    bool is_tuple = !closing.empty() && out.back() != ':';
    if (c == '(') {
      out += is_tuple ? '{' : '(';
      closing += is_tuple ? '}' : ')';
    } else if (c == ')' && !closing.empty()) {
      out += closing.back();
      closing.pop_back();
    } else if (c == '?') {
      append(out, "unconstrained");
    } else {
      out += c;
    }
    ++at;
  }
  // Python writes a tuple of one as `(x,)`.
  for (std::size_t at = out.find(",}"); at != std::string::npos; at = out.find(",}"))
    out.erase(at, 1);
  return out;
}

// The text of a change: a value, a colon, and a spec.
Result<ShardingTrial::Change> read_change(std::string_view text) {
  for (std::size_t at = text.find(':'); at != std::string_view::npos; at = text.find(':', at + 1)) {
    std::string_view spec = trimmed(text.substr(at + 1)), value = trimmed(text.substr(0, at));
    if (!spec.starts_with("P(") && !spec.starts_with("P (")) continue;
    if (value.empty()) break;
    Result<PartitionSpec> read = PartitionSpec::parse(in_spec_notation(spec));
    if (!read.ok())
      return invalid_trial(
          cat("`", spec, "` is not a spec such as P(data, none): ", read.error().message()));
    return ShardingTrial::Change{std::string(value), *std::move(read)};
  }
  return invalid_trial(cat("`", trimmed(text), "`: expected a value and a spec, such as ",
                           "w: P(data, none) or result 0: P(data)"));
}

std::optional<std::size_t> number_in(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  std::size_t number = 0;
  for (char c : text) {
    if (!std::isdigit(static_cast<unsigned char>(c))) return std::nullopt;
    number = number * 10 + static_cast<std::size_t>(c - '0');
  }
  return number;
}

// Applies the changes of a trial to the specs of a module. Throws; apply() converts errors.
class Application {
 public:
  Application(const ShardingTrial& trial, const ModuleTemplate& module)
      : trial_(trial), module_(module), specs_(module.given()) {
    axes_ = trial.axes.empty() ? module.axes() : trial.axes;
  }

  std::string run() {
    if (axes_.empty())
      throw invalid_trial("the module has no mesh: the trial must have the axes of one");
    check_pins();
    std::vector<bool> named_results(module_.results().size());
    for (const ShardingTrial::Change& change : trial_.changes) {
      if (change.value.starts_with("result ")) {
        std::size_t r = result_of(change.value);
        named_results[r] = true;
        set(cat("result ", r), module_.results()[r], change.spec, specs_.results[r]);
      } else {
        for (std::size_t i : arguments_of(change.value))
          set(title(i), module_.arguments()[i], change.spec, specs_.arguments[i]);
      }
    }
    carry_over(named_results);
    check_all();
    return trial_.axes.empty() ? module_.with(std::nullopt, specs_) : module_.with(axes_, specs_);
  }

 private:
  std::string title(std::size_t argument) const {
    const std::string& name = module_.arguments()[argument].name;
    return cat("argument ", argument, name.empty() ? "" : " ", name);
  }

  // The text depends on the sizes of some axes.
  void check_pins() const {
    for (const auto& [name, size] : module_.pinned()) {
      auto found = std::ranges::find_if(
          axes_, [&, wanted = name](const MeshAxis& axis) { return axis.name == wanted; });
      if (found == axes_.end() || found->size != size)
        throw invalid_trial(cat("axis `", name, "` must have size ", size,
                                ", as manual computations or device groups of the module require; ",
                                "the mesh is ", axes_text(axes_)));
    }
  }

  std::size_t result_of(const std::string& value) const {
    std::optional<std::size_t> number = number_in(trimmed(std::string_view(value).substr(7)));
    if (!number || *number >= module_.results().size())
      throw invalid_trial(
          cat("`", value, "`: the results have the numbers 0 to ", module_.results().size() - 1));
    return *number;
  }

  std::vector<std::size_t> arguments_of(const std::string& value) const {
    const std::vector<TemplateValue>& arguments = module_.arguments();
    std::optional<std::size_t> number = number_in(value);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (number ? *number == i : matches_name(value, arguments[i].name)) found.push_back(i);
    if (!found.empty()) return found;
    std::vector<std::string> names;
    for (const TemplateValue& argument : arguments)
      if (!argument.name.empty()) names.push_back(argument.name);
    std::string near = join(near_names(value, names), ", ");
    throw invalid_trial(cat("no argument matches `", value, "`; ",
                            near.empty() ? "the module does not name its arguments: use numbers"
                                         : cat("the nearest names are ", near),
                            "; the number of arguments is ", arguments.size()));
  }

  void set(const std::string& what, const TemplateValue& value, const PartitionSpec& spec,
           std::optional<PartitionSpec>& to) const {
    if (!value.type)
      throw invalid_trial(
          cat(what, " is not a tensor of static shape, and cannot have a sharding"));
    check(what, *value.type, spec);
    std::vector<DimensionSpec> dimensions = spec.dimensions();
    dimensions.resize(static_cast<std::size_t>(value.type->rank()));
    to = PartitionSpec(std::move(dimensions));
  }

  void check(const std::string& what, const TensorType& type, const PartitionSpec& spec) const {
    if (spec.size() > static_cast<std::size_t>(type.rank()))
      throw invalid_trial(cat(what, " ", type, ": ", spec, " has ", spec.size(), " entries for ",
                              type.rank(), " dimensions"));
    std::vector<std::string> used;
    for (std::size_t d = 0; d < spec.size(); ++d) {
      std::int64_t tiles = 1, size = type.shape[static_cast<std::int64_t>(d)];
      for (const AxisRef& axis : spec[d].axes()) {
        auto found = std::ranges::find(axes_, axis.name, &MeshAxis::name);
        if (found == axes_.end())
          throw invalid_trial(cat(what, " ", type, ": ", spec, " uses axis ", axis,
                                  ", but the mesh is ", axes_text(axes_)));
        if (axis.is_whole() && std::ranges::count(used, axis.name) > 0)
          throw invalid_trial(cat(what, " ", type, ": ", spec, " uses axis ", axis, " twice"));
        used.push_back(axis.name);
        tiles *= axis.is_whole() ? found->size : axis.size;
      }
      if (size % tiles != 0)
        throw invalid_trial(cat(what, " ", type, ": ", spec, " does not divide it: dimension ", d,
                                " of size ", size, " cannot be split into ", tiles,
                                " equal parts over the mesh ", axes_text(axes_)));
    }
  }

  // A result that was laid like its argument, or anyhow, stays so.
  void carry_over(const std::vector<bool>& named_results) {
    BoundarySpecs given = module_.given();
    for (std::size_t i = 0; i < module_.arguments().size(); ++i) {
      std::optional<std::size_t> r = module_.arguments()[i].next_result;
      if (!r || named_results[*r] || specs_.arguments[i] == given.arguments[i]) continue;
      bool follows = !given.results[*r] || given.results[*r] == given.arguments[i];
      if (follows && module_.takes_sharding(*r)) specs_.results[*r] = specs_.arguments[i];
    }
  }

  // Another mesh may not divide what has not been changed.
  void check_all() const {
    for (std::size_t i = 0; i < specs_.arguments.size(); ++i)
      if (specs_.arguments[i] && module_.arguments()[i].type)
        check(title(i), *module_.arguments()[i].type, *specs_.arguments[i]);
    for (std::size_t r = 0; r < specs_.results.size(); ++r)
      if (specs_.results[r] && module_.results()[r].type)
        check(cat("result ", r), *module_.results()[r].type, *specs_.results[r]);
  }

  const ShardingTrial& trial_;
  const ModuleTemplate& module_;
  std::vector<MeshAxis> axes_;
  BoundarySpecs specs_;
};

}  // namespace

Result<ShardingTrial> ShardingTrial::parse(std::string_view text) {
  ShardingTrial trial;
  while (true) {
    std::size_t end = text.find(';');
    if (!trimmed(text.substr(0, end)).empty()) {
      MESHARD_ASSIGN_OR_RETURN(Change change, read_change(text.substr(0, end)));
      trial.changes.push_back(std::move(change));
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  if (trial.changes.empty())
    return invalid_trial("expected a value and a spec, such as w: P(data, none)");
  return trial;
}

std::string ShardingTrial::to_string() const {
  std::vector<std::string> parts;
  for (const Change& change : changes) parts.push_back(cat(change.value, ": ", change.spec));
  if (!axes.empty()) parts.push_back(cat("mesh ", axes_text(axes)));
  return join(parts, "; ");
}

Result<std::string> apply(const ShardingTrial& trial, const ModuleTemplate& module) {
  return caught([&] { return Application(trial, module).run(); });
}

TriedShardings try_shardings(std::string_view module, const Target& target,
                             const ShardingTrial& trial, const ExplainForOptions& options,
                             SourceLocation where) try {
  ModuleTemplate parsed = ModuleTemplate::parse(std::string(module), options.entry).value();
  std::string changed = apply(trial, parsed).value();
  ExplainForOptions shared = options;
  shared.entry.clear();  // the changed text has its entry
  if (!shared.compile.workers) shared.compile.workers = std::make_shared<CompileWorkers>();
  ProgramReport before = explain_module(parsed.module().text(), target, shared, where);
  ProgramReport after = explain_module(changed, target, shared, where);
  ReportDiff found = diff(before, after);
  return {std::move(before), std::move(after), std::move(found), std::move(changed)};
} catch (const Error& error) {
  throw error.at(where);
}

}  // namespace meshard
