// on_all: SPMD regions. A function runs once for every worker, as a thread each, with collectives inside.
//
//   gw::on_all([=](gw::team t) {
//     const double mine = part(t.rank(), t.size());
//     const double all = t.all_reduce(mine);        // every member has the sum
//   });
//
// Members are threads like others: they may spawn, join and migrate, and who waits in a collective is
// suspended. So a member may run anywhere; `rank` is a number, not the worker's. Source: SPMD as in X10,
// Chapel and MPI (docs/control.md). Tests: tests/global/team_test.cpp.
#pragma once

#include <godwit/global_span.hpp>
#include <godwit/group.hpp>

#include <cstddef>
#include <cstdint>

namespace godwit {

namespace detail {

inline constexpr std::size_t team_value_bytes = 160;

struct team_state {
  std::uint64_t members, left, generation;
  control_step* what;            ///< that those do who have come: all the same
  std::uint32_t root, has_left;  ///< has_left: one more than the rank of one that threw
  place first;                   ///< where the first one came
  alignas(16) std::byte value[team_value_bytes];
  alignas(16) std::byte result[team_value_bytes];
};

template <class T>
struct team_call {
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  std::uint64_t generation;  ///< as in contribution
  std::uint32_t rank, root;
  place where;
  T value;
};
template <class T>
struct team_answer {
  enum class kind : std::uint64_t { value, mismatch, left };
  kind what;
  std::uint64_t rank;  ///< left: who
  place other;         ///< mismatch
  T value;
};

// How the values of a collective become one; @p first: the first one to come.
struct team_barrier {
  template <class T>
  static void combine(T&, const team_call<T>&, bool) noexcept {}
};
struct team_broadcast {
  template <class T>
  static void combine(T& value, const team_call<T>& mine, bool) noexcept {
    if (mine.rank == mine.root) value = mine.value;
  }
};
template <class Op, bool All>
struct team_reduce {
  template <class T>
  static void combine(T& value, const team_call<T>& mine, bool first) noexcept {
    value = first ? mine.value : T(Op{}(value, mine.value));
  }
};

template <class T, class How>
control_says team_step(void* at, void* closure, void* result) noexcept {
  using answer = team_answer<T>;
  auto& s = *static_cast<team_state*>(at);
  auto& generation = *static_cast<std::uint64_t*>(closure);
  const auto say = [&](const answer& a) {
    std::memcpy(result, std::addressof(a), sizeof a);
    return control_says::done;
  };
  if (generation == team_call<T>::none) {
    const value_of_bytes<team_call<T>> own(closure);
    const team_call<T>& mine = own.value;
    const bool first = s.left == s.members;
    if (s.has_left != 0) return say({answer::kind::left, s.has_left - 1, {}, mine.value});
    if (!first && (s.what != &team_step<T, How> || s.root != mine.root))
      return say({answer::kind::mismatch, 0, s.first, mine.value});
    if (first) {
      s.what = &team_step<T, How>;
      s.root = mine.root;
      s.first = mine.where;
    }
    T& value = *reinterpret_cast<T*>(s.value);
    How::combine(value, mine, first);
    if (--s.left != 0) {
      generation = s.generation;
      return control_says::waiting;
    }
    std::memcpy(s.result, s.value, sizeof(T));
    s.left = s.members;
    ++s.generation;
  } else if (generation == s.generation) {
    if (s.has_left == 0) return control_says::waiting;
    return say({answer::kind::left, s.has_left - 1, {}, *reinterpret_cast<const T*>(s.value)});
  }
  return say({answer::kind::value, 0, {}, *reinterpret_cast<const T*>(s.result)});
}

}  // namespace detail

/// What a member of an on_all region is given. Plain bytes; of use in the thread of that member only, and
/// threads that it joins: all members come to the same collectives in the same order, each once. What comes
/// to another one than the others throws std::logic_error with both places, and so does every collective
/// after a member left by an exception. Values: plain bytes, at most 160. Each collective costs one message
/// to the home for each member that is not on its host, and what the end of a thread costs that is waited
/// for.
class team : public detail::control_handle<detail::team_state> {
  using state = detail::team_state;
  static constexpr const char* what = "team";

 public:
  team() noexcept = default;
  std::uint32_t rank() const noexcept { return rank_; }
  std::uint32_t size() const noexcept { return size_; }

  /// Until all members have come. May migrate the thread, as all that follow.
  void barrier(detail::place where = detail::place::here()) const {
    static_cast<void>(collective<detail::team_barrier>(detail::no_value{}, 0, where));
  }
  /// The value of member @p root, for all. Throws std::out_of_range if there is no such member.
  template <class T>
  T broadcast(const T& value, std::uint32_t root = 0, detail::place where = detail::place::here()) const {
    return collective<detail::team_broadcast>(value, root, where);
  }
  /// What @p Op makes of the values of all, for all. Combined in the order in which they come, as in
  /// reduction.
  template <class T, class Op = std::plus<T>>
  T all_reduce(const T& value, Op = {}, detail::place where = detail::place::here()) const {
    static_assert(
        detail::control_operator<Op, T>,
        "godwit: the operator of a team's reduction is a type without members that combines two values");
    return collective<detail::team_reduce<Op, true>>(value, 0, where);
  }
  /// The same for member @p root; the others get nothing, and wait as well.
  template <class T, class Op = std::plus<T>>
  std::optional<T> reduce(const T& value, Op = {}, std::uint32_t root = 0,
                          detail::place where = detail::place::here()) const {
    static_assert(
        detail::control_operator<Op, T>,
        "godwit: the operator of a team's reduction is a type without members that combines two values");
    const T all = collective<detail::team_reduce<Op, false>>(value, root, where);
    return rank_ == root ? std::optional<T>(all) : std::nullopt;
  }

  /// The value of member r becomes all[r], and all have come: each may read the whole of it until one of them
  /// comes to the next collective that writes it. T: plain bytes of any size. Throws std::invalid_argument
  /// unless @p all has size() elements. Cost: a put for each member, and a barrier.
  template <class T>
  void all_gather(const T& value, global_span<T> all, detail::place where = detail::place::here()) const {
    if (all.size() != size_)
      throw std::invalid_argument("godwit: all_gather of a team of " + std::to_string(size_) + " into " +
                                  std::to_string(all.size()) + " elements: give it one for each member");
    all[rank_] = value;
    barrier(where);
  }

  /// Not an interface for users: what on_all is made of.
  static team make(std::uint32_t size, detail::place where) { return team(size, where); }
  void destroy(detail::place where = detail::place::here()) const { free(what, where); }
  team member(std::uint32_t rank) const noexcept {
    team t = *this;
    t.rank_ = rank;
    return t;
  }
  /// This member comes no more: nobody shall wait for it.
  void leave() const {
    static_cast<void>(carry_out(what,
                                [r = rank_](state& s) noexcept {
                                  if (s.has_left == 0) s.has_left = r + 1;
                                },
                                {}));
  }

 private:
  team(std::uint32_t size, const detail::place& where)
      : control_handle(initial(size), true, calling_worker, where), size_(size) {}
  static state initial(std::uint32_t size) noexcept {
    state s{};
    s.members = s.left = size;
    return s;
  }

  template <class How, class T>
  T collective(const T& value, std::uint32_t root, const detail::place& where) const {
    static_assert(plain<T> && sizeof(T) <= detail::team_value_bytes && alignof(T) <= 16,
                  "godwit: a value of a team's collective must be plain bytes, at most 160: it travels");
    using answer = detail::team_answer<T>;
    if (root >= size_)
      throw std::out_of_range("godwit: a team has no member " + std::to_string(root) + ": its size is " +
                              std::to_string(size_));
    detail::team_call<T> mine{detail::team_call<T>::none, rank_, root, where, value};
    const answer a = *this->template run<answer>(what, detail::team_step<T, How>, mine, true, where);
    if (a.what == answer::kind::left)
      detail::control_misused("a collective of a team",
                              "member " + std::to_string(a.rank) + " left by an exception, and comes no more",
                              where);
    if (a.what == answer::kind::mismatch)
      detail::control_misused("a collective of a team",
                              std::string("others are in another one, or have another root, at ") +
                                  (a.other.file != nullptr ? a.other.file : "?") + ":" +
                                  std::to_string(a.other.line) +
                                  ": all members come to the same ones in the same order",
                              where);
    return a.value;
  }

  std::uint32_t rank_ = 0, size_ = 0;
};

namespace detail {
/// The thread of a member. Whatever keeps it from its collectives, also that it is cancelled before it has
/// begun, it leaves the team: else the others would wait for it.
template <class F>
struct team_member {
  static constexpr bool looks_itself = true;
  F f;
  group in;
  team t;
  void operator()() const {
    ref error = 0;
    try {
      if (is_cancelled()) throw_cancelled();
      f(t);
    } catch (...) {
      error = capture_exception();
    }
    if (error != 0) give_up(in, t, error);
  }
  static void give_up(const group& in, const team& t, ref error) {
    in.failed(error);  // before what the others throw because of it
    t.leave();
  }
};
}  // namespace detail

/// Run f(team) once for each worker, as threads that may all wait for each other, and wait for all. Throws
/// what the first member threw that did; what others threw is dropped. In a cancelled scope that is
/// `cancelled`, when all that had begun have ended. @p f: plain bytes, copied for each. May migrate the
/// thread. Cost: worker_count() spawns, and group::make and wait.
template <class F>
void on_all(const F& f, detail::place where = detail::place::here()) {
  static_assert(plain<F> && std::is_invocable_v<F, team>,
                "godwit: on_all calls f(team) once for each worker: f must be plain bytes");
  const owned<group> g(calling_worker, where);
  const std::uint32_t n = worker_count();
  const owned<team> all(n, where);
  using member = detail::team_member<F>;
  detail::ref error = 0;
  for (std::uint32_t r = 0; r < n && error == 0; ++r) {
    try {
      g->spawn(member{f, g.get(), all->member(r)});
    } catch (...) {  // cancelled: those that are there must have ended before the team goes
      error = detail::capture_exception();
    }
    // One that has left is enough: from then on nobody waits in a collective.
    if (error != 0) member::give_up(g.get(), all->member(r), error);
  }
  g->wait(where);
}

}  // namespace godwit
