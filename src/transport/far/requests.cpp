// See requests.hpp.
#include "transport/far/requests.hpp"

#include "base/check.hpp"
#include "transport/shm/window.hpp"

#include <cstring>
#include <type_traits>

namespace godwit::transport::far {

namespace {

/// @p data: the pieces; afterwards what lies there, one after the other.
void gather(const shm::segment& memory, header& head, std::byte* data) noexcept {
  std::byte answer[inline_bytes];
  std::size_t n = 0;
  for (std::size_t i = 0; i < head.bytes; i += sizeof(piece)) {
    piece p;
    std::memcpy(&p, data + i, sizeof p);
    GODWIT_ASSERT(p.bytes <= inline_bytes - n, "what is gathered fits into one answer");
    std::memcpy(answer + n, memory.reach(head.target, reinterpret_cast<const std::byte*>(p.address)),
                p.bytes);
    n += p.bytes;
  }
  std::memcpy(data, answer, n);
  head.info = n;
}

/// @p data: each piece with its bytes behind it, rounded up to words.
void scatter(const shm::segment& memory, const header& head, const std::byte* data) noexcept {
  for (std::size_t i = 0; i < head.bytes;) {
    piece p;
    std::memcpy(&p, data + i, sizeof p);
    i += sizeof p;
    GODWIT_ASSERT(i <= head.bytes && p.bytes <= head.bytes - i, "what is scattered came along");
    std::memcpy(memory.reach(head.target, reinterpret_cast<std::byte*>(p.address)), data + i, p.bytes);
    i += (p.bytes + 7) / 8 * 8;
  }
}

}  // namespace

void execute_on(const shm::segment& memory, header& head, std::byte* data) noexcept {
  constexpr auto order = std::memory_order_seq_cst;
  auto* at = memory.reach(head.target, reinterpret_cast<word*>(head.address));
  GODWIT_ASSERT(inline_of_request(head) <= inline_bytes, "what travels inline has room there");
  switch (head.what) {
    case op::load:
      head.result = at->load(order);
      break;
    case op::store:
      at->store(head.a, order);
      break;
    case op::exchange:
      head.result = at->exchange(head.a, order);
      break;
    case op::compare_exchange: {
      std::uint64_t expected = head.a;
      at->compare_exchange_strong(expected, head.b, order, order);
      head.result = expected;
      break;
    }
    case op::fetch_add:
      head.result = at->fetch_add(head.a, order);
      break;
    case op::put:
      std::memcpy(reinterpret_cast<std::byte*>(at), data, head.bytes);
      base::fence();
      break;
    case op::get:
    case op::fence:
      base::fence();
      break;
    case op::call:
    case op::cast:
    case op::deliver:
      break;  // a higher layer's
    case op::atomic:
      head.result = apply_atomic(static_cast<atomic_function>(head.info), at,
                                 static_cast<unsigned>(head.bytes), head.a, head.b);
      break;
    case op::gather:
      gather(memory, head, data);
      base::fence();
      break;
    case op::scatter:
      scatter(memory, head, data);
      base::fence();
      break;
    case op::discard:
      shm::window::discard(at, head.a);
      break;
  }
}

std::uint64_t apply_atomic(atomic_function f, void* at, unsigned width, std::uint64_t a,
                           std::uint64_t expected) noexcept {
  constexpr auto order = std::memory_order_seq_cst;
  base::settle();
  GODWIT_ASSERT((width == 4 || width == 8) && (reinterpret_cast<std::uintptr_t>(at) & (width - 1)) == 0,
                "an atomic is of an aligned word");
  auto run = [&]<class U>(U) -> std::uint64_t {
    using S = std::make_signed_t<U>;
    std::atomic_ref<U> word(*static_cast<U*>(at));
    const U v = static_cast<U>(a);
    auto extreme = [&](auto better) {
      U now = word.load(order);
      while (better(now) && !word.compare_exchange_weak(now, v, order)) {
      }
      return now;
    };
    switch (f) {
      case atomic_function::load:
        return word.load(order);
      case atomic_function::store:
        word.store(v, order);
        return 0;
      case atomic_function::exchange:
        return word.exchange(v, order);
      case atomic_function::compare_exchange: {
        U e = static_cast<U>(expected);
        word.compare_exchange_strong(e, v, order);
        return e;
      }
      case atomic_function::fetch_add:
        return word.fetch_add(v, order);
      case atomic_function::fetch_and:
        return word.fetch_and(v, order);
      case atomic_function::fetch_or:
        return word.fetch_or(v, order);
      case atomic_function::fetch_xor:
        return word.fetch_xor(v, order);
      case atomic_function::min_signed:
        return extreme([&](U now) { return static_cast<S>(v) < static_cast<S>(now); });
      case atomic_function::max_signed:
        return extreme([&](U now) { return static_cast<S>(v) > static_cast<S>(now); });
      case atomic_function::min_unsigned:
        return extreme([&](U now) { return v < now; });
      case atomic_function::max_unsigned:
        return extreme([&](U now) { return v > now; });
    }
    return 0;
  };
  return width == 4 ? run(std::uint32_t{}) : run(std::uint64_t{});
}

}  // namespace godwit::transport::far
