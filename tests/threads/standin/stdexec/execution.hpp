// As much of C++26's std::execution, under stdexec's name, as godwit/scheduler.hpp uses: no package has
// stdexec. For senders_test.cpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stdexec {

struct scheduler_tag {};
struct sender_tag {};
struct receiver_tag {};

template <class... Queries>
struct env {};
template <class T>
decltype(auto) get_env(const T& of) noexcept {
  if constexpr (requires { of.get_env(); })
    return of.get_env();
  else
    return env<>();
}

struct inplace_stop_source;
struct inplace_stop_token {
  const inplace_stop_source* source = nullptr;
  bool stop_requested() const noexcept;
};
struct inplace_stop_source {
  std::atomic<bool> requested{false};
  void request_stop() noexcept { requested = true; }
  inplace_stop_token get_token() const noexcept { return {this}; }
};
inline bool inplace_stop_token::stop_requested() const noexcept {
  return source != nullptr && source->requested;
}
inline constexpr struct get_stop_token_t {
  template <class Env>
  inplace_stop_token operator()(const Env& e) const noexcept {
    if constexpr (requires { e.query(*this); })
      return e.query(*this);
    else
      return {};
  }
} get_stop_token;

template <class Tag>
struct get_completion_scheduler_t {};
template <class Tag>
struct get_completion_domain_t {};
struct get_forward_progress_guarantee_t {};
enum class forward_progress_guarantee { concurrent, parallel, weakly_parallel };
struct default_domain {};

struct set_value_t {};
struct set_error_t {};
struct set_stopped_t {};
template <class R, class... V>
void set_value(R&& r, V&&... v) noexcept {
  std::forward<R>(r).set_value(std::forward<V>(v)...);
}
template <class R, class E>
void set_error(R&& r, E&& e) noexcept {
  std::forward<R>(r).set_error(std::forward<E>(e));
}
template <class R>
void set_stopped(R&& r) noexcept {
  std::forward<R>(r).set_stopped();
}
template <class... Ways>
struct completion_signatures {};

template <class S, class R>
auto connect(S&& s, R r) {
  return std::forward<S>(s).connect(std::move(r));
}
template <class Operation>
void start(Operation& o) noexcept {
  o.start();
}

// The values of a sender: one way, by signatures or as the senders below say.
template <class S, template <class...> class Tuple>
struct values_of;
template <class S, template <class...> class Tuple>
requires(requires { S::template get_completion_signatures<S>(); }) struct values_of<S, Tuple> {
  using type = Tuple<>;
};
template <class S, template <class...> class Tuple>
requires(requires { typename S::template values<Tuple>; }) struct values_of<S, Tuple> {
  using type = typename S::template values<Tuple>;
};
template <class S, class Env, template <class...> class Tuple, template <class...> class Ways>
using value_types_of_t = Ways<typename values_of<std::remove_cvref_t<S>, Tuple>::type>;

template <class... V>
struct just_sender {
  using sender_concept = sender_tag;
  template <template <class...> class Tuple>
  using values = Tuple<V...>;
  std::tuple<V...> kept;
  template <class R>
  struct operation {
    std::tuple<V...> kept;
    R r;
    void start() & noexcept {
      std::apply([&](V&... v) { stdexec::set_value(std::move(r), std::move(v)...); }, kept);
    }
  };
  template <class R>
  auto connect(R r) && {
    return operation<R>{std::move(kept), std::move(r)};
  }
};
template <class... V>
auto just(V... v) {
  return just_sender<V...>{{std::move(v)...}};
}

/// What f(values...) gives back, a sender, is begun when @p child has completed with them: none here.
template <class Child, class F>
struct let_value_sender {
  using sender_concept = sender_tag;
  template <template <class...> class Tuple>
  using values = typename std::invoke_result_t<F&>::template values<Tuple>;
  Child child;
  F f;
  template <class R>
  struct state {
    F f;
    R r;
    struct then {
      state* s;
      void set_value() && noexcept {
        try {
          auto next = stdexec::connect(s->f(), std::move(s->r));
          stdexec::start(next);
        } catch (...) {
          stdexec::set_error(std::move(s->r), std::current_exception());
        }
      }
      void set_stopped() && noexcept { stdexec::set_stopped(std::move(s->r)); }
      auto get_env() const noexcept { return stdexec::get_env(s->r); }
    };
  };
  template <class R>
  struct operation {
    state<R> s;
    decltype(stdexec::connect(std::declval<Child>(), typename state<R>::then{})) first;
    operation(let_value_sender&& l, R r)
        : s{std::move(l.f), std::move(r)},
          first(stdexec::connect(std::move(l.child), typename state<R>::then{&s})) {}
    operation(operation&&) = delete;
    void start() & noexcept { stdexec::start(first); }
  };
  template <class R>
  auto connect(R r) && {
    return operation<R>(std::move(*this), std::move(r));
  }
};
template <class Child, class F>
auto let_value(Child&& child, F f) {
  return let_value_sender<std::remove_cvref_t<Child>, F>{std::forward<Child>(child), std::move(f)};
}

inline constexpr struct sequenced_policy {
} seq;
inline constexpr struct parallel_policy {
} par;
inline constexpr struct parallel_unsequenced_policy {
} par_unseq;
struct bulk_chunked_t {};
struct bulk_unchunked_t {};
template <class Policy, class Shape, class F>
struct bulk_data {
  Policy policy;
  Shape shape;
  F f;
};
/// A description: domains make a sender of it.
template <class Tag, class Data, class Child>
struct bulk_sender {
  Tag tag;
  Data data;
  Child child;
};
template <class S>
struct tag_of;
template <class Tag, class Data, class Child>
struct tag_of<bulk_sender<Tag, Data, Child>> : std::type_identity<Tag> {};
template <class S>
using tag_of_t = typename tag_of<std::remove_cvref_t<S>>::type;

namespace parallel_scheduler_replacement {

struct receiver_proxy {
  inplace_stop_token token;
  virtual ~receiver_proxy() = default;
  virtual void set_value() noexcept = 0;
  virtual void set_stopped() noexcept = 0;
  template <class P>
  std::optional<P> try_query(get_stop_token_t) const noexcept {
    return token;
  }
};
struct bulk_item_receiver_proxy : receiver_proxy {
  virtual void execute(std::size_t begin, std::size_t end) noexcept = 0;
};
struct parallel_scheduler_backend {
  virtual ~parallel_scheduler_backend() = default;
  virtual void schedule(receiver_proxy&, std::span<std::byte>) noexcept = 0;
  virtual void schedule_bulk_chunked(std::size_t, bulk_item_receiver_proxy&,
                                     std::span<std::byte>) noexcept = 0;
  virtual void schedule_bulk_unchunked(std::size_t, bulk_item_receiver_proxy&,
                                       std::span<std::byte>) noexcept = 0;
};

}  // namespace parallel_scheduler_replacement

}  // namespace stdexec
