// Threads that go to data: spawn_at makes one that begins at a worker, or where memory is; with runs a
// function there, in between; migrate_to and go_to take the running thread along, stack and all.
//
//   auto sum = gw::spawn_at(p, [p] { return add_up(p); });   // at the host that owns *p
//   sum.join();
//   if (gw::go_to(p)) ...                                    // this thread is there now
//   gw::spawn(gw::near{p}, f);                               // a hint: spawn here, if *p is here
//
// Sources: Active global address space (parcels that go to their data, exactly once, while it moves); X10's
// at. docs/moving.md, "Threads go to data"; docs/protocols/parcels.md. Example: examples/spawn_at.cpp.
// Tests: tests/global/spawn_at_test.cpp.
#pragma once

#include <godwit/checkout.hpp>
#include <godwit/policy.hpp>
#include <godwit/runtime.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace godwit {

/// A worker of the run by its number, as a place where threads begin.
struct worker {
  constexpr explicit worker(std::uint32_t n) noexcept : number(n) {}
  std::uint32_t number;
};

namespace detail {

/// Where a thread is to begin.
struct destination {
  global_address address;  ///< 0: at the worker
  std::uint32_t worker;
};
inline destination destination_of(worker w) noexcept { return {0, w.number}; }
template <class T>
destination destination_of(global_ptr<T> p) noexcept {
  return {p.address(), 0};
}

/// A thread that begins at @p to; gives back its record. The closure's bytes are taken. @p entry puts the
/// result into the record.
[[gnu::cold]] ref send_thread(task_entry* entry, const task_bytes& closure, const destination& to,
                              place where);
/// This host has it, as far as is known here.
[[gnu::cold]] bool lies_on_this_host(global_address at) noexcept;
[[gnu::always_inline]] inline bool lies_here(global_address at) noexcept {
  return hot_test<offsetof(hot_words, global_plain)>() || lies_on_this_host(at);
}
/// The closure that @p entry was handed has been taken out, and its bytes are needed no more.
void parcel_taken(const void* closure) noexcept;

/// What runs where memory is: f(bytes there, closure, record).
using visit_entry = void(void* data, const void* closure, ref record);
/// Run @p entry where [at, at + bytes) is, with a copy of the closure; gives back its record.
[[gnu::cold]] ref send_visit(visit_entry* entry, const void* closure, std::size_t closure_bytes,
                             global_address at, std::uint64_t bytes, access_mode mode, place where);

/// The running thread goes there. False: it may not leave. May migrate.
bool leave_for(const destination& to, const place& where);
/// Zero where the frame of leave_for is about to be: words of it that are there for alignment only would hold
/// what was there before, perhaps the name of something in the worker's heap.
void forget_below() noexcept;

struct parcel_entries {
  static constexpr bool takes_owners = false;  // it begins elsewhere

  template <class F, class R>
  static void closure(void* at, std::size_t, ref record) {
    F f(std::move(*static_cast<F*>(at)));
    parcel_taken(at);
    run_into<R>(record, [&]() -> R { return std::move(f)(); });
  }
  template <class F, class R, class... Args>
  static void encoded(void* bytes, std::size_t size, ref record) {
    struct let_go {
      const void* bytes;
      ~let_go() {
        if (bytes != nullptr) parcel_taken(bytes);
      }
    } held{bytes};  // also if a codec throws
    encoded_call<F, Args...> what(bytes, size);
    call_into<R>(record, [&]() -> R {
      return what.template call<R>([&] { parcel_taken(std::exchange(held.bytes, nullptr)); });
    });
  }
};

}  // namespace detail

/// Create a thread that runs fn(args...) and begins at @p where_to: a global_ptr: on the host that owns what
/// it points to (with one host, anywhere on it; as a rule at the owner itself, or at a worker beside it that
/// has nothing to do); gw::worker(w): at that worker. If the memory moves before it has begun, it follows; it
/// begins once, and then goes where it likes, as all threads do. Gives back a future of its result. fn,
/// arguments and result as for spawn; where workers have no heap in common, what is not plain bytes is
/// encoded at once. References to the caller's locals are refused between processes (check_frames). The
/// caller goes on, and does not migrate. With a checkout open it ends the run, like spawn. Throws
/// std::invalid_argument if there is no such worker. Cost: one message to another host (and a request to
/// worker 0 for every 64, or the first after the host was idle); inside a host an object and a wake-up. A
/// worker that computes begins it when its own threads have ended or wait.
template <class To, class F, class... Args>
requires(requires(const To& t) {
  detail::destination_of(t);
}) auto spawn_at(To where_to, F&& fn, Args&&... args) -> future<detail::result_of<F, Args...>> {
  const detail::destination to = detail::destination_of(where_to);
  return detail::send_task<detail::parcel_entries>(
      [&to](detail::task_entry* entry, const detail::task_bytes& b) {
        return detail::send_thread(entry, b, to, {nullptr, nullptr, 0});
      },
      std::forward<F>(fn), std::forward<Args>(args)...);
}

/// A hint for spawn: what the thread works on lies there. A global_ptr, or an ordinary pointer.
template <class P>
struct near {
  P p;
};
template <class P>
near(P) -> near<P>;

/// Create a thread that runs fn(args...) near its data. Where this host has what the pointer points to, as
/// with one host always, and for ordinary pointers: as spawn does. Else as spawn_at does: it begins on the
/// host that has it, and the caller goes on. A hint: memory that has just moved may be missed, and other
/// hosts may take the thread afterwards. fn, arguments and result as for spawn_at. Cost: with one host that
/// of spawn; else to look at what is known of the address, without a message, and what spawn_at costs.
template <class P, class F, class... Args>
[[gnu::always_inline]] inline auto spawn(near<P> data, F&& fn, Args&&... args)
    -> future<detail::result_of<F, Args...>> {
  if constexpr (!std::is_pointer_v<P>)
    if (!detail::lies_here(data.p.address())) [[unlikely]]
      return spawn_at(data.p, std::forward<F>(fn), std::forward<Args>(args)...);
  return spawn(std::forward<F>(fn), std::forward<Args>(args)...);
}

/// Call f(std::span<T>) with the objects [p, p + n) on the host that owns them, where they are held meanwhile
/// (pin); gives back a future of what it returns, or throws. No thread: f runs inside whatever the owner is
/// executing, at its next spawn or when it is idle, and must not spawn, join or wait (that ends the run). f:
/// plain bytes. @p mode: of access; with read it gets std::span<const T>. If the memory moves meanwhile, the
/// call follows. The future throws std::invalid_argument if the range has several owners, and a second later
/// still has. Cost: one message to another host, as for spawn_at; at once if the memory is here.
template <class T, class Mode, class F>
auto with(global_ptr<T> p, std::size_t n, Mode, F f, detail::place where = detail::place::here()) {
  detail::require_global_value<T>();
  static_assert(plain<F>, "godwit::with: the callable must be plain bytes: it is copied to the owner");
  constexpr bool reads = std::is_same_v<Mode, access::read_t>;
  using E = std::conditional_t<reads, const T, T>;
  using R = std::invoke_result_t<F&, std::span<E>>;
  static_assert(!std::is_reference_v<R> && (std::is_void_v<R> || migratable<R>),
                "godwit::with: the result must be trivially copyable or have a godwit::codec<T>, and be no "
                "reference");
  struct call {
    F f;
    std::size_t n;
    static void run(void* data, const void* closure, detail::ref record) {
      call c(*static_cast<const call*>(closure));
      detail::run_into<R>(record, [&]() -> R { return c.f(std::span<E>(static_cast<E*>(data), c.n)); });
    }
  };
  const call c{f, n};
  return detail::future_access::of<R>(
      detail::send_visit(call::run, &c, sizeof c, p.address(), n * sizeof(T), Mode::mode, where));
}

/// The running thread goes on at worker @p to, with its stack; its children and parents stay where they are.
/// True: it is there. False: it could not leave, because its stack names memory of this worker's heap (a
/// std::vector or std::string that lives across the call, say; also numbers that look like it), because it
/// handles an exception, or because under the policy threads stay where they began; counted in
/// worker_stats::threads_kept. On substrate threads every thread can leave. Ends the run with the place while
/// a checkout is open. Throws std::invalid_argument if there is no such worker. Cost: the stack's bytes
/// copied, and one message; they are fetched if they are more than 3.9 KB and go to another host.
[[gnu::always_inline]] inline bool migrate_to(worker to, detail::place where = detail::place::here()) {
  detail::forget_below();
  return detail::leave_for(detail::destination_of(to), where);
}
/// The same to the host that owns *p: to the owner, or a worker beside it that has nothing to do. True: this
/// host has it now, which it had already, perhaps (with one host always). It may leave again at any time: pin
/// holds it. Follows memory that moves.
template <class T>
[[gnu::always_inline]] inline bool go_to(global_ptr<T> p, detail::place where = detail::place::here()) {
  detail::forget_below();
  return detail::leave_for(detail::destination_of(p), where);
}

}  // namespace godwit
