// What a value needs in order to travel between workers, and the codecs of values that most programs have:
// strings, vectors, arrays, pairs, tuples, optionals, variants. The rest, and how to write one: codec.hpp.
#pragma once

#include <godwit/detail/language.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace godwit {

/// Primary template: no codec. A specialisation provides
/// `static void write(writer&, const T&)` and `static T read(reader&)`.
template <class T>
struct codec;

/// The value is its bytes (also std::pair and std::tuple of such, move-only handles, enums, pointers).
/// Raw pointers pass: whether what they point to can be reached elsewhere is the program's business.
template <class T>
concept plain = std::is_object_v<T> && std::is_trivially_destructible_v<T> &&
    (std::is_trivially_copy_constructible_v<T> || std::is_trivially_move_constructible_v<T>);

class writer;
class reader;

/// codec<T> is specialised and usable.
template <class T>
concept coded = !plain<T> && requires(writer & w, reader& r, T& v) {
  codec<T>::write(w, v);
  { codec<T>::read(r) } -> std::same_as<T>;
};

/// Values of T can be written down as bytes.
template <class T>
concept encodable = plain<T> || coded<T>;

/// The program is compiled with GODWIT_ONLY_THREADS: it runs on substrate threads and refuses others.
#ifdef GODWIT_ONLY_THREADS
inline constexpr bool only_threads = true;
#else
inline constexpr bool only_threads = false;
#endif

/// Means something in its process only: OS threads and locks, file streams.
template <class T>
concept process_bound = requires {
  typename T::native_handle_type;
}
|| requires(T& t) { t.rdbuf()->is_open(); };

/// Values of T can be handed from worker to worker: moved where workers have one heap (docs/heap.md), else as
/// bytes, for which T must be encodable: the run ends with T's name when such a value of another type has to
/// leave its worker.
template <class T>
concept migratable = encodable<T> ||
    (std::move_constructible<T>&& std::is_object_v<T> && (only_threads || !process_bound<T>));

namespace detail {
/// A value has to leave its worker, and nobody can write it as bytes. Ends the run.
[[noreturn, gnu::cold]] void codec_missing(const char* type) noexcept;

/// Bytes between members hold what was there before: perhaps what looks like the address of a local variable.
/// False: they still do.
template <class F>
bool clear_padding([[maybe_unused]] F& f) noexcept {
#if __has_builtin(__builtin_clear_padding)
  if constexpr (std::is_trivially_copyable_v<F>) {
    __builtin_clear_padding(&f);
    return true;
  }
#endif
  return false;
}
}  // namespace detail

/// Collects the encoded form. Local; grows like a vector.
class writer {
 public:
  /// @p again: the values stay, for others to read as well, so handles in them must not be taken out.
  explicit writer(bool again = false) noexcept : again_(again) {}
  bool again() const noexcept { return again_; }
  /// What was put owns more than its bytes, and read() takes it over. A result that nobody takes is then read
  /// once and destroyed, when its last reader is gone. Futures and owners of global memory call this.
  void hands_over() noexcept { hands_over_ = true; }
  bool has_owners() const noexcept { return hands_over_; }
  /// Append @p n raw bytes.
  void bytes(const void* data, std::size_t n) {
    const auto* first = static_cast<const std::byte*>(data);
    buffer_.insert(buffer_.end(), first, first + n);
  }
  /// Append a value of any encodable type.
  template <class T>
  void put(const T& value) {
    static_assert(encodable<std::remove_cv_t<T>>,
                  "godwit: this type cannot be written as bytes: make it trivially copyable or specialise "
                  "godwit::codec<T>");
    if constexpr (plain<T>)
      bytes(__builtin_addressof(value), sizeof(T));
    else
      codec<T>::write(*this, const_cast<T&>(value));  // handles give up their reference when written
  }
  const std::byte* data() const noexcept { return buffer_.data(); }
  std::size_t size() const noexcept { return buffer_.size(); }

 private:
  std::vector<std::byte> buffer_;
  bool again_;
  bool hands_over_ = false;
};

/// Takes values off an encoded form, in the order in which they were put.
class reader {
 public:
  /// @p again: the same bytes may be read by others, too, so handles in them must not be taken over.
  reader(const std::byte* data, std::size_t size, bool again = false) noexcept
      : at_(data), end_(data + size), again_(again) {}
  bool again() const noexcept { return again_; }
  /// Copy @p n raw bytes out. Throws std::length_error when fewer are left (writer and reader disagree).
  void bytes(void* to, std::size_t n) {
    if (n != 0) std::memcpy(to, take(n), n);
  }
  /// @p n raw bytes in place, valid as long as the encoded form.
  const std::byte* take(std::size_t n) {
    if (n > static_cast<std::size_t>(end_ - at_))
      throw std::length_error("godwit::reader: a codec read more bytes than its writer put");
    const std::byte* p = at_;
    at_ += n;
    return p;
  }
  /// Next value of an encodable type.
  template <class T>
  T get() {
    static_assert(encodable<T>,
                  "godwit: this type cannot be written as bytes: make it trivially copyable or specialise "
                  "godwit::codec<T>");
    if constexpr (plain<T>) {
      alignas(T) std::byte raw[sizeof(T)];
      std::memcpy(raw, take(sizeof(T)), sizeof(T));
      return std::move(*std::launder(reinterpret_cast<T*>(raw)));
    } else {
      return codec<T>::read(*this);
    }
  }

 private:
  const std::byte* at_;
  const std::byte* end_;
  bool again_;
};

template <class C, class Tr, class A>
struct codec<std::basic_string<C, Tr, A>> {
  static void write(writer& w, const std::basic_string<C, Tr, A>& s) {
    w.put(static_cast<std::uint64_t>(s.size()));
    w.bytes(s.data(), s.size() * sizeof(C));
  }
  static std::basic_string<C, Tr, A> read(reader& r) {
    const auto n = r.get<std::uint64_t>();
    std::basic_string<C, Tr, A> s(n, C{});
    r.bytes(s.data(), n * sizeof(C));
    return s;
  }
};

template <encodable T, class A>
struct codec<std::vector<T, A>> {
  static void write(writer& w, const std::vector<T, A>& v) {
    w.put(static_cast<std::uint64_t>(v.size()));
    if constexpr (plain<T> && !std::is_same_v<T, bool>)
      w.bytes(v.data(), v.size() * sizeof(T));
    else
      for (const auto& e : v) w.put(static_cast<const T&>(e));
  }
  static std::vector<T, A> read(reader& r) {
    const auto n = r.get<std::uint64_t>();
    std::vector<T, A> v;
    if constexpr (plain<T> && std::is_default_constructible_v<T> && !std::is_same_v<T, bool>) {
      const std::byte* from = r.take(n * sizeof(T));
      v.resize(n);
      if (n != 0) std::memcpy(static_cast<void*>(v.data()), from, n * sizeof(T));
    } else {
      v.reserve(n);
      for (std::uint64_t i = 0; i < n; ++i) v.push_back(r.get<T>());
    }
    return v;
  }
};

template <class T, std::size_t N>
requires(encodable<T> && !plain<std::array<T, N>>) struct codec<std::array<T, N>> {
  static void write(writer& w, const std::array<T, N>& a) {
    for (const auto& e : a) w.put(e);
  }
  static std::array<T, N> read(reader& r) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<T, N>{((void)I, r.get<T>())...};
    }
    (std::make_index_sequence<N>{});
  }
};

template <class A, class B>
requires(encodable<A>&& encodable<B> && !plain<std::pair<A, B>>) struct codec<std::pair<A, B>> {
  static void write(writer& w, const std::pair<A, B>& p) {
    w.put(p.first);
    w.put(p.second);
  }
  static std::pair<A, B> read(reader& r) {
    auto a = r.get<A>();
    return {std::move(a), r.get<B>()};
  }
};

template <class... T>
requires((encodable<T> && ...) && !plain<std::tuple<T...>>) struct codec<std::tuple<T...>> {
  static void write(writer& w, const std::tuple<T...>& t) {
    std::apply([&](const T&... e) { (w.put(e), ...); }, t);
  }
  // Braces: the elements are read left to right.
  static std::tuple<T...> read(reader& r) { return std::tuple<T...>{r.get<T>()...}; }
};

template <class T>
requires(encodable<T> && !plain<std::optional<T>>) struct codec<std::optional<T>> {
  static void write(writer& w, const std::optional<T>& o) {
    w.put(o.has_value());
    if (o) w.put(*o);
  }
  static std::optional<T> read(reader& r) {
    if (!r.get<bool>()) return std::nullopt;
    return r.get<T>();
  }
};

template <class... T>
requires((encodable<T> && ...) && !plain<std::variant<T...>>) struct codec<std::variant<T...>> {
  using variant = std::variant<T...>;
  static void write(writer& w, const variant& v) {
    w.put(static_cast<std::uint64_t>(v.index()));
    std::visit([&](const auto& e) { w.put(e); }, v);  // a valueless variant throws bad_variant_access
  }
  static variant read(reader& r) { return read_at<0>(r, r.get<std::uint64_t>()); }

 private:
  template <std::size_t I>
  static variant read_at(reader& r, std::uint64_t index) {
    if constexpr (I < sizeof...(T)) {
      if (index == I) return variant(std::in_place_index<I>, r.get<std::variant_alternative_t<I, variant>>());
      return read_at<I + 1>(r, index);
    } else {
      throw std::length_error("godwit::codec<std::variant>: no such alternative");
    }
  }
};

}  // namespace godwit
