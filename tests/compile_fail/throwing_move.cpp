// expect: of a thread.* must be nothrow move constructible
// Between spawn and child there is nobody to catch.
#include <godwit/godwit.hpp>

struct careful {
  careful() = default;
  careful(careful&&) noexcept(false) {}
  ~careful() {}
  int operator()() { return 1; }
};

int use() { return godwit::spawn(careful{}).join(); }
