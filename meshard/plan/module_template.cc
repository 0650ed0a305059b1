#include "meshard/plan/module_template.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/name_pattern.h"
#include "meshard/mesh/shardy_text.h"
#include "meshard/plan/internal/bracketed_text.h"
#include "meshard/plan/internal/flow_ops.h"
#include "meshard/sharding/shardy_text.h"

namespace meshard {
namespace {

using internal::matching_end;
using internal::split_list;
using internal::tensor_type;
using internal::unescaped;

[[noreturn]] void fail_module(ErrorCode code, std::string message) {
  throw Error(code, cat("[plan] ", message));
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.size() < 10 && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c));
  });
}

std::size_t number_of(std::string_view digits) {
  std::size_t number = 0;
  for (char c : digits) number = number * 10 + static_cast<std::size_t>(c - '0');
  return number;
}

// The spec extended to the value's rank, so that it covers every dimension.
PartitionSpec whole_spec(const Sharding& sharding, const std::optional<TensorType>& type) {
  std::vector<DimensionSpec> dimensions = sharding.spec().dimensions();
  if (type && dimensions.size() < static_cast<std::size_t>(type->rank()))
    dimensions.resize(static_cast<std::size_t>(type->rank()));
  return PartitionSpec(std::move(dimensions));
}

// The name without its first part; empty if it has one part.
std::string_view name_tail(std::string_view name) {
  std::size_t at = name.find_first_of("[.");
  return at == std::string_view::npos || at == 0 ? std::string_view() : name.substr(at);
}

}  // namespace

// Finds the sites in the text. Throws; parse() converts errors to a Result.
class ModuleTemplateReader {
 public:
  explicit ModuleTemplateReader(std::string text) { out_.text_ = std::move(text); }

  ModuleTemplate read() {
    if (out_.text_.starts_with("ML\xefR"))
      fail_module(ErrorCode::kUnimplemented,
                  "the module is MLIR bytecode: its shardings can be replaced only in MLIR text");
    read_mesh();
    read_num_partitions();
    read_main();
    read_pins();
    return std::move(out_);
  }

 private:
  std::string_view text() const { return out_.text_; }

  // The first occurrence of `word` outside strings, from `from` on.
  std::size_t find(std::string_view word, std::size_t from) const {
    return internal::find_outside_strings(text(), word, from);
  }

  void read_mesh() {
    std::size_t at = find("sdy.mesh @", 0);
    bool found = false;
    for (; at != std::string_view::npos; at = find("sdy.mesh @", at + 1)) {
      std::size_t name = at + 10, equals = text().find(" = ", name);
      std::size_t bracket = equals == std::string_view::npos ? equals : equals + 3;
      if (bracket >= text().size() || text()[bracket] != '<')
        fail_module(ErrorCode::kDataLoss, cat("`sdy.mesh` at byte ", at, " has no axes"));
      std::size_t end = matching_end(text(), bracket);
      Mesh mesh = read_axes(text().substr(bracket, end - bracket));
      if (mesh.rank() == 0) continue;
      if (found) fail_module(ErrorCode::kUnimplemented, "the module has several meshes");
      found = true;
      out_.mesh_name_ = text().substr(name, equals - name);
      // The rest of the line repeats the sizes in another form.
      std::size_t line_end = std::min(text().find('\n', end), text().size());
      std::size_t loc = text().find(" loc(", end);
      out_.mesh_site_.range = {bracket, std::min(loc, line_end)};
      out_.axes_.assign(mesh.axes().begin(), mesh.axes().end());
    }
    if (!found) insert_mesh();
  }

  Mesh read_axes(std::string_view shown) const {
    // A Shardy mesh without axes has a single device.
    if (shown == "<[]>") return Mesh(std::vector<MeshAxis>{});
    return parse_shardy_mesh(shown).value();
  }

  // Inserts the mesh before the first function, which every module has.
  void insert_mesh() {
    std::size_t at = find("func.func", 0);
    if (at == std::string_view::npos)
      fail_module(ErrorCode::kDataLoss, "the module has no function");
    out_.mesh_site_ = {{at, at}, "sdy.mesh @mesh = ", "\n  "};
  }

  void read_num_partitions() {
    std::size_t at = find("mhlo.num_partitions = ", 0);
    if (at == std::string_view::npos) return;
    std::size_t begin = at + 22, end = begin;
    while (end < text().size() && std::isdigit(static_cast<unsigned char>(text()[end]))) ++end;
    out_.num_partitions_ = {begin, end};
  }

  void read_main() {
    std::size_t at = find("@main(", 0);
    std::size_t function = at == std::string_view::npos ? at : text().rfind("func.func", at);
    if (function == std::string_view::npos || at - function > 40)
      fail_module(ErrorCode::kDataLoss, "the module has no function `func.func @main(`");
    std::size_t bracket = at + 5, end = matching_end(text(), bracket);
    for (const auto& [from, to] : split_list(text(), bracket + 1, end - 1)) read_argument(from, to);
    std::size_t arrow = internal::skip_blanks(text(), end);
    if (text().substr(arrow, 2) != "->") return;
    std::size_t list = internal::skip_blanks(text(), arrow + 2);
    if (list < text().size() && text()[list] == '(') {
      for (const auto& [from, to] : split_list(text(), list + 1, matching_end(text(), list) - 1))
        read_value(from, to, out_.results_, out_.result_sites_);
      return;
    }
    // One result without parentheses: it has no attributes, and none can be inserted.
    std::size_t type_end = text().find_first_of(" \n", list);
    out_.results_.push_back({.name = {},
                             .type = tensor_type(text().substr(list, type_end - list)),
                             .spec = {},
                             .aliased_result = {}});
    out_.result_sites_.push_back({{list, list}, "", ""});
  }

  void read_argument(std::size_t from, std::size_t to) {
    std::size_t colon = text().find(": ", from);
    if (colon == std::string_view::npos || colon >= to)
      fail_module(ErrorCode::kDataLoss, cat("expected an argument at byte ", from));
    read_value(colon + 2, to, out_.arguments_, out_.argument_sites_);
  }

  // Reads `TYPE {attributes} loc(...)`.
  void read_value(std::size_t from, std::size_t to, std::vector<TemplateValue>& values,
                  std::vector<ModuleTemplate::Site>& sites) {
    TemplateValue value;
    ModuleTemplate::Site site;
    std::size_t type_end = internal::type_end(text(), from, to);
    value.type = tensor_type(text().substr(from, type_end - from));
    site = {{type_end, type_end}, " {sdy.sharding = ", "}"};
    std::size_t next = internal::skip_blanks(text(), type_end);
    if (next < to && text()[next] == '{') {
      std::size_t end = matching_end(text(), next);
      bool empty = internal::skip_blanks(text(), next + 1) == end - 1;
      site = {{next + 1, next + 1}, "sdy.sharding = ", empty ? "" : ", "};
      for (const auto& [begin, stop] : split_list(text(), next + 1, end - 1))
        read_attribute(begin, stop, value, site);
      next = internal::skip_blanks(text(), end);
    }
    if (next < to && text().substr(next, 5) == "loc(\"") value.name = unescaped(text(), next + 4);
    values.push_back(std::move(value));
    sites.push_back(std::move(site));
  }

  void read_attribute(std::size_t from, std::size_t to, TemplateValue& value,
                      ModuleTemplate::Site& site) {
    std::size_t equals = text().find(" = ", from);
    if (equals == std::string_view::npos || equals >= to) return;
    std::string_view key = text().substr(from, equals - from);
    std::string_view what = text().substr(equals + 3, to - equals - 3);
    if (key == "sdy.sharding") {
      site = {{equals + 3, to}, "", ""};
      value.spec = read_spec(what, value);
    } else if (key == "tf.aliasing_output") {
      std::string_view digits = what.substr(0, what.find_first_not_of("0123456789"));
      if (is_digits(digits)) value.aliased_result = number_of(digits);
    } else if (key == "jax.arg_info" || key == "jax.result_info") {
      if (what.starts_with("\"")) value.name = unescaped(text(), equals + 3);
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

  void read_pins() {
    for (std::string_view word :
         {"replica_groups", "source_target_pairs", "stablehlo.partition_id"})
      if (find(word, 0) != std::string_view::npos)
        for (const MeshAxis& axis : out_.axes_) out_.pinned_[axis.name] = axis.size;
    for (std::size_t at = find("manual_axes={", 0); at != std::string_view::npos;
         at = find("manual_axes={", at + 1)) {
      std::size_t bracket = at + 12, end = matching_end(text(), bracket);
      std::string_view list = text().substr(bracket, end - bracket);
      for (const MeshAxis& axis : out_.axes_)
        if (list.find(cat("\"", axis.name, "\"")) != std::string_view::npos)
          out_.pinned_[axis.name] = axis.size;
    }
  }

  ModuleTemplate out_;
};

Result<ModuleTemplate> ModuleTemplate::parse(std::string text) {
  try {
    return ModuleTemplateReader(std::move(text)).read();
  } catch (const Error& error) {
    return error;
  }
}

Result<FreeArguments> ModuleTemplate::free(const std::vector<std::string>& patterns) const {
  std::vector<std::optional<PartitionSpec>> specs(arguments_.size());
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const std::optional<PartitionSpec>& spec = arguments_[i].spec;
    if (arguments_[i].type && spec &&
        std::any_of(spec->dimensions().begin(), spec->dimensions().end(),
                    [](const DimensionSpec& one) { return one.is_open(); }))
      specs[i] = spec;
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
          static_cast<std::size_t>(arguments_[i].type->rank()), DimensionSpec(open)));
    }
    if (!found)
      return Error(ErrorCode::kInvalidArgument,
                   cat("[plan] no argument matches `", pattern, "`; the number of arguments is ",
                       arguments_.size()));
  }
  FreeArguments out;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (!specs[i] || arguments_[i].type->rank() == 0) continue;
    std::string_view tail = name_tail(arguments_[i].name);
    std::size_t value = out.values.size();
    for (std::size_t v = 0; v < out.values.size() && !tail.empty(); ++v)
      if (name_tail(out.values[v].name) == tail && out.values[v].type == *arguments_[i].type &&
          out.values[v].spec == *specs[i])
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

bool ModuleTemplate::suits(const std::vector<MeshAxis>& axes, const FreeArguments& free) const {
  std::vector<bool> skipped(arguments_.size()), skipped_results(results_.size());
  for (const std::vector<std::size_t>& group : free.arguments)
    for (std::size_t i : group) {
      skipped[i] = true;
      if (arguments_[i].aliased_result && *arguments_[i].aliased_result < results_.size())
        skipped_results[*arguments_[i].aliased_result] = true;
    }
  auto all_divide = [&](const std::vector<TemplateValue>& values, const std::vector<bool>& skip) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!skip[i] && values[i].spec && values[i].type &&
          !divides(*values[i].spec, values[i].type->shape, axes))
        return false;
    return true;
  };
  return all_divide(arguments_, skipped) && all_divide(results_, skipped_results);
}

std::string ModuleTemplate::with(const PlanCandidate& candidate, const FreeArguments& free) const {
  Mesh mesh(candidate.axes);
  std::vector<std::pair<const Site*, std::string>> edits;
  edits.emplace_back(&mesh_site_, shardy_text(mesh));
  Site partitions;
  if (num_partitions_) {
    partitions.range = *num_partitions_;
    edits.emplace_back(&partitions, cat(mesh.size()));
  }
  for (std::size_t v = 0; v < free.values.size(); ++v)
    for (std::size_t i : free.arguments[v]) {
      auto rank = static_cast<std::size_t>(arguments_[i].type->rank());
      std::string text = shardy_text(Sharding(mesh, candidate.specs[v], rank), mesh_name_);
      edits.emplace_back(&argument_sites_[i], text);
      std::optional<std::size_t> result = arguments_[i].aliased_result;
      if (result && *result < results_.size() && results_[*result].type == arguments_[i].type &&
          !(result_sites_[*result].before.empty() && !results_[*result].spec))
        edits.emplace_back(&result_sites_[*result], std::move(text));
    }
  std::sort(edits.begin(), edits.end(), [](const auto& a, const auto& b) {
    return a.first->range.begin < b.first->range.begin;
  });
  std::string out;
  std::size_t done = 0;
  for (const auto& [site, text] : edits) {
    if (site->range.begin < done) continue;  // two arguments with the same result
    append(out, cat(std::string_view(text_).substr(done, site->range.begin - done), site->before,
                    text, site->after));
    done = site->range.end;
  }
  return out + text_.substr(done);
}

}  // namespace meshard
