// See routed.hpp and docs/protocols/switch.md.
#include "gas/routed.hpp"

#include "base/check.hpp"
#include "base/unexposed.hpp"
#include "gas/translations.hpp"

#include <godwit/runtime.hpp>

#include <cstring>

namespace godwit::gas {

using transport::far::entry;
using transport::far::routed_bytes;

static_assert(sizeof(far_piece) + whole_words(largest_routed) <= routed_bytes, "a put fits");
static_assert(sizeof(place_answer) + whole_words(largest_routed) <= routed_bytes, "a get fits");
static_assert(sizeof(place_answer) <= transport::far::most_said, "what a put answers is remembered");

namespace {

/// The answer; a place_answer is at its beginning.
const entry& ask(const reach& net, part& p, place_call what, std::uint64_t argument,
                 std::span<const std::byte> text) noexcept {
  if (!net.has_switch()) net.hints().look_up(net, p);
  const std::uint32_t host = net.has_switch() ? net.host_of(p.home) : p.host;
  const entry& e = net.port().call_by_block(worker_no{net.first_of(host)}, block_of(net, *p.words),
                                            static_cast<std::uint64_t>(what), argument, text);
  place_answer said;
  std::memcpy(static_cast<void*>(&said), e.data, sizeof said);
  GODWIT_CHECK(said.what == place_says::done, "a routed call is answered when it is done");
  if (net.has_switch())
    net.stats().forwards += said.hops;
  else
    net.hints().answered(net, p, said);
  return e;
}

template <class T>
std::span<const std::byte> as_text(const T& t) noexcept {
  return std::as_bytes(std::span(&t, 1));
}

far_piece piece_of(const reach& net, const part& p) noexcept {
  return {p.name(net), static_cast<std::uint32_t>(p.bytes), reinterpret_cast<std::uint64_t>(net.at(p.at))};
}

}  // namespace

void get_routed(const reach& net, part& p) noexcept {
  const base::unexposed inside;
  const entry& e = ask(net, p, place_call::read, 1, as_text(piece_of(net, p)));
  copy_bytes(p.here, e.data + sizeof(place_answer), p.bytes);
}

void put_routed(const reach& net, part& p) noexcept {
  const base::unexposed inside;
  std::byte text[routed_bytes];
  const far_piece piece = piece_of(net, p);
  std::memcpy(text, &piece, sizeof piece);
  std::memcpy(text + sizeof piece, p.here, p.bytes);
  ask(net, p, place_call::write, 1, {text, sizeof piece + whole_words(p.bytes)});
}

std::uint64_t atomic_routed(const reach& net, part& p, atomic_function f, unsigned width,
                            std::uint64_t operand, std::uint64_t expected) noexcept {
  const base::unexposed inside;
  const far_atomic what{p.name(net), static_cast<std::uint32_t>(f),
                        width,       reinterpret_cast<std::uint64_t>(net.at(p.at)),
                        operand,     expected};
  return ask(net, p, place_call::atomic, 0, as_text(what)).head.result;
}

std::uint32_t owner_routed(const reach& net, part& p) noexcept {
  const base::unexposed inside;
  const far_place where = p.name(net);
  place_answer said;
  std::memcpy(static_cast<void*>(&said), ask(net, p, place_call::owner, 0, as_text(where)).data, sizeof said);
  return ownership::from(said.owner, p.home).worker;
}

}  // namespace godwit::gas
