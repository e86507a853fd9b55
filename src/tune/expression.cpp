// SPDX-License-Identifier: Apache-2.0
// How is a constraint read and evaluated? By recursive descent with one table of operators; nothing
// is evaluated that short-circuits away.
#include "tune/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/text.h"

namespace kiln::tune {

enum class Kind { Number, Name, Not, Negate, Binary, Min, Max };
enum class Operator {
  Or,
  And,
  Equal,
  Unequal,
  LessEqual,
  GreaterEqual,
  Less,
  Greater,
  Add,
  Subtract,
  Multiply,
  Divide,
  Modulo
};

struct Expression::Node {
  Kind kind = Kind::Number;
  Operator operation = Operator::Add;
  int64_t number = 0;
  std::string name;
  std::vector<Node> operands;
  int height = 1;  // of the tree: evaluation and destruction go down it

  void add(Node operand) {
    height = std::max(height, operand.height + 1);
    operands.push_back(std::move(operand));  // a list in braces would copy the whole tree each time
  }
};

namespace {

using Node = Expression::Node;

// Deep enough for every constraint, shallow enough for every stack.
constexpr int kDeepest = 200;
// "a + b + c + ..." nests to the left without a parenthesis.
constexpr int kHighest = 1000;
constexpr size_t kLongestText = 20'000;

struct Row {
  std::string_view token;
  Operator operation;
  int precedence;
};
// A longer token before its own beginning.
constexpr std::array kOperators = {
    Row{"||", Operator::Or, 1},        Row{"&&", Operator::And, 2},
    Row{"==", Operator::Equal, 3},     Row{"!=", Operator::Unequal, 3},
    Row{"<=", Operator::LessEqual, 4}, Row{">=", Operator::GreaterEqual, 4},
    Row{"<", Operator::Less, 4},       Row{">", Operator::Greater, 4},
    Row{"+", Operator::Add, 5},        Row{"-", Operator::Subtract, 5},
    Row{"*", Operator::Multiply, 6},   Row{"/", Operator::Divide, 6},
    Row{"%", Operator::Modulo, 6},
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Node> whole() {
    if (text_.size() > kLongestText)
      return Error{Fault::Usage,
                   fmt::format("cannot read the constraint \"{}...\"", text_.substr(0, 40)),
                   fmt::format("it has {} characters; the limit is {}", text_.size(), kLongestText),
                   "split it into several constraints"};
    TRY(Node node, binary(1, 0));
    skip_blanks();
    if (at_ != text_.size()) return error("an operator or the end");
    return node;
  }

 private:
  Result<Node> binary(int least, int depth) {
    if (depth > kDeepest) return error("fewer parentheses");
    TRY(Node left, unary(depth));
    for (;;) {
      const Row* row = next_operator();
      if (!row || row->precedence < least) return left;
      at_ += row->token.size();
      TRY(Node right, binary(row->precedence + 1, depth + 1));
      Node both;
      both.kind = Kind::Binary;
      both.operation = row->operation;
      both.add(std::move(left));
      both.add(std::move(right));
      if (both.height > kHighest) return error("fewer operators in a row");
      left = std::move(both);
    }
  }

  Result<Node> unary(int depth) {
    if (depth > kDeepest) return error("fewer operators in a row");
    skip_blanks();
    for (auto [token, kind] : {std::pair{'!', Kind::Not}, std::pair{'-', Kind::Negate}}) {
      if (at_ >= text_.size() || text_[at_] != token) continue;
      at_++;
      TRY(Node operand, unary(depth + 1));
      Node node;
      node.kind = kind;
      node.add(std::move(operand));
      return node;
    }
    return primary(depth);
  }

  Result<Node> primary(int depth) {
    if (take('(')) {
      TRY(Node inner, binary(1, depth + 1));
      if (!take(')')) return error("')'");
      return inner;
    }
    const size_t begin = at_;
    while (at_ < text_.size() && is_name_part(text_[at_])) at_++;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return error("a number, a name or '('");
    Node node;
    if (is_digit(word[0])) {
      const std::optional<int64_t> number = text::to_int(word);
      if (!number) {
        at_ = begin;
        return error("a number of at most 63 bits");
      }
      node.number = *number;
      return node;
    }
    if (take('(')) return call(word, begin, depth);
    node.kind = Kind::Name;
    node.name = word;
    return node;
  }

  Result<Node> call(std::string_view name, size_t begin, int depth) {
    if (name != "min" && name != "max") {
      at_ = begin;
      return error("min or max (there are no other functions)");
    }
    Node node;
    node.kind = name == "min" ? Kind::Min : Kind::Max;
    do {
      TRY(Node operand, binary(1, depth + 1));
      node.add(std::move(operand));
    } while (take(','));
    if (!take(')')) return error("',' or ')'");
    return node;
  }

  const Row* next_operator() {
    skip_blanks();
    const auto row = std::ranges::find_if(
        kOperators, [&](const Row& r) { return text_.substr(at_).starts_with(r.token); });
    return row == kOperators.end() ? nullptr : &*row;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) at_++;
  }
  Error error(std::string_view wanted) const {
    const std::string found =
        at_ < text_.size() ? fmt::format("'{}'", text_.substr(at_, 12)) : "the end";
    return {Fault::Usage, fmt::format("cannot read the constraint \"{}\"", text_),
            fmt::format("column {}: got {}, expected {}", at_ + 1, found, wanted),
            "example: \"BLOCK_M % (16 * WARPS) == 0\""};
  }

  std::string_view text_;
  size_t at_ = 0;
};

void collect_names(const Node& node, std::vector<std::string>& names) {
  if (node.kind == Kind::Name && std::ranges::find(names, node.name) == names.end())
    names.push_back(node.name);
  for (const Node& operand : node.operands) collect_names(operand, names);
}

Error cannot_evaluate(const std::string& text, std::string why) {
  return {Fault::Usage, fmt::format("cannot evaluate the constraint \"{}\"", text), std::move(why),
          ""};
}

class Evaluation {
 public:
  Evaluation(const std::string& text, const Expression::Values& values)
      : text_(text), values_(values) {}

  Result<int64_t> of(const Node& node) const {
    switch (node.kind) {
      case Kind::Number:
        return node.number;
      case Kind::Name: {
        const std::optional<int64_t> value = values_(node.name);
        if (!value)
          return cannot_evaluate(text_,
                                 fmt::format("{} does not have an integer value", node.name));
        return *value;
      }
      case Kind::Not: {
        TRY(int64_t value, of(node.operands[0]));
        return int64_t{value == 0};
      }
      case Kind::Negate: {
        TRY(int64_t value, of(node.operands[0]));
        return difference(0, value);
      }
      case Kind::Min:
      case Kind::Max: {
        TRY(int64_t result, of(node.operands[0]));
        for (const Node& operand : node.operands) {
          TRY(int64_t value, of(operand));
          result = node.kind == Kind::Min ? std::min(result, value) : std::max(result, value);
        }
        return result;
      }
      case Kind::Binary:
        return binary(node);
    }
    return cannot_evaluate(text_, "an unknown operator");
  }

 private:
  Result<int64_t> binary(const Node& node) const {
    TRY(int64_t left, of(node.operands[0]));
    if (node.operation == Operator::And && left == 0) return int64_t{0};
    if (node.operation == Operator::Or && left != 0) return int64_t{1};
    TRY(int64_t right, of(node.operands[1]));
    int64_t result = 0;
    switch (node.operation) {
      case Operator::Or:
      case Operator::And:
        return int64_t{right != 0};
      case Operator::Equal:
        return int64_t{left == right};
      case Operator::Unequal:
        return int64_t{left != right};
      case Operator::LessEqual:
        return int64_t{left <= right};
      case Operator::GreaterEqual:
        return int64_t{left >= right};
      case Operator::Less:
        return int64_t{left < right};
      case Operator::Greater:
        return int64_t{left > right};
      case Operator::Add:
        if (__builtin_add_overflow(left, right, &result)) return too_large();
        return result;
      case Operator::Subtract:
        return difference(left, right);
      case Operator::Multiply:
        if (__builtin_mul_overflow(left, right, &result)) return too_large();
        return result;
      case Operator::Divide:
      case Operator::Modulo:
        break;
    }
    if (right == 0) return cannot_evaluate(text_, "a division by zero");
    if (right == -1)  // INT64_MIN / -1 has no value
      return node.operation == Operator::Modulo ? Result<int64_t>(int64_t{0}) : difference(0, left);
    return node.operation == Operator::Divide ? left / right : left % right;
  }

  Result<int64_t> difference(int64_t left, int64_t right) const {
    int64_t result = 0;
    if (__builtin_sub_overflow(left, right, &result)) return too_large();
    return result;
  }
  Error too_large() const { return cannot_evaluate(text_, "a number of more than 63 bits"); }

  const std::string& text_;
  const Expression::Values& values_;
};

}  // namespace

Result<Expression> Expression::parse(std::string_view text) {
  TRY(Node root, Parser(text).whole());
  Expression made;
  made.text_ = text;
  collect_names(root, made.names_);
  made.root_ = std::make_shared<const Node>(std::move(root));
  return made;
}

Result<int64_t> Expression::value(const Values& values) const {
  return Evaluation(text_, values).of(*root_);
}

}  // namespace kiln::tune
