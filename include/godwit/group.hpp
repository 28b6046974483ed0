// group: all threads that were spawned in it, by whomever and wherever, and the end of all of them.
//
//   const gw::owned<gw::group> g;
//   g->spawn([g = g.get()] { for (node n : children) g.spawn(visit, g, n); });  // members spawn members
//   g->wait();                                                                  // none is left
//
// Nobody joins single threads: they have no result. The handle is plain bytes; copy it into closures.
// A spawn and an end are one atomic each, of a word at the worker where the thread was spawned; a member
// that ends on another host than that takes a message.
// Source: X10's finish; ParalleX and HPX-5, processes (docs/control.md). Protocol: docs/protocols/group.md
// (GR), checked by models/group.pml. Tests: tests/global/group_test.cpp.
#pragma once

#include <godwit/control.hpp>
#include <godwit/detail/promise.hpp>
#include <godwit/global_atomic.hpp>
#include <godwit/global_memory.hpp>
#include <godwit/spawn_at.hpp>
#include <godwit/task.hpp>

#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

namespace godwit {

class group;

namespace detail {

struct group_state {
  std::uint64_t registered;  ///< workers whose leaf is not 0
  std::uint64_t waiting;     ///< threads between the begin and the end of wait
  ref error;                 ///< what the first member threw that did; 0: nobody has
};

template <class F>
struct group_member;
struct group_membership;
template <class F, class... Args>
always_begins run_group_member(group_membership m, F f, Args... args);

}  // namespace detail

class group : public detail::control_handle<detail::group_state> {
  using state = detail::group_state;
  static constexpr const char* what = "group";

 public:
  /// No group.
  group() noexcept = default;
  /// An empty one; its counter lies at worker @p home. Throws global_bad_alloc; std::invalid_argument if
  /// there is no such worker. Cost: 64 bytes per worker; on several hosts some round trips.
  static group make(std::uint32_t home = calling_worker, detail::place where = detail::place::here()) {
    return group(home, where);
  }
  /// Wait until it is empty, then free it. What a member threw and nobody has seen is reported, as of a
  /// future that is dropped. May migrate the thread. While an exception is on its way, which a thread that
  /// waits would leave behind: does not wait; a group that is not empty remains until the end of the run.
  void destroy(detail::place where = detail::place::here()) const {
    const auto error = wait_until_empty(std::uncaught_exceptions() == 0, where);
    if (!error) return;
    if (*error != 0) detail::detach(*error);
    free(what, where);  // GR3
    deallocate(leaves_, detail::all_workers() * leaf_words, where);
  }

  /// Create a thread that runs `fn(args...)` and is a member. fn and args as of godwit::spawn; what fn
  /// gives back is dropped. From any thread, member or not, while the group exists. Never waits. Cost:
  /// spawn's and, if it stays on its worker, two CPU atomics; where a worker of another host than the
  /// group's spawns its first member a message. Throws cancelled if the calling thread is (cancel.hpp).
  template <class F, class... Args>
  void spawn(F&& fn, Args&&... args) const {
    detail::with_closure(
        [this](auto& f) {
          if (is_cancelled()) detail::throw_cancelled();
          detail::group_member<std::remove_cvref_t<decltype(f)>> member{*this, 0, std::move(f)};
          member.leaf = arrive();  // from here on nothing throws
          leave(detail::spawn_closure<detail::child>(member));
        },
        std::forward<F>(fn), std::forward<Args>(args)...);
  }
  /// The same where the program's policy is @p Policy (policy.hpp). fn and args must be migratable.
  template <class Policy, class F, class... Args>
  void spawn_by(F&& fn, Args&&... args) const {
    charge([&](const auto& membership) {
      leave(Policy::spawn(&detail::run_group_member<std::decay_t<F>, std::decay_t<Args>...>, membership,
                          std::forward<F>(fn), std::forward<Args>(args)...));
    });
  }
  /// A member that begins where @p where_to says: a worker, or where memory is. Throws, and costs, what
  /// godwit::spawn_at does.
  template <class To, class F, class... Args>
  void spawn_at(To where_to, F&& fn, Args&&... args) const {
    charge([&](const auto& membership) {
      leave(godwit::spawn_at(where_to, &detail::run_group_member<std::decay_t<F>, std::decay_t<Args>...>,
                             membership, std::forward<F>(fn), std::forward<Args>(args)...));
    });
  }

  /// Wait until no member is left: until there was a moment without any, if others go on spawning. Then
  /// throw what the first member threw that did so, to one of those that wait; what others threw later is
  /// dropped. The group can be used again. A member must not wait for its own group: that is a deadlock,
  /// and is reported. May migrate the thread. Cost: one round trip to the group's home and one to each
  /// worker of other hosts.
  void wait(detail::place where = detail::place::here()) const {
    const detail::ref error = *wait_until_empty(true, where);
    if (error == 0) return;
    const detail::payload p = detail::wait(error, where.file, where.function, where.line);
    detail::rethrow(error, p);
  }

  /// Not an interface for users: the body of a member, charged to @p leaf. @p looks: if it is cancelled it
  /// does not begin.
  template <class F>
  void be_member(std::uint64_t leaf, F&& body, bool looks = true) const {
    detail::ref error = 0;
    try {
      if (looks && is_cancelled()) detail::throw_cancelled();
      body();
    } catch (...) {
      error = detail::capture_exception();
    }
    if (error != 0) failed(error);
    depart(leaf);
  }
  /// Neither: a member that could not begin because of @p error.
  void no_member(std::uint64_t leaf, detail::ref error) const {
    failed(error);
    depart(leaf);
  }
  /// Neither: keep an exception, if it is the first.
  void failed(detail::ref error) const {
    const bool first = carry_out(what,
                                 [error](state& s) noexcept {
                                   if (s.error != 0) return false;
                                   s.error = error;
                                   return true;
                                 },
                                 {});
    if (!first) detail::release(error);
  }

 private:
  // A leaf: members charged to it, times two, and a bit: the worker remains registered although it has
  // none.
  static constexpr std::uint64_t member = 2, stays = 1;
  static constexpr std::uint64_t leaf_words = 8;  // a line each

  group(std::uint32_t home, const detail::place& where) : control_handle(state{}, true, home, where) {
    const std::uint64_t words = detail::all_workers() * leaf_words;
    try {
      leaves_ = detail::global_is_plain()
                    ? allocate<std::uint64_t>(words, distribution::local(), 64, where)
                    : allocate<std::uint64_t>(words, distribution::cyclic(64), 64, where);
    } catch (...) {
      free(what, where);
      throw;
    }
    for (std::uint32_t w = 0; w < detail::all_workers(); ++w)
      atomic_store(leaf_of(w), 0, std::memory_order_relaxed);
  }

  /// Of a member: wait waits for all.
  static void leave(future<detail::always_begins> member) noexcept {
    if (detail::future_access::state(member) != detail::in_frame) [[unlikely]]
      detail::leave_running(detail::future_access::take_record(member));
  }
  global_ptr<std::uint64_t> leaf_of(std::uint64_t worker) const { return leaves_ + worker * leaf_words; }
  void unregister() const {
    static_cast<void>(carry_out(what, [](state& s) noexcept { --s.registered; }, {}));
  }

  /// One member more, charged to the calling worker's leaf. Only that worker takes it away from 0.
  std::uint64_t arrive() const {
    const std::uint32_t me = worker_id();
    const auto leaf = leaf_of(me);
    std::uint64_t now = atomic_load(leaf, std::memory_order_relaxed);
    while (now != 0)
      if (atomic_compare_exchange(leaf, now, now + member, std::memory_order_relaxed)) return me;
    atomic_store(leaf, member | stays, std::memory_order_relaxed);  // GR2: before it is registered
    const bool somebody_waits = carry_out(                          // GR1: before the member begins
        what,
        [](state& s) noexcept {
          ++s.registered;
          return s.waiting != 0;
        },
        {});
    if (somebody_waits) atomic_fetch_and(leaf, ~stays, std::memory_order_relaxed);
    return me;
  }
  /// spawn(membership) creates a member; if it throws (an argument's codec), there is none.
  template <class Spawn>
  void charge(Spawn&& spawn) const;
  /// GR4. Between hosts what members wrote is sent home before, and seen by who comes out of wait: the
  /// leaves need no more.
  static std::memory_order order() noexcept {
    return detail::global_is_plain() ? std::memory_order_acq_rel : std::memory_order_relaxed;
  }
  /// One less. GR3: the leaf is not touched again; the group remains until it is unregistered.
  void depart(std::uint64_t leaf) const {
    detail::control_release();                                                      // GR4
    const std::uint64_t before = atomic_fetch_sub(leaf_of(leaf), member, order());  // GR3
    if (before == member) unregister();
  }

  /// Gives back what the first one threw; nothing if it is not empty, and @p may_wait is false.
  std::optional<detail::ref> wait_until_empty(bool may_wait, const detail::place& where) const {
    struct now {
      std::uint64_t empty;
      detail::ref error;
    };
    const now at_first = carry_out(
        what,
        [](state& s) noexcept {
          if (s.registered == 0) return now{1, std::exchange(s.error, 0)};
          ++s.waiting;  // GR2: before the leaves are looked at
          return now{0, 0};
        },
        where, true);
    if (at_first.empty != 0) return at_first.error;
    for (std::uint32_t w = 0; w < detail::all_workers(); ++w)
      if (atomic_fetch_and(leaf_of(w), ~stays, order()) == stays) unregister();
    return carry_out_when(
        what,
        [](state& s) noexcept -> std::optional<detail::ref> {
          if (s.registered != 0) return std::nullopt;  // GR1
          --s.waiting;
          return std::exchange(s.error, 0);
        },
        may_wait, where);
  }

  global_ptr<std::uint64_t> leaves_;
};

namespace detail {
/// A member that others count on begins even if it is cancelled: it looks itself, and tells them.
template <class F>
concept looks_itself = requires {
  F::looks_itself;
};
template <class F>
struct group_member {
  group in;
  std::uint64_t leaf;  ///< a whole word: what is between members might look like the address of a frame
  F f;
  always_begins operator()() {
    in.be_member(
        leaf, [this] { static_cast<void>(std::move(f)()); }, !looks_itself<F>);
    return {};
  }
};
/// Of a member that is sent: where it is counted.
struct group_membership {
  group in;
  std::uint64_t leaf;
  /// encoded_call: a codec threw at its arguments.
  void not_called(ref error) const { in.no_member(leaf, error); }
};
template <class F, class... Args>
always_begins run_group_member(group_membership m, F f, Args... args) {
  m.in.be_member(m.leaf, [&] { static_cast<void>(std::invoke(std::move(f), std::move(args)...)); });
  return {};
}
}  // namespace detail

template <class Spawn>
void group::charge(Spawn&& spawn) const {
  const detail::group_membership m{*this, arrive()};
  try {
    spawn(m);
  } catch (...) {
    depart(m.leaf);
    throw;
  }
}

}  // namespace godwit
