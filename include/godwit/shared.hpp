// Objects that main makes before or between runs, and that all workers of the host share as one.
//
//   static std::unordered_map<int, long>* memo;       // or gw::shared_global<std::unordered_map<int, long>>
//   {
//     gw::shared_scope shared;
//     memo = new std::unordered_map<int, long>();
//     lock = new std::mutex;
//   }
//   gw::run<long>([] { ... std::lock_guard l(*lock); memo->emplace(n, f(n)); ... });
//   std::cout << memo->size();                          // what threads put in is there
//
// Other memory of main is copied for each worker when a run begins. Document: docs/heap.md. Test:
// tests/heap/shared_scope_test.cpp.
#pragma once

#include <utility>

namespace godwit {

/// While it lives, what the calling OS thread of main allocates (new, malloc, what libraries allocate in its
/// calls) lies in a heap that the workers of every later run on this host share, and that stays for main
/// afterwards. Main changes such objects inside of a scope only: what they would allocate outside of it is
/// main's own, and each worker would have a copy of that. Free them anywhere. Scopes may be nested, and run
/// may be called in one: nothing that the library allocates is shared. Other OS threads are not affected. In
/// a thread of a run it does nothing: all that threads allocate is shared on one host.
///
/// When a run ends, blocks of threads stay if main can reach them, through shared objects, variables, stacks
/// or its heap; else they are freed. Where main has other OS threads nothing is freed.
///
/// A run whose workers do not share memory with main is refused: under MPI, on several hosts, with
/// --godwit-heap=private, in a child that main forked, and after a run in which workers were killed, as
/// objects may be torn. Where malloc is not the library's (sanitizers) only the substrates threads and sim
/// work; and after a run on those none on substrate processes.
///
/// Throws std::runtime_error if 16 other OS threads of main are in one. Cost: the first one some system
/// calls; then a few nanoseconds.
class shared_scope {
 public:
  shared_scope();
  ~shared_scope();
  shared_scope(const shared_scope&) = delete;
  shared_scope& operator=(const shared_scope&) = delete;

 private:
  bool counts_;
};

namespace detail {
/// This process is main's, and no run was killed.
bool are_shared_objects_mains() noexcept;
/// Throws std::logic_error in a thread of a run.
void need_main(const char* what);
}  // namespace detail

/// One object of type T for main and all workers of the host, made in a shared_scope. A global, a static or a
/// local variable of main.
template <class T>
class shared_global {
 public:
  /// T(arguments...). Throws std::logic_error in a thread; what shared_scope and T throw.
  template <class... Args>
  explicit shared_global(Args&&... arguments) {
    detail::need_main("a shared_global");
    const shared_scope here;
    object_ = new T(std::forward<Args>(arguments)...);
  }
  /// Destroys the object, unless a killed run may have torn it. Processes that were forked from main's, and
  /// come here when they exit, leave it alone.
  ~shared_global() {
    if (detail::are_shared_objects_mains()) delete object_;
  }
  shared_global(const shared_global&) = delete;
  shared_global& operator=(const shared_global&) = delete;

  /// What -> gives back: in main a shared_scope lives with it, to the end of the expression, so that a
  /// container may grow.
  class access {
   public:
    T* operator->() const noexcept { return object_; }

   private:
    friend shared_global;
    explicit access(T* object) : object_(object) {}
    T* const object_;
    const shared_scope here_;
  };
  access operator->() const { return access(object_); }
  /// In main: to read, or in a shared_scope.
  T& operator*() const noexcept { return *object_; }
  T* get() const noexcept { return object_; }

 private:
  T* object_ = nullptr;
};

}  // namespace godwit
