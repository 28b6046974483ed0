// global_bytes: text, or any bytes, in global memory, with one owner; global_bytes_view: who only looks at
// them.
//
//   gw::global_bytes name("godwit");
//   gw::spawn([v = name.view()] { return v.str(); }).join();      // std::string
//
// The view is two words of plain bytes: capture it, keep it in a global_array or as a value of a global_map.
// It holds nothing once its owner is gone or has grown. Ownership and runs as in global_array.hpp.
// Tests: tests/global/bytes_test.cpp. See docs/containers.md.
#pragma once

#include <godwit/global_vector.hpp>

#include <algorithm>
#include <compare>
#include <cstring>
#include <ostream>
#include <string>
#include <string_view>

namespace godwit {

class global_bytes_view {
 public:
  static constexpr std::uint64_t npos = ~std::uint64_t{0};

  constexpr global_bytes_view() noexcept = default;
  constexpr global_bytes_view(global_ptr<const char> data, std::uint64_t size) noexcept
      : data_(data), size_(size) {}
  // NOLINT: implicit
  constexpr global_bytes_view(global_span<const char> s) noexcept : data_(s.data()), size_(s.size()) {}

  constexpr global_ptr<const char> data() const noexcept { return data_; }
  constexpr std::uint64_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr global_span<const char> span() const noexcept { return {data_, size_}; }
  constexpr global_ref<const char> operator[](std::uint64_t i) const noexcept {
    return data_[static_cast<std::ptrdiff_t>(i)];
  }

  /// Part of it, without copying. Throws std::out_of_range if @p first is behind the end.
  constexpr global_bytes_view substr(std::uint64_t first, std::uint64_t n = npos) const {
    if (first > size_)
      throw std::out_of_range("godwit: global_bytes_view::substr(" + std::to_string(first) + "): there are " +
                              std::to_string(size_) + " bytes");
    return {data_ + static_cast<std::ptrdiff_t>(first), std::min(n, size_ - first)};
  }
  /// A copy in the ordinary heap of the calling worker. One round trip per home.
  std::string str() const {
    std::string s(size_, '\0');
    if (size_ != 0) get(data_, s.data(), size_);
    return s;
  }
  /// The bytes in place, for as long as what this gives back is held (no spawn or join meanwhile).
  auto checkout(detail::place where = detail::place::here()) const {
    return span().checkout(access::read, where);
  }

  /// As std::string_view::compare: by unsigned bytes, then by length.
  int compare(global_bytes_view other) const {
    const std::uint64_t n = std::min(size_, other.size_);
    for (std::uint64_t i = 0; i < n && data_ != other.data_; i += piece) {
      const auto a = substr(i, std::min(piece, n - i)).checkout();
      const auto b = other.substr(i, std::min(piece, n - i)).checkout();
      if (const int c = std::memcmp(a.data(), b.data(), a.size()); c != 0) return c;
    }
    return size_ == other.size_ ? 0 : size_ < other.size_ ? -1 : 1;
  }
  int compare(std::string_view other) const {
    const std::uint64_t n = std::min<std::uint64_t>(size_, other.size());
    for (std::uint64_t i = 0; i < n; i += piece) {
      const auto a = substr(i, std::min(piece, n - i)).checkout();
      if (const int c = std::memcmp(a.data(), other.data() + i, a.size()); c != 0) return c;
    }
    return size_ == other.size() ? 0 : size_ < other.size() ? -1 : 1;
  }
  friend bool operator==(global_bytes_view a, global_bytes_view b) {
    return a.size_ == b.size_ && a.compare(b) == 0;
  }
  friend bool operator==(global_bytes_view a, std::string_view b) {
    return a.size_ == b.size() && a.compare(b) == 0;
  }
  friend std::strong_ordering operator<=>(global_bytes_view a, global_bytes_view b) {
    return a.compare(b) <=> 0;
  }
  friend std::strong_ordering operator<=>(global_bytes_view a, std::string_view b) {
    return a.compare(b) <=> 0;
  }
  friend std::ostream& operator<<(std::ostream& out, global_bytes_view v) { return out << v.str(); }

 private:
  static constexpr std::uint64_t piece = 64 << 10;
  global_ptr<const char> data_;
  std::uint64_t size_ = 0;
};

class global_bytes {
 public:
  static constexpr std::uint64_t npos = global_bytes_view::npos;

  /// Empty; allocates nothing. May be a global variable.
  constexpr global_bytes() noexcept = default;
  explicit global_bytes(std::string_view text, const distribution& d = distribution::local()) : bytes_(d) {
    bytes_.reserve(text.size());
    append(text);
  }
  /// A copy of its own of what @p v shows.
  explicit global_bytes(global_bytes_view v, const distribution& d = distribution::local()) : bytes_(d) {
    bytes_.reserve(v.size());
    append(v);
  }

  std::uint64_t size() const noexcept { return bytes_.size(); }
  std::uint64_t capacity() const noexcept { return bytes_.capacity(); }
  bool empty() const noexcept { return bytes_.empty(); }
  void reset() noexcept { bytes_.reset(); }

  // All that follow throw std::logic_error when the run is over.
  global_bytes_view view() const { return bytes_.span(); }
  operator global_bytes_view() const { return view(); }  // NOLINT: implicit on purpose
  global_span<char> span() { return bytes_.span(); }
  std::string str() const { return view().str(); }
  global_bytes_view substr(std::uint64_t first, std::uint64_t n = npos) const {
    return view().substr(first, n);
  }
  global_ref<char> operator[](std::uint64_t i) { return bytes_[i]; }
  global_ref<const char> operator[](std::uint64_t i) const { return bytes_[i]; }
  global_ref<char> at(std::uint64_t i) { return bytes_.at(i); }
  global_ref<const char> at(std::uint64_t i) const { return bytes_.at(i); }
  void clear() { bytes_.clear(); }
  void reserve(std::uint64_t n) { bytes_.reserve(n); }
  void push_back(char c) { bytes_.push_back(c); }
  /// Also of itself. Views from before hold nothing afterwards.
  global_bytes& append(std::string_view text) {
    bytes_.append(std::span<const char>(text.data(), text.size()));
    return *this;
  }
  global_bytes& append(global_bytes_view v) {
    bytes_.append(v.span());
    return *this;
  }
  global_bytes& operator+=(std::string_view text) { return append(text); }
  global_bytes& operator+=(global_bytes_view v) { return append(v); }
  template <class Mode>
  auto checkout(Mode mode, detail::place where = detail::place::here()) {
    return bytes_.checkout(mode, where);
  }
  auto checkout(access::read_t mode, detail::place where = detail::place::here()) const {
    return bytes_.checkout(mode, where);
  }

  int compare(global_bytes_view v) const { return view().compare(v); }
  int compare(std::string_view text) const { return view().compare(text); }
  friend bool operator==(const global_bytes& a, const global_bytes& b) { return a.view() == b.view(); }
  friend bool operator==(const global_bytes& a, std::string_view b) { return a.view() == b; }
  friend std::strong_ordering operator<=>(const global_bytes& a, const global_bytes& b) {
    return a.view() <=> b.view();
  }
  friend std::strong_ordering operator<=>(const global_bytes& a, std::string_view b) {
    return a.view() <=> b;
  }
  friend std::ostream& operator<<(std::ostream& out, const global_bytes& b) { return out << b.view(); }

 private:
  friend struct codec<global_bytes>;
  global_vector<char> bytes_;
};

/// As an argument or result the ownership travels.
template <>
struct codec<global_bytes> {
  static void write(writer& w, global_bytes& b) { w.put(b.bytes_); }
  static global_bytes read(reader& r) {
    global_bytes b;
    b.bytes_ = r.get<global_vector<char>>();
    return b;
  }
};

template <>
inline constexpr bool relocatable<global_bytes> = true;

}  // namespace godwit
