// Control objects: what threads wait for that is not the end of one thread, on every substrate and between
// hosts.
//
//   const gw::owned<gw::global_latch> all(3);              // at the calling worker; freed with the block
//   gw::spawn([done = all.get()] { work(); done.count_down(); });
//   all->wait();                                           // suspends the thread, not its worker
//
// An object lies at a home, a worker. Its operations are carried out there, one after the other: inside the
// host under a lock by whoever calls, from other hosts by one message. Who waits is a suspended thread and
// occupies no worker. Handles are plain bytes: copy them into closures, send them anywhere in the run.
// T::make makes an object and destroy() frees it; gw::owned<T> does both.
//
// What a thread did before an operation is seen by whoever goes on because of it, as after a join. An
// object that is used after destroy(), is destroyed while a thread waits for it, or is waited for under a
// checkout, ends the run with the places. Policy child_rtc: nothing here may wait.
// Source: ParalleX and HPX-5, local control objects. docs/control.md, docs/protocols/control.md. Tests:
// tests/global/control_test.cpp.
#pragma once

#include <godwit/detail/control_path.hpp>
#include <godwit/detail/global_owner.hpp>
#include <godwit/detail/values.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace godwit {

/// As a home: the calling worker.
inline constexpr std::uint32_t calling_worker = ~std::uint32_t{0};

namespace detail {

/// A value whose bytes came along.
template <class T>
union value_of_bytes {
  T value;
  explicit value_of_bytes(const void* bytes) noexcept {
    std::memcpy(static_cast<void*>(this), bytes, sizeof(T));
  }
};

[[noreturn, gnu::cold, gnu::noinline]] inline void control_misused(const char* what, const std::string& why,
                                                                   const place& where) {
  throw std::logic_error(std::string("godwit: ") + what + " at " +
                         (where.file != nullptr ? where.file : "?") + ":" + std::to_string(where.line) +
                         ": " + why);
}
/// How many come together.
inline std::uint64_t control_members(const char* what, std::uint64_t n) {
  if (n == 0) throw std::invalid_argument(std::string("godwit: a ") + what + " of 0: at least 1 must come");
  return n;
}

struct no_value {};
template <class R>
using value_or_none = std::conditional_t<std::is_void_v<R>, no_value, R>;

/// What a condition waits for: the value of its std::optional, or nothing if it is a bool.
template <class R>
struct value_of_condition {
  static_assert(std::is_same_v<R, bool>,
                "godwit: a condition of a control object gives back bool or std::optional");
  using type = no_value;
};
template <class T>
struct value_of_condition<std::optional<T>> {
  using type = T;
};

/// Combines values at an object's home.
template <class Op, class T>
concept control_operator = std::is_empty_v<Op> && std::is_default_constructible_v<Op> &&
    std::is_invocable_r_v<T, Op, const T&, const T&>;

/// A handle. What all objects with such a state have in common.
template <class State>
class control_handle {
  static_assert(plain<State> && sizeof(State) <= control_most_bytes && alignof(State) <= 64,
                "godwit: the state of a control object must be plain bytes, at most 512");

 public:
  /// No object.
  control_handle() noexcept = default;
  bool valid() const noexcept { return at_ != 0; }

 protected:
  control_handle(const State& initial, bool alike, std::uint32_t home, const place& where)
      : at_(control_make(std::addressof(initial), sizeof(State), alike, home, where)) {}

  void free(const char* what, const place& where) const { control_free(what, at_, sizeof(State), where); }

  /// f(State&), at the home. @p may_know: see control_call.
  template <class F>
  auto carry_out(const char* what, F f, const place& where, bool may_know = false) const {
    using R = std::invoke_result_t<F&, State&>;
    constexpr auto step = [](void* state, void* closure, void* result) noexcept {
      value_of_bytes<F> own(closure);
      if constexpr (std::is_void_v<R>) {
        own.value(*static_cast<State*>(state));
      } else {
        const R r = own.value(*static_cast<State*>(state));
        std::memcpy(result, std::addressof(r), sizeof r);
      }
      return control_says::done;
    };
    return *run<value_or_none<R>>(what, step, f, false, where, may_know);
  }
  /// When g(State&) is true, or has a value. @p wait: until then, else only if it is so now.
  template <class G>
  auto carry_out_when(const char* what, G g, bool wait, const place& where) const {
    using C = std::invoke_result_t<G&, State&>;
    using R = typename value_of_condition<C>::type;
    static_assert(
        sizeof(G) <= control_closure_bytes,
        "godwit: a condition of a control object is at most 40 bytes: it is kept at the object's home");
    constexpr auto step = [](void* state, void* closure, void* result) noexcept {
      value_of_bytes<G> own(closure);
      const C r = own.value(*static_cast<State*>(state));
      if (!r) return control_says::waiting;
      if constexpr (!std::is_same_v<C, bool>) std::memcpy(result, std::addressof(*r), sizeof *r);
      return control_says::done;
    };
    return run<R>(what, step, g, wait, where);
  }
  /// Nothing: it would have to wait, and must not.
  template <class R, class Closure>
  std::optional<R> run(const char* what, control_step* step, Closure& closure, bool wait, const place& where,
                       bool may_know = true) const {
    static_assert(
        plain<Closure> && sizeof(Closure) <= control_most_bytes,
        "godwit: what is carried out on a control object must be plain bytes, at most 512: it travels");
    static_assert(plain<R> && sizeof(R) <= control_most_bytes,
                  "godwit: what a control object gives back must be plain bytes, at most 512: it travels");
    alignas(R) std::byte result[sizeof(R)];
    const control_call call{what,
                            at_,
                            step,
                            std::addressof(closure),
                            sizeof(Closure),
                            result,
                            std::is_same_v<R, no_value> ? 0 : sizeof(R),
                            wait,
                            may_know};
    if (!control_run(call, where)) return std::nullopt;
    return value_of_bytes<R>(result).value;
  }

 private:
  global_address at_ = 0;
};

}  // namespace detail

/// Makes a control object (or another thing with make and destroy: group) and destroys it at the end.
/// Move-only, plain bytes: lies in the frame of a thread and moves along with it.
template <class Object>
class [[nodiscard]] owned {
 public:
  /// Object::make(args...). (The place is that of this line only in messages of Object::make itself.)
  template <class... Args>
  requires requires(Args&&... a) { Object::make(std::forward<Args>(a)...); }
  explicit owned(Args&&... args)
      : object_(Object::make(std::forward<Args>(args)...)), run_(detail::hot_run()) {}
  owned(const owned&) = delete;  // godwit: not copied: copy the handle, get(), or move the owner
  owned& operator=(const owned&) = delete;
  owned(owned&& other) noexcept : object_(std::exchange(other.object_, {})), run_(other.run_) {}
  owned& operator=(owned&& other) {
    if (this != &other) {
      reset();
      object_ = std::exchange(other.object_, {});
      run_ = other.run_;
    }
    return *this;
  }
  ~owned() { reset(); }

  /// The handle. Throws std::logic_error if the run is over.
  Object get() const {
    detail::require_run(run_, "control object");
    return object_;
  }
  const Object* operator->() const {
    detail::require_run(run_, "control object");
    return &object_;
  }

 private:
  void reset() {
    if (object_.valid() && run_ == detail::hot_run()) std::exchange(object_, {}).destroy();
  }
  Object object_;
  std::uint32_t run_ = 0;
};

/// A control object of the program's own: a state, functions that change it, and conditions that threads
/// wait for.
///
///   struct slots { int free; };
///   auto c = gw::control<slots>::make({4});
///   c.when([](slots& s) noexcept { return s.free > 0 && s.free-- > 0; });   // suspended until there is one
///   c.set([](slots& s) noexcept { ++s.free; });
///
/// Functions and conditions run at the object's home, perhaps in another process: they are plain bytes,
/// noexcept, short, use nothing but the state and what they have captured, and neither spawn nor wait nor
/// use global memory.
template <class State>
class control : public detail::control_handle<State> {
  using base = detail::control_handle<State>;
  static constexpr const char* what = "control object";

 public:
  control() noexcept = default;
  /// At worker @p home. Throws global_bad_alloc; std::invalid_argument if there is no such worker. Cost:
  /// local, or some round trips.
  static control make(const State& initial, std::uint32_t home = calling_worker,
                      detail::place where = detail::place::here()) {
    return control(initial, home, where);
  }
  void destroy(detail::place where = detail::place::here()) const { this->free(what, where); }

  /// f(State&); gives back what it does, plain bytes of at most 512. Then the conditions of all who wait
  /// are asked again, in the order in which they came, until none is true. Does not migrate the thread.
  /// Cost: in the host a lock; else one message; for each thread that goes on what the end of a thread
  /// costs that is waited for.
  template <class F>
  auto set(F f, detail::place where = detail::place::here()) const {
    static_assert(
        std::is_nothrow_invocable_v<F&, State&>,
        "godwit: what is carried out on a control object must be noexcept: it may run on another host");
    if constexpr (std::is_void_v<std::invoke_result_t<F&, State&>>)
      static_cast<void>(this->carry_out(what, f, where));
    else
      return this->carry_out(what, f, where, true);
  }
  /// Wait until g(State&) is true, or has a value, which is given back: g returns bool or std::optional. It
  /// may change the state when it is true, then nobody else comes in between, and must leave it as it is
  /// otherwise. At most 40 bytes of captures. May migrate the thread. Cost: set's, twice if it must wait.
  template <class G>
  auto when(G g, detail::place where = detail::place::here()) const {
    static_assert(
        std::is_nothrow_invocable_v<G&, State&>,
        "godwit: a condition of a control object must be noexcept: it may be asked on another host");
    if constexpr (std::is_same_v<std::invoke_result_t<G&, State&>, bool>)
      static_cast<void>(this->carry_out_when(what, g, true, where));
    else
      return *this->carry_out_when(what, g, true, where);
  }
  /// The same if it is so now: bool or std::optional. Never waits.
  template <class G>
  auto try_when(G g, detail::place where = detail::place::here()) const {
    static_assert(
        std::is_nothrow_invocable_v<G&, State&>,
        "godwit: a condition of a control object must be noexcept: it may be asked on another host");
    if constexpr (std::is_same_v<std::invoke_result_t<G&, State&>, bool>)
      return this->carry_out_when(what, g, false, where).has_value();
    else
      return this->carry_out_when(what, g, false, where);
  }

 private:
  control(const State& initial, std::uint32_t home, const detail::place& where)
      : base(initial, false, home, where) {}
};

/// A latch, or and-gate: threads wait until it has been counted down to 0; from then on it is open.
class global_latch : public detail::control_handle<std::uint64_t> {
  static constexpr const char* what = "global_latch";

 public:
  global_latch() noexcept = default;
  /// @p n: 0 is open. Cost and errors: control::make.
  static global_latch make(std::uint64_t n, std::uint32_t home = calling_worker,
                           detail::place where = detail::place::here()) {
    return global_latch(n, home, where);
  }
  void destroy(detail::place where = detail::place::here()) const { this->free(what, where); }

  /// Throws std::logic_error if fewer than @p n are left; then nothing has changed. Cost: control::set.
  void count_down(std::uint64_t n = 1, detail::place where = detail::place::here()) const {
    const std::uint64_t left = carry_out(
        what,
        [n](std::uint64_t& count) noexcept {
          const std::uint64_t before = count;
          if (before >= n) count -= n;
          return before;
        },
        where);
    if (left < n)
      detail::control_misused(
          "global_latch::count_down",
          "it would count below 0: " + std::to_string(left) + " are left, and this is " + std::to_string(n),
          where);
  }
  /// May migrate the thread. Cost: control::when.
  void wait(detail::place where = detail::place::here()) const {
    static_cast<void>(carry_out_when(what, is_open, true, where));
  }
  bool try_wait(detail::place where = detail::place::here()) const {
    return carry_out_when(what, is_open, false, where).has_value();
  }

 private:
  static constexpr auto is_open = [](std::uint64_t& count) noexcept { return count == 0; };
  global_latch(std::uint64_t n, std::uint32_t home, const detail::place& where)
      : control_handle(n, true, home, where) {}
};

/// A counting semaphore. Who came first is served first.
class global_semaphore : public detail::control_handle<std::uint64_t> {
  static constexpr const char* what = "global_semaphore";

 public:
  global_semaphore() noexcept = default;
  static global_semaphore make(std::uint64_t n, std::uint32_t home = calling_worker,
                               detail::place where = detail::place::here()) {
    return global_semaphore(n, home, where);
  }
  void destroy(detail::place where = detail::place::here()) const { this->free(what, where); }

  /// Take one; wait until there is one. May migrate the thread. Cost: control::when.
  void acquire(detail::place where = detail::place::here()) const {
    static_cast<void>(carry_out_when(what, take_one, true, where));
  }
  /// Take one if there is one now.
  bool try_acquire(detail::place where = detail::place::here()) const {
    return carry_out_when(what, take_one, false, where).has_value();
  }
  /// Give @p n. Throws std::logic_error if there would be more than 2^64 - 1. Cost: control::set.
  void release(std::uint64_t n = 1, detail::place where = detail::place::here()) const {
    const bool fits = carry_out(
        what,
        [n](std::uint64_t& count) noexcept {
          if (count + n < n) return false;
          count += n;
          return true;
        },
        where);
    if (!fits)
      detail::control_misused("global_semaphore::release", "there would be more than 2^64 - 1", where);
  }

 private:
  static constexpr auto take_one = [](std::uint64_t& count) noexcept {
    if (count == 0) return false;
    --count;
    return true;
  };
  global_semaphore(std::uint64_t n, std::uint32_t home, const detail::place& where)
      : control_handle(n, true, home, where) {}
};

namespace detail {
template <class T>
struct reduction_state {
  std::uint64_t left;
  std::uint64_t any;  ///< there is a value
  T value;
};
}  // namespace detail

/// The sum, or what @p Op makes, of @p n contributions, for anybody who asks for it. They are combined in
/// the order in which they come: Op should be associative and commutative, and sums of floating-point
/// numbers may differ in their last bits from run to run. Op: a type without members; must not throw. T:
/// plain bytes, at most 448.
template <class T, class Op = std::plus<T>>
class reduction : public detail::control_handle<detail::reduction_state<T>> {
  static_assert(detail::control_operator<Op, T>,
                "godwit: Op of a reduction is a type without members that combines two values of type T");
  using state = detail::reduction_state<T>;
  using base = detail::control_handle<state>;
  static constexpr const char* what = "reduction";

 public:
  reduction() noexcept = default;
  /// Throws std::invalid_argument for @p n = 0. Cost and errors: control::make.
  static reduction make(std::uint64_t n, std::uint32_t home = calling_worker,
                        detail::place where = detail::place::here()) {
    return reduction(n, home, where);
  }
  void destroy(detail::place where = detail::place::here()) const { this->free(what, where); }

  /// Throws std::logic_error if there were n before. Never waits. Cost: control::set.
  void contribute(const T& value, detail::place where = detail::place::here()) const {
    const bool taken = this->carry_out(
        what,
        [value](state& s) noexcept {
          if (s.left == 0) return false;
          s.value = s.any != 0 ? T(Op{}(s.value, value)) : value;
          s.any = 1;
          --s.left;
          return true;
        },
        where);
    if (!taken) detail::control_misused("reduction::contribute", "all contributions have come", where);
  }
  /// When all have come. Any number of times. May migrate the thread. Cost: control::when.
  T get(detail::place where = detail::place::here()) const {
    return *this->carry_out_when(what, value_of, true, where);
  }
  /// The value if all have come.
  std::optional<T> try_get(detail::place where = detail::place::here()) const {
    return this->carry_out_when(what, value_of, false, where);
  }

 private:
  static constexpr auto value_of = [](state& s) noexcept {
    return s.left == 0 ? std::optional<T>(s.value) : std::nullopt;
  };
  reduction(std::uint64_t n, std::uint32_t home, const detail::place& where)
      : base(state{detail::control_members(what, n), 0, T{}}, true, home, where) {}
};

namespace detail {

template <class T>
struct all_reduce_state {
  std::uint64_t members, left, generation;
  T value;   ///< of those that have come in this generation
  T result;  ///< of the last one
};
/// What travels to the home; the first word is kept there while the thread waits.
template <class T>
struct contribution {
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  std::uint64_t generation;  ///< that it was part of; none: it has not come yet
  T value;
};

/// @p Op combines the values of one generation: the last one to come lets all go on.
template <class T, class Op>
control_says contribute_and_wait(void* at, void* closure, void* result) noexcept {
  auto& s = *static_cast<all_reduce_state<T>*>(at);
  auto& generation = *static_cast<std::uint64_t*>(closure);
  if (generation == contribution<T>::none) {
    const value_of_bytes<contribution<T>> mine(closure);
    s.value = s.left == s.members ? mine.value.value : T(Op{}(s.value, mine.value.value));
    if (--s.left != 0) {
      generation = s.generation;
      return control_says::waiting;
    }
    s.result = s.value;
    s.left = s.members;
    ++s.generation;
  } else if (generation == s.generation) {
    return control_says::waiting;
  }
  if constexpr (!std::is_empty_v<T>) std::memcpy(result, std::addressof(s.result), sizeof s.result);
  return control_says::done;
}

}  // namespace detail

/// @p n threads come with a value each, and all get what @p Op makes of them; then the next n come. The
/// threads are the same each time: none comes twice in one generation. Order, Op and T as of reduction; T
/// at most 240 bytes.
template <class T, class Op = std::plus<T>>
class all_reduce : public detail::control_handle<detail::all_reduce_state<T>> {
  static_assert(detail::control_operator<Op, T>,
                "godwit: Op of an all_reduce is a type without members that combines two values of type T");
  using state = detail::all_reduce_state<T>;
  using base = detail::control_handle<state>;
  static constexpr const char* what = "all_reduce";

 public:
  all_reduce() noexcept = default;
  /// Throws std::invalid_argument for @p n = 0. Cost and errors: control::make.
  static all_reduce make(std::uint64_t n, std::uint32_t home = calling_worker,
                         detail::place where = detail::place::here()) {
    return all_reduce(n, home, where);
  }
  void destroy(detail::place where = detail::place::here()) const { this->free(what, where); }

  /// Come with @p value, and wait for the others. May migrate the thread. Cost: control::set.
  T contribute(const T& value, detail::place where = detail::place::here()) const {
    detail::contribution<T> mine{detail::contribution<T>::none, value};
    return *this->template run<T>(what, detail::contribute_and_wait<T, Op>, mine, true, where);
  }

 private:
  all_reduce(std::uint64_t n, std::uint32_t home, const detail::place& where)
      : base(state{detail::control_members(what, n), n, 0, T{}, T{}}, true, home, where) {}
};

namespace detail {
struct keep_first {
  no_value operator()(no_value a, no_value) const noexcept { return a; }
};
}  // namespace detail

/// @p n threads wait for each other, again and again: an all_reduce of nothing.
class global_barrier : public detail::control_handle<detail::all_reduce_state<detail::no_value>> {
  using state = detail::all_reduce_state<detail::no_value>;
  static constexpr const char* what = "global_barrier";

 public:
  global_barrier() noexcept = default;
  /// Throws std::invalid_argument for @p n = 0. Cost and errors: control::make.
  static global_barrier make(std::uint64_t n, std::uint32_t home = calling_worker,
                             detail::place where = detail::place::here()) {
    return global_barrier(n, home, where);
  }
  void destroy(detail::place where = detail::place::here()) const { this->free(what, where); }

  /// May migrate the thread. Cost: control::set.
  void arrive_and_wait(detail::place where = detail::place::here()) const {
    detail::contribution<detail::no_value> mine{detail::contribution<detail::no_value>::none, {}};
    static_cast<void>(this->template run<detail::no_value>(
        what, detail::contribute_and_wait<detail::no_value, detail::keep_first>, mine, true, where));
  }

 private:
  global_barrier(std::uint64_t n, std::uint32_t home, const detail::place& where)
      : control_handle(state{detail::control_members(what, n), n, 0, {}, {}}, true, home, where) {}
};

}  // namespace godwit
