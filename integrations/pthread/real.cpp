// See real.hpp.
#include "real.hpp"

#include <cstdio>
#include <dlfcn.h>
#include <unistd.h>

namespace godwit::pthread {

namespace {
struct entry {
  const char* name;
  void** place;
};
#define F(name) extern "C" __attribute__((visibility("hidden"))) void* godwit_real_##name;
#include "functions.def"
#undef F
const entry all[] = {
#define F(name) {#name, &godwit_real_##name},
#include "functions.def"
#undef F
};

[[noreturn]] void missing() noexcept {
  static constexpr char text[] =
      "godwit-pthread: the C library has no such function: this is for glibc 2.34 and later\n";
  static_cast<void>(!::write(2, text, sizeof text - 1));
  _exit(70);
}
}  // namespace

void godwit_pthread_resolve(void** place) noexcept {
  for (const entry& e : all) {
    if (e.place != place) continue;
    void* p = dlsym(RTLD_NEXT, e.name);
    // Names that a version of the library may lack end the program only when they are called.
    *place = p != nullptr ? p : reinterpret_cast<void*>(missing);
  }
}

void resolve_all() noexcept {
  for (const entry& e : all) godwit_pthread_resolve(e.place);
}

}  // namespace godwit::pthread
