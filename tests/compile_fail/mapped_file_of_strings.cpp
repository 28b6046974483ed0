// expect: bytes of a file can be seen as trivially copyable types only
#include <godwit/godwit.hpp>
#include <string>

void use(godwit::mapped_file f) { static_cast<void>(f.as<std::string>()); }
