#include "examples/llm/text/jinja_template.h"

#include <ctime>
#include <stdexcept>
#include <utility>

namespace llm::jinja {
namespace {

using Block = std::vector<Statement>;

Flow run(const Block& block, Scope& scope, std::string& out) {
  for (const auto& statement : block)
    if (const Flow flow = statement(scope, out); flow != Flow::kNext) return flow;
  return Flow::kNext;
}

/// Builds the statements of a template from its parts.
class TemplateParser {
 public:
  explicit TemplateParser(std::vector<Part> parts) : parts_(std::move(parts)) {}

  /// The statements until one of the tags in `ends`, whose name and rest are then in end_name() and
  /// end_tag().
  Block block(const std::vector<std::string>& ends);
  [[nodiscard]] const std::string& end_name() const { return end_name_; }
  [[nodiscard]] int line() const { return line_; }

 private:
  Statement statement(const std::string& name, ExpressionParser tag);
  Statement if_statement(ExpressionParser tag);
  Statement for_statement(ExpressionParser tag);
  Statement set_statement(ExpressionParser tag);
  Statement macro_statement(ExpressionParser tag);

  std::vector<Part> parts_;
  std::size_t at_ = 0;
  int line_ = 1;
  int depth_ = 0;
  std::string end_name_;
  ExpressionParser end_tag_{{Token{}}};
};

Block TemplateParser::block(const std::vector<std::string>& ends) {
  if (++depth_ > 100) fail("blocks are nested too deeply");
  Block result;
  while (at_ < parts_.size()) {
    const Part part = parts_[at_++];
    line_ = part.line;
    if (part.kind == Part::Kind::kText) {
      result.push_back([text = part.text](Scope&, std::string& out) {
        out += text;
        return Flow::kNext;
      });
      continue;
    }
    ExpressionParser tag(tokens_of(part.text));
    if (part.kind == Part::Kind::kExpression) {
      Expression value = tag.expression(true);
      tag.end();
      result.push_back([value](Scope& scope, std::string& out) {
        out += to_text(value(scope));
        return Flow::kNext;
      });
      continue;
    }
    const std::string name = tag.name();
    for (const auto& end : ends)
      if (name == end) {
        end_name_ = name;
        end_tag_ = std::move(tag);
        --depth_;
        return result;
      }
    result.push_back(statement(name, std::move(tag)));
  }
  if (!ends.empty()) fail("{% " + ends.back() + " %} is missing");
  --depth_;
  return result;
}

Statement TemplateParser::statement(const std::string& name, ExpressionParser tag) {
  if (name == "if") return if_statement(std::move(tag));
  if (name == "for") return for_statement(std::move(tag));
  if (name == "set") return set_statement(std::move(tag));
  if (name == "macro") return macro_statement(std::move(tag));
  if (name == "break" || name == "continue") {
    tag.end();
    return [flow = name == "break" ? Flow::kBreak : Flow::kContinue](Scope&, std::string&) {
      return flow;
    };
  }
  if (name == "generation") {  // marks the assistant's text, for training
    tag.end();
    Block inner = block({"endgeneration"});
    return [inner](Scope& scope, std::string& out) { return run(inner, scope, out); };
  }
  fail("the statement \"" + name + "\" is not supported");
}

Statement TemplateParser::if_statement(ExpressionParser tag) {
  std::vector<std::pair<Expression, Block>> branches;
  Expression condition = tag.expression();
  tag.end();
  while (true) {
    Block body = block({"elif", "else", "endif"});
    branches.emplace_back(std::move(condition), std::move(body));
    if (end_name_ == "endif") break;
    condition = [](const Scope&) { return Value{true}; };
    if (end_name_ == "elif") condition = end_tag_.expression();
    end_tag_.end();
  }
  return [branches](Scope& scope, std::string& out) {
    for (const auto& [test, body] : branches)
      if (is_true(test(scope))) return run(body, scope, out);
    return Flow::kNext;
  };
}

void set_names(Scope& scope, const std::vector<std::string>& names, const Value& value) {
  if (names.size() == 1) return scope.set(names[0], value);
  const List parts = elements(value);
  if (parts.size() != names.size())
    fail(std::to_string(names.size()) + " names for " + std::to_string(parts.size()) + " values");
  for (std::size_t i = 0; i < names.size(); ++i) scope.set(names[i], parts[i]);
}

Value loop_variables(const List& list, std::size_t i) {
  const auto index = static_cast<std::int64_t>(i), size = static_cast<std::int64_t>(list.size());
  return make_dict({{"index", {index + 1}},
                    {"index0", {index}},
                    {"revindex", {size - index}},
                    {"revindex0", {size - index - 1}},
                    {"first", {i == 0}},
                    {"last", {index == size - 1}},
                    {"length", {size}},
                    {"previtem", i == 0 ? Value{Undefined{"previtem"}} : list[i - 1]},
                    {"nextitem", index == size - 1 ? Value{Undefined{"nextitem"}} : list[i + 1]}});
}

Statement TemplateParser::for_statement(ExpressionParser tag) {
  std::vector<std::string> names{tag.name()};
  while (tag.accept(",")) names.push_back(tag.name());
  tag.expect("in");
  Expression values = tag.unconditional(), condition;
  if (tag.accept("if")) condition = tag.expression();
  tag.end();
  Block body = block({"else", "endfor"}), otherwise;
  if (end_name_ == "else") otherwise = block({"endfor"});
  return [=](Scope& scope, std::string& out) {
    List list;
    for (auto& value : elements(values(scope))) {
      Scope inner(&scope);
      set_names(inner, names, value);
      if (!condition || is_true(condition(inner))) list.push_back(std::move(value));
    }
    if (list.empty()) return run(otherwise, scope, out);
    for (std::size_t i = 0; i < list.size(); ++i) {
      Scope inner(&scope);
      inner.set("loop", loop_variables(list, i));
      set_names(inner, names, list[i]);
      if (run(body, inner, out) == Flow::kBreak) break;
    }
    return Flow::kNext;
  };
}

Statement TemplateParser::set_statement(ExpressionParser tag) {
  std::vector<std::string> names{tag.name()};
  std::string field;
  if (tag.accept(".")) field = tag.name();
  while (tag.accept(",")) names.push_back(tag.name());
  Expression value;
  if (tag.accept("=")) {
    value = tag.expression(true);
    tag.end();
  } else {
    tag.end();
    value = [body = block({"endset"})](const Scope& scope) {
      Scope inner(&scope);
      std::string text;
      run(body, inner, text);
      return Value{text};
    };
  }
  return [=](Scope& scope, std::string&) {
    if (field.empty()) {
      set_names(scope, names, value(scope));
      return Flow::kNext;
    }
    const Value* object = scope.find(names[0]);
    if (!object || !object->dict()) fail("\"" + names[0] + "\" is not a namespace");
    Value made = value(scope);
    for (auto& [key, old] : *object->dict())
      if (key == field) {
        old = std::move(made);
        return Flow::kNext;
      }
    object->dict()->emplace_back(field, std::move(made));
    return Flow::kNext;
  };
}

Statement TemplateParser::macro_statement(ExpressionParser tag) {
  // Functions refer to the scope that they are made in, which must live as long as they do.
  if (depth_ != 1) fail("a macro inside of another block is not supported");
  const std::string name = tag.name();
  std::vector<std::pair<std::string, Expression>> parameters;
  tag.expect("(");
  while (!tag.accept(")")) {
    const std::string parameter = tag.name();
    Expression fallback;
    if (tag.accept("=")) fallback = tag.expression();
    parameters.emplace_back(parameter, fallback);
    if (!tag.accept(",")) {
      tag.expect(")");
      break;
    }
  }
  tag.end();
  const Block body = block({"endmacro"});
  return [=](Scope& scope, std::string&) {
    const Scope* outer = &scope;
    scope.set(name, make_function([=](const Arguments& arguments) {
                Scope inner(outer);
                if (arguments.list.size() > parameters.size())
                  fail("the macro \"" + name + "\" has too many arguments");
                for (std::size_t i = 0; i < parameters.size(); ++i) {
                  const auto& [parameter, fallback] = parameters[i];
                  Value value{Undefined{parameter}};
                  if (fallback) value = fallback(inner);
                  if (i < arguments.list.size()) value = arguments.list[i];
                  for (const auto& [key, given] : arguments.named)
                    if (key == parameter) value = given;
                  inner.set(parameter, value);
                }
                std::string text;
                run(body, inner, text);
                return Value{text};
              }));
    return Flow::kNext;
  };
}

Value range(const Arguments& arguments) {
  std::int64_t numbers[3] = {0, 0, 1};
  const std::size_t count = arguments.list.size();
  if (count < 1 || count > 3) fail("range: one to three numbers are needed");
  for (std::size_t i = 0; i < count; ++i) {
    const auto* number = std::get_if<std::int64_t>(&arguments.list[i].data);
    if (!number) fail("range: " + type_name(arguments.list[i]) + " is not an integer");
    numbers[count == 1 ? 1 : i] = *number;
  }
  const auto [begin, end, step] = numbers;
  if (step == 0 || (end - begin) / step > 100000) fail("range: too many numbers");
  List list;
  for (std::int64_t i = begin; step > 0 ? i < end : i > end; i += step) list.push_back({i});
  return make_list(std::move(list));
}

Value now(const Arguments& arguments) {
  if (arguments.list.empty() || !arguments.list[0].text()) fail("strftime_now: a format is needed");
  const std::time_t time = std::time(nullptr);
  std::tm parts{};
  localtime_r(&time, &parts);
  char text[200];
  const std::size_t size =
      std::strftime(text, sizeof text, arguments.list[0].text()->c_str(), &parts);
  return {std::string(text, size)};
}

void set_functions(Scope& scope) {
  scope.set("raise_exception", make_function([](const Arguments& arguments) -> Value {
              fail(arguments.list.empty() ? "refused by the template" : to_text(arguments.list[0]));
            }));
  const auto made =
      make_function([](const Arguments& arguments) { return make_dict(arguments.named); });
  scope.set("namespace", made);
  scope.set("dict", made);
  scope.set("range", make_function(range));
  scope.set("strftime_now", make_function(now));
}

}  // namespace

Template::Template(std::string_view source) {
  TemplateParser parser(split_template(source));
  try {
    statements_ = parser.block({});
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("[chat template] line " + std::to_string(parser.line()) + ": " +
                                error.what());
  }
}

std::string Template::render(const nlohmann::ordered_json& variables) const {
  Scope scope;
  set_functions(scope);
  for (const auto& [name, value] : variables.items()) scope.set(name, from_json(value));
  std::string out;
  try {
    run(statements_, scope, out);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("[chat template] ") + error.what());
  }
  return out;
}

}  // namespace llm::jinja
