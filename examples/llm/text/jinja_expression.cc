#include "examples/llm/text/jinja_expression.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace llm::jinja {
namespace {

Value arithmetic(const std::string& sign, const Value& left, const Value& right) {
  if (sign == "+" && left.text() && right.text()) return {*left.text() + *right.text()};
  if (sign == "+" && left.list() && right.list()) {
    List both = *left.list();
    both.insert(both.end(), right.list()->begin(), right.list()->end());
    return make_list(std::move(both));
  }
  const auto *a = std::get_if<std::int64_t>(&left.data),
             *b = std::get_if<std::int64_t>(&right.data);
  if (sign == "*" && left.text() && b) {
    std::string text;
    for (std::int64_t i = 0; i < *b; ++i) text += *left.text();
    return {text};
  }
  const auto number = [&](const Value& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value.data))
      return static_cast<double>(*integer);
    if (const auto* real = std::get_if<double>(&value.data)) return *real;
    fail("'" + sign + "' cannot combine " + type_name(left) + " and " + type_name(right));
  };
  const double x = number(left), y = number(right);
  if ((sign == "/" || sign == "//" || sign == "%") && y == 0) fail("division by zero");
  const auto modulo = [](std::int64_t n, std::int64_t m) { return ((n % m) + m) % m; };
  if (a && b) {
    if (sign == "+") return {*a + *b};
    if (sign == "-") return {*a - *b};
    if (sign == "*") return {*a * *b};
    if (sign == "%") return {modulo(*a, *b)};
    if (sign == "//") return {(*a - modulo(*a, *b)) / *b};
  }
  if (sign == "+") return {x + y};
  if (sign == "-") return {x - y};
  if (sign == "*") return {x * y};
  if (sign == "/") return {x / y};
  if (sign == "//") return {std::floor(x / y)};
  return {x - y * std::floor(x / y)};
}

bool contains(const Value& container, const Value& value) {
  if (const auto* text = container.text()) {
    if (!value.text()) fail("'in' looks for " + type_name(value) + " in a text");
    return text->find(*value.text()) != std::string::npos;
  }
  if (container.dict()) return value.text() && container.find(*value.text());
  const List list = elements(container);
  return std::any_of(list.begin(), list.end(), [&](const Value& one) { return equal(one, value); });
}

bool compare(const std::string& sign, const Value& left, const Value& right) {
  if (sign == "==") return equal(left, right);
  if (sign == "!=") return !equal(left, right);
  if (sign == "<") return less(left, right);
  if (sign == ">") return less(right, left);
  return sign == "<=" ? !less(right, left) : !less(left, right);
}

Value element(const Value& value, const Value& key) {
  if (value.is<Undefined>()) fail(type_name(value) + " has no elements");
  if (const auto* name = key.text()) {
    const Value* found = value.find(*name);
    return found ? *found : Value{Undefined{*name}};
  }
  const auto* index = std::get_if<std::int64_t>(&key.data);
  if (!index) fail(type_name(value) + " has no element " + to_text(key));
  const List list = elements(value);
  const auto size = static_cast<std::int64_t>(list.size());
  const std::int64_t at = *index < 0 ? *index + size : *index;
  return at >= 0 && at < size ? list[static_cast<std::size_t>(at)] : Value{Undefined{to_text(key)}};
}

/// value[begin:end:step] of Python.
Value slice(const Value& value, const Value& begin, const Value& end, const Value& step) {
  const List list = elements(value);
  const auto size = static_cast<std::int64_t>(list.size());
  const auto* given = std::get_if<std::int64_t>(&step.data);
  const std::int64_t stride = given ? *given : 1;
  if (stride == 0) fail("the step of a slice is 0");
  const auto bound = [&](const Value& place, std::int64_t fallback) {
    const auto* index = std::get_if<std::int64_t>(&place.data);
    if (!index) return fallback;
    const std::int64_t at = *index < 0 ? *index + size : *index;
    return std::clamp<std::int64_t>(at, stride > 0 ? 0 : -1, stride > 0 ? size : size - 1);
  };
  const std::int64_t first = bound(begin, stride > 0 ? 0 : size - 1),
                     last = bound(end, stride > 0 ? size : -1);
  List result;
  for (std::int64_t i = first; stride > 0 ? i < last : i > last; i += stride)
    result.push_back(list[static_cast<std::size_t>(i)]);
  if (!value.text()) return make_list(std::move(result));
  std::string text;
  for (const auto& character : result) text += *character.text();
  return {text};
}

}  // namespace

const Value* Scope::find(const std::string& name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return &found->second;
  return outer_ ? outer_->find(name) : nullptr;
}

const Token& ExpressionParser::peek(std::size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

Token ExpressionParser::next() {
  Token token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool ExpressionParser::accept(const std::string& text) {
  const Token& token = peek();
  if ((token.kind != Token::Kind::kSign && token.kind != Token::Kind::kName) || token.text != text)
    return false;
  next();
  return true;
}

void ExpressionParser::expect(const std::string& text) {
  if (!accept(text)) fail("expected '" + text + "', not '" + peek().text + "'");
}

std::string ExpressionParser::name() {
  const Token token = next();
  if (token.kind != Token::Kind::kName) fail("expected a name, not '" + token.text + "'");
  return token.text;
}

void ExpressionParser::end() {
  if (peek().kind != Token::Kind::kEnd) fail("unexpected '" + peek().text + "'");
}

Expression ExpressionParser::expression(bool tuple) {
  Expression value = disjunction();
  if (accept("if")) {
    Expression condition = disjunction(), other;
    if (accept("else")) other = expression();
    value = [=, then = std::move(value)](const Scope& scope) {
      if (is_true(condition(scope))) return then(scope);
      return other ? other(scope) : Value{Undefined{"if without else"}};
    };
  }
  if (!tuple || !accept(",")) return value;
  std::vector<Expression> parts{value};
  do {
    if (peek().kind == Token::Kind::kEnd) break;
    parts.push_back(expression());
  } while (accept(","));
  return [parts](const Scope& scope) {
    List list;
    for (const auto& part : parts) list.push_back(part(scope));
    return make_list(std::move(list));
  };
}

Expression ExpressionParser::disjunction() {
  Expression left = conjunction();
  while (accept("or"))
    left = [left, right = conjunction()](const Scope& scope) {
      Value value = left(scope);
      return is_true(value) ? value : right(scope);
    };
  return left;
}

Expression ExpressionParser::conjunction() {
  Expression left = negation();
  while (accept("and"))
    left = [left, right = negation()](const Scope& scope) {
      Value value = left(scope);
      return is_true(value) ? right(scope) : value;
    };
  return left;
}

Expression ExpressionParser::negation() {
  if (!accept("not")) return comparison();
  return [value = negation()](const Scope& scope) { return Value{!is_true(value(scope))}; };
}

Expression ExpressionParser::comparison() {
  Expression left = concatenation();
  while (true) {
    const std::string sign = peek().text;
    const bool is_sign = peek().kind == Token::Kind::kSign;
    if (is_sign && (sign == "==" || sign == "!=" || sign == "<" || sign == ">" || sign == "<=" ||
                    sign == ">=")) {
      next();
      left = [=, right = concatenation()](const Scope& scope) {
        return Value{compare(sign, left(scope), right(scope))};
      };
    } else if (peek().kind == Token::Kind::kName &&
               (sign == "in" || (sign == "not" && peek(1).text == "in"))) {
      const bool inverted = accept("not");
      expect("in");
      left = [=, right = concatenation()](const Scope& scope) {
        return Value{contains(right(scope), left(scope)) != inverted};
      };
    } else {
      return left;
    }
  }
}

Expression ExpressionParser::test(Expression value) {
  const bool inverted = accept("not");
  const std::string test_name = name();
  Call arguments;
  if (peek().text == "(" && peek().kind == Token::Kind::kSign) {
    arguments = call();
  } else if (peek().kind == Token::Kind::kText || peek().kind == Token::Kind::kInteger) {
    arguments.list.push_back(primary());
  }
  return [=, value = std::move(value)](const Scope& scope) {
    return Value{apply_test(test_name, value(scope), evaluate(arguments, scope)) != inverted};
  };
}

Expression ExpressionParser::concatenation() {
  Expression left = sum();
  while (accept("~"))
    left = [left, right = sum()](const Scope& scope) {
      return Value{to_text(left(scope)) + to_text(right(scope))};
    };
  return left;
}

Expression ExpressionParser::sum() {
  Expression left = product();
  while (peek().kind == Token::Kind::kSign && (peek().text == "+" || peek().text == "-")) {
    const std::string sign = next().text;
    left = [=, right = product()](const Scope& scope) {
      return arithmetic(sign, left(scope), right(scope));
    };
  }
  return left;
}

Expression ExpressionParser::product() {
  Expression left = unary();
  while (peek().kind == Token::Kind::kSign &&
         (peek().text == "*" || peek().text == "/" || peek().text == "//" || peek().text == "%")) {
    const std::string sign = next().text;
    left = [=, right = unary()](const Scope& scope) {
      return arithmetic(sign, left(scope), right(scope));
    };
  }
  return left;
}

Expression ExpressionParser::unary() {
  if (peek().kind == Token::Kind::kSign && accept("-"))
    return [value = unary()](const Scope& scope) {
      return arithmetic("-", {std::int64_t{0}}, value(scope));
    };
  Expression value = postfix();
  while (true) {
    if (peek().kind == Token::Kind::kSign && accept("|")) {
      value = filter(std::move(value));
    } else if (peek().kind == Token::Kind::kName && accept("is")) {
      value = test(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionParser::Call ExpressionParser::call() {
  Call result;
  expect("(");
  while (!accept(")")) {
    if (peek().kind == Token::Kind::kName && peek(1).kind == Token::Kind::kSign &&
        peek(1).text == "=") {
      const std::string argument = name();
      expect("=");
      result.named.emplace_back(argument, expression());
    } else {
      result.list.push_back(expression());
    }
    if (!accept(",")) {
      expect(")");
      break;
    }
  }
  return result;
}

Arguments ExpressionParser::evaluate(const Call& call, const Scope& scope) {
  Arguments arguments;
  for (const auto& expression : call.list) arguments.list.push_back(expression(scope));
  for (const auto& [name, expression] : call.named)
    arguments.named.emplace_back(name, expression(scope));
  return arguments;
}

Expression ExpressionParser::filter(Expression value) {
  const std::string filter_name = name();
  Call arguments;
  if (peek().kind == Token::Kind::kSign && peek().text == "(") arguments = call();
  return [=, value = std::move(value)](const Scope& scope) {
    return apply_filter(filter_name, value(scope), evaluate(arguments, scope));
  };
}

Expression ExpressionParser::subscript(Expression value) {
  const Expression nothing = [](const Scope&) { return Value{None{}}; };
  Expression parts[3] = {nothing, nothing, nothing};
  int colons = 0;
  while (!accept("]")) {
    if (accept(":")) {
      if (++colons > 2) fail("a slice has too many ':'");
    } else {
      parts[colons] = expression();
    }
  }
  if (colons == 0)
    return [value = std::move(value), key = parts[0]](const Scope& scope) {
      return element(value(scope), key(scope));
    };
  return [value = std::move(value), begin = parts[0], last = parts[1],
          step = parts[2]](const Scope& scope) {
    return slice(value(scope), begin(scope), last(scope), step(scope));
  };
}

Expression ExpressionParser::postfix() {
  Expression value = primary();
  while (peek().kind == Token::Kind::kSign) {
    if (accept(".")) {
      const std::string key = next().text;
      if (peek().kind == Token::Kind::kSign && peek().text == "(") {
        value = [value, key, arguments = call()](const Scope& scope) {
          const Value object = value(scope);
          const Value* function = object.find(key);
          if (const auto* found =
                  function ? std::get_if<std::shared_ptr<Function>>(&function->data) : nullptr)
            return (**found)(evaluate(arguments, scope));
          return call_method(object, key, evaluate(arguments, scope));
        };
      } else {
        const bool index = !key.empty() && std::isdigit(static_cast<unsigned char>(key[0]));
        const Value place = index ? Value{static_cast<std::int64_t>(std::stoll(key))} : Value{key};
        value = [value, place](const Scope& scope) { return element(value(scope), place); };
      }
    } else if (accept("[")) {
      value = subscript(std::move(value));
    } else if (peek().text == "(") {
      value = [value, arguments = call()](const Scope& scope) {
        const Value function = value(scope);
        const auto* found = std::get_if<std::shared_ptr<Function>>(&function.data);
        if (!found) fail(type_name(function) + " is not a function");
        return (**found)(evaluate(arguments, scope));
      };
    } else {
      break;
    }
  }
  return value;
}

Expression ExpressionParser::primary() {
  const Token token = next();
  const auto constant = [](Value value) -> Expression {
    return [value](const Scope&) { return value; };
  };
  if (token.kind == Token::Kind::kText) {
    std::string text = token.text;
    while (peek().kind == Token::Kind::kText) text += next().text;
    return constant({text});
  }
  if (token.kind == Token::Kind::kInteger)
    return constant({static_cast<std::int64_t>(std::stoll(token.text))});
  if (token.kind == Token::Kind::kFloat) return constant({std::stod(token.text)});
  if (token.kind == Token::Kind::kName) {
    if (token.text == "true" || token.text == "True") return constant({true});
    if (token.text == "false" || token.text == "False") return constant({false});
    if (token.text == "none" || token.text == "None") return constant({None{}});
    return [name = token.text](const Scope& scope) {
      const Value* found = scope.find(name);
      return found ? *found : Value{Undefined{name}};
    };
  }
  if (token.text == "(") {
    if (accept(")")) return constant(make_list({}));
    Expression inner = expression(true);
    expect(")");
    return inner;
  }
  if (token.text != "[" && token.text != "{") fail("unexpected '" + token.text + "'");
  std::vector<std::pair<Expression, Expression>> parts;
  const bool is_list = token.text == "[";
  const std::string closer = is_list ? "]" : "}";
  while (!accept(closer)) {
    Expression key = expression(), value;
    if (!is_list) {
      expect(":");
      value = expression();
    }
    parts.emplace_back(std::move(key), std::move(value));
    if (!accept(",")) {
      expect(closer);
      break;
    }
  }
  return [parts, is_list](const Scope& scope) {
    List list;
    Dict dict;
    for (const auto& [key, value] : parts) {
      if (is_list) {
        list.push_back(key(scope));
      } else {
        dict.emplace_back(to_text(key(scope)), value(scope));
      }
    }
    return is_list ? make_list(std::move(list)) : make_dict(std::move(dict));
  };
}

}  // namespace llm::jinja
