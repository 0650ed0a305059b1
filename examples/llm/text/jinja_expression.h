#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "examples/llm/text/jinja_lexer.h"
#include "examples/llm/text/jinja_value.h"

namespace llm::jinja {

/// The variables that a part of a template sees. The body of a loop or a macro has its own, inside
/// another.
class Scope {
 public:
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}
  [[nodiscard]] const Value* find(const std::string& name) const;
  void set(const std::string& name, Value value) { values_[name] = std::move(value); }

 private:
  const Scope* outer_;
  std::map<std::string, Value> values_;
};

using Expression = std::function<Value(const Scope&)>;

/// Reads expressions from the tokens of a tag.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  /// An expression, also `a if b else c`; with `tuple` also `a, b`.
  Expression expression(bool tuple = false);
  /// An expression without a condition at its end, as the list of a loop is.
  Expression unconditional() { return disjunction(); }

  [[nodiscard]] const Token& peek(std::size_t ahead = 0) const;
  Token next();
  bool accept(const std::string& text);  ///< takes a sign or a name, if it comes next
  void expect(const std::string& text);
  std::string name();
  void end();  ///< @error std::invalid_argument if tokens are left

 private:
  Expression disjunction();
  Expression conjunction();
  Expression negation();
  Expression comparison();
  Expression test(Expression value);
  Expression concatenation();
  Expression sum();
  Expression product();
  Expression unary();
  Expression postfix();
  Expression primary();
  Expression subscript(Expression value);
  Expression filter(Expression value);
  struct Call {
    std::vector<Expression> list;
    std::vector<std::pair<std::string, Expression>> named;
  };
  Call call();
  static Arguments evaluate(const Call& call, const Scope& scope);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

/// The filters, tests and methods that templates may use.
/// @error std::invalid_argument with the name of an unknown one
[[nodiscard]] Value apply_filter(const std::string& name, const Value& value,
                                 const Arguments& arguments);
[[nodiscard]] bool apply_test(const std::string& name, const Value& value,
                              const Arguments& arguments);
[[nodiscard]] Value call_method(const Value& object, const std::string& name,
                                const Arguments& arguments);

}  // namespace llm::jinja
