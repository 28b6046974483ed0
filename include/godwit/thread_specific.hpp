// thread_specific<T>: a T for each thread that asks for one; it follows the thread to other workers.
// Substrate threads only.
//
// C++'s thread_local belongs to the worker (the OS thread): a thread that suspends may find another one's
// afterwards. docs/threads.md. Code: src/sync/thread_specific.cpp. Test:
// tests/threads/specific_test.cpp.
#pragma once

#include <godwit/detail/park.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace godwit {

namespace detail {

using destroy_fn = void(void* value);

/// One thread_specific object: a place in the threads' tables, and a number that no other ever has.
struct specific_key {
  std::uint32_t index;
  std::uint64_t number;
};
specific_key new_specific_key();
void free_specific_key(specific_key k) noexcept;
/// The calling thread's value; null: none.
void* get_specific(specific_key k) noexcept;
/// The first in a thread may migrate it. @p destroy is called at the thread's end, in it.
void set_specific(specific_key k, void* value, destroy_fn* destroy);
/// End all values of the thread. For who sets thread_block::at_end itself: call it there.
void end_specifics(thread_block* block) noexcept;

}  // namespace detail

/// Usually a global. Destroy it after the threads that used it, or their values live on until these end.
/// Cost of an access: a call and some loads; of the first one in a thread: an allocation, and a spawned
/// thread parts from its parent.
template <class T>
class thread_specific {
 public:
  /// Each thread's T begins as T().
  thread_specific() requires std::default_initializable<T> : make_([] { return std::make_unique<T>(); }),
                                                             key_(detail::new_specific_key()) {}
  /// Each thread's T begins as what @p make gives back, called in that thread.
  template <class F>
  requires std::is_invocable_r_v<T, F&>
  explicit thread_specific(F make)
      : make_([make]() mutable { return std::unique_ptr<T>(new T(make())); }),
        key_(detail::new_specific_key()) {}
  thread_specific(const thread_specific&) = delete;
  thread_specific& operator=(const thread_specific&) = delete;
  ~thread_specific() { detail::free_specific_key(key_); }

  /// The calling thread's.
  T& get() {
    if (void* p = detail::get_specific(key_)) [[likely]]
      return *static_cast<T*>(p);
    std::unique_ptr<T> made = make_();
    T& value = *made;
    detail::set_specific(key_, made.get(), [](void* p) { delete static_cast<T*>(p); });
    static_cast<void>(made.release());
    return value;
  }
  T& operator*() { return get(); }
  T* operator->() { return &get(); }
  /// The calling thread has one.
  bool has_value() const noexcept { return detail::get_specific(key_) != nullptr; }
  /// Destroy the calling thread's.
  void reset() {
    if (void* p = detail::get_specific(key_)) {
      detail::set_specific(key_, nullptr, nullptr);
      delete static_cast<T*>(p);
    }
  }

 private:
  std::function<std::unique_ptr<T>()> make_;
  detail::specific_key key_;
};

}  // namespace godwit
