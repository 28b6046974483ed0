// Programs whose threads own memory, on two or three simulated hosts with a heap each: who names the heap of
// its host stays there, and a block that is freed elsewhere ends the run. Part of programs.hpp.
#pragma once

#include "stress/programs.hpp"

#include <godwit/godwit.hpp>
#include <godwit/policy.hpp>
#include <godwit/sim.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace seeds {

namespace gw = godwit;
using stress::mix;

inline std::string text_of(std::uint64_t h) { return std::string(20 + h % 100, 'a') + std::to_string(h); }

/// A class of the program's own, without a codec.
struct person {
  std::string name;
  std::shared_ptr<std::uint64_t> number;
};

/// A tree of threads that own, each in its way, while those below run. Gives back how many nodes were right;
/// all have as many below them, whatever they are. P spawns.
template <class P>
struct owners {
  static constexpr bool goes_itself = P::migrates;  // else threads that have begun stay where they are

  std::uint64_t longest;  // that a node computes at a time

  void compute(std::uint64_t h) const { gw::sim::charge(mix(h) % longest); }

  /// Two subtrees, with something to do before, between and after.
  std::uint64_t below(std::uint64_t h, std::uint32_t depth) const {
    const owners own = *this;
    compute(h + 1);
    auto left = P::spawn([own, h, depth] { return own.node(mix(2 * h), depth - 1); });
    compute(h + 2);
    const std::uint64_t right = node(mix(2 * h + 1), depth - 1);
    compute(h + 3);
    return left.join() + right;
  }

  std::uint64_t node(std::uint64_t h, std::uint32_t depth) const {
    if (depth == 0) {
      compute(h);
      return 1;
    }
    if (h % 4 == 0) {  // owns nothing
      const std::uint64_t sum = below(h, depth);
      return sum + 1;
    }
    constexpr std::uint64_t (owners::*kinds[])(std::uint64_t, std::uint32_t)
        const = {&owners::locals,  &owners::pointers, &owners::captures,  &owners::texts, &owners::persons,
                 &owners::futures, &owners::errors,   &owners::arguments, &owners::shared};
    return (this->*kinds[mix(h + 4) % std::size(kinds)])(h, depth);
  }

  std::uint64_t locals(std::uint64_t h, std::uint32_t depth) const {
    std::string text = text_of(h);
    std::map<std::uint64_t, std::string> names{{h, text}};
    std::vector<std::uint64_t> numbers(10, h);
    const std::uint64_t sum = below(h, depth);
    text += "!";
    names[h + 1] = text;
    for (std::uint64_t i = 0; i < 100; ++i) numbers.push_back(i);
    return sum + (names.at(h) + "!" == text && text == text_of(h) + "!" && numbers[9] == h ? 1 : 0);
  }

  /// Freed by whoever has it last.
  std::uint64_t pointers(std::uint64_t h, std::uint32_t depth) const {
    const owners own = *this;
    const auto text = std::make_shared<std::string>(text_of(h));
    auto left = P::spawn([own, h, depth, text] {
      const auto again = text;
      const std::uint64_t sum = own.node(mix(2 * h), depth - 1);
      return sum + (*again == text_of(h) ? 0 : wrong);
    });
    compute(h + 1);
    const std::uint64_t right = node(mix(2 * h + 1), depth - 1);
    const std::uint64_t sum = left.join() + right;
    return sum + (text.use_count() == 1 && *text == text_of(h) ? 1 : 0);
  }

  std::uint64_t captures(std::uint64_t h, std::uint32_t depth) const {
    const owners own = *this;
    auto left = P::spawn([own, h, depth, text = std::make_unique<std::string>(text_of(h))] {
      own.compute(h + 1);
      const std::uint64_t sum = own.node(mix(2 * h), depth - 1);
      return sum + (*text == text_of(h) ? 0 : wrong);
    });
    compute(h + 2);
    const std::function<std::uint64_t()> right = [own, h, depth, text = text_of(h)] {
      return own.node(mix(2 * h + 1), depth - 1) + (text == text_of(h) ? 0 : wrong);
    };
    const std::uint64_t sum = right();
    return left.join() + sum + 1;
  }

  /// Results with a codec, which leave, while nothing else holds who waits for them.
  std::uint64_t texts(std::uint64_t h, std::uint32_t depth) const {
    const owners own = *this;
    auto text = P::spawn([own, h] {
      own.compute(h + 5);
      return text_of(h);
    });
    auto several = P::spawn([own, h] {
      std::vector<std::string> v(2, text_of(h));
      own.compute(h + 6);
      return v;
    });
    const std::uint64_t sum = below(h, depth);
    return sum + (several.join().at(1) == text.join() ? 1 : 0);
  }

  /// Without a codec: whose thread ends where it began, and who waits for it owns as well.
  std::uint64_t persons(std::uint64_t h, std::uint32_t depth) const {
    const owners own = *this;
    const person first{text_of(h), std::make_shared<std::uint64_t>(h)};
    auto second = P::spawn([own, first, h] {
      own.compute(h + 5);
      person p = first;
      p.name += "!";
      return p;
    });
    const std::uint64_t sum = below(h, depth);
    const person p = second.join();
    return sum + (p.name == first.name + "!" && p.number == first.number && *p.number == h ? 1 : 0);
  }

  std::uint64_t futures(std::uint64_t h, std::uint32_t depth) const {
    const owners own = *this;
    std::vector<gw::future<std::string>> all;
    for (std::uint64_t i = 0; i < 3; ++i)
      all.push_back(P::spawn([own, h, i] {
        own.compute(h + i);
        return text_of(h + i);
      }));
    const std::uint64_t sum = below(h, depth);
    std::uint64_t right = 0;
    for (std::uint64_t i = 0; i < 3; ++i) right += all[i].join() == text_of(h + i) ? 1 : 0;
    return sum + (right == 3 ? 1 : 0);
  }

  std::uint64_t errors(std::uint64_t h, std::uint32_t depth) const {
    const owners own = *this;
    std::exception_ptr kept;
    try {
      throw std::runtime_error(text_of(h));
    } catch (...) {
      kept = std::current_exception();
    }
    auto thrower = P::spawn([own, h, text = text_of(h + 1)] {
      own.compute(h + 5);
      if (h != 0) throw std::runtime_error(text);
      return 0;
    });
    const std::uint64_t sum = below(h, depth);
    std::uint64_t right = 0;
    try {
      static_cast<void>(thrower.join());
    } catch (const std::runtime_error& e) {
      right += e.what() == text_of(h + 1) ? 1 : 0;
    }
    try {
      std::rethrow_exception(kept);
    } catch (const std::runtime_error& e) {
      right += e.what() == text_of(h) ? 1 : 0;
    }
    return sum + (right == 2 ? 1 : 0);
  }

  /// To another worker as bytes, there an owner, which goes on to a third one, or is told that it stays.
  std::uint64_t arguments(std::uint64_t h, std::uint32_t depth) const {
    if constexpr (!goes_itself) {
      return locals(h, depth);
    } else {
      const owners own = *this;
      const auto there = [h](std::uint64_t n) {
        return gw::worker(static_cast<std::uint32_t>(mix(h + n) % gw::worker_count()));
      };
      auto sent = gw::spawn_at(
          there(5),
          [own, h](std::string text) {
            own.compute(h + 6);
            static_cast<void>(
                gw::migrate_to(gw::worker(static_cast<std::uint32_t>(mix(h + 7) % gw::worker_count()))));
            text += "!";
            return text;
          },
          text_of(h));
      std::string text = text_of(h);
      if (h % 3 == 0) static_cast<void>(gw::migrate_to(there(8)));
      if (h % 3 == 1) gw::yield();
      const std::uint64_t sum = below(h, depth);
      text += "!";
      return sum + (sent.join() == text ? 1 : 0);
    }
  }

  /// Several wait for one thread, which may end on another host, and own meanwhile.
  std::uint64_t shared(std::uint64_t h, std::uint32_t depth) const {
    if constexpr (!P::has_futures) {
      return locals(h, depth);
    } else {
      const owners own = *this;
      gw::shared_future<std::uint64_t> sum = P::spawn([own, h, depth] { return own.below(h, depth); });
      std::vector<gw::future<bool>> readers;
      for (std::uint64_t i = 0; i < 3; ++i)
        readers.push_back(P::spawn([own, h, i, sum]() mutable {
          std::string text = text_of(h + i);
          const std::uint64_t got = sum.get();
          text += std::to_string(got);
          return text == text_of(h + i) + std::to_string(got);
        }));
      bool right = true;
      for (auto& r : readers) right = r.join() && right;
      return sum.get() + (right ? 1 : 0);
    }
  }

  static constexpr std::uint64_t wrong = std::uint64_t{1} << 40;
};

}  // namespace seeds
