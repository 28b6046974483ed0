// What can be thrown out of join, get and run.
//
// An exception that leaves a thread comes out of the join that waits for it. Where workers have one heap it
// is the object that was thrown. Between hosts, with private heaps, and from root to main it is encoded:
//   * the standard exceptions and int, long, double, const char*, std::string arrive with their own type;
//   * a type made known by register_exception<E>() before run arrives as E;
//   * everything else arrives as remote_error, with what() and the name of its type.
// Tests: tests/api/exception_test.cpp.
#pragma once

#include <godwit/detail/values.hpp>

#include <stdexcept>
#include <string>
#include <typeinfo>

namespace godwit {

/// Stands for an exception whose type cannot travel; what() is "TYPE: original what()".
class remote_error : public std::runtime_error {
 public:
  remote_error(std::string type, const std::string& what)
      : std::runtime_error(what.empty() ? type : type + ": " + what), type_(std::move(type)) {}
  /// Readable name of the original type.
  const std::string& type_name() const noexcept { return type_; }

 private:
  std::string type_;
};

/// The run itself failed: a worker died, nobody could make progress, the user interrupted it.
class run_error : public std::runtime_error {
 public:
  run_error(const std::string& what, int status) : std::runtime_error(what), status_(status) {}
  /// What run(argc, argv, root) would have returned: 128 + signal, or 70 for a failure of the run.
  int status() const noexcept { return status_; }

 private:
  int status_;
};

namespace detail {
/// what(), or a sentence where a class of the user's gives back null.
const char* what_of(const std::exception& e) noexcept;

struct exception_type {
  const std::type_info* type;
  void (*write)(writer&, const void* object);
  void (*read_and_throw)(reader&);
};
/// Add to the table (later entries win); call it before run.
void add_exception_type(const exception_type& entry);

template <class E>
constexpr bool rebuildable_from_what =
    std::is_base_of_v<std::exception, E>&& std::is_constructible_v<E, const std::string&>;
}  // namespace detail

/// Let exceptions of exactly type E travel as E. E must be migratable, or derive from std::exception and be
/// constructible from its what() string. Call it before run; cost: local.
template <class E>
void register_exception() {
  static_assert(encodable<E> || detail::rebuildable_from_what<E>,
                "godwit: an exception type must be trivially copyable, have a godwit::codec, or be "
                "constructible from its what() string");
  detail::add_exception_type({&typeid(E),
                              [](writer& w, const void* object) {
                                const E& e = *static_cast<const E*>(object);
                                if constexpr (encodable<E>)
                                  w.put(e);
                                else
                                  w.put(std::string(detail::what_of(e)));
                              },
                              [](reader& r) {
                                if constexpr (encodable<E>)
                                  throw r.get<E>();
                                else
                                  throw E(r.get<std::string>());
                              }});
}

}  // namespace godwit
