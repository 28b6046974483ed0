// future<T> where T cannot migrate: a std::unique_ptr to a class, a std::function, a class without a codec...
// godwit::create makes them, substrate threads only. Its interface is that of future, but for share. Included
// by future.hpp. Test: tests/threads/thread_test.cpp.
#pragma once

#include <godwit/future.hpp>

#include <atomic>
#include <optional>

namespace godwit {

namespace detail {
/// The result's place: on the heap, held by the thread and by its future.
template <class T>
struct result_box {
  std::optional<T> value;
  std::atomic<std::uint32_t> holders{2};  ///< W and R both holders, each once: the last one deletes
  static void release(result_box* b) noexcept {
    if (b->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete b;
  }
};
}  // namespace detail

template <class T>
requires(!std::is_void_v<T> && std::is_object_v<T> && !migratable<T>) class [[nodiscard]] future<T> {
 public:
  using value_type = T;

  future() noexcept = default;
  future(future&& other) noexcept
      : record_(std::exchange(other.record_, detail::no_state)), box_(other.box_) {}
  future& operator=(future&& other) noexcept {
    if (this != &other) {
      drop();
      record_ = std::exchange(other.record_, detail::no_state);
      box_ = other.box_;
    }
    return *this;
  }
  ~future() { drop(); }

  bool valid() const noexcept { return record_ != detail::no_state; }
  bool ready() const noexcept { return record_ != detail::no_state && detail::is_complete(record_); }
  T join(detail::place where = detail::place::here()) {
    const detail::ref record = std::exchange(record_, detail::no_state);
    const detail::payload p = detail::wait(record, where.file, where.function, where.line);
    struct let_go {
      detail::result_box<T>* box;
      ~let_go() { detail::result_box<T>::release(box); }
    } at_end{box_};
    if (p.kind == detail::outcome::error) detail::rethrow(record, p);
    detail::release(record);
    return std::move(*box_->value);
  }

 private:
  friend struct detail::future_access;
  void drop() noexcept {
    if (record_ == detail::no_state) return;
    detail::detach(record_);
    detail::result_box<T>::release(box_);
    record_ = detail::no_state;
  }
  detail::ref record_ = detail::no_state;
  detail::result_box<T>* box_ = nullptr;
};

}  // namespace godwit
