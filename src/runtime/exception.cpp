// Exceptions as bytes: a table of types, each with a writer and a thrower. See include/godwit/error.hpp.
//
// The table is filled before run and inherited by the workers; index and type name travel. Everything that
// is not in the table arrives as remote_error.
#include <godwit/detail/slow_path.hpp>
#include <godwit/detail/cancelled.hpp>
#include <godwit/error.hpp>
#include <godwit/future.hpp>
#include <godwit/runtime.hpp>

#include <cstdlib>
#include <cxxabi.h>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <typeinfo>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "runtime/exception.hpp"
#include "sched/worker.hpp"

namespace godwit::detail {

using sched::this_worker;

namespace {

template <class E>
exception_type from_what() {
  return {&typeid(E),
          [](writer& w, const void* o) { w.put(std::string(what_of(*static_cast<const E*>(o)))); },
          [](reader& r) { throw E(r.get<std::string>()); }};
}
template <class E>
exception_type from_nothing() {
  return {&typeid(E), [](writer&, const void*) {}, [](reader&) { throw E(); }};
}
template <class T>
exception_type from_value() {
  return {&typeid(T), [](writer& w, const void* o) { w.put(*static_cast<const T*>(o)); },
          [](reader& r) { throw r.get<T>(); }};
}

exception_type for_system_error() {
  return {&typeid(std::system_error),
          [](writer& w, const void* o) {
            const auto& e = *static_cast<const std::system_error*>(o);
            w.put(e.code().value());
            w.put(&e.code().category());  // categories are globals: the same address in all siblings
            std::string what = what_of(e);
            const std::string message = e.code().message(), tail = ": " + message;
            w.put(what == message);  // it was made without a text
            if (what.ends_with(tail)) what.resize(what.size() - tail.size());
            w.put(what);
          },
          [](reader& r) {
            const int value = r.get<int>();
            const auto* category = r.get<const std::error_category*>();
            if (r.get<bool>()) throw std::system_error(value, *category);
            throw std::system_error(value, *category, r.get<std::string>());
          }};
}

exception_type for_run_error() {
  return {&typeid(run_error),
          [](writer& w, const void* o) {
            const auto& e = *static_cast<const run_error*>(o);
            w.put(std::string(what_of(e)));
            w.put(e.status());
          },
          [](reader& r) {
            const auto what = r.get<std::string>();
            throw run_error(what, r.get<int>());
          }};
}

exception_type for_remote_error() {
  return {&typeid(remote_error),
          [](writer& w, const void* o) {
            const auto& e = *static_cast<const remote_error*>(o);
            w.put(e.type_name());
            const std::string what = what_of(e);
            w.put(what.size() > e.type_name().size() ? what.substr(e.type_name().size() + 2) : std::string());
          },
          [](reader& r) {
            auto type = r.get<std::string>();
            throw remote_error(std::move(type), r.get<std::string>());
          }};
}

std::vector<exception_type>& table() {
  static std::vector<exception_type> t = {from_nothing<std::bad_alloc>(),
                                          from_nothing<std::bad_cast>(),
                                          from_nothing<std::bad_typeid>(),
                                          from_nothing<std::bad_exception>(),
                                          from_nothing<std::bad_optional_access>(),
                                          from_nothing<std::bad_variant_access>(),
                                          from_nothing<std::bad_function_call>(),
                                          from_nothing<std::bad_weak_ptr>(),
                                          from_nothing<std::bad_array_new_length>(),
                                          from_nothing<std::exception>(),
                                          from_nothing<cancelled>(),
                                          from_what<std::logic_error>(),
                                          from_what<std::domain_error>(),
                                          from_what<std::invalid_argument>(),
                                          from_what<std::length_error>(),
                                          from_what<std::out_of_range>(),
                                          from_what<std::runtime_error>(),
                                          from_what<std::range_error>(),
                                          from_what<std::overflow_error>(),
                                          from_what<std::underflow_error>(),
                                          from_value<int>(),
                                          from_value<unsigned>(),
                                          from_value<long>(),
                                          from_value<unsigned long>(),
                                          from_value<double>(),
                                          from_value<bool>(),
                                          from_value<char>(),
                                          from_value<const char*>(),
                                          from_value<std::string>(),
                                          from_value<std::error_code>(),
                                          for_system_error(),
                                          for_run_error(),
                                          for_remote_error()};
  return t;
}

std::string readable(const std::type_info* type) {
  return type != nullptr ? base::demangled(type->name()) : "unknown exception";
}

constexpr std::uint32_t unknown_type = ~0u;

}  // namespace

const char* what_of(const std::exception& e) noexcept {
  const char* text = e.what();
  return text != nullptr ? text : "(what() gave back a null pointer)";
}

void add_exception_type(const exception_type& entry) { table().push_back(entry); }

namespace {
/// Throws what the writer of a user's exception type throws.
void write_current_exception(writer& w) {
  const std::type_info* type = abi::__cxa_current_exception_type();
  // The object's address: rethrow into a handler by pointer is not portable, but the current exception_ptr
  // holds exactly it.
  const std::exception_ptr held = std::current_exception();
  const void* object = nullptr;
  static_assert(sizeof held == sizeof object);
  std::memcpy(&object, static_cast<const void*>(&held), sizeof object);
  const auto& types = table();
  for (std::size_t i = types.size(); i-- > 0;) {
    if (type == nullptr || *types[i].type != *type) continue;
    w.put(static_cast<std::uint32_t>(i));
    types[i].write(w, object);
    return;
  }
  w.put(unknown_type);
  w.put(readable(type));
  std::string what;
  try {
    throw;
  } catch (const std::exception& e) {
    what = what_of(e);
  } catch (...) {
  }
  w.put(what);
}
}  // namespace

void encode_current_exception(writer& w) {
  try {
    write_current_exception(w);
  } catch (...) {
    w = writer();
    w.put(unknown_type);
    w.put(readable(abi::__cxa_current_exception_type()));
    w.put(std::string("thrown while an exception was encoded"));
  }
}

void throw_encoded(reader& r) {
  const auto i = r.get<std::uint32_t>();
  if (i < table().size()) {
    table()[i].read_and_throw(r);
    std::abort();  // a thrower throws
  }
  auto type = r.get<std::string>();
  throw remote_error(std::move(type), r.get<std::string>());
}

ref capture_exception() noexcept {
  if (const std::type_info* type = abi::__cxa_current_exception_type();
      type != nullptr && *type == typeid(cancelled))
    return make_completed(outcome::cancelled, nullptr, 0);
  if (one_heap()) {
    // The object itself. Only the pointer to it is on the heap: records take no types.
    return make_completed_boxed(outcome::error, box<std::exception_ptr>(std::current_exception()));
  }
  writer w;
  encode_current_exception(w);
  if (!host_heap()) return make_completed(outcome::error, w.data(), w.size());
  // The object itself for who catches it on this host, its bytes for others.
  const boxed held = box<std::exception_ptr>(std::current_exception());
  std::vector<std::byte> both(sizeof held + w.size());
  std::memcpy(both.data(), &held, sizeof held);
  std::memcpy(both.data() + sizeof held, w.data(), w.size());
  return this_worker().records().make_completed(outcome::error, both.data(), both.size(), owning::box);
}

void throw_captured(const payload& p, void (*done)(ref), ref record) {
  std::size_t skip = 0;
  if (host_heap()) {
    boxed what;
    std::memcpy(&what, p.data, sizeof what);
    if (one_heap() || in_host_heap(what.object)) {
      // Others may read it as well (shared_future): the pointer is copied.
      const std::exception_ptr held = *static_cast<std::exception_ptr*>(what.object);
      done(record);
      std::rethrow_exception(held);
    }
    skip = sizeof what;
  }
  // Copy first: what is thrown must not depend on memory that the release gives back.
  const std::vector<std::byte> bytes(p.data + skip, p.data + p.size);
  done(record);
  reader r(bytes.data(), bytes.size());
  throw_encoded(r);
}

void rethrow(ref record, payload p) {
  if (p.kind == outcome::cancelled) {
    release(record);
    throw cancelled();
  }
  throw_captured(p, release, record);
}

}  // namespace godwit::detail
