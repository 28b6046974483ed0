// codec<T>: how a value that is not plain bytes travels between workers.
//
// Between workers that have no heap in common (several hosts; docs/heap.md) a result or argument of a thread
// must be
//   * plain: trivially destructible and trivially copyable or movable -- its bytes are its value; or
//   * coded: codec<T> is specialised. Strings, vectors, optionals, pairs, tuples, variants, smart
//     pointers, maps and the like come with one; users specialise codec for their own types:
//         template <> struct godwit::codec<shape> {
//           static void write(godwit::writer& w, const shape& s) { w.put(s.name); w.put(s.points); }
//           static shape read(godwit::reader& r) { auto n = r.get<std::string>(); ... }
//         };
// What read takes over beyond the bytes (a reference count, say) write announces by w.hands_over(). Then a
// result that nobody takes is read once and destroyed.
// Nothing is encoded unless the value really has to leave its worker and its heap. Cost: local; one copy of
// the bytes.
// Tests: tests/api/codec_test.cpp.
#pragma once

#include <godwit/detail/values.hpp>

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace godwit {

namespace detail {

/// Sequences that know their size and can be appended to.
template <class C>
struct sequence_codec {
  using value_type = typename C::value_type;
  static void write(writer& w, const C& c) {
    w.put(static_cast<std::uint64_t>(c.size()));
    for (const auto& e : c) w.put(e);
  }
  static C read(reader& r) {
    C c;
    for (auto n = r.get<std::uint64_t>(); n != 0; --n) c.insert(c.end(), r.template get<value_type>());
    return c;
  }
};

/// Maps: the key is const in value_type, so the halves travel one by one.
template <class M>
struct map_codec {
  static void write(writer& w, const M& m) {
    w.put(static_cast<std::uint64_t>(m.size()));
    for (const auto& [k, v] : m) {
      w.put(k);
      w.put(v);
    }
  }
  static M read(reader& r) {
    M m;
    for (auto n = r.get<std::uint64_t>(); n != 0; --n) {
      auto k = r.template get<typename M::key_type>();
      m.emplace_hint(m.end(), std::move(k), r.template get<typename M::mapped_type>());
    }
    return m;
  }
};

/// What compares or hashes is not written, but made anew by read: it must have no state.
template <class F>
concept stateless = std::is_empty_v<F> && std::is_default_constructible_v<F>;

}  // namespace detail

template <encodable T, class A>
struct codec<std::deque<T, A>> : detail::sequence_codec<std::deque<T, A>> {};
template <encodable T, class A>
struct codec<std::list<T, A>> : detail::sequence_codec<std::list<T, A>> {};
template <encodable T, detail::stateless L, class A>
struct codec<std::set<T, L, A>> : detail::sequence_codec<std::set<T, L, A>> {};
template <encodable T, detail::stateless H, detail::stateless E, class A>
struct codec<std::unordered_set<T, H, E, A>> : detail::sequence_codec<std::unordered_set<T, H, E, A>> {};
template <encodable K, encodable V, detail::stateless L, class A>
struct codec<std::map<K, V, L, A>> : detail::map_codec<std::map<K, V, L, A>> {};
template <encodable K, encodable V, detail::stateless H, detail::stateless E, class A>
struct codec<std::unordered_map<K, V, H, E, A>> : detail::map_codec<std::unordered_map<K, V, H, E, A>> {};

/// The pointee travels; a derived object behind a base pointer does not (it would be sliced).
template <class T>
requires(encodable<T> && !std::is_polymorphic_v<T>) struct codec<std::unique_ptr<T>> {
  static void write(writer& w, const std::unique_ptr<T>& p) {
    w.put(static_cast<bool>(p));
    if (p) w.put(*p);
  }
  static std::unique_ptr<T> read(reader& r) {
    if (!r.get<bool>()) return nullptr;
    return std::make_unique<T>(r.get<T>());
  }
};

}  // namespace godwit
