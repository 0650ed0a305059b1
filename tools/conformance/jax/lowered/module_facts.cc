#include "tools/conformance/jax/lowered/module_facts.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "meshard/base/cat.h"

namespace meshard::conformance {
namespace {

using Json = nlohmann::json;
constexpr auto kNowhere = std::string_view::npos;

// The text from `open` up to and including the matching closing bracket.
std::string_view bracketed(std::string_view text, std::size_t open) {
  static constexpr std::string_view kOpen = "([{<", kClose = ")]}>";
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '>' && i > 0 && text[i - 1] == '-') continue;  // an arrow
    if (kOpen.find(text[i]) != kNowhere) ++depth;
    if (kClose.find(text[i]) != kNowhere && --depth == 0) return text.substr(open, i + 1 - open);
  }
  return text.substr(open);
}

// The parts between commas that are not inside brackets.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    bool ends = i == list.size() || (list[i] == ',' && depth == 0);
    if (ends && i > begin) parts.push_back(list.substr(begin, i - begin));
    if (ends) begin = i + 1;
    if (i == list.size()) break;
    if (std::string_view("([{<").find(list[i]) != kNowhere) ++depth;
    if (std::string_view(")]}>").find(list[i]) != kNowhere) --depth;
  }
  return parts;
}

std::string_view between(std::string_view text, std::string_view begin, std::string_view end) {
  std::size_t from = text.find(begin);
  if (from == kNowhere) return {};
  from += begin.size();
  return text.substr(from, text.find(end, from) - from);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    for (std::size_t at = text.find("sdy.mesh @"); at != kNowhere;
         at = text.find("sdy.mesh @", at + 1)) {
      std::string_view rest = text.substr(at + 10);
      std::size_t open = rest.find('<');
      std::string name(rest.substr(0, rest.find(' ')));
      meshes_[name] = std::string(bracketed(rest, rest.find('[', open)));
    }
  }

  Json facts() const {
    Json facts = {{"partitions", partitions()}, {"arguments", Json::array()},
                  {"results", Json::array()},   {"constraints", constraints()},
                  {"manual", manual()},         {"ops", ops()}};
    std::size_t main = text_.find("@main(");
    std::string_view arguments = bracketed(text_, main + 5);
    for (std::string_view part : parts_of(arguments.substr(1, arguments.size() - 2)))
      facts["arguments"].push_back(boundary(part, true));
    std::size_t arrow = main + 5 + arguments.size() + 4;
    std::string_view results = text_.substr(arrow, text_.find('\n', arrow) - arrow);
    if (results.starts_with("(")) {
      results = bracketed(results, 0);
      results = results.substr(1, results.size() - 2);
    }
    for (std::string_view part : parts_of(results))
      if (part.find("tensor<") != kNowhere) facts["results"].push_back(boundary(part, false));
    settle_results(facts);
    settle_donation(facts);
    return facts;
  }

 private:
  // A constraint on the returned value, the end of a manual region, and the result's own attribute
  // are equivalent: all of them count as the result's attribute.
  void settle_results(Json& facts) const {
    std::string_view body = text_.substr(text_.find("@main("));
    body = body.substr(0, body.find("\n  }"));
    std::size_t end = body.rfind("return ");
    std::vector<std::string_view> returned =
        parts_of(body.substr(end + 7, body.find(" :", end) - end - 7));
    for (std::size_t i = 0; i < returned.size() && i < facts["results"].size(); ++i) {
      std::string_view name = returned[i].substr(returned[i].find('%'));
      std::size_t at = body.find(cat("\n    ", name, " = "));
      if (at == kNowhere) continue;
      std::string_view line = body.substr(at + 1, body.find('\n', at + 1) - at - 1);
      Json& result = facts["results"][i]["sharding"];
      if (line.find("sdy.sharding_constraint") != kNowhere) {
        std::string said = sharding(bracketed(line, line.find('<')));
        if (result.is_null()) result = said;
        Json& all = facts["constraints"];
        if (auto found = std::find(all.begin(), all.end(), Json(said)); found != all.end())
          all.erase(found);
      } else if (line.find("sdy.manual_computation") != kNowhere && result.is_null()) {
        result = shardings_between(line, line.find("out_shardings")).at(0);
      }
    }
  }

  // A donated argument is used only if a result has its type.
  static void settle_donation(Json& facts) {
    for (Json& argument : facts["arguments"]) {
      bool taken = false;
      for (const Json& result : facts["results"]) taken |= result["type"] == argument["type"];
      argument["donated"] = argument["donated"] == true && taken;
    }
  }

  std::int64_t partitions() const {
    return std::stoll(std::string(between(text_, "mhlo.num_partitions = ", " ")));
  }

  // Rewrites `<@mesh, [{"x"}, {}]>` as `["x"=2] [{"x"}, {}]`.
  std::string sharding(std::string_view text) const {
    std::string mesh(between(text, "@", ","));
    auto known = meshes_.find(mesh);
    std::string_view rest = text.substr(text.find(',') + 2);
    rest.remove_suffix(1);
    return cat(known == meshes_.end() ? mesh : known->second, " ", rest);
  }

  Json boundary(std::string_view part, bool is_argument) const {
    Json value = {{"type", std::string(between(part, "tensor<", ">"))}, {"sharding", nullptr}};
    std::size_t at = part.find("#sdy.sharding<");
    if (at != kNowhere) value["sharding"] = sharding(bracketed(part, at + 13));
    if (is_argument)
      value["donated"] =
          part.find("tf.aliasing_output") != kNowhere || part.find("jax.buffer_donor") != kNowhere;
    return value;
  }

  // A value that a constraint leaves unreduced is reduced by the next constraint, which gives its
  // sharding.
  Json constraints() const {
    std::vector<std::string> found;
    for (std::size_t at = text_.find("sdy.sharding_constraint "); at != kNowhere;
         at = text_.find("sdy.sharding_constraint ", at + 1)) {
      std::string_view of = bracketed(text_, text_.find('<', at));
      if (of.find("unreduced") == kNowhere) found.push_back(sharding(of));
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  Json shardings_between(std::string_view line, std::size_t from) const {
    std::size_t end = line.size();
    for (std::string_view word : {"in_shardings", "out_shardings", "manual_axes"})
      if (std::size_t next = line.find(word, from + 1); next != kNowhere) end = std::min(end, next);
    Json list = Json::array();
    for (std::size_t at = line.find("<@", from); at < end; at = line.find("<@", at + 1))
      list.push_back(sharding(bracketed(line, at)));
    return list;
  }

  Json manual() const {
    Json regions = Json::array();
    for (std::size_t at = text_.find("sdy.manual_computation"); at != kNowhere;
         at = text_.find("sdy.manual_computation", at + 1)) {
      std::string_view line = text_.substr(at, text_.find('\n', at) - at);
      std::size_t axes = line.find("manual_axes");
      std::string_view names = bracketed(line, line.find('{', axes));
      // Ignores operands that are computed inside main (ours: the device numbers); they are
      // internal to the region.
      Json in = Json::array(), all = shardings_between(line, line.find("in_shardings"));
      std::string_view given = bracketed(line, line.find('('));
      std::vector<std::string_view> operands = parts_of(given.substr(1, given.size() - 2));
      for (std::size_t i = 0; i < all.size() && i < operands.size(); ++i)
        if (operands[i].find("%arg") != kNowhere) in.push_back(all[i]);
      regions.push_back({{"in", in},
                         {"out", shardings_between(line, line.find("out_shardings"))},
                         {"axes", std::string(names)}});
    }
    return regions;
  }

  Json ops() const {
    static constexpr std::array kKinds{
        "dot_general",    "convolution",        "reduce", "all_reduce", "all_gather", "all_to_all",
        "reduce_scatter", "collective_permute", "sort",   "scatter",    "gather"};
    std::vector<std::string> found;
    for (const char* kind : kKinds) {
      std::string name = cat("stablehlo.", kind);
      for (std::size_t at = text_.find(name); at != kNowhere; at = text_.find(name, at + 1)) {
        char next = text_[at + name.size()];
        if (next == '<' || next == '_' || std::isalnum(static_cast<unsigned char>(next))) continue;
        std::string_view line = text_.substr(at, text_.find('\n', at) - at);
        std::string op = kind;
        for (std::string_view field :
             {"replica_groups = dense<", "source_target_pairs = dense<", "all_gather_dim = ",
              "scatter_dimension = ", "split_dimension = ", "concat_dimension = "})
          if (std::string_view value = between(line, field, ":"); !value.empty())
            op += cat(" ", field, value);
        found.push_back(op);
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  std::string_view text_;
  std::map<std::string, std::string> meshes_;
};

}  // namespace

Json module_facts(std::string_view text) { return Reader(text).facts(); }

}  // namespace meshard::conformance
