// spawn and invoke: create threads whose continuations can be stolen.
//
// spawn runs the child at once, on the same stack just below the caller (child-first); what waits to be
// stolen is the *caller's continuation*. Unstolen, a spawn is a call with a few stores: no allocation, no
// lock, no fence. Sources: "Uni-address threads" 5.2, figure 4; THE protocol with a split deque.
// Protocol: docs/protocols/deque.md. Tests: tests/api/spawn_test.cpp, tests/compile_fail/.
//
// With run.hpp, which it includes, all that a program needs that only spawns and joins; godwit.hpp is nearly
// everything.
#pragma once

#include <godwit/detail/cancelled.hpp>
#include <godwit/detail/fork_call.hpp>
#include <godwit/future.hpp>
#include <godwit/run.hpp>

#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

// A sanitizer must hear which stack runs. And what tells ThreadSanitizer so must not be followed itself: it
// begins on one stack and ends on another.
#if defined(__clang__)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GODWIT_FOLLOWED_STACKS
#endif
#if __has_feature(thread_sanitizer)
#define GODWIT_UNFOLLOWED __attribute__((disable_sanitizer_instrumentation))
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GODWIT_FOLLOWED_STACKS
#if defined(__SANITIZE_THREAD__)
#define GODWIT_UNFOLLOWED __attribute__((no_sanitize("thread")))
#endif
#endif
#ifndef GODWIT_UNFOLLOWED
#define GODWIT_UNFOLLOWED
#endif

namespace godwit {

namespace detail {

/// Between a spawn and its child nobody catches.
template <class T>
constexpr bool moves_quietly = std::is_nothrow_move_constructible_v<T> || plain<T>;

/// A value on the heap, taken once: its bytes may be moved where it itself must not, and moving it does not
/// throw.
template <class T>
class boxed_value {
 public:
  template <class U>
  boxed_value(std::in_place_t, U&& u) : value_(new T(std::forward<U>(u))) {}
  boxed_value(const boxed_value& other) requires std::copy_constructible<T> : value_(new T(*other.value_)) {}
  boxed_value(boxed_value&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  ~boxed_value() { delete value_; }
  T&& take() noexcept { return std::move(*value_); }
  const void* address() const noexcept { return value_; }

 private:
  T* value_;
};
template <class F>
struct boxed_callable : boxed_value<F> {
  explicit boxed_callable(F&& f) : boxed_value<F>(std::in_place, std::move(f)) {}
  decltype(auto) operator()() {
    if (!one_heap()) need_this_host(this->address(), typeid(F).name());
    return this->take()();
  }
};

/// An argument of a thread in its closure. What throws when it is moved may own memory after that as well, so
/// it is moved once, into a box.
template <class T, class U>
[[gnu::always_inline]] inline auto kept_argument(U&& u) {
  if constexpr (moves_quietly<T>)
    return T(std::forward<U>(u));
  else
    return boxed_value<T>(std::in_place, std::forward<U>(u));
}
template <class T>
[[gnu::always_inline]] inline T&& taken_argument(T& kept) noexcept {
  return std::move(kept);
}
template <class T>
T&& taken_argument(boxed_value<T>& kept) noexcept {
  return kept.take();
}

template <class F, class... Args>
using result_of = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;

template <class T>
using slot_type = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T>
union manual {
  T value;
  manual() noexcept {}
  ~manual() {}
};

/// A result in its child's frame. C libraries write a short text by masked stores of a whole vector register,
/// and processors let every load of the bytes under the mask wait for those: so behind a text there must not
/// be what the child saved of its parent's registers.
template <class R>
union result_room {
  static constexpr std::size_t behind = has_room_for_text<R> ? 32 : 0;
  R value;
  std::byte bytes[sizeof(R) + behind];
  result_room() noexcept {}
  ~result_room() {}
};

// A closure of at most two words rides in registers.
template <class F>
constexpr bool in_registers = std::is_trivially_copyable_v<F> && sizeof(F) <= 2 * sizeof(std::uintptr_t);

// Can a closure hold the address of something in its parent's frame? Packed structures aside.
template <class F>
constexpr bool may_hold_address = sizeof(F) >= sizeof(void*) && alignof(F) >= alignof(void*);

// Or in memory that it owns, as a std::function does? Move-only closures, which hold futures as a rule, are
// taken not to.
template <class F>
constexpr bool may_hide_address = !plain<F> && std::copy_constructible<F>;
template <class F>
constexpr bool may_hide_address<boxed_callable<F>> = true;

/// The thread around one callable. Runs on the parent's stack, just below it.
template <class F, class R>
struct child {
  // A result that is not plain is put where the parent's future wants it, together with its list link.
  static constexpr bool by_word = plain<R> && sizeof(slot_type<R>) <= sizeof(std::uintptr_t);

  // The work on both sides of the user's callable costs what the whole library is measured by. noexcept is
  // what makes an exception in flight stop here in both search phases.
  [[gnu::noinline, gnu::visibility("hidden")]] GODWIT_UNFOLLOWED static word_pair run(std::uintptr_t a0,
                                                                                      std::uintptr_t a1,
                                                                                      spawn_slot* slot,
                                                                                      void* out) noexcept {
    announce_here();
    // What outlives a rare call waits in memory: a register for it would be saved and restored by each spawn.
    std::uintptr_t kept[in_registers<F> && sizeof(F) > sizeof(a0) ? 2 : 1];
    manual<F> f;
    adopt(f, a0, a1);  // before the entry counts: the closure is ours, not the parent's
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the expose signal may come at any instruction
#ifdef GODWIT_COUNT_SPAWNS  // costs fib(35) 1 to 2 %: so not always. All of a program must be compiled alike
    ++hot().spawns;
#endif
    // the entry counts from here; call and slot are complete
    hot_store<offsetof(hot_words, bottom)>(slot + 1);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (hot_test<offsetof(hot_words, poll)>()) [[unlikely]] {
      if constexpr (in_registers<F>) std::memcpy(kept, static_cast<const void*>(&f), sizeof(F));
      in_memory(kept);
      // what a closure owns must be used here first
      const bool refuses = spawn_point(plain<F>, std::is_same_v<R, always_begins>);
      in_memory(kept);
      if constexpr (in_registers<F>) std::memcpy(static_cast<void*>(&f), kept, sizeof(F));
      if (refuses) {
        f.value.~F();
        return refused(slot);
      }
    }

    // A result of one word stays in a register; a larger one in this frame, until it is known where to.
    std::uintptr_t word = 0;
    result_room<std::conditional_t<std::is_void_v<R> || by_word, char, R>> room;
    try {
      if constexpr (std::is_void_v<R>) {
        std::move(f.value)();
      } else if constexpr (by_word) {
        const R value = std::move(f.value)();
        std::memcpy(&word, __builtin_addressof(value), sizeof(R));
      } else {
        new (&room.value) R(std::move(f.value)());
      }
    } catch (...) {
      kept[0] = capture_exception();
      in_memory(kept);
      goto thrown;
    }
    f.value.~F();
    if (const ref record = pop(); record != 0) [[unlikely]] {
      if constexpr (!std::is_void_v<R> && !by_word) word = reinterpret_cast<std::uintptr_t>(&room.value);
      parent_left(record, 0, word);
    }
    if constexpr (!std::is_void_v<R> && !by_word) {
      // Compilers would warn about parts of R that are rightly uninitialised (the value of a future that has
      // none).
      asm("" : "+m"(room));
      move_out(room.value, out);
    }
    announce(slot->sp);
    return {0, word};

  thrown:
    in_memory(kept);
    f.value.~F();
    return failed(kept[0], slot);
  }

 private:
  // Without a sanitizer the frame's address is not even asked for: that would make every thread keep a frame
  // pointer.
  [[gnu::always_inline]] static void announce_here() noexcept {
#ifdef GODWIT_FOLLOWED_STACKS
    announce(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
#endif
  }
  [[gnu::always_inline]] static void announce([[maybe_unused]] std::uintptr_t sp) noexcept {
#ifdef GODWIT_FOLLOWED_STACKS
    if (hot_test<offsetof(hot_words, in_place)>()) announce_own_stack(sp);
#endif
  }

  /// In no register, and perhaps changed.
  template <std::size_t N>
  [[gnu::always_inline]] static void in_memory(std::uintptr_t (&words)[N]) noexcept {
    asm volatile("" : "+m"(words));
  }

  [[gnu::always_inline]] static void adopt(manual<F>& f, std::uintptr_t a0, std::uintptr_t a1) noexcept {
    if constexpr (in_registers<F>) {
      const std::uintptr_t words[2] = {a0, a1};
      std::memcpy(static_cast<void*>(&f), words, sizeof(F));
    } else {
      new (&f.value) F(std::move(*reinterpret_cast<F*>(a0)));
    }
  }

  /// Take the own entry off the deque. 0: the parent is still here; else the record to complete.
  [[gnu::always_inline]] static ref pop() noexcept {
    spawn_slot* mine = hot_load<offsetof(hot_words, bottom), spawn_slot*>() - 1;
    // DQ1: before the split is read; the expose signal runs on this very CPU
    hot_store<offsetof(hot_words, bottom)>(mine);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (hot_below_split(mine)) [[unlikely]]
      return pop_public(mine);
    return 0;
  }

  [[gnu::noinline, gnu::cold]] GODWIT_UNFOLLOWED static word_pair failed(
      ref error, [[maybe_unused]] spawn_slot* slot) noexcept {
    if (const ref record = pop(); record != 0) parent_left(record, error, 0);
    announce(slot->sp);
    return {static_cast<std::uintptr_t>(error), 0};
  }

  /// The child is not to begin; its closure is gone.
  [[gnu::noinline, gnu::cold]] GODWIT_UNFOLLOWED static word_pair refused(
      [[maybe_unused]] spawn_slot* slot) noexcept {
    if (const ref record = pop(); record != 0) {
      publish(record, outcome::cancelled, nullptr, 0);
      complete(record);
    }
    announce(slot->sp);
    return {not_begun, 0};
  }

  /// @p word is the result itself, or the address of a larger one.
  [[noreturn, gnu::noinline, gnu::cold]] GODWIT_UNFOLLOWED static void parent_left(ref record, ref error,
                                                                                   std::uintptr_t word) {
    if (error == 0) {
      if constexpr (std::is_void_v<R>) {
        publish(record, outcome::value, nullptr, 0);
      } else if constexpr (by_word) {
        publish(record, outcome::value, &word, sizeof(R));
      } else {
        R& value = *reinterpret_cast<R*>(word);
        try {
          publish_value(record, value);
        } catch (...) {
          error = capture_exception();
        }
        value.~R();
        if constexpr (!plain<R>) forget_bytes(&value, sizeof value);  // it would hold who comes here next
      }
    }
    if (error != 0) publish_error(record, error);
    complete(record);
  }
};

/// @p Thunk: what the new thread runs in; child, or a policy's (policy.hpp). The type is not deduced, here
/// and where else a future is made: clang 14 would move it out of its variable, and the value with it.
template <template <class, class> class Thunk, class F>
[[gnu::always_inline]] inline future<std::invoke_result_t<F>> spawn_closure(F& f) {
  using R = std::invoke_result_t<F>;
  static_assert(!std::is_reference_v<R>,
                "godwit: a thread must not return a reference: what it refers to stays behind when threads "
                "migrate. Return a value");
  static_assert(std::is_void_v<R> || migratable<R>,
                "godwit: the result type of this thread cannot migrate: it must be movable, and nothing that "
                "belongs to one process (locks, OS threads, file streams)");

#ifndef NDEBUG  // with it, where the runtime is entered, or when the thread really leaves
  if (detail::hot_checkouts()) [[unlikely]]
    checkout_held("spawn", nullptr, 0);
#endif
  future<R> result = future_access::make<R>();
  std::uintptr_t words[2] = {0, 0};
  if constexpr (in_registers<F>)
    std::memcpy(words, static_cast<const void*>(&f), sizeof(F));
  else
    words[0] = reinterpret_cast<std::uintptr_t>(__builtin_addressof(f));
  // Results that ride in a register need no address: then the future itself can live in registers.
  void* out = nullptr;
  if constexpr (!std::is_void_v<R> && !child<F, R>::by_word) out = future_access::room(result);
  auto* const slot = hot_load<offsetof(hot_words, bottom), spawn_slot*>();
  if constexpr (may_hold_address<F>) {  // for the case that the child has to move
    slot->closure[0] =
        in_registers<F> ? words[0] : closure_at(__builtin_addressof(f), sizeof(F), may_hide_address<F>);
    if constexpr (in_registers<F> && sizeof(F) > sizeof(std::uintptr_t)) slot->closure[1] = words[1];
  }
  word_pair w = fork_call<&Thunk<F, R>::run>(words[0], words[1], slot, out);
  if (w.status != 0) [[unlikely]] {
    future_access::state(result) = no_state;  // that may throw
    future_access::state(result) = resumed(w.status) | unmoved;
    return result;
  }
  future_access::state(result) = in_frame;
  if constexpr (child<F, R>::by_word)
    std::memcpy(future_access::room(result), &w.value, sizeof(R));
  else if constexpr (!is_plain_result<R>)
    future_access::link(result);
  return result;
}

/// @p f to @p use, as something that moves without throwing.
template <class Use, class F>
[[gnu::always_inline]] inline auto use_closure(Use&& use, F& f) {
  if constexpr (moves_quietly<F>) {
    return use(f);
  } else {
    boxed_callable<F> box(std::move(f));
    return use(box);
  }
}

/// Hand fn, with its arguments bound, to @p use(closure), as an lvalue that may be moved from.
template <class Use, class F, class... Args>
[[gnu::always_inline]] inline auto with_closure(Use&& use, F&& fn, Args&&... args) {
  static_assert(std::move_constructible<std::decay_t<F>>,
                "godwit: the callable of a thread must be movable: the thread owns it");
  static_assert(((migratable<std::decay_t<Args>>)&&...),
                "godwit: the type of an argument of this thread cannot migrate: it must be movable, and "
                "nothing that belongs to one process (locks, OS threads, file streams)");
  if constexpr (sizeof...(Args) == 0) {
    if constexpr (std::is_lvalue_reference_v<F> || std::is_function_v<std::remove_reference_t<F>>) {
      std::decay_t<F> own(fn);
      return use_closure(use, own);
    } else {
      return use_closure(use, fn);
    }
  } else {
    auto bound =
        [fn = std::decay_t<F>(std::forward<F>(fn)),
         ... as = kept_argument<std::decay_t<Args>>(std::forward<Args>(args))]() mutable -> decltype(auto) {
      if constexpr (std::is_member_pointer_v<std::decay_t<F>>)
        return std::apply(fn, std::forward_as_tuple(taken_argument(as)...));
      else
        return std::move(fn)(taken_argument(as)...);
    };
    return use_closure(use, bound);
  }
}

}  // namespace detail

/// Create a thread that runs `fn(args...)`; the calling thread's continuation may go on at another worker.
/// fn and args are decayed and moved into the thread. Gives back a future of its result (value, or
/// exception). fn must be movable, args and result migratable: any movable type that does not belong to one
/// process. On several hosts a thread that owns memory stays on its host, and a result that leaves it needs a
/// codec (docs/heap.md). Never blocks. Cost unstolen: a call and about ten
/// instructions; an allocation if moving fn or an argument may throw. Source: Uni-address threads, 5.2.
template <class F, class... Args>
[[gnu::always_inline]] inline auto spawn(F&& fn, Args&&... args) -> future<detail::result_of<F, Args...>> {
  return detail::with_closure(
      [](auto& f) __attribute__((always_inline)) { return detail::spawn_closure<detail::child>(f); },
      std::forward<F>(fn), std::forward<Args>(args)...);
}

/// Free form of future::join.
template <class T>
[[gnu::always_inline]] inline T join(future<T>& f, detail::place where = detail::place::here()) {
  return f.join(where);
}
template <class T>
[[gnu::always_inline]] inline T join(future<T>&& f, detail::place where = detail::place::here()) {
  return f.join(where);
}

/// Let other threads run: the calling thread goes to the end of its worker's ready queue, from where any
/// worker may take it. Returns at once when nothing else is ready. May migrate the calling thread. Throws
/// cancelled if the thread is (cancel.hpp). Local.
inline void yield() {
  detail::yield_thread();
  if (is_cancelled()) [[unlikely]]
    detail::throw_cancelled();
}

namespace detail {

/// Run a callable in the calling thread, but keep its outcome the way a thread's would be kept: what is
/// not plain bytes can be encoded when the caller has to leave, and no exception stays alive meanwhile.
template <class F>
[[gnu::always_inline]] inline future<std::invoke_result_t<F>> run_here(F&& f) {
  using R = std::invoke_result_t<F>;
  static_assert(is_plain_result<R> || migratable<R>,
                "godwit: the result type of this callable cannot migrate: it must be movable, and nothing "
                "that belongs to one process (locks, OS threads, file streams)");
  future<R> result = future_access::make<R>();
  ref state = in_frame;
  try {
    if constexpr (std::is_void_v<R>)
      std::forward<F>(f)();
    else
      new (future_access::room(result)) R(std::forward<F>(f)());
  } catch (...) {
    state = capture_exception();
  }
  future_access::state(result) = state;
  if constexpr (!is_plain_result<R>) {
    if (state == in_frame) future_access::link(result);
  }
  return result;
}

template <bool Here, class F>
[[gnu::always_inline]] inline auto start(F&& f) {
  if constexpr (Here)
    return run_here(std::forward<F>(f));
  else
    return godwit::spawn(std::forward<F>(f));
}

template <class T>
[[gnu::always_inline]] inline slot_type<T> take_value(future<T>& f, const place& where) {
  if constexpr (std::is_void_v<T>) {
    f.join(where);
    return {};
  } else {
    return f.join(where);
  }
}

// First wait for all, then take the values: a value in hand could not follow its thread to another worker.
template <std::size_t... I, class... F>
[[gnu::always_inline]] inline auto invoke_all(std::index_sequence<I...>, const place& where,
                                              F&&... callables) {
  std::tuple<future<std::invoke_result_t<std::decay_t<F>>>...> futures{
      start<I + 1 == sizeof...(F)>(std::forward<F>(callables))...};
  (future_access::settle(std::get<I>(futures), where), ...);
  return std::tuple<slot_type<std::invoke_result_t<std::decay_t<F>>>...>{
      take_value(std::get<I>(futures), where)...};
}

// The common case by hand: compilers keep two futures in registers, a tuple of futures in memory.
template <class F, class G>
[[gnu::always_inline]] inline auto invoke_both(const place& where, F&& first, G&& second) {
  using R = std::invoke_result_t<std::decay_t<F>>;
  using S = std::invoke_result_t<std::decay_t<G>>;
  auto f = start<false>(std::forward<F>(first));
  auto g = start<true>(std::forward<G>(second));
  future_access::settle(f, where);
  future_access::settle(g, where);
  return std::tuple<slot_type<R>, slot_type<S>>{take_value(f, where), take_value(g, where)};
}

// invoke of two where the second one begins, as a thread: results and exceptions are those of invoke.
template <class F, class G>
auto invoke_second_first(const place& where, F&& first, G&& second) {
  using R = std::invoke_result_t<std::decay_t<F>>;
  using S = std::invoke_result_t<std::decay_t<G>>;
  auto g = start<false>(std::forward<G>(second));
  auto f = start<true>(std::forward<F>(first));
  future_access::settle(g, where);
  future_access::settle(f, where);
  return std::tuple<slot_type<R>, slot_type<S>>{take_value(f, where), take_value(g, where)};
}

template <class... F>
[[gnu::always_inline]] inline auto invoke_any(const place& where, F&&... callables) {
  if constexpr (sizeof...(F) == 2)
    return invoke_both(where, std::forward<F>(callables)...);
  else
    return invoke_all(std::index_sequence_for<F...>{}, where, std::forward<F>(callables)...);
}

template <class... F>
constexpr bool all_void = (std::is_void_v<std::invoke_result_t<std::decay_t<F>>> && ...);

}  // namespace detail

/// Run all callables, the last one in the calling thread, the others as threads; wait for all of them.
/// Gives back a std::tuple of the results in order (std::monostate for void), or nothing if all are void.
/// If some throw, the others still finish, then the exception of the leftmost failing one is thrown -- the
/// same on every schedule. All results must be migratable.
template <class... F>
[[gnu::always_inline]] inline auto invoke(F&&... callables) {
  static_assert(sizeof...(F) > 0, "godwit::invoke needs at least one callable");
  static constexpr detail::place where{"godwit::invoke", "invoke", 0};
  if constexpr (detail::all_void<F...>)
    static_cast<void>(detail::invoke_any(where, std::forward<F>(callables)...));
  else
    return detail::invoke_any(where, std::forward<F>(callables)...);
}

}  // namespace godwit
