// future<T> and shared_future<T>: the results of threads.
//
// A future is two words (plus room for T) in the parent's frame. As long as the parent was not stolen
// the value simply lies in it. If the parent's continuation left, it holds the location of the join
// record that the child will complete (greedy join: whoever comes second runs the continuation).
// Sources: "Distributed continuation stealing is more scalable than you might think", III-A and V-D.
// Protocol: docs/protocols/join.md. Tests: tests/api/future_test.cpp.
#pragma once

#include <godwit/detail/move_out.hpp>
#include <godwit/detail/slow_path.hpp>
#include <godwit/detail/values.hpp>

#include <concepts>
#include <cstring>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace godwit {

template <class T>
class future;
template <class T>
class shared_future;

namespace detail {

/// All workers of the run, or those of this host, have one heap: what owns memory is handed over as it is.
inline bool one_heap() noexcept { return hot_test<offsetof(hot_words, one_heap)>(); }
inline bool host_heap() noexcept { return hot_test<offsetof(hot_words, host_heap)>(); }

/// Results that are not plain bytes are in boxes, and not encoded. On several hosts those without a codec.
template <class T>
bool in_boxes() noexcept {
  if constexpr (encodable<T>)
    return one_heap();
  else
    return host_heap();
}

/// Link of a value that lives in a frame but is not plain bytes. Before a frame may leave, the runtime
/// encodes what is linked and lies in it; the list is the owner's alone.
struct pending_value {
  pending_value* next = nullptr;
  pending_value** from = nullptr;  // who points at us; null: not linked
  /// Turns the value into a completed record, unlinks. Once linked
  void (*encode)(pending_value*);

  pending_value() noexcept {}  // a store less where nothing is ever linked
  void link(void (*how)(pending_value*)) noexcept {
    if (one_heap()) return;                         // it goes along as it is
    if (host_heap() && in_host_heap(this)) return;  // so does who owns it
    encode = how;
    pending_value*& head = hot().pending;
    next = head;
    from = &head;
    if (next != nullptr) next->from = &next;
    head = this;
  }
  void unlink() noexcept {
    if (from == nullptr) return;
    *from = next;
    if (next != nullptr) next->from = from;
    from = nullptr;
  }
};

// state_ of a future: a record's location, or one of these.
inline constexpr ref no_state = 0;
inline constexpr ref in_frame = 1;
/// With a record's location: the future is the variable that its spawn filled, and was never moved
/// (docs/protocols/join.md, Read along).
inline constexpr ref unmoved = 2;
constexpr ref record_in(ref state) noexcept { return state & ~unmoved; }

struct future_access;

/// Where the value lies while it is still in the frame.
template <class T>
union value_room {
  T value;
  value_room() noexcept {}
  ~value_room() {}
};
template <>
union value_room<void> {};

struct empty_base {};

template <class T>
constexpr bool is_plain_result = std::is_void_v<T> || plain<T>;

[[noreturn, gnu::cold]] void future_taken_twice() noexcept;

/// Zero, for who looks at the bytes of frames, though for the compiler nothing lives there.
inline void forget_bytes(void* at, std::size_t bytes) noexcept {
  std::memset(at, 0, bytes);
  asm volatile("" : : "r"(at) : "memory");
}

template <class T>
boxed box(T&& value) {
  return {new T(std::move(value)), [](void* p) noexcept { delete static_cast<T*>(p); }};
}

/// Can T really be copied? The standard's containers say yes whatever their elements are.
template <class T>
struct really_copyable : std::bool_constant<std::copy_constructible<T>> {};
template <class T>
requires(std::copy_constructible<T>&& requires { typename T::value_type; } &&
         !std::same_as<typename T::value_type, T>) struct really_copyable<T>
    : really_copyable<typename T::value_type> {
};
template <template <class...> class Product, class... T>
requires(std::same_as<Product<T...>, std::pair<T...>> || std::same_as<Product<T...>, std::tuple<T...>> ||
         std::same_as<Product<T...>, std::variant<T...>>) struct really_copyable<Product<T...>>
    : std::conjunction<really_copyable<T>...> {
};

template <class T, bool Again>
T unbox(const payload& p) {
  boxed& b = *reinterpret_cast<boxed*>(const_cast<std::byte*>(p.data));  // in the record
  T& value = *static_cast<T*>(b.object);
  if constexpr (Again) {  // for others to read as well
    if constexpr (really_copyable<T>::value) {
      return static_cast<const T&>(value);
    } else if constexpr (encodable<T>) {
      writer w(true);
      w.put(value);
      reader r(w.data(), w.size(), true);
      return r.get<T>();
    }
    future_taken_twice();
  }
  b.object = nullptr;
  const struct owner {
    T* p;
    ~owner() { delete p; }
  } own{&value};
  return std::move(value);
}

/// @p Again: the result of a shared_future, which others read as well.
template <class T, bool Again = false>
T decode(const payload& p) {
  if constexpr (!plain<T>) {
    if (in_boxes<T>()) {
      if constexpr (!encodable<T>) need_this_host(*reinterpret_cast<const boxed*>(p.data), typeid(T).name());
      return unbox<T, Again>(p);
    }
  }
  if constexpr (encodable<T>) {
    reader r(p.data, p.size, Again);
    return r.get<T>();
  } else {
    codec_missing(typeid(T).name());
  }
}

/// Out of a complete record that has no other consumer, which is freed.
template <class T>
T take_value(ref record, const payload& p) {
  const struct freed_at_end {
    ref r;
    ~freed_at_end() { free_taken(r); }
  } guard{record};
  if constexpr (!std::is_void_v<T>) return decode<T>(p);
}

/// The drop_function of encoded results. One whose codec throws is not taken apart.
template <class T>
void drop_value(ref record, const payload& p) noexcept {
  try {
    static_cast<void>(take_value<T>(record, p));
  } catch (...) {
  }
}

/// @p value as the bytes of a result.
template <class T>
writer encoded(T& value) {
  if constexpr (encodable<T>) {
    writer w;
    w.put(value);
    if (w.has_owners()) w.put(&drop_value<T>);  // OW1
    return w;
  } else {
    codec_missing(typeid(T).name());
  }
}

inline owning owners_in(const writer& encoded) noexcept {
  return encoded.has_owners() ? owning::values : owning::nothing;
}

/// Put a result into a record whose parent has left; throws what encoding it throws. @p value is moved from.
template <class R>
void publish_value(ref record, R& value) {
  if constexpr (plain<R>) {
    publish(record, outcome::value, &value, sizeof(R));
  } else {
    if (in_boxes<R>()) {
      return publish_boxed(record, outcome::value, box<R>(std::move(value)));
    }
    const writer w = encoded(value);
    publish(record, outcome::value, w.data(), w.size(), owners_in(w));
  }
}

}  // namespace detail

/// The result of one thread, for one consumer. Move-only; join() once.
/// Destroying a future that was not joined detaches the thread: it runs on, its result is dropped, and run()
/// still waits for it.
template <class T>
class [[nodiscard]] future
    : private std::conditional_t<detail::is_plain_result<T>, detail::empty_base, detail::pending_value> {
 public:
  using value_type = T;

  /// No thread; valid() is false.
  future() noexcept : state_(detail::no_state) {}

  [[gnu::always_inline]] future(future&& other) noexcept : state_(detail::no_state) { take(other); }
  [[gnu::always_inline]] future& operator=(future&& other) noexcept {
    if (this != &other) {
      drop();
      take(other);
    }
    return *this;
  }
  [[gnu::always_inline]] ~future() { drop(); }

  /// There is a result to join.
  bool valid() const noexcept { return state_ != detail::no_state; }

  /// join() would not wait. Cost: local, or one load of another worker's memory.
  bool ready() const noexcept {
    return state_ == detail::in_frame ||
           (state_ != detail::no_state && detail::is_complete(detail::record_in(state_)));
  }

  /// Wait for the thread, give back its result, or throw what it threw. Once: afterwards valid() is false.
  /// Unstolen: one test. Otherwise the calling thread may be suspended and go on at another worker
  /// (greedy join). Calling it on a future without a thread is a bug that ends the program.
  [[gnu::always_inline]] T join(detail::place where = detail::place::here()) {
    if (state_ == detail::in_frame) [[likely]] {
#ifndef NDEBUG  // with it, only where the thread really leaves
      if (detail::hot_checkouts()) [[unlikely]]
        detail::checkout_held("join", where.file, where.line);
#endif
      state_ = detail::no_state;
      if constexpr (!std::is_void_v<T>) {
        if constexpr (!detail::is_plain_result<T>) this->unlink();
        return detail::moved_out(room_.value);
      } else {
        return;
      }
    }
    return join_record(where.file, where.function, where.line);
  }

  /// Make the result readable any number of times, by any thread. This future becomes invalid.
  shared_future<T> share() && { return shared_future<T>(std::move(*this)); }
  shared_future<T> share() & { return shared_future<T>(std::move(*this)); }

 private:
  friend struct detail::future_access;
  friend class shared_future<T>;

  struct uninitialised {};
  [[gnu::always_inline]] explicit future(uninitialised) noexcept {}

  [[gnu::noinline, gnu::cold]] T join_record(const char* file, const char* function, unsigned line) {
    const detail::ref state = std::exchange(state_, detail::no_state), record = detail::record_in(state);
    // Only whether it lies in a frame leaves this function, not where: else it could not live in registers.
    const bool in_frame = state != record && lies_in_frame();
    const detail::payload p = detail::wait(in_frame ? state : record, file, function, line);
    if (p.kind != detail::outcome::value) detail::rethrow(record, p);
    return detail::take_value<T>(record, p);
  }

  [[gnu::always_inline]] bool lies_in_frame() const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(this);
    return at > reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) && at < detail::end_of_frames();
  }

  [[gnu::always_inline]] void drop() noexcept {
    if (state_ == detail::no_state) return;
    if (state_ == detail::in_frame) {
      if constexpr (!detail::is_plain_result<T>) {
        asm("" : : "r"(&room_) : "memory");  // there is a value: compilers cannot see that and warn
        this->unlink();
        room_.value.~T();
      }
    } else {
      detail::detach(detail::record_in(state_));
    }
    state_ = detail::no_state;
  }

  [[gnu::always_inline]] void take(future& other) noexcept {
    state_ = detail::record_in(std::exchange(other.state_, detail::no_state));
    if constexpr (!std::is_void_v<T>) {
      if (state_ == detail::in_frame) {
        // Without a value there is nothing to move, but compilers cannot see that and warn.
        if constexpr (!detail::is_plain_result<T>) asm("" : : "r"(&other.room_) : "memory");
        new (&room_.value) T(std::move(other.room_.value));
        if constexpr (!detail::is_plain_result<T>) {
          other.room_.value.~T();
          other.unlink();
          link_here();
        }
      }
    }
  }

  void link_here() noexcept requires(!detail::is_plain_result<T>) {
    if constexpr (!encodable<T>)
      if (detail::host_heap()) return;  // its thread stays where that is
    this->link([](detail::pending_value* v) { static_cast<future*>(v)->to_record(); });
  }

  /// From "value in the frame" to "completed record".
  void to_record() {
    if constexpr (std::is_void_v<T>) {
      state_ = detail::make_completed(detail::outcome::value, nullptr, 0);
    } else {
      detail::ref record = 0;
      if constexpr (plain<T>) {
        record = detail::make_completed(detail::outcome::value, &room_.value, sizeof(T));
      } else if (detail::in_boxes<T>()) {
        record = detail::make_completed_boxed(detail::outcome::value, detail::box<T>(std::move(room_.value)));
        room_.value.~T();
      } else {
        record = encoded_record();
        room_.value.~T();
        detail::forget_bytes(&room_, sizeof room_);  // what is left of its pointers would hold the thread
      }
      state_ = record;
      // Last: as long as something is linked, the expose signal publishes nothing.
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if constexpr (!plain<T>) this->unlink();
    }
  }

  /// Of the value in the frame, or of what its codec has thrown: no caller could throw that.
  detail::ref encoded_record() noexcept {
    try {
      const writer w = detail::encoded(room_.value);
      return detail::make_completed(detail::outcome::value, w.data(), w.size(), detail::owners_in(w));
    } catch (...) {
      return detail::capture_exception();
    }
  }

  detail::ref state_;
  [[no_unique_address]] detail::value_room<T> room_;
};

namespace detail {
/// What spawn() and the handles' codecs may do with a future.
struct future_access {
  template <class T>
  [[gnu::always_inline]] static future<T> make() noexcept {
    return future<T>(typename future<T>::uninitialised{});
  }
  /// Of a record. What makes the record may throw, and has then done so before there is a future.
  template <class T>
  static future<T> of(ref record) noexcept {
    future<T> f = make<T>();
    state(f) = record;
    return f;
  }
  template <class T>
  static ref& state(future<T>& f) noexcept {
    return f.state_;
  }
  /// The record is the caller's from now on.
  template <class T>
  static ref take_record(future<T>& f) noexcept {
    return record_in(std::exchange(f.state_, no_state));
  }
  template <class T>
  static void* room(future<T>& f) noexcept {
    return &f.room_;
  }
  template <class T>
  static void link(future<T>& f) noexcept {
    f.link_here();
  }
  template <class T>
  static void to_record(future<T>& f) {
    if (f.state_ == in_frame) f.to_record();
  }
  /// Wait, but leave the outcome in the future. May migrate unless it is in the frame.
  template <class T>
  [[gnu::always_inline]] static void settle(future<T>& f, const place& where) {
#ifndef NDEBUG
    if (detail::hot_checkouts()) [[unlikely]]
      checkout_held("join", where.file, where.line);
#endif
    if (f.state_ != in_frame) [[unlikely]]
      static_cast<void>(wait(record_in(f.state_), where.file, where.function, where.line));
  }
  template <class T>
  static ref& record(shared_future<T>& f) noexcept {
    return f.record_;
  }
};
}  // namespace detail

/// The result of one thread for any number of consumers, in any threads of the run. Copyable: copies refer to
/// the same result, the last one frees it. Cost of a copy: one atomic, possibly on another worker's memory.
template <class T>
class shared_future {
 public:
  using value_type = T;

  shared_future() noexcept = default;
  /// From a future, in particular from spawn(). Local; allocates a record if the value lies in the frame.
  shared_future(future<T>&& f) : record_(0) {  // NOLINT: implicit on purpose, like std::shared_future
    detail::future_access::to_record(f);
    record_ = detail::future_access::take_record(f);
  }
  // Two copy operations: were there one taking const&, closures that capture a shared_future by value would
  // count as ordinary copyable types, and spawn() could not tell them from closures that capture a vector.
  shared_future(shared_future& other) noexcept : record_(other.record_) { keep(); }
  template <std::same_as<shared_future> Self>
  shared_future(const Self& other) noexcept : record_(other.record_) {
    keep();
  }
  shared_future(shared_future&& other) noexcept : record_(std::exchange(other.record_, 0)) {}
  shared_future& operator=(shared_future other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  ~shared_future() {
    if (record_ != 0) detail::release(record_);
  }

  bool valid() const noexcept { return record_ != 0; }
  bool ready() const noexcept { return record_ != 0 && detail::is_complete(record_); }

  /// Wait for the thread and give back a copy of its result, or throw what it threw. Any number of times.
  /// May suspend and migrate the calling thread. When the thread ends, one waiter runs at once, the others
  /// queue.
  T get(detail::place where = detail::place::here()) const {
    const detail::ref record = record_;
    const detail::payload p = detail::wait(record, where.file, where.function, where.line);
    if (p.kind != detail::outcome::value) {
      detail::retain(record);  // rethrow gives one reference back
      detail::rethrow(record, p);
    }
    if constexpr (!std::is_void_v<T>) return detail::decode<T, true>(p);  // OW3: this is still a reference
  }

 private:
  friend struct detail::future_access;
  void keep() const noexcept {
    if (record_ != 0) detail::share(record_);
  }
  detail::ref record_ = 0;
};

/// A future as a result or argument: its record travels.
template <class T>
struct codec<future<T>> {
  static void write(writer& w, future<T>& f) {
    if (w.again()) detail::future_taken_twice();
    detail::future_access::to_record(f);
    if (f.valid()) w.hands_over();
    w.put(detail::future_access::take_record(f));
  }
  static future<T> read(reader& r) {
    if (r.again()) detail::future_taken_twice();
    future<T> f;
    detail::future_access::state(f) = r.get<detail::ref>();
    return f;
  }
};

/// A shared future as a result or argument: the reference travels with it. Inside the value of another shared
/// future it stays there, as long as that value, and every reader gets one of its own.
template <class T>
struct codec<shared_future<T>> {
  static void write(writer& w, shared_future<T>& f) {
    detail::ref& record = detail::future_access::record(f);
    if (f.valid()) w.hands_over();
    w.put(w.again() ? record : std::exchange(record, 0));
  }
  static shared_future<T> read(reader& r) {
    shared_future<T> f;
    detail::ref& record = detail::future_access::record(f);
    record = r.get<detail::ref>();
    if (r.again() && record != 0) detail::share(record);  // OW3
    return f;
  }
};

}  // namespace godwit
