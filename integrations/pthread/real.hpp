// The C library's own functions, behind those that this library exports under the same names.
//
// REAL(read)(...) is the C library's read; so is a plain read(...) anywhere in this library and in the
// objects of libgodwit.a that are linked into it (the linker's --wrap: CMakeLists.txt). Not for <read> in the
// file that defines the exported one. The trampolines are in real.S; found by dlsym when first called, or by
// resolve_all() before. docs/decisions/0013-pthread.md.
#pragma once

#define REAL(name) __wrap_##name
#define GODWIT_REAL(name) extern "C" decltype(::name) __wrap_##name
#define GODWIT_EXPORT extern "C" __attribute__((visibility("default")))
#define GODWIT_EXPORT_NORETURN extern "C" __attribute__((visibility("default"), noreturn))

namespace godwit::pthread {
/// Find the one whose address belongs at @p place. Called by the trampolines. One at a time: what the dynamic
/// loader does to say that there is no such name allocates memory, and the program's allocator may come back
/// here for another name.
extern "C" void godwit_pthread_resolve(void** place) noexcept;
/// Find them all. Harmless to repeat.
void resolve_all() noexcept;
}  // namespace godwit::pthread
