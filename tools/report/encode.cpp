// Numbers into few bytes. See encode.hpp.
//
// A piece is: byte (state, or 15 for a mixture; for busy pieces + 16 x how it began), duration in ns, then
//   busy      thread minus the previous busy piece's thread (zigzag), name + 1, other worker + 1,
//             byte (how it ended), place + 1 if it ended in a wait
//   mixture   number of pieces in it, nanoseconds of each state
#include "encode.hpp"

#include <algorithm>
#include <array>

namespace godwit::report {
namespace {

constexpr unsigned mixture = 15;

void put_number(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void put_signed(std::string& out, std::int64_t value) {
  put_number(out, (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

/// One worker's pieces, neighbours below the threshold put together.
class piece_writer {
 public:
  piece_writer(std::string& out, std::uint64_t threshold) : out_(out), threshold_(threshold) {}

  void add(const segment& s) {
    const std::uint64_t duration = s.end - s.begin;
    if (duration >= threshold_) {
      flush();
      exact(s);
      return;
    }
    if (held_ == 0) first_ = s;
    ++held_;
    together_ += duration;
    ns_[static_cast<std::size_t>(s.what)] += duration;
    if (together_ >= threshold_) flush();
  }
  void flush() {
    if (held_ == 1) exact(first_);
    if (held_ > 1) {
      out_.push_back(static_cast<char>(mixture));
      put_number(out_, together_);
      put_number(out_, held_);
      for (const std::uint64_t ns : ns_) put_number(out_, ns);
      ++written_;
    }
    held_ = together_ = 0;
    ns_ = {};
  }
  std::uint64_t written() const noexcept { return written_; }

 private:
  void exact(const segment& s) {
    ++written_;
    if (s.what != state::busy) {
      out_.push_back(static_cast<char>(s.what));
      put_number(out_, s.end - s.begin);
      return;
    }
    out_.push_back(static_cast<char>(static_cast<unsigned>(s.begun) << 4));
    put_number(out_, s.end - s.begin);
    put_signed(out_, static_cast<std::int64_t>(s.thread) - last_thread_);
    last_thread_ = s.thread;
    put_number(out_, s.name == nothing ? 0 : std::uint64_t{s.name} + 1);
    put_number(out_, s.other == nothing ? 0 : std::uint64_t{s.other} + 1);
    out_.push_back(static_cast<char>(s.ended));
    if (s.ended == loss::join || s.ended == loss::wait)
      put_number(out_, s.place == nothing ? 0 : std::uint64_t{s.place} + 1);
  }
  std::string& out_;
  std::uint64_t threshold_, written_ = 0;
  segment first_{};
  std::uint64_t held_ = 0, together_ = 0;
  std::array<std::uint64_t, states> ns_{};
  std::int64_t last_thread_ = 0;
};

bool try_encode(const std::vector<std::vector<segment>>& timeline, encoded_timeline& result,
                std::size_t most_bytes, std::uint64_t from, std::uint64_t to) {
  result.bytes.clear();
  result.pieces = 0;
  std::string line;
  for (const auto& segments : timeline) {
    line.clear();
    piece_writer writer(line, result.threshold_ns);
    for (segment s : segments) {
      s.begin = std::max(s.begin, from);
      s.end = std::min(s.end, to);
      if (s.end > s.begin) writer.add(s);
      if (result.bytes.size() + line.size() > most_bytes) return false;
    }
    writer.flush();
    put_number(result.bytes, writer.written());
    result.bytes += line;
    result.pieces += writer.written();
  }
  return true;
}

}  // namespace

encoded_timeline encode_timeline(const std::vector<std::vector<segment>>& timeline, std::size_t most_bytes,
                                 std::uint64_t from, std::uint64_t to) {
  encoded_timeline result;
  if (try_encode(timeline, result, most_bytes, from, to)) return result;
  // Pieces of less than a millionth of all workers' time could not fit anyway; then up in steps of 1.4.
  const double workers = static_cast<double>(std::max<std::size_t>(timeline.size(), 1));
  double threshold =
      std::max(1.0, static_cast<double>(to - from) * workers / static_cast<double>(most_bytes));
  for (;; threshold *= 1.4) {
    result.threshold_ns = static_cast<std::uint64_t>(threshold);
    if (try_encode(timeline, result, most_bytes, from, to) || threshold > static_cast<double>(to - from))
      return result;
  }
}

encoded_series encode_steps(const steps& series, std::size_t most_steps, std::uint64_t end) {
  encoded_series result;
  const auto& list = series.list();
  if (list.size() <= most_steps) {
    put_number(result.bytes, list.size());
    std::uint64_t last = 0;
    for (const auto& s : list) {
      const auto value = static_cast<std::uint64_t>(std::max(s.value, 0));
      put_number(result.bytes, s.time - last);
      put_number(result.bytes, value << 8);
      put_number(result.bytes, value);
      last = s.time;
    }
    return result;
  }
  result.bin_ns = std::max<std::uint64_t>(1, end / most_steps + 1);
  const std::uint64_t bins = (end + result.bin_ns - 1) / result.bin_ns;
  put_number(result.bytes, bins);
  std::size_t next = 0;
  std::int32_t value = 0;
  for (std::uint64_t b = 0; b < bins; ++b) {
    const std::uint64_t from = b * result.bin_ns, to = from + result.bin_ns;
    std::int32_t most = value;
    double sum = 0;
    std::uint64_t at = from;
    for (; next < list.size() && list[next].time < to; ++next) {
      sum += static_cast<double>(list[next].time - at) * value;
      at = list[next].time;
      value = list[next].value;
      most = std::max(most, value);
    }
    sum += static_cast<double>(to - at) * value;
    put_number(result.bytes, b == 0 ? 0 : result.bin_ns);
    put_number(result.bytes,
               static_cast<std::uint64_t>(std::max(0.0, sum * 256 / static_cast<double>(to - from))));
    put_number(result.bytes, static_cast<std::uint64_t>(std::max(most, 0)));
  }
  return result;
}

std::string base64(const std::string& bytes) {
  static constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j)
      out.push_back(i + j <= bytes.size() ? letters[group >> (18 - 6 * j) & 63] : '=');
  }
  return out;
}

}  // namespace godwit::report
