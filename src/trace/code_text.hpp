// What people call a place in the program: "read_input at serial.cpp:13".
//
// Functions come as compilers and demanglers write them. Code that the library's templates have been given is
// called after the function that the lambda is written in. No other part of the library is used here: the
// report reads these texts as well. Called by: perfetto.cpp, tools/report. Test:
// tests/trace/code_text_test.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace godwit::trace {

namespace detail {

/// Behind the bracket that closes the one at @p at; the end if none does.
inline std::size_t behind_bracket(std::string_view text, std::size_t at) {
  int depth = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    if (text[i] == '<' || text[i] == '(' || text[i] == '{') ++depth;
    const bool arrow = text[i] == '>' && i > 0 && text[i - 1] == '-';
    if (((text[i] == '>' && !arrow) || text[i] == ')' || text[i] == '}') && --depth == 0) return i + 1;
  }
  return text.size();
}

inline std::size_t find_lambda(std::string_view text) {
  return std::min(text.find("::{lambda"), text.find("::<lambda"));
}

/// From the last bracket or comma before @p at that is open there.
inline std::string_view enclosing(std::string_view text, std::size_t at) {
  int depth = 0;
  std::size_t begin = at;
  for (; begin > 0; --begin) {
    const char c = text[begin - 1];
    if (c == '>' || c == ')') ++depth;
    if ((c == '<' || c == '(') && --depth < 0) break;
    if ((c == ',' || c == ' ') && depth == 0) break;
  }
  return text.substr(begin, at - begin);
}

}  // namespace detail

/// "visit" of "long tree::visit<int>(node*, int)", and of a lambda in there. Empty: of the library.
inline std::string short_function(std::string_view signature) {
  std::string text(signature.substr(0, signature.find(" [clone")));
  for (const std::string_view nobodys : {"(anonymous namespace)::", "{anonymous}::"})
    for (std::size_t at; (at = text.find(nobodys)) != std::string::npos;) text.erase(at, nobodys.size());
  std::string name;  // without what is in brackets
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (rest.starts_with("::{lambda") || rest.starts_with("::<lambda")) break;
    const bool is_operator = name.ends_with("operator");
    if (is_operator && rest.starts_with("()")) {
      name += "()";
      i += 2;
    } else if (!is_operator && (rest[0] == '<' || rest[0] == '(')) {
      i = detail::behind_bracket(text, i);
      if (rest[0] == '(' && !std::string_view(text).substr(i).starts_with("::")) break;
    } else if (rest[0] == ' ' && !is_operator) {
      name.clear();  // that was the type of the result
      ++i;
    } else {
      name += text[i++];
    }
  }
  if (name.starts_with("godwit::") || name.starts_with("std::")) {
    const std::size_t lambda = detail::find_lambda(text);
    return lambda == std::string::npos ? std::string() : short_function(detail::enclosing(text, lambda));
  }
  const std::size_t last = name.rfind("::");
  if (last == std::string::npos) return name;
  if (!name.ends_with("operator()")) return name.substr(last + 2);
  const std::size_t type = last == 0 ? std::string::npos : name.rfind("::", last - 1);
  return type == std::string::npos ? name : name.substr(type + 2);
}

/// "visit at file.cpp:12". @p place: "file.cpp:12", or whatever is known.
inline std::string name_of_place(std::string_view function, std::string_view place) {
  const std::string name = short_function(function);
  if (name.empty() || place.empty()) return std::string(place);
  // What compilers call the code of a lambda, where nothing says in which function it is written.
  return (name == "operator()" ? "a lambda" : name) + " at " + std::string(place);
}

/// Of a text for code in a trace file (file.hpp).
struct code_text {
  std::string function, place;
};
/// "visit(int)" and "file.cpp:12" of "visit(int) (file.cpp:12)"; what is not like that is a place.
inline code_text code_text_of(const std::string& text) {
  const std::size_t begin = text.rfind(" (");
  if (begin == std::string::npos || !text.ends_with(')') || text.find(':', begin) == std::string::npos)
    return {"", text};
  return {text.substr(0, begin), text.substr(begin + 2, text.size() - begin - 3)};
}

}  // namespace godwit::trace
