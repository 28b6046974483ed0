// The frames of a thread in private memory for a while, at the addresses where they lie in memory shared by
// processes: so a child that is forked meanwhile has them for itself. Whoever calls stands on another stack.
// Called by: src/runtime/forked.cpp. Test: tests/api/fork_test.cpp.
#pragma once

#include "stack/stack.hpp"

namespace godwit::stack {

class private_frames {
 public:
  /// The pages [@p low, @p all.high) of the stack @p all are private from now on; what they hold from @p live
  /// on is copied. False: no memory (errno), and nothing has happened -- or, hardly ever, there is no way
  /// back.
  [[nodiscard]] bool move_out(const range& all, std::uintptr_t low, std::uintptr_t live) noexcept;
  /// And back, with what they hold now.
  [[nodiscard]] bool move_back() noexcept;
  /// In the child: for ever, and with @p below bytes more. The rest of the stack is inaccessible.
  [[nodiscard]] bool keep(std::uintptr_t below) noexcept;

  bool moved() const noexcept { return moved_.high != 0; }

 private:
  range all_, moved_;
  std::uintptr_t live_ = 0;
  std::byte* shared_ = nullptr;  // where the shared pages are meanwhile
};

}  // namespace godwit::stack
