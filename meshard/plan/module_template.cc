#include "meshard/plan/module_template.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/near_names.h"
#include "meshard/stablehlo/compiler_text.h"
#include "meshard/stablehlo/module_as_text.h"
#include "meshard/stablehlo/shardy_text.h"
#include "meshard/stablehlo/types.h"

namespace meshard {
namespace {

[[noreturn]] void fail_module(ErrorCode code, std::string message) {
  throw Error(code, cat("[plan] ", message));
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.size() < 10 && std::ranges::all_of(text, [](char c) {
    return std::isdigit(static_cast<unsigned char>(c));
  });
}

std::size_t number_of(std::string_view digits) {
  std::size_t number = 0;
  for (char c : digits) number = number * 10 + static_cast<std::size_t>(c - '0');
  return number;
}

// The axes as JAX repeats them for StableHLO: ` {stablehlo.mesh = {axes = [{name = "x", ...}]}}`.
std::string axes_again(const Mesh& mesh) {
  std::vector<std::string> axes;
  for (const MeshAxis& axis : mesh.axes())
    axes.push_back(cat("{name = \"", axis.name, "\", size = ", axis.size, " : i64}"));
  return cat(" {stablehlo.mesh = {axes = [", join(axes, ", "), "]}}");
}

// The spec extended to the value's rank, so that it covers every dimension.
PartitionSpec whole_spec(const Sharding& sharding, const std::optional<TensorType>& type) {
  std::vector<DimensionSpec> dimensions = sharding.spec().dimensions();
  if (type && dimensions.size() < static_cast<std::size_t>(type->rank()))
    dimensions.resize(static_cast<std::size_t>(type->rank()));
  return PartitionSpec(std::move(dimensions));
}

// Pairs arguments with results, each result once.
class Pairing {
 public:
  Pairing(std::vector<TemplateValue>& arguments, const std::vector<TemplateValue>& results)
      : arguments_(arguments), results_(results), taken_(results.size()) {}

  bool can(std::size_t argument, std::size_t result) const {
    return result < results_.size() && !taken_[result] && !arguments_[argument].next_result &&
           arguments_[argument].type && arguments_[argument].type == results_[result].type &&
           arguments_[argument].type->rank() > 0;
  }
  void pair(std::size_t argument, std::size_t result) {
    if (!can(argument, result)) return;
    arguments_[argument].next_result = result;
    taken_[result] = true;
  }

  void by_memory() {
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      if (arguments_[i].aliased_result) pair(i, *arguments_[i].aliased_result);
  }

  void by_name() {
    using Members = std::pair<std::vector<std::size_t>, std::vector<std::size_t>>;
    std::map<std::pair<std::string, std::string>, Members> named;
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      if (std::string_view tail = name_tail(arguments_[i].name); is_left(i) && !tail.empty())
        named[{std::string(tail), arguments_[i].type->to_string()}].first.push_back(i);
    for (std::size_t r = 0; r < results_.size(); ++r)
      if (!taken_[r] && results_[r].type)
        for (std::string_view tail : result_tails(results_[r].name))
          if (auto found = named.find({std::string(tail), results_[r].type->to_string()});
              found != named.end()) {
            found->second.second.push_back(r);
            break;
          }
    for (const auto& [name, members] : named)
      if (members.first.size() == members.second.size())
        for (std::size_t k = 0; k < members.first.size(); ++k)
          pair(members.first[k], members.second[k]);
  }

  void by_donation(const std::vector<bool>& donors) {
    for (std::size_t i = 0; i < arguments_.size() && i < donors.size(); ++i)
      for (std::size_t r = 0; donors[i] && r < results_.size() && is_left(i); ++r) pair(i, r);
  }

  void by_position() {
    for (std::size_t i = 0; i < arguments_.size() && i < results_.size(); ++i)
      if (!results_[i].spec) pair(i, i);
  }

 private:
  bool is_left(std::size_t argument) const {
    return arguments_[argument].type && !arguments_[argument].next_result;
  }

  // What may be the name of an argument after its first part: `[0]['w']` may be of the first
  // result, or of one result with these parts.
  static std::vector<std::string_view> result_tails(std::string_view name) {
    if (name.starts_with("result")) name.remove_prefix(6);
    if (name.empty() || (name[0] != '[' && name[0] != '.')) return {};
    std::vector<std::string_view> tails;
    std::size_t digits = name[0] == '[' ? name.find_first_not_of("0123456789", 1) : 0;
    if (digits > 1 && digits < name.size() && name[digits] == ']' && digits + 1 < name.size())
      tails.push_back(name.substr(digits + 1));
    tails.push_back(name);
    return tails;
  }

  std::vector<TemplateValue>& arguments_;
  const std::vector<TemplateValue>& results_;
  std::vector<bool> taken_;  // by result
};

}  // namespace

// Finds the sites in a module. Throws; parse() converts errors to a Result.
class ModuleTemplateReader {
 public:
  explicit ModuleTemplateReader(stablehlo::Module module) : out_(std::move(module)) {}

  ModuleTemplate read() {
    const stablehlo::ModuleFunction* main = out_.module_.function("main");
    if (out_.module_.functions().empty())
      fail_module(ErrorCode::kDataLoss, "the module has no function");
    if (!main || main->generic)
      fail_module(ErrorCode::kDataLoss,
                  "the module has no function `func.func @main(`: the generic form "
                  "`\"func.func\"()` cannot be planned");
    for_each_op(out_.module_.ops(), [&](const ModuleOp& op) {
      if (op.mnemonic == "sdy.mesh") read_mesh(op);
      if (op.mnemonic == "builtin.module") read_num_partitions(op);
    });
    if (!found_mesh_) insert_mesh();
    for (const ModuleBoundary& argument : main->arguments)
      read_value(argument, true, out_.arguments_, out_.argument_sites_);
    donors_.resize(out_.arguments_.size());
    for (const ModuleBoundary& result : main->results)
      read_value(result, main->results_take_attributes, out_.results_, out_.result_sites_);
    for_each_op(out_.module_.ops(), [&](const ModuleOp& op) { read_pins(op); });
    find_next_results(out_.arguments_, donors_, out_.results_);
    std::string rest = text_without_sites();
    for (const MeshAxis& axis : out_.axes_)
      if (rest.find(cat("\"", axis.name, "\"")) != std::string::npos)
        out_.fixed_names_.push_back(axis.name);
    return std::move(out_);
  }

 private:
  using ModuleOp = stablehlo::ModuleOp;
  using ModuleBoundary = stablehlo::ModuleBoundary;
  using Range = stablehlo::TextRange;

  Range range(std::string_view part) const { return out_.module_.range(part); }

  void read_mesh(const ModuleOp& op) {
    std::string_view shown = stablehlo::find_attribute(op.attributes, "");
    if (!shown.starts_with('<'))
      fail_module(ErrorCode::kDataLoss,
                  cat("`sdy.mesh` at byte ", range(op.text).begin, " has no axes"));
    // A Shardy mesh without axes has a single device.
    if (shown == "<[]>") return;
    Mesh mesh = parse_shardy_mesh(shown).value();
    if (found_mesh_ && mesh != *found_mesh_)
      fail_module(ErrorCode::kUnimplemented,
                  cat("the module has meshes that differ, @", out_.mesh_name_, " ",
                      shardy_text(*found_mesh_), " and @", op.symbol, " ", shown,
                      ": only a module with one mesh can be planned"));
    // What follows the axes repeats the sizes in another form.
    Range whole = {range(shown).begin, range(op.text_before_location()).end};
    std::string_view rest = out_.module_.text().substr(whole.begin, whole.end - whole.begin);
    bool repeats = rest.find("stablehlo.mesh") != std::string_view::npos;
    out_.mesh_sites_.push_back({whole, "", "", repeats});
    if (found_mesh_) return;
    found_mesh_ = mesh;
    out_.orders_devices_ =
        mesh != Mesh(std::vector<MeshAxis>(mesh.axes().begin(), mesh.axes().end()));
    out_.mesh_name_ = op.symbol;
    out_.axes_.assign(mesh.axes().begin(), mesh.axes().end());
  }

  // Inserts the mesh before the first function, which every module has.
  void insert_mesh() {
    std::size_t at = range(out_.module_.functions()[0].op->text).begin;
    out_.mesh_sites_ = {{{at, at}, "sdy.mesh @mesh = ", "\n  "}};
  }

  void read_num_partitions(const ModuleOp& op) {
    std::string_view count = stablehlo::find_attribute(op.attributes, "mhlo.num_partitions");
    std::size_t digits = std::min(count.find_first_not_of("0123456789"), count.size());
    if (digits > 0) out_.num_partitions_ = range(count.substr(0, digits));
  }

  // Reads `TYPE {attributes} loc(...)`.
  void read_value(const ModuleBoundary& boundary, bool takes_attributes,
                  std::vector<TemplateValue>& values, std::vector<ModuleTemplate::Site>& sites) {
    TemplateValue value;
    donors_.push_back(!stablehlo::find_attribute(boundary.attributes, "jax.buffer_donor").empty());
    value.type = stablehlo::parse_type(boundary.type);
    std::size_t end = range(boundary.type).end;
    ModuleTemplate::Site site{{end, end}, " {sdy.sharding = ", "}"};
    if (!takes_attributes) site = {{end, end}, "", ""};
    if (!boundary.dictionary.empty()) {
      std::size_t inside = range(boundary.dictionary).begin + 1;
      site = {{inside, inside}, "sdy.sharding = ", boundary.attributes.empty() ? "" : ", "};
    }
    for (const stablehlo::ModuleAttribute& attribute : boundary.attributes)
      read_attribute(attribute, value, site);
    std::string name = out_.module_.location_name(boundary.location);
    if (!name.empty()) value.name = std::move(name);
    values.push_back(std::move(value));
    sites.push_back(std::move(site));
  }

  void read_attribute(const stablehlo::ModuleAttribute& attribute, TemplateValue& value,
                      ModuleTemplate::Site& site) {
    std::string_view text = attribute.value;
    if (attribute.name == "sdy.sharding") {
      site = {range(text), "", ""};
      value.spec = read_spec(out_.module_.resolve(text), value);
    } else if (attribute.name == "tf.aliasing_output") {
      std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
      if (is_digits(digits)) value.aliased_result = number_of(digits);
    } else if (attribute.name == "jax.arg_info" || attribute.name == "jax.result_info") {
      if (text.starts_with("\"")) value.name = stablehlo::plain_text(text);
    }
  }

  std::optional<PartitionSpec> read_spec(std::string_view shown, const TemplateValue& value) const {
    if (out_.axes_.empty()) return std::nullopt;
    Result<Sharding> sharding = parse_shardy_sharding(shown, Mesh(out_.axes_));
    if (!sharding.ok())
      fail_module(ErrorCode::kDataLoss,
                  cat("the sharding `", shown, "` cannot be read: ", sharding.error().message()));
    return whole_spec(*sharding, value.type);
  }

  std::string text_without_sites() const {
    std::vector<Range> sites;
    for (const auto* all : {&out_.mesh_sites_, &out_.argument_sites_, &out_.result_sites_})
      for (const ModuleTemplate::Site& site : *all) sites.push_back(site.range);
    std::ranges::sort(sites, {}, &Range::begin);
    std::string text;
    std::size_t done = 0;
    for (const Range& site : sites) {
      append(text, out_.module_.text().substr(done, site.begin - done));
      done = site.end;
    }
    append(text, out_.module_.text().substr(done));
    return text;
  }

  void read_pins(const ModuleOp& op) {
    bool lists_devices = op.mnemonic == "stablehlo.partition_id";
    std::string named(stablehlo::find_attribute(op.attributes, "manual_axes"));
    for (const stablehlo::ModuleAttribute& attribute : op.attributes) {
      if (attribute.name != "replica_groups" && attribute.name != "source_target_pairs") continue;
      // Groups along axes, as JAX 0.12 writes them, instead of numbers of devices.
      std::string_view groups = out_.module_.resolve(attribute.value);
      bool along_axes = groups.find("replica_group_mesh_axes") != std::string_view::npos;
      lists_devices = lists_devices || !along_axes;
      if (along_axes) append(named, groups);
    }
    for (const MeshAxis& axis : out_.axes_)
      if (lists_devices || named.find(cat("\"", axis.name, "\"")) != std::string::npos)
        out_.pinned_[axis.name] = axis.size;
  }

  ModuleTemplate out_;
  std::vector<bool> donors_;  // by argument
  std::optional<Mesh> found_mesh_;
};

Result<ModuleTemplate> ModuleTemplate::parse(std::string file, std::string_view entry) {
  MESHARD_ASSIGN_OR_RETURN(std::string text, stablehlo::program_as_text(file));
  MESHARD_ASSIGN_OR_RETURN(stablehlo::CompilerText made, stablehlo::text_for_compiler(text, entry));
  MESHARD_ASSIGN_OR_RETURN(stablehlo::Module module,
                           stablehlo::Module::parse(std::move(made.text)));
  return caught([&] { return ModuleTemplateReader(std::move(module)).read(); });
}

Result<FreeArguments> ModuleTemplate::free(const std::vector<std::string>& patterns) const {
  std::vector<std::optional<PartitionSpec>> specs(arguments_.size());
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const std::optional<PartitionSpec>& spec = arguments_[i].spec;
    if (arguments_[i].type && spec && is_open(*spec)) specs[i] = spec;
  }
  for (const std::string& pattern : patterns) {
    bool found = false;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      bool named =
          is_digits(pattern) ? number_of(pattern) == i : matches_name(pattern, arguments_[i].name);
      if (!named) continue;
      found = true;
      if (!arguments_[i].type)
        return Error(
            ErrorCode::kInvalidArgument,
            cat("[plan] argument ", i, " cannot be free: it is not a tensor of static shape"));
      specs[i] = PartitionSpec(std::vector<DimensionSpec>(
          static_cast<std::size_t>(arguments_[i].type->rank()), DimensionSpec(unconstrained)));
    }
    if (!found) {
      std::vector<std::string> names;
      for (const TemplateValue& argument : arguments_)
        if (!argument.name.empty()) names.push_back(argument.name);
      return Error(ErrorCode::kInvalidArgument,
                   cat("[plan] no argument matches `", pattern, "`; ", nearest_text(pattern, names),
                       "; the number of arguments is ", arguments_.size()));
    }
  }
  FreeArguments out;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (!specs[i] || arguments_[i].type->rank() == 0) continue;
    std::string_view tail = name_tail(arguments_[i].name);
    std::size_t value = out.values.size();
    for (std::size_t v = 0; v < out.values.size() && !tail.empty(); ++v)
      if (name_tail(out.values[v].name) == tail && out.values[v].type == *arguments_[i].type &&
          out.values[v].spec == *specs[i] &&
          arguments_[out.arguments[v][0]].spec == arguments_[i].spec)
        value = v;
    if (value == out.values.size()) {
      std::string name = arguments_[i].name.empty() ? cat("argument ", i) : arguments_[i].name;
      out.values.push_back({std::move(name), *arguments_[i].type, *specs[i]});
      out.arguments.emplace_back();
    }
    out.arguments[value].push_back(i);
  }
  return out;
}

BoundarySpecs ModuleTemplate::given() const {
  BoundarySpecs all;
  for (const TemplateValue& value : arguments_) all.arguments.push_back(value.spec);
  for (const TemplateValue& value : results_) all.results.push_back(value.spec);
  return all;
}

bool ModuleTemplate::suits(const std::vector<MeshAxis>& axes, const FreeArguments& free) const {
  std::vector<bool> skipped(arguments_.size()), skipped_results(results_.size());
  for (const std::vector<std::size_t>& group : free.arguments)
    for (std::size_t i : group) skipped[i] = true;
  for (const TemplateValue& argument : arguments_)
    if (argument.next_result) skipped_results[*argument.next_result] = true;
  auto all_divide = [&](const std::vector<TemplateValue>& values, const std::vector<bool>& skip) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!skip[i] && values[i].spec && values[i].type &&
          !divides(*values[i].spec, values[i].type->shape, axes))
        return false;
    return true;
  };
  return all_divide(arguments_, skipped) && all_divide(results_, skipped_results);
}

BoundarySpecs ModuleTemplate::specs(const PlanCandidate& candidate,
                                    const FreeArguments& free) const {
  BoundarySpecs all = given();
  for (std::size_t v = 0; v < free.values.size(); ++v)
    for (std::size_t i : free.arguments[v]) all.arguments[i] = candidate.specs[v];
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    std::optional<std::size_t> result = arguments_[i].next_result;
    if (result && all.arguments[i] && !is_open(*all.arguments[i]) && takes_sharding(*result))
      all.results[*result] = all.arguments[i];
  }
  return all;
}

std::optional<PlanCandidate> ModuleTemplate::as_given(const std::vector<std::string>& axes,
                                                      const FreeArguments& free) const {
  if (axes_.empty()) return std::nullopt;
  PlanCandidate given;
  for (const std::string& name : axes) {
    auto own = std::ranges::find(axes_, name, &MeshAxis::name);
    given.axes.push_back({.name = name, .size = own == axes_.end() ? 1 : own->size});
  }
  for (std::size_t v = 0; v < free.values.size(); ++v) {
    const TemplateValue& argument = arguments_[free.arguments[v][0]];
    given.specs.push_back(argument.spec ? *argument.spec
                                        : PartitionSpec(std::vector<DimensionSpec>(
                                              static_cast<std::size_t>(argument.type->rank()),
                                              DimensionSpec(unconstrained))));
  }
  return given;
}

bool ModuleTemplate::is_given(const PlanCandidate& candidate, const FreeArguments& free) const {
  // Axes of size 1 change nothing, but the order of the others must be the same.
  auto whole = [](const std::vector<MeshAxis>& axes) {
    std::vector<MeshAxis> out;
    std::ranges::copy_if(axes, std::back_inserter(out),
                         [](const MeshAxis& axis) { return axis.size > 1; });
    return out;
  };
  BoundarySpecs own = given(), made = specs(candidate, free);
  return !orders_devices_ && whole(candidate.axes) == whole(axes_) &&
         own.arguments == made.arguments && own.results == made.results &&
         std::ranges::none_of(own.arguments,
                              [](const auto& spec) { return spec && is_open(*spec); });
}

std::string ModuleTemplate::program_key(const PlanCandidate& candidate,
                                        const FreeArguments& free) const {
  std::map<std::string, std::string> numbers;  // by the name of an axis; empty for one of size 1
  std::string key;
  std::size_t count = 0;
  for (const MeshAxis& axis : candidate.axes) {
    numbers[axis.name] = axis.size > 1 ? cat(count++) : "";
    if (axis.size > 1) append(key, axis.size, ",");
  }
  // Names that the rest of the text uses stand for what they name there.
  for (const std::string& name : fixed_names_) append(key, name, "=", numbers[name], ",");
  BoundarySpecs all = specs(candidate, free);
  for (const auto* side : {&all.arguments, &all.results})
    for (const std::optional<PartitionSpec>& spec : *side) {
      append(key, spec ? ";" : ";none");
      for (std::size_t d = 0; spec && d < spec->size(); ++d) {
        const DimensionSpec& dimension = (*spec)[d];
        append(key, dimension.is_open() ? "|?" : "|");
        for (const AxisRef& axis : dimension.axes())
          if (const std::string& number = numbers[axis.name]; !number.empty())
            append(key, axis.is_whole() ? cat(number, " ")
                                        : cat(number, ":", axis.pre_size, ":", axis.size, " "));
      }
    }
  return key;
}

std::string ModuleTemplate::with(const PlanCandidate& candidate, const FreeArguments& free) const {
  return with(candidate.axes, specs(candidate, free));
}

std::string ModuleTemplate::with(const std::optional<std::vector<MeshAxis>>& axes,
                                 const BoundarySpecs& specs) const {
  Mesh mesh(axes ? *axes : axes_);
  std::vector<std::pair<Site, std::string>> edits;
  if (axes) {
    for (const Site& site : mesh_sites_)
      edits.emplace_back(site, cat(shardy_text(mesh), site.repeats_axes ? axes_again(mesh) : ""));
    if (num_partitions_) edits.emplace_back(Site{*num_partitions_, "", ""}, cat(mesh.size()));
  }
  auto add = [&](const TemplateValue& value, const Site& site, const PartitionSpec& spec) {
    auto rank = static_cast<std::size_t>(value.type->rank());
    edits.emplace_back(site, shardy_text(Sharding(mesh, spec, rank), mesh_name_));
  };
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    if (specs.arguments[i] && specs.arguments[i] != arguments_[i].spec)
      add(arguments_[i], argument_sites_[i], *specs.arguments[i]);
  for (std::size_t r = 0; r < results_.size(); ++r) {
    if (!specs.results[r] || specs.results[r] == results_[r].spec) continue;
    if (!takes_sharding(r))
      throw_invalid({}, "[plan] result ", r,
                    " is written without parentheses in the module, and cannot have a sharding");
    add(results_[r], result_sites_[r], *specs.results[r]);
  }
  std::ranges::stable_sort(edits, [](const auto& a, const auto& b) {
    return a.first.range.begin < b.first.range.begin;
  });
  std::string out;
  std::size_t done = 0;
  for (const auto& [site, text] : edits) {
    append(out, module_.text().substr(done, site.range.begin - done), site.before, text,
           site.after);
    done = site.range.end;
  }
  append(out, module_.text().substr(done));
  return out;
}

std::string_view name_tail(std::string_view name) {
  std::size_t at = name.find_first_of("[.");
  return at == std::string_view::npos || at == 0 ? std::string_view() : name.substr(at);
}

void find_next_results(std::vector<TemplateValue>& arguments, const std::vector<bool>& donors,
                       const std::vector<TemplateValue>& results) {
  Pairing pairing(arguments, results);
  pairing.by_memory();
  pairing.by_name();
  pairing.by_donation(donors);
  pairing.by_position();
}

}  // namespace meshard
