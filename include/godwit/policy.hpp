// Scheduling policies: the same program under each of the papers' schedulers.
//
// Programs use the free functions (spawn, invoke), which are the policy `greedy`. A program that wants to
// compare takes the policy as a template parameter, and the run's policy from the options:
//
//   template <class P> long fib(int n) {
//     if (n < 2) return n;
//     auto x = P::spawn([n] { return fib<P>(n - 1); });
//     const long y = fib<P>(n - 2);
//     return x.join() + y;
//   }
//   godwit::with_policy(godwit::resolve_options().policy, [&](auto p) { run(... fib<decltype(p)>(n) ...); });
//
// A run with one policy whose threads are spawned by another ends with a message.
// Sources: "Distributed continuation stealing is more scalable than you might think" III, IV-B; "Uni-address
// threads" 4, 5.1. Documents: docs/policies.md. Tests: tests/api/policy_test.cpp.
#pragma once

#include <godwit/detail/lazy_spawn.hpp>
#include <godwit/detail/policy_facts.hpp>
#include <godwit/detail/result_reference.hpp>
#include <godwit/task.hpp>

#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

extern "C" void godwit_ctx_call_on(void* stack_top, void (*fn)(void* arg), void* arg);

namespace godwit {

namespace detail {

/// The thread around one callable, on a stack of its own: what fork_call calls on the parent's stack
/// switches, and, if the parent is still here at the end, switches back.
template <class F, class R>
struct child_on_own_stack {
  struct frame {
    std::uintptr_t a0, a1;
    spawn_slot* slot;
    void* out;
    word_pair result;
  };
  [[gnu::noinline, gnu::visibility("hidden")]] static word_pair run(std::uintptr_t a0, std::uintptr_t a1,
                                                                    spawn_slot* slot, void* out) noexcept {
    // fork_call has done it
    if (hot_test<offsetof(hot_words, in_place)>()) return child<F, R>::run(a0, a1, slot, out);
    frame f{a0, a1, slot, out, {}};
    const std::uintptr_t words[] = {a0, a1};
    const void* const closure = in_registers<F> ? words : reinterpret_cast<const void*>(a0);
    void* stack = new_stack(slot, closure, may_hold_address<F> ? sizeof(F) : 0);
    godwit_ctx_call_on(stack, body, &f);
    free_stack(stack);  // only if it came back: else the thread's end does it
    return f.result;
  }
  static void body(void* p) {
    frame& f = *static_cast<frame*>(p);
    f.result = child<F, R>::run(f.a0, f.a1, f.slot, f.out);
  }
};

// If f returns v.size() of its argument v, gcc may compute that once v is gone, from the pointers that it had
// read before: right, but it warns.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuse-after-free"
#endif
/// Call @p f, and put what comes of it into the record of a task.
template <class R, class F>
void call_into(ref record, F&& f) {
  ref error = 0;
  try {
    if constexpr (std::is_void_v<R>) {
      f();  // a record begins without a value
    } else {
      R value = f();
      publish_value(record, value);
    }
  } catch (...) {
    error = capture_exception();
  }
  if (error != 0) publish_error(record, error);
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// The same, but one that is cancelled does not begin.
template <class R, class F>
void run_into(ref record, F&& f) {
  if constexpr (!std::is_same_v<R, always_begins>)
    if (is_cancelled()) [[unlikely]]
      return publish(record, outcome::cancelled, nullptr, 0);
  call_into<R>(record, std::forward<F>(f));
}

/// The first argument of a thread that others count on. If a codec throws at those behind it the function is
/// not called, and this learns why.
template <class First, class... Rest>
inline constexpr bool hears_of_codecs = plain<First>&& requires(const First& a, ref error) {
  a.not_called(error);
};

/// A callable and its arguments as codecs wrote them. What they own has no owner but these bytes, so they are
/// read once, whatever comes of it: call(bytes are taken out), or their destructor.
template <class F, class... Args>
class encoded_call {
 public:
  encoded_call(const void* bytes, std::size_t size) noexcept : bytes_(bytes), size_(size) {}
  encoded_call(const encoded_call&) = delete;
  encoded_call& operator=(const encoded_call&) = delete;
  ~encoded_call() {
    if (bytes_ == nullptr) return;
    try {
      reader r = take();
      static_cast<void>(r.get<F>());
      static_cast<void>(arguments(r));
    } catch (...) {  // a codec's: who let go of it has an error already
    }
  }
  /// Somebody else has them now.
  void gone() noexcept { bytes_ = nullptr; }
  /// Throws what a codec threw; or cancelled, as run_into does not begin. @p taken(): the bytes are needed no
  /// more.
  template <class R, class Taken>
  R call(Taken&& taken) {
    reader r = take();
    F f = r.get<F>();
    std::tuple<Args...> args = arguments_or_tell(r);
    taken();
    if constexpr (!std::is_same_v<R, always_begins>) throw_cancelled();
    return std::apply(std::move(f), std::move(args));
  }

 private:
  reader take() noexcept { return {static_cast<const std::byte*>(std::exchange(bytes_, nullptr)), size_}; }
  static std::tuple<Args...> arguments([[maybe_unused]] reader& r) {
    return std::tuple<Args...>{r.get<Args>()...};  // in order: braces
  }
  static std::tuple<Args...> arguments_or_tell(reader& r) {
    if constexpr (sizeof...(Args) == 0) {
      return {};
    } else if constexpr (hears_of_codecs<Args...>) {
      reader from_first = r;
      ref error = 0;
      try {
        return arguments(r);
      } catch (...) {
        error = capture_exception();
      }
      from_first.get<std::tuple_element_t<0, std::tuple<Args...>>>().not_called(error);
      throw cancelled();  // for the record, where nobody looks: the error is on its way
    } else {
      return arguments(r);
    }
  }

  const void* bytes_;
  const std::size_t size_;
};

/// What a thread runs that begins later, perhaps at another worker, from the bytes that came along.
struct task_entries {
  /// A callable that owns memory which not all workers have may be relocated: what it holds may well be
  /// futures.
  static constexpr bool takes_owners = true;

  /// Relocated, not copied.
  template <class F, class R>
  static void closure(void* at, std::size_t, ref record) {
    F& f = *static_cast<F*>(at);
    run_into<R>(record, [&]() -> R { return std::move(f)(); });
    f.~F();
  }
  template <class F, class R, class... Args>
  static void encoded(void* bytes, std::size_t size, ref record) {
    encoded_call<F, Args...> what(bytes, size);
    call_into<R>(record, [&]() -> R { return what.template call<R>([] {}); });
  }
};

/// A callable whose bytes are taken by somebody else; destroyed if that fails. One that names itself, as a
/// short string does, would go on naming the place that it has left: that ends the run.
template <class F>
class relocated {
 public:
  explicit relocated(F& f) {
    if constexpr (!plain<F>) forget_bytes(&f_, sizeof f_);  // what it leaves as it was names nothing
    new (&f_.value) F(std::move(f));
    clear_padding(f_.value);
    if constexpr (!plain<F>)
      if (names_itself()) codec_missing(typeid(F).name());
  }
  ~relocated() {
    if (here_) f_.value.~F();
  }
  relocated(const relocated&) = delete;
  relocated& operator=(const relocated&) = delete;
  const void* bytes() const noexcept { return &f_; }
  void gone() noexcept { here_ = false; }

 private:
  bool names_itself() const noexcept {
    const auto* const all = static_cast<const std::byte*>(bytes());
    for (std::uintptr_t at = 0, word = 0; at + sizeof word <= sizeof f_; at += sizeof word) {
      std::memcpy(&word, all + at, sizeof word);
      if (word - reinterpret_cast<std::uintptr_t>(all) < sizeof f_) return true;
    }
    return false;
  }

  manual<F> f_;
  bool here_ = true;
};

/// @p send(entry, task_bytes) makes the thread of @p f, whose bytes are taken, and gives back its record.
template <class Entries, class Send, class F>
auto send_closure(const Send& send, F& f, task_bytes what = {}) {
  using R = std::invoke_result_t<F>;
  relocated<F> taken(f);
  what.data = taken.bytes();
  what.size = sizeof(F);
  const ref record = send(&Entries::template closure<F, R>, what);
  taken.gone();
  return future_access::of<R>(record);
}

/// A thread of @p fn and @p args. Plain bytes go as they are. What owns memory stays on the heap if all
/// workers have that; else it is written by codecs; what has none stays on the heap of this host, and where
/// there is no such heap it ends the run, or goes as it is if @p Entries take it.
template <class Entries, class Send, class F, class... Args>
auto send_task(const Send& send, F&& fn, Args&&... args) -> future<result_of<F, Args...>> {
  using C = std::decay_t<F>;
  using R = result_of<F, Args...>;
  static_assert(
      !std::is_reference_v<R> && (std::is_void_v<R> || migratable<R>),
      "godwit: the result type of this thread cannot migrate: it must be movable, no reference, and "
      "nothing that belongs to one process (locks, OS threads, file streams)");
  const auto as_it_is = [&](auto& f) { return send_closure<Entries>(send, f); };
  if constexpr (plain<C> && (plain<std::decay_t<Args>> && ...)) {
    return with_closure(as_it_is, std::forward<F>(fn), std::forward<Args>(args)...);
  } else {
    const char* missing = encodable<C> ? nullptr : typeid(C).name();
    ((missing = encodable<std::decay_t<Args>> ? missing : typeid(std::decay_t<Args>).name()), ...);
    constexpr bool coded = encodable<C> && (encodable<std::decay_t<Args>> && ...);
    if (coded ? one_heap() : host_heap()) {
      const auto in_a_box = [&](auto& f) {
        using Closure = std::remove_reference_t<decltype(f)>;
        boxed_callable<Closure> box(std::move(f));
        return send_closure<Entries>(send, box, {nullptr, 0, box.address(), sizeof(Closure), missing});
      };
      return with_closure(in_a_box, std::forward<F>(fn), std::forward<Args>(args)...);
    }
    if constexpr (coded) {
      C own(std::forward<F>(fn));
      std::tuple<std::decay_t<Args>...> values(std::forward<Args>(args)...);
      writer w;
      w.put(own);
      std::apply([&](auto&... a) { (w.put(a), ...); }, values);
      encoded_call<C, std::decay_t<Args>...> what(w.data(), w.size());
      const ref record =
          send(&Entries::template encoded<C, R, std::decay_t<Args>...>, task_bytes{w.data(), w.size()});
      what.gone();
      return future_access::of<R>(record);
    } else if constexpr (Entries::takes_owners && (plain<std::decay_t<Args>> && ...)) {
      return with_closure(as_it_is, std::forward<F>(fn), std::forward<Args>(args)...);
    } else {
      codec_missing(missing);
    }
  }
}

}  // namespace detail

namespace policies {

/// What a program can ask of a policy.
template <choice::policy P>
struct facts {
  template <class T>
  using future = godwit::future<T>;
  template <class T>
  using shared_future = godwit::shared_future<T>;
  static constexpr const char* name = detail::facts_of(P).name;
  /// threads may wait for threads that are not their children
  static constexpr bool has_futures = detail::facts_of(P).has_futures();
  /// a thread may go on at another worker
  static constexpr bool migrates = !detail::facts_of(P).steals_children;
};

/// Continuation stealing: the free functions themselves.
template <choice::policy P>
struct continuation_stealing : facts<P> {
  template <class F, class... Args>
  [[gnu::always_inline]] static auto spawn(F&& fn, Args&&... args) {
    return godwit::spawn(std::forward<F>(fn), std::forward<Args>(args)...);
  }
};

/// The default: greedy join (003, figure 4), local collection of remotely freed objects (003, III-B).
struct greedy : continuation_stealing<choice::policy::greedy> {};
/// Stalling join (003, III-A): who waits is looked at in turn, after failed steals, by the worker where it
/// suspended.
struct stalling : continuation_stealing<choice::policy::stalling> {};
/// Greedy join; objects are given back through a locked queue of their owner (003, III-B, "original").
struct locked_free : continuation_stealing<choice::policy::locked_free> {};
/// Stalling join and the locked queue: what the paper's greedy join and local collection are compared with
/// (003, V).
struct stalling_locked_free : continuation_stealing<choice::policy::stalling_locked_free> {};
/// The crude uni-address scheme: at every spawn the parent's stack is copied out, at every end the next one
/// in.
struct crude : continuation_stealing<choice::policy::crude> {};

/// Iso-address: every thread has a stack with a globally unique address (Uni-address threads, 4: what it
/// replaces). Stacks are of 32 KiB; nothing is copied at a suspension.
struct iso : facts<choice::policy::iso> {
  template <class F, class... Args>
  [[gnu::always_inline]] static auto spawn(F&& fn, Args&&... args) {
    return detail::with_closure(
        [](auto& f) __attribute__((always_inline)) {
          detail::clear_padding(f);  // a thread whose closure seems to refer to a local cannot move
          return detail::spawn_closure<detail::child_on_own_stack>(f);
        },
        std::forward<F>(fn), std::forward<Args>(args)...);
  }
};

/// Greedy join, and a spawn that is a plain call: the runtime finds it when somebody asks for work, or when
/// the thread has to wait. Processes or MPI, x86-64, code with unwind tables. In a run of another
/// policy it is a call and nothing else.
struct lazy : facts<choice::policy::lazy> {
  template <class F, class... Args>
  [[gnu::always_inline]] static auto spawn(F&& fn, Args&&... args) {
    return detail::with_closure(
        [](auto& f) __attribute__((always_inline)) { return detail::spawn_lazily(f); }, std::forward<F>(fn),
        std::forward<Args>(args)...);
  }
};

/// Child stealing: the parent goes on, the child waits to be stolen; who has begun stays. Cost of a spawn: an
/// object.
template <choice::policy P>
struct child_stealing : facts<P> {
  template <class F, class... Args>
  static auto spawn(F&& fn, Args&&... args) {
    return detail::send_task<detail::task_entries>(
        [](detail::task_entry* entry, const detail::task_bytes& b) { return detail::spawn_task(entry, b); },
        std::forward<F>(fn), std::forward<Args>(args)...);
  }
};

/// Child stealing with full threads: stacks of 32 KiB, stalling join (003, IV-B).
struct child_full : child_stealing<choice::policy::child_full> {};
/// Child stealing with run-to-completion threads: a join runs other threads on top of itself (003, IV-B).
/// Threads may join their own children only: another thread might lie buried below.
struct child_rtc : child_stealing<choice::policy::child_rtc> {};

}  // namespace policies

/// Call f(policy), with the type of @p policy; gives back what f does. Throws std::invalid_argument for what
/// is none.
template <class F>
decltype(auto) with_policy(choice::policy policy, F&& f) {
  switch (policy) {
    case choice::policy::greedy:
      return f(policies::greedy{});
    case choice::policy::stalling:
      return f(policies::stalling{});
    case choice::policy::locked_free:
      return f(policies::locked_free{});
    case choice::policy::stalling_locked_free:
      return f(policies::stalling_locked_free{});
    case choice::policy::crude:
      return f(policies::crude{});
    case choice::policy::lazy:
      return f(policies::lazy{});
    case choice::policy::iso:
      return f(policies::iso{});
    case choice::policy::child_full:
      return f(policies::child_full{});
    case choice::policy::child_rtc:
      return f(policies::child_rtc{});
  }
  throw std::invalid_argument("godwit: with_policy was given a number that is no policy");
}

}  // namespace godwit
