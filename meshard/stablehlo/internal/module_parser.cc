// Tested in meshard/stablehlo/module_test.cc.
#include "meshard/stablehlo/internal/module_parser.h"

#include <algorithm>

#include "meshard/base/cat.h"

namespace meshard::stablehlo {
namespace {

// Regions in regions. The limit keeps damaged text from exhausting the stack.
constexpr int kDeepestRegion = 200;

bool is_opening(char c) { return c == '(' || c == '[' || c == '{' || c == '<'; }

bool is_bare_name(std::string_view word) {
  return word == "return" || word == "call" || word == "module" || word == "func";
}

std::string full_mnemonic(std::string_view written) {
  if (written.starts_with('"')) return std::string(written.substr(1, written.size() - 2));
  if (written == "module") return "builtin.module";
  return is_bare_name(written) ? cat("func.", written) : std::string(written);
}

// The result types of a signature `(T, T) -> (T, T)`, `(T) -> T` or `T, T`.
std::vector<std::string_view> result_types(std::string_view signature) {
  std::vector<std::string_view> types;
  TextCursor cursor(signature);
  std::size_t from = 0;
  while (!cursor.at_end()) {
    if (is_opening(signature[cursor.position()]))
      cursor.balanced();
    else if (cursor.token() == "->")
      from = cursor.position();
  }
  cursor.jump(from);
  bool in_list = cursor.accept("(");
  while (!cursor.at_end() && !(in_list && cursor.peek(")"))) {
    types.push_back(cursor.value());
    if (!cursor.accept(",")) break;
  }
  return types;
}

class ModuleParser {
 public:
  explicit ModuleParser(Module::State& state)
      : state_(state), cursor_(state.text), results_left_(state.text.size()) {}

  void parse() {
    scopes_.emplace_back();
    read_ops(state_.ops, nullptr);
    std::size_t next = 0;
    for_each_op(state_.ops, [&](const ModuleOp& op) {
      if (next < state_.functions.size() && op.text.data() == function_texts_[next])
        state_.functions[next++].op = &op;
    });
  }

 private:
  using Scope = std::unordered_map<std::string_view, std::vector<int>>;
  // What is read of one op, and what its regions need.
  struct Draft {
    ModuleOp op;
    std::vector<std::string_view> result_names;
    std::vector<std::size_t> result_counts;
    std::vector<int> initial_values;                     // of a reduction, behind the inputs
    std::vector<std::pair<std::string_view, int>> same;  // region arguments and operands alike
    std::vector<std::pair<std::string_view, std::string_view>> arguments;  // with types
    std::string_view signature;
    std::size_t end = 0;
  };

  char next_char() { return state_.text[cursor_.position()]; }
  std::string_view from(std::size_t begin, std::size_t end) const {
    return std::string_view(state_.text).substr(begin, end - begin);
  }

  int define(std::string_view name, std::string_view type) {
    state_.variables.push_back({name, type});
    return static_cast<int>(state_.variables.size()) - 1;
  }

  // The variable that `%3` or `%3#1` refers to; -1 if it is not defined.
  int find_variable(std::string_view reference) const {
    std::size_t hash = reference.find('#');
    std::size_t index = 0;
    if (hash != std::string_view::npos)
      for (char c : reference.substr(hash + 1)) {
        if (c < '0' || c > '9' || index > 100000) return -1;
        index = index * 10 + static_cast<std::size_t>(c - '0');
      }
    std::string_view name = reference.substr(0, hash);
    for (std::size_t scope = scopes_.size(); scope-- > 0;)
      if (auto found = scopes_[scope].find(name); found != scopes_[scope].end())
        return index < found->second.size() ? found->second[index] : -1;
    return -1;
  }

  // Reads ops up to the end of the text, or up to the `}` of a region.
  void read_ops(std::vector<ModuleOp>& ops, ModuleRegion* region) {
    while (!cursor_.at_end()) {
      char c = next_char();
      if (c == '}') {
        if (region) return;
        cursor_.fail("unmatched `}`");
      } else if (cursor_.peek("{-#")) {
        skip_resources();
      } else if (c == '#') {
        read_alias();
      } else if (c == '^') {
        read_block_label(region);
      } else if (is_opening(c)) {
        cursor_.balanced();
      } else {
        ops.push_back(read_op());
      }
    }
    if (region) cursor_.fail("the region is not closed");
  }

  void skip_resources() {
    std::size_t end = state_.text.find("#-}", cursor_.position());
    if (end == std::string::npos) cursor_.fail("the resources do not close");
    cursor_.jump(end + 3);
  }

  // Reads `#loc3 = loc("name"(#loc1))`, which ends at the end of its line.
  void read_alias() {
    std::string_view name = cursor_.word();
    if (!cursor_.accept("=")) {
      if (name.empty()) cursor_.token();
      return;
    }
    std::size_t begin = cursor_.position();
    std::size_t end = std::min(state_.text.find('\n', begin), state_.text.size());
    state_.aliases.emplace(name, from(begin, end));
    cursor_.jump(end);
  }

  // Reads `^bb0(%arg0: T loc(...), ...):`.
  void read_block_label(ModuleRegion* region) {
    cursor_.word();
    if (cursor_.accept("(")) {
      while (!cursor_.accept(")")) {
        std::string_view name = cursor_.word();
        cursor_.expect(":");
        std::string_view type = read_type();
        std::string_view place = cursor_.peek("loc(") ? cursor_.value() : std::string_view();
        if (region) {
          declare(*region, name, type);
          region->argument_locations.push_back(place);
        }
        if (!cursor_.accept(",") && !cursor_.peek(")")) cursor_.fail("expected `,` or `)`");
      }
    }
    cursor_.accept(":");
  }

  ModuleOp read_op() {
    Draft draft;
    std::size_t begin = cursor_.position();
    if (cursor_.peek("%")) read_result_names(draft);
    std::string_view written = cursor_.peek_quoted() ? cursor_.token() : cursor_.word();
    if (written.empty()) cursor_.fail("expected an operation");
    draft.op.mnemonic = full_mnemonic(written);
    draft.end = cursor_.raw_position();
    bool quoted = written.starts_with('"'), generic = quoted && draft.op.mnemonic == "func.func";
    std::size_t function = state_.functions.size();
    if (draft.op.mnemonic == "func.func" && !quoted) read_signature(draft, begin);
    if (generic) {
      function_texts_.push_back(state_.text.data() + begin);
      state_.functions.push_back({.name = {}, .arguments = {}, .results = {}, .generic = true});
    }
    read_rest(draft);
    draft.op.text = from(begin, draft.end);
    if (generic) read_generic_function(draft.op, state_.functions[function]);
    finish(draft);
    return std::move(draft.op);
  }

  void read_result_names(Draft& draft) {
    do {
      draft.result_names.push_back(cursor_.word());
      std::size_t count = 1;
      if (cursor_.accept(":")) count = static_cast<std::size_t>(cursor_.integer());
      // The types of more results would not fit into the text.
      if (count > results_left_) cursor_.fail("expected fewer results");
      results_left_ -= count;
      draft.result_counts.push_back(count);
    } while (cursor_.accept(","));
    cursor_.expect("=");
  }

  // True if an op ends before the next token: it is on a new line, and begins an op.
  bool at_next_op(std::size_t end) {
    std::size_t next = cursor_.position();
    if (next == state_.text.size()) return true;
    if (from(end, next).find('\n') == std::string_view::npos) return false;
    char c = state_.text[next];
    if (c == '%' || c == '"' || c == '^' || c == '#') return true;
    std::string_view word = cursor_.word();
    cursor_.jump(next);
    return is_bare_name(word) || word.find('.') != std::string_view::npos;
  }

  void read_rest(Draft& draft) {
    bool wants_type = false;  // in the signature, behind a `:`, `,` or `->`
    std::size_t signature = 0;
    while (!at_next_op(draft.end)) {
      char c = next_char();
      if (c == '}') return;
      std::size_t begin = cursor_.position();
      if (cursor_.peek("loc(")) {
        cursor_.word();
        cursor_.balanced();
        draft.op.location = from(begin, cursor_.raw_position());
      } else if (c == ':' && signature == 0) {
        cursor_.token();
        signature = cursor_.position();
        wants_type = true;
      } else if (signature != 0 && wants_type) {
        wants_type = false;
        read_type();
        draft.signature = from(signature, cursor_.raw_position());
      } else if (signature != 0 && (c == ',' || cursor_.peek("->"))) {
        cursor_.token();
        wants_type = true;
      } else {
        read_head_part(draft);
      }
      draft.end = cursor_.raw_position();
    }
  }

  // Reads a part that is not in the signature: operands, attributes or regions.
  void read_head_part(Draft& draft) {
    char c = next_char();
    if (c == '(') {
      read_parentheses(draft);
    } else if (c == '{') {
      if (begins_region()) {
        read_region(draft);
      } else {
        add_attributes(draft, read_attributes(cursor_));
      }
    } else if (cursor_.peek("<{")) {
      cursor_.expect("<");
      add_attributes(draft, read_attributes(cursor_));
      cursor_.expect(">");
    } else if (c == '%') {
      draft.op.operands.push_back(find_variable(cursor_.word()));
    } else if (c == '@') {
      draft.op.symbol = read_symbol();
      cursor_.accept("=");
    } else if (c == '<' || c == '[') {
      draft.op.attributes.push_back({{}, read_value()});
    } else if (c == ')' || c == ']' || c == '>') {
      cursor_.fail(cat("unmatched `", c, "`"));
    } else {
      read_word(draft);
    }
  }

  void read_word(Draft& draft) {
    std::size_t before = cursor_.position();
    std::string_view word = cursor_.word();
    if (word == "attributes" && cursor_.peek("{")) {
      add_attributes(draft, read_attributes(cursor_));
    } else if (!word.empty() && cursor_.accept("=")) {
      draft.op.attributes.push_back({std::string(word), read_value()});
    } else if (word.empty() && !cursor_.peek_quoted()) {
      cursor_.token();  // a comma, or a character that says nothing
    } else {
      cursor_.jump(before);
      draft.op.attributes.push_back({{}, read_value()});
    }
  }

  static void add_attributes(Draft& draft, ModuleAttributes attributes) {
    for (ModuleAttribute& attribute : attributes)
      draft.op.attributes.push_back(std::move(attribute));
  }

  // Reads the value of an attribute of a pretty form: `[1] x [0]`, `dense<0>`, `[b, f]x[o,
  // i]->[b]`.
  std::string_view read_value() {
    std::size_t begin = cursor_.position();
    if (cursor_.at_end()) cursor_.fail("expected a value");
    if (is_opening(next_char())) {
      cursor_.balanced();
    } else {
      cursor_.token();
    }
    while (true) {
      std::size_t end = cursor_.raw_position();
      if (cursor_.peek("<")) {
        cursor_.balanced();
        continue;
      }
      bool continues = cursor_.accept_word("x") || cursor_.accept("->");
      if (continues && cursor_.peek("[")) {
        cursor_.balanced();
        continue;
      }
      cursor_.jump(end);
      return from(begin, end);
    }
  }

  // Reads `tensor<8xf32>`, `!stablehlo.token`, or the list of a signature.
  std::string_view read_type() {
    std::size_t begin = cursor_.position();
    if (cursor_.at_end() || cursor_.peek(",") || cursor_.peek(")") || cursor_.peek("{"))
      cursor_.fail("expected a type");
    if (!is_opening(next_char())) cursor_.token();
    std::size_t end = cursor_.raw_position();
    if (end == begin || cursor_.peek("<"))
      cursor_.balanced();
    else
      cursor_.jump(end);  // what follows may be on the next line, which is another op
    return from(begin, cursor_.raw_position());
  }

  std::string read_symbol() {
    std::string_view word = cursor_.word();
    word.remove_prefix(1);
    return word.empty() && cursor_.peek_quoted() ? cursor_.quoted() : std::string(word);
  }

  // Reads operands `(%0, %1)`, `(%0 init: %1)` or `(%iterArg = %0)`, the arguments `(%arg0: T)` of
  // the regions that follow, or regions `({...}, {...})`.
  void read_parentheses(Draft& draft) {
    cursor_.expect("(");
    if (cursor_.peek("{")) {
      do {
        read_region(draft);
      } while (cursor_.accept(","));
      cursor_.expect(")");
      return;
    }
    bool initial = false;
    while (!cursor_.accept(")")) {
      if (cursor_.at_end()) cursor_.fail("`(` is not closed");
      char c = next_char();
      if (c == '%') {
        read_operand(draft, initial);
      } else if (is_opening(c)) {
        cursor_.balanced();
      } else if (c == ']' || c == '}' || c == '>') {
        cursor_.fail(cat("unmatched `", c, "`"));
      } else if (cursor_.token() == "init") {
        initial = true;
      }
    }
  }

  void read_operand(Draft& draft, bool initial) {
    std::string_view name = cursor_.word();
    if (cursor_.accept("=")) {
      int operand = find_variable(cursor_.word());
      draft.op.operands.push_back(operand);
      draft.same.emplace_back(name, operand);
    } else if (cursor_.accept(":")) {
      draft.arguments.emplace_back(name, read_type());
    } else {
      (initial ? draft.initial_values : draft.op.operands).push_back(find_variable(name));
    }
  }

  // Whether the `{` that comes next begins a region rather than a dictionary.
  bool begins_region() {
    std::size_t before = cursor_.position();
    cursor_.expect("{");
    bool region = false;
    if (cursor_.at_end() || cursor_.peek("%") || cursor_.peek("^") || cursor_.peek("#") ||
        cursor_.peek("}")) {
      region = true;
    } else {
      if (cursor_.peek_quoted()) {
        cursor_.token();
      } else {
        cursor_.word();
      }
      region = !cursor_.at_end() && !cursor_.peek("=") && !cursor_.peek(",") && !cursor_.peek("}");
      // `{a}` is a dictionary; `{ return }` is not.
      if (cursor_.peek("}")) {
        cursor_.jump(before + 1);
        std::string_view word = cursor_.word();
        region = is_bare_name(word) || word.ends_with(".return");
      }
    }
    cursor_.jump(before);
    return region;
  }

  void read_region(Draft& draft) {
    if (scopes_.size() > kDeepestRegion) cursor_.fail("regions are nested too deeply");
    ModuleRegion region;
    std::size_t begin = cursor_.position();
    cursor_.expect("{");
    scopes_.emplace_back();
    for (const auto& [name, operand] : draft.same)
      declare(region, name,
              operand < 0 ? std::string_view()
                          : state_.variables[static_cast<std::size_t>(operand)].type);
    for (const auto& [name, type] : draft.arguments) declare(region, name, type);
    read_ops(region.ops, &region);
    cursor_.expect("}");
    scopes_.pop_back();
    region.text = from(begin, cursor_.raw_position());
    draft.op.regions.push_back(std::move(region));
  }

  void declare(ModuleRegion& region, std::string_view name, std::string_view type) {
    region.arguments.push_back(define(name, type));
    scopes_.back()[name] = {region.arguments.back()};
  }

  void finish(Draft& draft) {
    ModuleOp& op = draft.op;
    op.operands.insert(op.operands.end(), draft.initial_values.begin(), draft.initial_values.end());
    if (draft.result_names.empty()) return;
    std::vector<std::string_view> types = result_types(draft.signature);
    std::size_t count = 0;
    for (std::size_t each : draft.result_counts) count += each;
    // If more types than results are listed (`pred, T`), the results have the last ones.
    std::size_t skipped = types.size() > count ? types.size() - count : 0;
    for (std::size_t n = 0; n < draft.result_names.size(); ++n) {
      std::vector<int>& made = scopes_.back()[draft.result_names[n]];
      made.clear();
      for (std::size_t i = 0; i < draft.result_counts[n]; ++i) {
        std::size_t place = skipped + op.results.size();
        made.push_back(define(draft.result_names[n],
                              place < types.size() ? types[place] : std::string_view()));
        op.results.push_back(made.back());
      }
    }
  }

  // Reads `public @main(%arg0: T {...} loc(...), ...) -> (T {...})`.
  void read_signature(Draft& draft, std::size_t begin) {
    std::size_t before = cursor_.position();
    std::string_view word = cursor_.word();
    ModuleFunction function;
    while (word == "public" || word == "private" || word == "nested") {
      function.is_private = word != "public";
      before = cursor_.position();
      word = cursor_.word();
    }
    cursor_.jump(before);
    if (!word.starts_with('@')) return;  // not a function
    function.name = draft.op.symbol = read_symbol();
    cursor_.expect("(");
    while (!cursor_.accept(")")) {
      if (cursor_.at_end()) cursor_.fail("`(` is not closed");
      std::string_view name;
      if (cursor_.peek("%")) {
        name = cursor_.word();
        cursor_.expect(":");
      }
      function.arguments.push_back(read_boundary());
      draft.arguments.emplace_back(name, function.arguments.back().type);
      if (!cursor_.accept(",") && !cursor_.peek(")")) fail_in_list();
    }
    if (cursor_.accept("->")) read_function_results(function);
    draft.end = cursor_.raw_position();
    function_texts_.push_back(state_.text.data() + begin);
    state_.functions.push_back(std::move(function));
  }

  [[noreturn]] void fail_in_list() {
    if (cursor_.at_end()) cursor_.fail("`(` is not closed");
    char c = next_char();
    if (c == ']' || c == '}' || c == '>') cursor_.fail(cat("unmatched `", c, "`"));
    cursor_.fail("expected `,` or `)`");
  }

  void read_function_results(ModuleFunction& function) {
    if (!cursor_.accept("(")) {
      function.results_take_attributes = false;
      function.results.push_back(
          {.type = read_type(), .dictionary = {}, .attributes = {}, .location = {}});
      return;
    }
    while (!cursor_.accept(")")) {
      function.results.push_back(read_boundary());
      if (!cursor_.accept(",") && !cursor_.peek(")")) fail_in_list();
    }
  }

  // Reads `T {...} loc(...)`.
  ModuleBoundary read_boundary() {
    ModuleBoundary read;
    read.type = read_type();
    if (cursor_.peek("{")) {
      std::size_t begin = cursor_.position();
      read.attributes = read_attributes(cursor_);
      read.dictionary = from(begin, cursor_.raw_position());
    }
    if (cursor_.peek("loc(")) read.location = cursor_.value();
    return read;
  }

  // The signature of `"func.func"() <{arg_attrs = [...], function_type = (T) -> T, ...}>`.
  void read_generic_function(ModuleOp& op, ModuleFunction& function) {
    function.name = op.symbol = plain_text(find_attribute(op.attributes, "sym_name"));
    std::string visibility = plain_text(find_attribute(op.attributes, "sym_visibility"));
    function.is_private = visibility == "private" || visibility == "nested";
    TextCursor type(find_attribute(op.attributes, "function_type"));
    if (!type.at_end()) {
      read_types(type, function.arguments);
      type.expect("->");
      read_types(type, function.results);
    }
    set_attributes(find_attribute(op.attributes, "arg_attrs"), function.arguments);
    set_attributes(find_attribute(op.attributes, "res_attrs"), function.results);
    if (op.regions.empty()) return;
    const std::vector<std::string_view>& places = op.regions[0].argument_locations;
    for (std::size_t i = 0; i < function.arguments.size() && i < places.size(); ++i)
      function.arguments[i].location = places[i];
  }

  static void read_types(TextCursor& cursor, std::vector<ModuleBoundary>& values) {
    bool several = cursor.accept("(");
    while (!(several && cursor.accept(")"))) {
      values.push_back(
          {.type = cursor.value(true), .dictionary = {}, .attributes = {}, .location = {}});
      if (!several) return;
      if (!cursor.accept(",") && !cursor.peek(")")) cursor.fail("expected `,` or `)`");
    }
  }

  // Sets the attributes `[{...}, {...}]` on the values, in order.
  static void set_attributes(std::string_view list, std::vector<ModuleBoundary>& values) {
    if (list.empty()) return;
    TextCursor cursor(list);
    cursor.expect("[");
    for (std::size_t i = 0; !cursor.accept("]"); ++i) {
      std::size_t begin = cursor.position();
      ModuleAttributes attributes = read_attributes(cursor);
      if (i < values.size()) {
        values[i].attributes = std::move(attributes);
        values[i].dictionary = list.substr(begin, cursor.raw_position() - begin);
      }
      if (!cursor.accept(",") && !cursor.peek("]")) cursor.fail("expected `,` or `]`");
    }
  }

  Module::State& state_;
  TextCursor cursor_;
  std::size_t results_left_;
  std::vector<Scope> scopes_;
  std::vector<const char*> function_texts_;  // where the functions begin
};

}  // namespace

ModuleAttributes read_attributes(TextCursor& cursor) {
  ModuleAttributes found;
  cursor.expect("{");
  while (!cursor.accept("}")) {
    std::string name = cursor.peek_quoted() ? cursor.quoted() : std::string(cursor.word());
    if (name.empty()) cursor.fail("expected the name of an attribute");
    found.push_back({std::move(name), cursor.accept("=") ? cursor.value() : std::string_view()});
    if (!cursor.accept(",") && !cursor.peek("}")) cursor.fail("expected `,` or `}`");
  }
  return found;
}

void parse_module(Module::State& state) { ModuleParser(state).parse(); }

}  // namespace meshard::stablehlo
