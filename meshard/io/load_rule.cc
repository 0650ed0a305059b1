#include "meshard/io/load_rule.h"

#include <algorithm>
#include <set>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/near_names.h"
#include "meshard/io/internal/stored_view.h"

namespace meshard::io {
namespace {

using internal::StoredView;

std::function<Result<void>(const Box&, std::byte*)> reader_of(const StoredView& view) {
  return [view = std::make_shared<const StoredView>(view)](const Box& box, std::byte* destination) {
    return view->read_into(box, destination);
  };
}

using Captures = std::vector<std::string>;

// What each `*` of a pattern matches in a name, as short as possible; nothing if it does not match.
std::optional<Captures> captures_of(std::string_view pattern, std::string_view name) {
  Captures found;
  std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name ? std::optional(found) : std::nullopt;
  if (!name.starts_with(pattern.substr(0, star))) return {};
  name.remove_prefix(star);
  while (true) {
    pattern.remove_prefix(star + 1);
    star = pattern.find('*');
    if (star == std::string_view::npos) break;
    std::size_t at = name.find(pattern.substr(0, star));
    if (at == std::string_view::npos) return {};
    found.emplace_back(name.substr(0, at));
    name.remove_prefix(at + star);
  }
  if (!name.ends_with(pattern)) return {};
  found.emplace_back(name.substr(0, name.size() - pattern.size()));
  return found;
}

// The name that a text of a rule makes of the captures; nothing if it asks for one that there is
// not.
std::optional<std::string> name_of(std::string_view text, const Captures& captures) {
  std::string name;
  std::size_t next = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t number = next, end = i;
    if (text[i] == '{') {
      end = text.find('}', i);
      if (end == std::string_view::npos || end != i + 2 || text[i + 1] < '1' || text[i + 1] > '9')
        return {};
      number = static_cast<std::size_t>(text[i + 1] - '1');
    } else if (text[i] == '*') {
      ++next;
    } else {
      name += text[i];
      continue;
    }
    if (number >= captures.size()) return {};
    name += captures[number];
    i = end;
  }
  return name;
}

// Makes the tensors of rules, and collects what does not go together.
class RuleReader {
 public:
  RuleReader(const std::map<std::string, StoredTensor, std::less<>>& stored, LoadOptions options)
      : stored_(stored), options_(options) {
    for (const auto& each : stored) names_.push_back(each.first);
  }

  void apply(const LoadRule& rule) {
    if (rule.from.empty()) return add("a rule has no pattern in `from`");
    bool matches = false;
    for (const std::string& name : names_) {
      std::optional<Captures> captures = captures_of(rule.from[0], name);
      if (!captures) continue;
      matches = true;
      if (!taken_.contains(name)) make(rule, *captures);
    }
    if (!matches && options_.strict)
      add(cat("the pattern \"", rule.from[0], "\" matches no tensor, ",
              nearest_text(rule.from[0], names_)));
  }

  void finish() {
    std::string left;
    std::size_t count = 0;
    for (const std::string& name : names_)
      if (!taken_.contains(name)) left += cat(count++ ? ", \"" : "\"", name, '"');
    if (count > 0 && options_.strict)
      add(cat("no rule takes ", left, " (a rule with an empty `to` leaves tensors out)"));
  }

  const std::string& problems() const { return problems_; }
  std::map<std::string, StoredTensor, std::less<>> take() { return std::move(made_); }

 private:
  void add(const std::string& problem) { problems_ += cat(problems_.empty() ? "" : "; ", problem); }

  // Applies a rule to the captures of one match.
  void make(const LoadRule& rule, const Captures& captures) {
    std::vector<std::string> sources;
    for (const std::string& text : rule.from) {
      std::optional<std::string> name = name_of(text, captures);
      if (!name) return add(no_capture(text, captures));
      if (!stored_.contains(*name)) {
        taken_.insert(sources.begin(), sources.end());  // reported here, not as left over
        return add(cat("to join with \"", sources.empty() ? rule.from[0] : sources[0],
                       "\", there is no \"", *name, "\", ", nearest_text(*name, names_)));
      }
      if (taken_.contains(*name)) return add(cat("two rules take \"", *name, "\""));
      sources.push_back(*std::move(name));
    }
    taken_.insert(sources.begin(), sources.end());
    if (rule.to.empty()) return;
    std::vector<std::string> targets;
    for (const std::string& text : rule.to) {
      std::optional<std::string> name = name_of(text, captures);
      if (!name) return add(no_capture(text, captures));
      targets.push_back(*std::move(name));
    }
    std::vector<StoredTensor> tensors;
    for (const std::string& name : sources) tensors.push_back(stored_.find(name)->second);
    if (std::string problem = joined(rule, sources, std::move(tensors), targets); !problem.empty())
      add(problem);
  }

  static std::string no_capture(const std::string& text, const Captures& captures) {
    return cat("\"", text, "\" must name a part that `*` matched as * or {1}, and there ",
               captures.size() == 1 ? "is 1" : cat("are ", captures.size()));
  }

  // Makes the targets. @return what is wrong; empty if nothing is
  std::string joined(const LoadRule& rule, const std::vector<std::string>& names,
                     std::vector<StoredTensor> tensors, const std::vector<std::string>& targets) {
    const TensorType& first = tensors[0].type();
    int rank = first.shape.rank();
    StoredView view{.sources = {}, .order = rule.transpose, .part = {}, .dtype = first.dtype};
    if (view.order.empty())
      for (int d = 0; d < rank; ++d) view.order.push_back(d);
    std::set<std::int64_t> all(view.order.begin(), view.order.end());
    if (view.order.size() != static_cast<std::size_t>(rank) ||
        (rank > 0 &&
         (all.size() != view.order.size() || *all.begin() != 0 || *all.rbegin() != rank - 1)))
      return cat("\"", names[0], "\", ", first, ", cannot be transposed to the order (",
                 listed(rule.transpose), ")");
    if (std::string problem = converted(rule, names, tensors, view.dtype); !problem.empty())
      return problem;
    bool is_moved = names.size() > 1 || targets.size() > 1;
    view.groups = is_moved ? rule.groups : 1;
    view.dimension = rule.dimension < 0 ? rule.dimension + rank : rule.dimension;
    if (is_moved && (view.dimension < 0 || view.dimension >= rank || view.groups < 1))
      return cat("\"", names[0], "\", ", first, ", cannot be joined or split along dimension ",
                 rule.dimension, " in ", rule.groups, " groups");
    if (!is_moved) view.dimension = 0;
    std::int64_t group = 0;
    for (std::size_t k = 0; k < names.size(); ++k) {
      const Shape& shape = tensors[k].type().shape;
      for (int d = 0; d < rank; ++d)
        if (shape.rank() != rank || (d != view.order[static_cast<std::size_t>(view.dimension)] &&
                                     shape[d] != first.shape[d]))
          return cat("\"", names[0], "\", ", first, ", and \"", names[k], "\", ", tensors[k].type(),
                     ", cannot be joined along dimension ", rule.dimension);
      std::int64_t size =
          rank == 0 ? 1 : shape[view.order[static_cast<std::size_t>(view.dimension)]];
      if (size % view.groups != 0)
        return cat("dimension ", rule.dimension, " of \"", names[k], "\", ", tensors[k].type(),
                   " in the file, does not consist of ", view.groups, " groups");
      group += size / view.groups;
    }
    view.sources = std::move(tensors);
    return split(rule, names, std::move(view), group, targets);
  }

  // The dtype after the conversion. @return what is wrong
  std::string converted(const LoadRule& rule, const std::vector<std::string>& names,
                        const std::vector<StoredTensor>& tensors, DType& dtype) {
    for (std::size_t k = 0; k < names.size(); ++k) {
      const TensorType& type = tensors[k].type();
      if (!rule.dtype && type.dtype != dtype)
        return cat("\"", names[0], "\", ", tensors[0].type(), ", and \"", names[k], "\", ", type,
                   ", have different dtypes: give the rule a dtype");
      if (!rule.dtype || *rule.dtype == type.dtype) continue;
      for (const StoredTensor::Part& part : tensors[k].parts())
        if (const SafetensorsEntry* entry = part.file.find(part.name);
            entry && !entry->stored_dtype.empty())
          return cat("\"", names[k], "\" has the dtype ", entry->stored_dtype,
                     ", which is read as bytes and cannot be converted to ", *rule.dtype);
      if (is_complex(type.dtype) && !is_complex(*rule.dtype))
        return cat("\"", names[k], "\", ", type, ", is complex and cannot be converted to ",
                   *rule.dtype);
    }
    if (rule.dtype) dtype = *rule.dtype;
    return {};
  }

  std::string split(const LoadRule& rule, const std::vector<std::string>& names, StoredView view,
                    std::int64_t group, const std::vector<std::string>& targets) {
    auto count = static_cast<std::int64_t>(targets.size());
    Dimensions sizes = rule.sizes;
    if (sizes.empty() && group % count == 0) sizes = Dimensions(targets.size(), group / count);
    std::int64_t total = 0;
    for (std::int64_t size : sizes) total += size < 0 ? group + 1 : size;
    if (sizes.size() != targets.size() || total != group)
      return cat("\"", names[0], "\", ", view.sources[0].type(), ", has ", group,
                 view.groups > 1 ? " elements in each group" : " elements", " along dimension ",
                 rule.dimension, names.size() > 1 ? " after joining" : "",
                 ", which cannot be split into ", count, " parts",
                 rule.sizes.empty() ? "" : cat(" of the sizes (", listed(rule.sizes), ")"));
    const TensorType first = view.sources[0].type();
    std::int64_t begin = 0;
    for (std::size_t t = 0; t < targets.size(); begin += sizes[t], ++t) {
      Dimensions shape;
      for (std::int64_t d : view.order) shape.push_back(first.shape[d]);
      if (!shape.empty()) shape[static_cast<std::size_t>(view.dimension)] = sizes[t] * view.groups;
      TensorType type{view.dtype, Shape(std::move(shape))};
      view.part = {begin, begin + sizes[t]};
      bool is_renamed = names.size() == 1 && targets.size() == 1 && type == first &&
                        (rule.transpose.empty() || std::ranges::is_sorted(rule.transpose));
      StoredTensor made = is_renamed ? view.sources[0] : StoredTensor(type, reader_of(view));
      if (!made_.emplace(targets[t], std::move(made)).second)
        return cat("two tensors would have the name \"", targets[t], "\", one of them made of \"",
                   names[0], "\"");
    }
    return {};
  }

  static std::string listed(const Dimensions& numbers) {
    std::string text;
    for (std::int64_t number : numbers) text += cat(text.empty() ? "" : ", ", number);
    return text;
  }

  const std::map<std::string, StoredTensor, std::less<>>& stored_;
  LoadOptions options_;
  std::vector<std::string> names_;
  std::set<std::string> taken_;
  std::map<std::string, StoredTensor, std::less<>> made_;
  std::string problems_;
};

}  // namespace

Result<Weights> mapped(const Weights& weights, const std::vector<LoadRule>& rules,
                       LoadOptions options, SourceLocation where) {
  RuleReader reader(weights.tensors_, options);
  for (const LoadRule& rule : rules) reader.apply(rule);
  reader.finish();
  if (!reader.problems().empty())
    return Error(ErrorCode::kInvalidArgument,
                 cat("[io] the rules do not fit ", weights.path(), ": ", reader.problems()), where);
  Weights made = weights;
  made.tensors_ = reader.take();
  return made;
}

Result<std::map<std::string, Tensor>> load(const std::string& path,
                                           const std::vector<LoadRule>& rules,
                                           const std::vector<NamedSharding>& shardings,
                                           LoadOptions options, SourceLocation where) {
  Result<Weights> weights = Weights::open(path);
  if (weights) weights = mapped(*weights, rules, options, where);
  if (!weights) return weights.error().at(where);
  return weights->load(shardings, options, where);
}

}  // namespace meshard::io
