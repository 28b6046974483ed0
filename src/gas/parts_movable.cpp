// Bytes of movable memory that other hosts have, or may have. See parts.hpp and docs/protocols/move.md.
#include "gas/parts.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/world.hpp"
#include "gas/translations.hpp"

#include <godwit/runtime.hpp>

#include <algorithm>
#include <cstring>
#include <span>

namespace godwit::gas {

using transport::far::entry;
using transport::far::inline_bytes;

namespace {

/// The most of what comes or goes by itself.
constexpr std::uint64_t largest_piece = transport::far::bounce_piece;

/// So often somebody is asked at once who was named by the one before; then after a while: MV9.
constexpr std::uint8_t most_redirects = 4;

std::uint64_t call_of(place_call c) noexcept { return static_cast<std::uint64_t>(c); }
worker_no target_of(const reach& net, const part& p) noexcept { return worker_no{net.first_of(p.host)}; }

far_piece piece_of(const reach& net, const part& p) noexcept {
  return {p.name(net), static_cast<std::uint32_t>(p.bytes), reinterpret_cast<std::uint64_t>(net.at(p.at))};
}
template <class T>
std::span<const std::byte> as_text(const T& t) noexcept {
  return std::as_bytes(std::span(&t, 1));
}
place_answer answer_of(const entry& e, std::size_t i = 0) noexcept {
  place_answer a;
  std::memcpy(static_cast<void*>(&a), e.data + i * sizeof a, sizeof a);
  return a;
}

/// By host and address, none too large.
void tidy(std::vector<part>& parts) noexcept {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].bytes <= largest_piece) continue;
    part rest = parts[i];
    rest.at += largest_piece;
    rest.here += largest_piece;
    rest.bytes -= largest_piece;
    rest.guess = part::guesses::none;  // one look-up
    parts[i].bytes = largest_piece;
    parts.push_back(rest);
  }
  std::sort(parts.begin(), parts.end(),
            [](const part& x, const part& y) { return x.host != y.host ? x.host < y.host : x.at < y.at; });
}

/// The parts from @p i on that travel together: of one host, small, and no more than fit.
/// @p room: what one takes.
template <class Room>
std::span<part> batch_from(std::vector<part>& parts, std::size_t i, Room&& room) noexcept {
  std::size_t n = 0;
  for (std::size_t bytes = 0;
       i + n < parts.size() && parts[i + n].host == parts[i].host && parts[i + n].bytes <= largest_packed &&
       bytes + room(parts[i + n]) <= inline_bytes;
       ++n)
    bytes += room(parts[i + n]);
  return {parts.data() + i, std::max<std::size_t>(n, 1)};
}

void leave(const reach& net, part& p, const place_answer& said, std::vector<part>& left) noexcept {
  p.follow(net, said);
  left.push_back(p);
}
/// What was asked has answered. False: not with @p p, which is left.
bool got(const reach& net, part& p, const place_answer& said, std::vector<part>& left) noexcept {
  net.hints().answered(net, p, said);
  if (said.what != place_says::done) leave(net, p, said, left);
  return said.what == place_says::done;
}

/// One that does not fit into a message with others.
void fetch_large(const reach& net, part& p, std::vector<part>& left) noexcept {
  // Into the window at once; elsewhere by way of the own segment.
  const bool direct = p.here == net.at(p.at);
  std::byte* const landing = direct ? p.here : net.port().bounce();
  const entry& e = net.port().call(target_of(net, p), call_of(place_call::read), 1,
                                   reinterpret_cast<std::uint64_t>(landing), as_text(piece_of(net, p)));
  if (got(net, p, answer_of(e), left) && !direct) std::memcpy(p.here, landing, p.bytes);
}

/// Its owner is asked to keep it in use while the bytes are under way.
void write_large(const reach& net, part& p, std::vector<part>& left) noexcept {
  const worker_no target = target_of(net, p);
  const far_place where = p.name(net);
  if (!got(net, p, answer_of(net.port().call(target, call_of(place_call::use), 0, 0, as_text(where))), left))
    return;
  net.port().put(target, net.at(p.at), p.here, p.bytes);  // answered, or before what follows: far.md, Order
  if (p.bytes <= inline_bytes) net.port().fence(target);
  // Awaited: later it would end a use of whatever lies there by then.
  net.port().call(target, call_of(place_call::end_use), 0, 0, as_text(where));
}

}  // namespace

void part::follow(const reach& net, const place_answer& said) noexcept {
  const gas::place mine = place(net);
  sent_on = false;
  redirects = std::max(redirects, static_cast<std::uint8_t>(said.hops));  // MV12
  if (said.what == place_says::elsewhere) {
    const ownership told = ownership::from(said.owner, home);
    const bool newer = told.version > version;
    net.hints().learn(net, *this, told);
    if (redirects <= most_redirects) ++redirects;
    guess_from(net, mine.owner(home));
    const bool ask_home = redirects == 2 && !net.is_near(home);  // MV9
    if (ask_home) host = net.host_of(home);
    sent_on = newer || ask_home;
  }
  // What is to come here, or has just left, cannot be asked here.
  if (host != net.my_host()) return;
  guess_from(net, mine.owner(home));
  sent_on = false;
}

void later::wait() noexcept {
  net_.port().idle();
  base::nap(ns_);
  ns_ = std::min(2 * ns_, most_ns);
}

void part_wait::wait(global_address at) noexcept {
  if (since_ns_ == 0) {
    since_ns_ = base::fast_ns();
    at_ = at;
  }
  more_.wait();
}

void part_wait::wait_for(const std::vector<part>& left) noexcept {
  if (std::none_of(left.begin(), left.end(), [](const part& p) { return p.sent_on; })) wait(left.front().at);
}

void part_wait::ended() noexcept {
  ++net_.stats().part_waits;
  net_.stats().part_wait_ns += base::fast_ns() - since_ns_;
  if (net_.seen()) net_.note({.what = part_event::kind::waited, .allocation = at_, .since_ns = since_ns_});
}

namespace {

std::uint64_t fetch_once(const reach& net, std::vector<part>& parts, std::vector<part>& left) noexcept {
  tidy(parts);
  std::uint64_t requests = 0;
  std::byte text[inline_bytes];
  for (std::size_t i = 0; i < parts.size();) {
    const std::span<part> batch = batch_from(parts, i, [](const part& p) {
      return std::max(sizeof(far_piece), sizeof(place_answer) + whole_words(p.bytes));
    });
    i += batch.size();
    if (batch[0].host == net.my_host()) {
      for (part& p : batch) leave(net, p, {}, left);
      continue;
    }
    ++requests;
    if (batch[0].bytes > largest_packed) {
      fetch_large(net, batch[0], left);
      continue;
    }
    std::byte* to = text;
    for (const part& p : batch) {
      const far_piece piece = piece_of(net, p);
      std::memcpy(to, &piece, sizeof piece);
      to += sizeof piece;
    }
    const entry& e =
        net.port().call(target_of(net, batch[0]), call_of(place_call::read), batch.size(), 0, {text, to});
    const std::byte* bytes = e.data + batch.size() * sizeof(place_answer);
    for (std::size_t k = 0; k < batch.size(); ++k) {
      part& p = batch[k];
      if (!got(net, p, answer_of(e, k), left)) continue;
      std::memcpy(p.here, bytes, p.bytes);
      bytes += whole_words(p.bytes);
    }
  }
  return requests;
}

std::uint64_t write_once(const reach& net, std::vector<part>& parts, std::vector<part>& left) noexcept {
  tidy(parts);
  std::uint64_t requests = 0;
  std::byte text[inline_bytes];
  for (std::size_t i = 0; i < parts.size();) {
    const std::span<part> batch =
        batch_from(parts, i, [](const part& p) { return sizeof(far_piece) + whole_words(p.bytes); });
    i += batch.size();
    if (batch[0].host == net.my_host()) {
      for (part& p : batch) leave(net, p, {}, left);
      continue;
    }
    ++requests;
    if (batch[0].bytes > largest_packed) {
      write_large(net, batch[0], left);
      continue;
    }
    std::byte* to = text;
    for (const part& p : batch) {
      const far_piece piece = piece_of(net, p);
      std::memcpy(to, &piece, sizeof piece);
      std::memcpy(to + sizeof piece, p.here, p.bytes);
      to += sizeof piece + whole_words(p.bytes);
    }
    const entry& e =
        net.port().call(target_of(net, batch[0]), call_of(place_call::write), batch.size(), 0, {text, to});
    for (std::size_t k = 0; k < batch.size(); ++k)
      static_cast<void>(got(net, batch[k], answer_of(e, k), left));
  }
  return requests;
}

/// Do @p once with @p parts, and again at once with those that were sent on.
template <class F>
std::uint64_t follow_on(const reach& net, std::vector<part>& parts, std::vector<part>& left,
                        F&& once) noexcept {
  std::vector<part> refused;
  std::uint64_t requests = once(net, parts, refused);
  while (!refused.empty()) {
    std::vector<part> again;
    for (const part& p : refused) (p.sent_on && p.redirects <= most_redirects ? again : left).push_back(p);
    refused.clear();
    requests += once(net, again, refused);
  }
  return requests;
}

}  // namespace

std::uint64_t fetch_places(const reach& net, std::vector<part>& parts, std::vector<part>& left) noexcept {
  return follow_on(net, parts, left, fetch_once);
}

std::uint64_t write_places(const reach& net, std::vector<part>& parts, std::vector<part>& left) noexcept {
  return follow_on(net, parts, left, write_once);
}

place_answer atomic_at(const reach& net, part& p, atomic_function f, unsigned width, std::uint64_t operand,
                       std::uint64_t expected, std::uint64_t& before) noexcept {
  const base::unexposed inside;
  const far_atomic what{p.name(net), static_cast<std::uint32_t>(f),
                        width,       reinterpret_cast<std::uint64_t>(net.at(p.at)),
                        operand,     expected};
  const entry& e = net.port().call(target_of(net, p), call_of(place_call::atomic), 0, 0, as_text(what));
  before = e.head.result;
  const place_answer said = answer_of(e);
  net.hints().answered(net, p, said);
  return said;
}

place_answer owner_at(const reach& net, part& p) noexcept {
  if (p.host == net.my_host()) return {};
  const base::unexposed inside;
  const far_place where = p.name(net);
  const place_answer said =
      answer_of(net.port().call(target_of(net, p), call_of(place_call::owner), 0, 0, as_text(where)));
  net.hints().answered(net, p, said);
  return said;
}

void call_places(const reach& net, std::uint32_t host, place_call what, std::span<const far_move> moves,
                 place_answer* answers) noexcept {
  const base::unexposed inside;
  const entry& e =
      net.port().call(worker_no{net.first_of(host)}, call_of(what), moves.size(), 0, std::as_bytes(moves));
  for (std::size_t i = 0; i < moves.size(); ++i) answers[i] = answer_of(e, i);
}

}  // namespace godwit::gas
