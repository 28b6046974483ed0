// expect: this type cannot be written as bytes
// The writer refuses what has no codec.
#include <godwit/godwit.hpp>

#include <fstream>

void use(godwit::writer& w, std::ofstream& f) { w.put(f); }
